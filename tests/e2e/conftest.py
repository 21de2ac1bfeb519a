"""A faulty network, the real collector in a process of its own, and an oracle over its database."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roof_agent.platform.discovery import discover
from roof_agent.records import Measurement, Outcome, RunEnd, RunStart, Statistics
from roof_agent.session import Session
from roof_agent.session_state import Timing
from roof_agent.spool import DiskSpool
from roof_collector.store.packing import unpack_doubles

_READY_SECONDS = 30.0
# As `roof-agent send` says it, or what it sends would be another board's.
DEVICE = discover()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


class Proxy:
    """A TCP proxy on loopback whose faults can be set while it runs.

    `delay_seconds` and `bytes_per_s` slow what goes to the target; `cut_after_bytes` resets each
    connection when so many have gone there; while `black_hole` is set nothing passes and nobody is told.
    """

    def __init__(self, target_port: int) -> None:
        self.delay_seconds = 0.0
        self.bytes_per_s: float | None = None
        self.cut_after_bytes: int | None = None
        self.black_hole = False
        self.forwarded_bytes = 0
        self.connections = 0
        self._target_port = target_port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        """Break every connection with a RST."""
        for pair in self._pairs:
            for end in pair:
                _abort(end)
        self._pairs.clear()

    def close(self) -> None:
        self._server.close()
        self.reset()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            try:
                far = socket.create_connection(("127.0.0.1", self._target_port), 5)
            except OSError:
                _abort(near)
                continue
            self._pairs.append((near, far))
            threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        sent = 0
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in ready.select(0.05):
                    if self.black_hole:
                        time.sleep(0.01)
                        continue
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(4096)
                    if not data:
                        raise OSError("closed")
                    if key.fileobj is near:
                        data = self._spoil(data, sent)
                        sent += len(data)
                        self.forwarded_bytes += len(data)
                    key.data.sendall(data)
                    if self.cut_after_bytes is not None and sent >= self.cut_after_bytes:
                        raise OSError("cut")
        _abort(near)
        _abort(far)

    def _spoil(self, data: bytes, sent: int) -> bytes:
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        if self.bytes_per_s:
            time.sleep(len(data) / self.bytes_per_s)
        return data if self.cut_after_bytes is None else data[: max(self.cut_after_bytes - sent, 0)]


def _abort(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Wakes whoever reads from it; closing alone doesn't.
        end.close()


class Collector:
    """`roof-collector serve` on a database file, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.web_port = free_port()
        self.database = folder / "collector.sqlite"
        self._log = folder / "collector.log"
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        command = [
            sys.executable, "-m", "roof_collector.cli", "serve",
            "--listen", self.address,
            "--web", f"127.0.0.1:{self.web_port}",
            "--database", f"sqlite:///{self.database}",
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            )
        assert soon(self._listens, _READY_SECONDS), self._log.read_text()

    def kill(self) -> None:
        """End it as a power cut ends a process: it can't do anything about it."""
        self._end(signal.SIGKILL)

    def down(self) -> None:
        if self._process is not None:
            self._end(signal.SIGTERM)

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        return self._log.read_text()

    def rows(self, run_id: str) -> list[tuple[int, str, tuple[float, ...]]]:
        """Return number, subject and repetitions of each of a run's stored measurements, in order."""
        return [
            (seq, subject, unpack_doubles(repetitions))
            for seq, subject, repetitions in self._select(
                "select measurement.seq, measurement.subject, measurement.repetitions from measurement "
                "join run on run.id = measurement.run where run.run_id = ? order by measurement.seq",
                run_id,
            )
        ]

    def ended(self, run_id: str) -> bool:
        """Say whether the run's end is stored."""
        rows = self._select("select ended_at from run where run_id = ?", run_id)
        return bool(rows) and rows[0][0] is not None

    def _select(self, query: str, run_id: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.database, timeout=10)) as connection:
            try:
                return list(connection.execute(query, (run_id,)))
            except sqlite3.OperationalError:
                # The tables are about to be made.
                return []

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(20)
        self._process = None


class Board:
    """An agent's spool and session, faster to give up than the real one's, and what it has found."""

    timing = Timing(connect=3.0, ack=1.0, backoff=(0.05, 0.3), settle=0.5, farewell=1.0)

    def __init__(self, address: str, folder: Path) -> None:
        self.run_id = str(uuid.uuid4())
        self.spool = DiskSpool(folder)
        self.session = Session(address, self.spool, DEVICE, "boot", timing=self.timing)
        self.session.start()
        self._count = 0
        self.spool.append(self.run_id, RunStart(DEVICE, "0", "quick", "boot", 1, 1, 0))

    def find(self, count: int, repetitions: int = 3) -> None:
        """Append so many measurements, each unlike any other."""
        for number in range(self._count, self._count + count):
            self.spool.append(self.run_id, measurement(number, repetitions))
        self._count += count

    def end(self, seconds: float = 30.0) -> bool:
        """End the run; say whether all of it was acknowledged."""
        self.spool.append(self.run_id, RunEnd(True, 2, self._count, 0, 0))
        return self.session.drain(seconds)

    def close(self) -> None:
        self.session.close()
        self.spool.release()

    def judge(self, collector: Collector) -> None:
        """Assert that each record is stored once, with its payload, and the run is whole."""
        stored = collector.rows(self.run_id)
        assert [(seq, subject) for seq, subject, _ in stored] == [
            (number + 1, f"s{number}") for number in range(self._count)
        ]
        for number, (_, _, repetitions) in enumerate(stored):
            assert set(repetitions) == {number + 0.25}
        assert collector.ended(self.run_id)
        assert self.spool.positions() == {}
        assert not self.session.rejections


def measurement(number: int, repetitions: int) -> Measurement:
    value = number + 0.25
    return Measurement(
        "stream",
        f"s{number}",
        "seconds",
        Outcome.OK,
        statistics=Statistics(repetitions, *[value] * 6, 0.0, value, value),
        repetitions=(value,) * repetitions,
    )


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """One for all tests: each has runs of its own, and leaves it running."""
    collector = Collector(tmp_path_factory.mktemp("collector"))
    collector.up()
    yield collector
    collector.down()


@pytest.fixture
def proxy(collector: Collector) -> Iterator[Proxy]:
    proxy = Proxy(collector.port)
    yield proxy
    proxy.close()


@pytest.fixture
def board(proxy: Proxy, tmp_path: Path) -> Iterator[Board]:
    """A board behind the proxy."""
    board = Board(proxy.address, tmp_path / "spool")
    yield board
    board.close()
