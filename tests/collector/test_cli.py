"""The command line, as its users meet it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roof_agent.records import Measurement, Record
from roof_agent.wire import device_message, record_message
from roof_collector import __version__
from roof_collector.cli import main
from roof_collector.commands import VERBS
from roof_collector.commands.completion import FOLDER, SHELLS
from roof_collector.ingest.convert import device_columns, rows_of
from roof_collector.store.engine import open_database
from roof_collector.store.rows import Batch, Greeting
from roof_collector.store.writes import write

RUN = "0123-4567-89ab"
FINGERPRINT = "f" * 64


@pytest.fixture
def stored(
    store_url: str,
    request: pytest.FixtureRequest,
    run_of: Callable[..., list[Record]],
    measurement: Measurement,
) -> str:
    """A database with one run of one board."""
    engine = open_database(store_url)
    facts = device_columns(device_message(request.getfixturevalue("device")), "0.1.0")
    rows = rows_of(map(record_message, run_of(measurement)), FINGERPRINT)
    with engine.begin() as connection:
        write(connection, [Greeting(facts, (), "s")], 1)
    with engine.begin() as connection:
        write(connection, [Batch(1, RUN, "s", rows)], 2)
    engine.dispose()
    return store_url


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_board_and_its_run_are_listed(stored: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = run(capsys, "devices", "--database", stored)
    assert re.search(r"^f{12} +board +4 x cortex-a72 .*complete$", table, re.MULTILINE)
    devices = json.loads(run(capsys, "devices", "--database", stored, "--json"))["devices"]["rows"]
    assert [(one["fingerprint"], one["runs"]) for one in devices] == [(FINGERPRINT, 1)]

    table = run(capsys, "runs", "--database", stored)
    assert re.search(rf"^{RUN} +f{{12}} +board +quick .* complete +1 +0 +0$", table, re.MULTILINE)
    (one,) = json.loads(run(capsys, "runs", "--database", stored, "--json", "--device", "fff"))["runs"]
    assert (one["run_id"], one["fingerprint"], one["state"]) == (RUN, FINGERPRINT, "complete")
    assert json.loads(run(capsys, "runs", "--database", stored, "--json", "--device", "e"))["runs"] == []


def test_a_run_is_exported_with_every_repetition(stored: str, capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, Any] = json.loads(run(capsys, "export", RUN[:6], "--json", "--database", stored))
    assert document["schema"] == 1
    assert document["run"]["run_id"] == RUN
    (found,) = document["measurements"]
    assert found["repetitions"] == [1.0, 1.25, 2.0, 3.0, 4.0]
    assert [node["name"] for node in found["network"]["nodes"]] == ["conv1", ""]
    # A wildcard is a letter like any other.
    assert main(["export", "%", "--database", stored]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["devices", "--database", "sqlite:///missing.sqlite"], "there is no database missing.sqlite"),
        (["runs", "--limit", "0"], "--limit is 1 or more"),
        (["serve", "--listen", "0.0.0.0:0"], "0.0.0.0:0 can be reached from other machines.*--insecure"),
        (["serve", "--web", "[::]:0"], "can be reached from other machines"),
        (["serve", "--listen", "50051"], "is no address"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"roof-collector: .*{words}.*\n", said.err)
    assert list(tmp_path.iterdir()) == []


def test_an_upgrade_makes_an_empty_database(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "db", "upgrade", "--database", database) == ""
    assert "fingerprint" not in run(capsys, "runs", "--database", database, "--json")


def test_the_version_needs_nothing_heavy() -> None:
    code = (
        "import sys; from roof_collector.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sqlalchemy', 'alembic', 'grpc', 'fastapi', 'uvicorn', 'onnx', 'numpy', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"roof-collector {__version__}\n[]\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_committed_completion_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = run(capsys, "completion", shell)
    assert script == (FOLDER / f"roof-collector.{shell}").read_text(encoding="utf-8")


def test_every_verb_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert [verb for verb in VERBS if not re.search(rf"^    {verb}\s+\S", said, re.MULTILINE)] == []


def test_serving_says_where_and_ends_at_a_signal(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'store.sqlite'}"
    addresses = ["--listen", "0.0.0.0:0", "--web", "127.0.0.1:0", "--insecure"]
    process = subprocess.Popen(
        [sys.executable, "-m", "roof_collector.cli", "serve", "--database", database, *addresses],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        lines = [process.stderr.readline() for _ in range(3)]
        assert lines[0].startswith("agents: roof-agent --collector 0.0.0.0:")
        assert lines[1].startswith("pages:  http://127.0.0.1:")
        assert lines[2] == "warning: 0.0.0.0:0 is open to the network without encryption\n"
        page = asyncio.run(get(int(lines[1].rstrip("/\n").rpartition(":")[2])))
        assert page.startswith(b"HTTP/1.1 200")
        os.kill(process.pid, signal.SIGTERM)
        assert (process.wait(20), process.stderr.read()) == (0, "")
    finally:
        process.kill()
        process.communicate()


async def get(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /devices.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer
