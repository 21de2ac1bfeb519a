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


_AGENT = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import Board
board = Board(sys.argv[2], Path(sys.argv[3]))
print(board.run_id, flush=True)
for number in range(1, 1_000_000):
    board.find(1)
    print(number, flush=True)
    time.sleep(float(sys.argv[4]))
"""


class Agent:
    """A process that measures and sends without end, and says what it has in its spool."""

    def __init__(self, address: str, spool: Path, pause_seconds: float) -> None:
        here = str(Path(__file__).parent)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AGENT, here, address, str(spool), str(pause_seconds)],
            stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        assert self._process.stdout is not None
        self._said = self._process.stdout
        self.run_id = self._said.readline().strip()
        self.kept = 0

    def keep(self, count: int) -> None:
        """Wait until so many more records are in its spool."""
        for _ in range(count):
            self.kept = int(self._said.readline())

    def kill(self) -> None:
        self._process.kill()
        self.kept = max([self.kept, *(int(line) for line in self._said)])
        self._said.close()
        self._process.wait()

    def judge(self, collector: Collector) -> None:
        """Assert that all it had is stored once, as it was."""
        stored = collector.rows(self.run_id)
        # The record that was being written when it was killed may be there, too.
        assert len(stored) in {self.kept, self.kept + 1}
        for number, row in enumerate(stored):
            assert row == (number + 1, f"s{number}", (number + 0.25,) * 3)
        assert not collector.ended(self.run_id)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def send(address: str, spool: Path) -> None:
    """Have `roof-agent send` deliver what waits."""
    command = ["-m", "roof_agent.cli", "send", "--collector", address, "--spool", str(spool)]
    sent = subprocess.run(
        [sys.executable, *command],
        env=environment(), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    assert not list((spool / "runs").iterdir())


def test_f3_the_agent_is_killed_and_the_next_one_sends_the_rest(collector: Collector, tmp_path: Path) -> None:
    agent = Agent(collector.address, tmp_path / "spool", 0)
    agent.keep(50)
    agent.kill()
    send(collector.address, tmp_path / "spool")
    agent.judge(collector)


def test_whoever_is_killed_at_random_nothing_is_lost_or_doubled(
    collector: Collector, proxy: Proxy, tmp_path: Path
) -> None:
    """`ROOFLINE_KILLS` says how often; a release is tried with 200."""
    chance = random.Random(os.environ.get("ROOFLINE_SEED", "3"))
    spool = tmp_path / "spool"
    agents = [Agent(proxy.address, spool, 0.005)]
    for _ in range(int(os.environ.get("ROOFLINE_KILLS", "6"))):
        agents[-1].keep(chance.randrange(40))
        victim = chance.choice(["agent", "collector", "network", "cut"])
        if victim == "agent":
            agents[-1].kill()
            agents.append(Agent(proxy.address, spool, 0.005))
        elif victim == "collector":
            collector.kill()
            agents[-1].keep(chance.randrange(40))
            collector.up()
        else:
            proxy.cut_after_bytes = chance.randrange(5000) if victim == "cut" else None
            proxy.reset()
    proxy.cut_after_bytes = None
    agents[-1].kill()
    send(proxy.address, spool)
    for agent in agents:
        agent.judge(collector)


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
        # The proxy may still hold what was sent before.
        time.sleep(0.1)
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
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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
