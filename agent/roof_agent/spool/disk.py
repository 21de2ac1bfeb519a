"""A spool in a folder.

Each run is a folder of append-only segments, so that a run can be locked, sent and deleted by itself
and agents may share a spool. A record is synced once, when it is written. How much of a run is
acknowledged isn't written down: the collector knows it, and sending twice is harmless. A damaged stretch
is skipped, counted and kept aside: a corrupt spool never stops the agent.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from roof_agent.spool import memory, segments
from roof_agent.spool.base import CAP_BYTES, Spool
from roofline.v1 import run_pb2

SEGMENT_BYTES = 1 << 20
# A board's disk must not be filled by its own measurements.
KEEP_FREE_BYTES = 50 << 20
KEEP_FREE_SHARE = 0.10
QUARANTINE_BYTES = 8 << 20

_RUN_ID = re.compile(r"[0-9a-f-]{8,64}")
_SEGMENT = re.compile(r"\d{12}\.segment")


class DiskSpool(Spool):
    """A spool that outlives its process. Raises OSError where the folder can't be made or written.

    What can't be written later, because the disk is full or fails, is kept in memory, and `warn` gets
    one line about it.
    """

    def __init__(
        self,
        folder: Path,
        cap_bytes: int = CAP_BYTES,
        warn: Callable[[str], None] | None = None,
        free_and_total: Callable[[Path], tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(cap_bytes)
        self._folder = folder
        self._warn = warn
        self._free_and_total = free_and_total or _free_and_total
        self._locks: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._overflow = memory.Kept()
        self._runs = folder / "runs"
        self._runs.mkdir(parents=True, exist_ok=True)
        probe = folder / f"writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
        for place in sorted(self._runs.iterdir()):
            if _RUN_ID.fullmatch(place.name) and place.is_dir():
                self._adopt(place.name)

    def release(self) -> None:
        """Let other processes have the runs."""
        for descriptor in [*self._open.values(), *self._locks.values()]:
            os.close(descriptor)
        self._open.clear()
        self._locks.clear()

    def close(self, run_id: str) -> None:
        """Say that nothing is added to a run any more."""
        with self._lock:
            self._shut(run_id)
            super().close(run_id)

    def _adopt(self, run_id: str) -> None:
        """Take over a run left by a process that is gone: whole or cut short, it won't grow."""
        try:
            if not self._take(run_id):
                return
            found = [record.seq for record in self._read(run_id, quarantine=True)]
            first = self._segments(run_id)[:1]
        except OSError:
            self.damaged += 1
            return
        self._closed.add(run_id)
        self._ends[run_id] = max(found, default=-1) + 1
        self._acked[run_id] = _first_seq(first[0]) if first else 0
        if not found:
            self._forget(run_id)

    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        if run_id not in self._overflow:
            free, total = self._free_and_total(self._folder)
            if free < min(KEEP_FREE_BYTES, KEEP_FREE_SHARE * total):
                self._complain("its disk is nearly full")
            else:
                try:
                    self._append_to_segment(run_id, message)
                except OSError as error:
                    self._complain(error.strerror or str(error))
                else:
                    return
        self._overflow.append(run_id, message)

    def _append_to_segment(self, run_id: str, message: run_pb2.Record) -> None:
        if run_id not in self._locks and not self._take(run_id):
            raise OSError("another process holds the run")
        descriptor = self._segment(run_id, message.seq)
        size = os.fstat(descriptor).st_size
        data = segments.frame(message)
        try:
            _write_all(descriptor, data)
            os.fdatasync(descriptor)
        except OSError:
            # A torn record would be skipped, too; without it nobody has to wonder.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise

    def _segment(self, run_id: str, seq: int) -> int:
        """Return the descriptor of the segment that takes record `seq`."""
        descriptor = self._open.get(run_id)
        if descriptor is not None and os.fstat(descriptor).st_size < SEGMENT_BYTES:
            return descriptor
        self._shut(run_id)
        path = self._runs / run_id / f"{seq:012}.segment"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._open[run_id] = descriptor
        # Without it a synced file may be without a name after a power cut.
        _sync_folder(path.parent)
        return descriptor

    def _shut(self, run_id: str) -> None:
        descriptor = self._open.pop(run_id, None)
        if descriptor is not None:
            os.close(descriptor)

    def _full(self, share: float) -> bool:
        used = self._overflow.bytes
        if used >= share * memory.CAP_BYTES:
            return True
        for path in self._runs.glob("*/*.segment"):
            with contextlib.suppress(OSError):
                used += path.stat().st_size
        return used >= share * self._cap_bytes

    def _records(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        kept = self._overflow.records(run_id, from_seq)

        def found() -> Iterator[run_pb2.Record]:
            yield from self._read(run_id, from_seq)
            yield from kept

        return found()

    def _discard(self, run_id: str, next_seq: int) -> None:
        self._overflow.discard(run_id, next_seq)
        paths = self._segments(run_id)
        for path, following in itertools.pairwise(paths):
            if _first_seq(following) <= next_seq:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _forget(self, run_id: str) -> None:
        super()._forget(run_id)
        self._shut(run_id)
        self._overflow.forget(run_id)
        shutil.rmtree(self._runs / run_id, ignore_errors=True)
        lock = self._locks.pop(run_id, None)
        if lock is not None:
            os.close(lock)

    def _segments(self, run_id: str) -> list[Path]:
        try:
            with os.scandir(self._runs / run_id) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    # A link could lead to a device, which never ends.
                    if _SEGMENT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                )
        except OSError:
            return []
        return [self._runs / run_id / name for name in names]

    def _read(self, run_id: str, from_seq: int = 0, *, quarantine: bool = False) -> Iterator[run_pb2.Record]:
        paths = self._segments(run_id)
        for path, following in itertools.zip_longest(paths, paths[1:]):
            if following is not None and _first_seq(following) <= from_seq:
                continue
            damaged = 0
            try:
                data = path.read_bytes()
            except OSError:
                data, damaged = b"", 1
            for record in segments.records(data):
                if record is None:
                    damaged += 1
                else:
                    yield record
            if damaged and quarantine:
                self.damaged += damaged
                self._quarantine(path, run_id)

    def _quarantine(self, path: Path, run_id: str) -> None:
        """Keep a copy of a damaged segment for whoever wants to look at it."""
        place = self._folder / "quarantine"
        with contextlib.suppress(OSError):
            place.mkdir(exist_ok=True)
            kept = sum(old.stat().st_size for old in place.iterdir())
            copy = place / f"{run_id}-{path.name}"
            if not copy.exists() and kept + path.stat().st_size <= QUARANTINE_BYTES:
                shutil.copyfile(path, copy)

    def _take(self, run_id: str) -> bool:
        """Lock a run, made if need be; False where another process has it."""
        folder = self._runs / run_id
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(self._runs)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        self._locks[run_id] = descriptor
        return True

    def _complain(self, reason: str) -> None:
        if self._warn is not None:
            self._warn(
                f"{self._folder} can't be written ({reason}): until sent, further results are in memory only"
            )
            self._warn = None


def _write_all(descriptor: int, data: bytes) -> None:
    """Write data; the rest of a short write meets the error that cut it short."""
    while data:
        data = data[os.write(descriptor, data) :]


def _free_and_total(folder: Path) -> tuple[int, int]:
    usage = shutil.disk_usage(folder)
    return usage.free, usage.total


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first_seq(path: Path) -> int:
    return int(path.stem)
