"""What the agent takes of a board while it does nothing: `python benchmarks/footprint.py`.

A connected, idle agent's resident memory beside that of its bare imports, and how often any of its
threads wakes up; how long `roof-agent --version` takes; and the bytes that a spool writes for records
synced one by one beside an SQLite journal (WAL, synchronous=FULL). Medians; the last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_BARE = "import grpc, google.protobuf.message, psutil, time\nprint(flush=True)\ntime.sleep(60)\n"
_AGENT = """
import sys, tempfile, time
from pathlib import Path
from roof_agent.platform.discovery import boot_id, discover
from roof_agent.session import Session
from roof_agent.spool import open_spool
with tempfile.TemporaryDirectory() as folder:
    session = Session(sys.argv[1], open_spool(Path(folder)), discover(), boot_id())
    session.start()
    assert session.plan(10) is not None, session.state
    print(flush=True)
    time.sleep(60)
"""
_RECORD = "('p', 's', 'seconds', Outcome.OK, repetitions=tuple(0.001 * n for n in range(30)))"
_SPOOL = f"""
import sys
from pathlib import Path
from roof_agent.records import Measurement, Outcome
from roof_agent.spool import DiskSpool
spool = DiskSpool(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    spool.append("0123abcd-0000", Measurement{_RECORD})
print(open("/proc/self/io").read())
"""
_SQLITE = f"""
import sqlite3, sys
from roof_agent.records import Measurement, Outcome, Record
from roof_agent.wire import record_message
base = sqlite3.connect(sys.argv[1] + "/spool.sqlite", isolation_level=None)
base.execute("pragma journal_mode=wal")
base.execute("pragma synchronous=full")
base.execute("create table record (run text, seq integer, data blob, primary key (run, seq)) without rowid")
for n in range(int(sys.argv[2])):
    data = record_message(Record(n, Measurement{_RECORD})).SerializeToString()
    base.execute("insert into record values ('0123abcd-0000', ?, ?)", (n, data))
print(open("/proc/self/io").read())
"""


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[int]:
    """Run Python until it prints its first line, yield its process id, and end it."""
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGKILL)


def environment() -> dict[str, str]:
    """Return the environment in which children find the packages that are found here."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@contextlib.contextmanager
def collector(folder: str) -> Iterator[str]:
    """Run a collector and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["-m", "roof_collector.cli", "serve", "--listen", f"127.0.0.1:{port}", "--web", "127.0.0.1:0"]
    command += ["--database", f"sqlite:///{folder}/collector.sqlite"]
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
            time.sleep(0.1)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def resident_mb(pid: int) -> float:
    """Return a process's resident memory."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def switches(pid: int) -> int:
    """Return how often a process's threads have been switched to, wanted or not."""
    return sum(
        int(line.split()[1])
        for path in Path(f"/proc/{pid}/task").glob("*/status")
        for line in path.read_text().splitlines()
        if "ctxt_switches" in line
    )


def written(script: str, records: int) -> int:
    """Return the bytes that a script writes to the disk for so many records."""
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [sys.executable, "-c", script, folder, str(records)],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return int(said.split("\nwrite_bytes: ")[1].split()[0])


def version_seconds() -> float:
    """Return how long `roof-agent --version` takes."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "roof_agent.cli", "--version"]
    subprocess.run(command, env=environment(), capture_output=True, check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--idle-seconds", type=float, default=15.0)
    parser.add_argument("--records", type=int, default=300)
    chosen = parser.parse_args()
    agent, bare, idle, version = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, collector(folder) as address:
        for _ in range(chosen.repeat):
            with started("-c", _BARE) as pid:
                bare.append(resident_mb(pid))
            with started("-c", _AGENT, address) as pid:
                # What starting left to do is done.
                time.sleep(5)
                agent.append(resident_mb(pid))
                before = switches(pid)
                time.sleep(chosen.idle_seconds)
                idle.append((switches(pid) - before) / chosen.idle_seconds)
            version.append(version_seconds())
            print(
                f"agent {agent[-1]:.1f} MiB, bare {bare[-1]:.1f} MiB, {idle[-1]:.1f} switches/s, "
                f"--version {version[-1]:.3f} s"
            )
    spool, sqlite = written(_SPOOL, chosen.records), written(_SQLITE, chosen.records)
    print(f"{chosen.records} records: spool {spool} bytes, SQLite {sqlite} bytes")
    median = statistics.median
    result = {
        "bench": "footprint",
        "agent_rss_mb": round(median(agent), 1),
        "bare_rss_mb": round(median(bare), 1),
        "cost_rss_ratio": round(median(a / b for a, b in zip(agent, bare, strict=True)), 3),
        "idle_switches_per_s": round(median(idle), 1),
        "version_seconds": round(median(version), 3),
        # A file system in memory writes nothing.
        "cost_spool_bytes_ratio": round(spool / sqlite, 3) if sqlite else None,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
