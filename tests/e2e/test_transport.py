"""Whatever happens to the network or to either side, each record is stored once and none is lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.conftest import Board, Collector, Proxy


def wait_for(condition: object, seconds: float = 15.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_network_is_no_obstacle_where_it_has_no_faults(collector: Collector, board: Board) -> None:
    board.find(1200)
    assert board.end()
    board.judge(collector)


def test_f1_the_collector_is_killed_in_the_middle_of_batches(collector: Collector, board: Board) -> None:
    chance = random.Random(1)
    for _ in range(3):
        board.find(300)
        time.sleep(chance.uniform(0, 0.1))
        collector.kill()
        board.find(100)
        collector.up()
    assert board.end()
    board.judge(collector)


def test_f3_the_agent_is_killed_and_the_next_one_sends_the_rest(collector: Collector, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from conftest import Board\n"
        "board = Board(sys.argv[2], Path(sys.argv[3]))\n"
        "print(board.run_id, flush=True)\n"
        "while True:\n"
        "    board.find(1)\n"
        "    print(board._count, flush=True)\n"
    )
    arguments = [str(Path(__file__).parent), collector.address, str(tmp_path / "spool")]
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as agent:
        assert agent.stdout is not None
        run_id = agent.stdout.readline().strip()
        for _ in range(50):
            agent.stdout.readline()
        agent.kill()
        counts = [int(line) for line in agent.stdout]
    kept = max(counts, default=50)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    sent = subprocess.run(
        [
            sys.executable, "-m", "roof_agent.cli", "send",
            "--collector", collector.address, "--spool", str(tmp_path / "spool"),
        ],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    stored = collector.rows(run_id)
    # The record under way when it was killed may be there, too.
    assert len(stored) in {kept, kept + 1}
    assert [(seq, subject) for seq, subject, _ in stored] == [(n + 1, f"s{n}") for n in range(len(stored))]
    assert not collector.ended(run_id)
    assert not list((tmp_path / "spool" / "runs").iterdir())


def test_f13_every_connection_is_cut_at_a_byte_until_it_is_not(
    collector: Collector, board: Board, proxy: Proxy
) -> None:
    for cut in (1, 9, 24, 100, 333, 1000, 5000, 20000):
        proxy.cut_after_bytes = cut
        proxy.reset()
        board.find(400 if cut > 1000 else 20)
        before = proxy.connections
        wait_for(lambda before=before: proxy.connections >= before + 3)
    proxy.cut_after_bytes = None
    assert board.end()
    board.judge(collector)


def test_f13_connections_are_reset(collector: Collector, board: Board, proxy: Proxy) -> None:
    for _ in range(10):
        board.find(200)
        time.sleep(0.03)
        proxy.reset()
    assert board.end()
    board.judge(collector)


def test_f13_a_black_hole_is_noticed_and_left(collector: Collector, board: Board, proxy: Proxy) -> None:
    board.find(10)
    assert board.session.drain(10)
    proxy.black_hole = True
    # Far more than the buffers on the way hold: the sender gets stuck.
    board.find(200, repetitions=5000)
    before = proxy.connections
    wait_for(lambda: proxy.connections > before)
    proxy.black_hole = False
    assert board.end()
    board.judge(collector)


def test_f13_a_frozen_collector_is_waited_for(collector: Collector, board: Board) -> None:
    board.find(10)
    assert board.session.drain(10)
    collector.freeze()
    board.find(1000)
    assert not board.session.drain(2)
    collector.thaw()
    assert board.end()
    board.judge(collector)


def test_f14_a_slow_link_carries_everything(collector: Collector, board: Board, proxy: Proxy) -> None:
    proxy.delay_seconds = 0.05
    proxy.bytes_per_s = 100_000.0
    board.find(500)
    assert board.end()
    board.judge(collector)
    # What was too much to be acknowledged in time is sent in smaller batches.
    assert proxy.connections <= 5


def test_f16_a_second_stream_of_the_device_disturbs_no_other_run(
    collector: Collector, board: Board, tmp_path: Path
) -> None:
    other = type(board)(collector.address, tmp_path / "other")
    board.find(300)
    other.find(300)
    assert board.end()
    assert other.end()
    board.judge(collector)
    other.judge(collector)
    other.close()


def test_quiet_is_kept_while_the_collector_comes_and_goes(
    collector: Collector, board: Board, proxy: Proxy
) -> None:
    board.find(10)
    assert board.session.drain(10)
    with board.session.quiet():
        board.find(10)
        before = proxy.forwarded_bytes
        collector.kill()
        time.sleep(0.3)
        collector.up()
        time.sleep(0.3)
        assert proxy.forwarded_bytes == before
    assert board.end()
    board.judge(collector)


def test_a_whole_run_survives_the_killing_of_its_collector(collector: Collector, tmp_path: Path) -> None:
    output = tmp_path / "run.jsonl"
    with subprocess.Popen(
        [
            sys.executable, "-m", "roof_agent.cli", "--quick", "--probe", "peak",
            "--collector", collector.address, "--output", str(output), "--spool", str(tmp_path / "spool"),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as agent:  # fmt: skip
        wait_for(lambda: output.exists() and output.read_text().count("\n") >= 2, 60)
        collector.kill()
        wait_for(lambda: output.read_text().count("\n") >= 3, 60)
        collector.up()
        _, said = agent.communicate(timeout=120)
    assert agent.returncode == 0, said
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    found = [(line["seq"], line["measurement"]["subject"]) for line in lines if "measurement" in line]
    assert len(found) >= 2
    run_id = lines[0]["run"]
    assert [(seq, subject) for seq, subject, _ in collector.rows(run_id)] == found
    assert collector.ended(run_id)
