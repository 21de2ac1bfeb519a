"""Nothing is sent or synced while a kernel is timed: asserted by the agent's system calls."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

CALLS = "write,writev,pwrite64,sendmsg,sendmmsg,sendto,fsync,fdatasync,sync,execve"


def can_trace():
    tool = shutil.which("strace")
    return bool(tool) and subprocess.run([tool, "-o", os.devnull, "true"], check=False).returncode == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def collector(tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "roof_collector.cli", "serve", "--listen", f"127.0.0.1:{port}",
            "--web", "127.0.0.1:0", "--database", f"sqlite:///{tmp_path}/x.sqlite",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    end = time.monotonic() + 30
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait(timeout=20)


def timed_sections(path):
    """Yield each measurement's repetitions as (begin, end) on the wall clock."""
    start = None
    for line in path.read_text().splitlines():
        document = json.loads(line)
        start = document.get("start", start)
        found = document.get("measurement", {})
        if found.get("outcome") == "ok":
            wall_offset = (start["wall_unix_ns"] - start["monotonic_ns"]) / 1e9
            end = wall_offset + found["started_monotonic_ns"] / 1e9 + found["elapsed_seconds"]
            seconds = sum(found["work"]["flops"] / rate for rate in found["repetitions"])
            yield end - seconds, end


@pytest.mark.skipif(not can_trace(), reason="needs strace, and to be allowed to use it")
def test_nothing_is_sent_or_synced_in_a_timed_section(collector, tmp_path):
    trace, lines = tmp_path / "trace", tmp_path / "run.jsonl"
    agent = [
        sys.executable, "-m", "roof_agent.cli", "--quick", "--probe", "peak", "--collector", collector,
        "--spool", str(tmp_path / "spool"), "--output", str(lines), "-q", "--backend", "numpy",
    ]  # fmt: skip
    done = subprocess.run(
        ["strace", "-f", "-ttt", "-o", str(trace), "-e", f"trace={CALLS}", *agent],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sections = list(timed_sections(lines))
    assert len(sections) == 4
    calls = [line.split(None, 2) for line in trace.read_text().splitlines()]
    calls = [(float(at), call) for _, at, call in calls if call.startswith(tuple(CALLS.split(",")))]
    # The trace sees what it is meant to: records are sent and synced, between the sections.
    assert any(call.startswith("fdatasync") for _, call in calls)
    assert any(call.startswith("sendmsg") for _, call in calls)
    inside = [call for at, call in calls for begin, end in sections if begin <= at <= end]
    assert inside == []
