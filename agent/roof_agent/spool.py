"""What a run has found, kept on the board until a collector has committed it.

Each run is a folder of append-only segments. A record is framed (magic, length, CRC32) and synced
once, when it is written; the acknowledged position isn't synced, since sending twice is harmless. A
damaged stretch is skipped, counted and kept aside: a corrupt spool never stops the agent. Runs are
locked one by one, so that agents may share a folder.
"""

from __future__ import annotations

import abc
import fcntl
import itertools
import os
import re
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from google.protobuf.message import DecodeError

from roof_agent.records import Content, Measurement, ModelPart, Record
from roof_agent.wire import record_message
from roofline.v1 import run_pb2

SEGMENT_BYTES = 1 << 20
CAP_BYTES = 64 << 20
# A board's disk must not be filled by its own measurements.
KEEP_FREE_BYTES = 50 << 20
KEEP_FREE_SHARE = 0.10
QUARANTINE_BYTES = 8 << 20

_MAGIC = b"\xf1RFL"
_HEAD = struct.Struct("<4sII")
_RUN_ID = re.compile(r"[0-9a-f-]{8,64}")


class Spool(abc.ABC):
    """Records of runs by their sequence number; see DiskSpool and MemorySpool."""

    # Records that there was no room for, and stretches of bytes that no record could be read from.
    dropped = 0
    damaged = 0

    def append(self, run_id: str, content: Content) -> int | None:
        """Keep a record and return its sequence number, None where there was no room for it.

        Raw repetitions are dropped first, then whole measurements; a run's start and end never.
        """
        optional = isinstance(content, Measurement | ModelPart)
        if optional and self._full(0.75) and isinstance(content, Measurement) and content.repetitions:
            content = replace(content, repetitions=())
            self.dropped += 1
        if optional and self._full(1.0):
            self.dropped += 1
            return None
        seq = self.positions().get(run_id, 0)
        self._write(run_id, record_message(Record(seq, content)))
        return seq

    @abc.abstractmethod
    def positions(self) -> dict[str, int]:
        """Return the runs not yet acknowledged to their end, each with the number of its records."""

    @abc.abstractmethod
    def pending(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Yield the records from `from_seq` on; one that was lost is yielded without content."""

    @abc.abstractmethod
    def ack(self, run_id: str, next_seq: int) -> None:
        """Forget the records below `next_seq`: the collector has committed them."""

    @abc.abstractmethod
    def close(self, run_id: str) -> None:
        """Say that the run's last record was appended."""

    @abc.abstractmethod
    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        """Append a record."""

    @abc.abstractmethod
    def _full(self, share: float) -> bool:
        """Say whether `share` of the room is used."""


class MemorySpool(Spool):
    """A spool for boards whose disk can't be written; it lives as long as its process."""

    def __init__(self, cap_bytes: int = CAP_BYTES) -> None:
        self._cap_bytes = cap_bytes
        self._bytes = 0
        self._runs: dict[str, list[run_pb2.Record]] = {}
        self._acked: dict[str, int] = {}
        self._finished: set[str] = set()

    def positions(self) -> dict[str, int]:
        """Return each run's number of records."""
        return {run_id: len(records) for run_id, records in self._runs.items()}

    def pending(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Yield records from `from_seq` on."""
        yield from self._runs.get(run_id, [])[from_seq:]

    def ack(self, run_id: str, next_seq: int) -> None:
        """Forget what is acknowledged."""
        records = self._runs.get(run_id, [])
        for seq in range(self._acked.get(run_id, 0), min(next_seq, len(records))):
            self._bytes -= records[seq].ByteSize()
            records[seq] = run_pb2.Record(seq=seq)
        self._acked[run_id] = max(next_seq, self._acked.get(run_id, 0))
        if run_id in self._finished and next_seq >= len(records):
            self._runs.pop(run_id, None)

    def close(self, run_id: str) -> None:
        """Say that the run's last record was appended."""
        self._finished.add(run_id)

    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        self._runs.setdefault(run_id, []).append(message)
        self._bytes += message.ByteSize()

    def _full(self, share: float) -> bool:
        return self._bytes >= share * self._cap_bytes


class DiskSpool(Spool):
    """A spool in a folder. Raises OSError where the folder can't be made or written."""

    def __init__(
        self,
        folder: Path,
        cap_bytes: int = CAP_BYTES,
        free_bytes: Callable[[Path], tuple[int, int]] | None = None,
    ) -> None:
        self._folder = folder
        self._cap_bytes = cap_bytes
        self._disk = free_bytes or _free_and_total
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        self._locks: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._segments: dict[str, int] = {}
        self._finished: set[str] = set()
        for path in sorted((folder / "runs").iterdir()):
            if path.is_dir() and _RUN_ID.fullmatch(path.name) and self._lock(path.name):
                # Left by a process that is gone: whole or cut short, it won't grow.
                self._finished.add(path.name)
                seqs = [record.seq for record in self._read(path.name, quarantine=True)]
                self._lengths[path.name] = max(seqs, default=-1) + 1
                if not seqs:
                    self._forget(path.name)

    def positions(self) -> dict[str, int]:
        """Return each run's number of records."""
        return dict(self._lengths)

    def pending(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Yield records from `from_seq` on, lost ones without content."""
        expected = from_seq
        for record in self._read(run_id):
            if record.seq < expected:
                continue
            while expected < record.seq:
                yield run_pb2.Record(seq=expected)
                expected += 1
            yield record
            expected += 1

    def ack(self, run_id: str, next_seq: int) -> None:
        """Delete segments whose records are all acknowledged, and the run when that is all of it."""
        if run_id not in self._lengths:
            return
        if run_id in self._finished and next_seq >= self._lengths[run_id]:
            self._forget(run_id)
            return
        segments = self._paths(run_id)
        for path, following in itertools.pairwise(segments):
            if _first_seq(following) <= next_seq:
                path.unlink(missing_ok=True)

    def close(self, run_id: str) -> None:
        """Say that the run's last record was appended."""
        self._finished.add(run_id)
        descriptor = self._segments.pop(run_id, None)
        if descriptor is not None:
            os.close(descriptor)

    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        if run_id not in self._locks and not self._lock(run_id):
            raise OSError(f"another agent holds run {run_id}")
        descriptor = self._segments.get(run_id)
        if descriptor is None or os.fstat(descriptor).st_size >= SEGMENT_BYTES:
            if descriptor is not None:
                os.close(descriptor)
            path = self._folder / "runs" / run_id / f"{message.seq:012}.segment"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._segments[run_id] = descriptor
        payload = message.SerializeToString()
        os.write(descriptor, _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload)
        os.fdatasync(descriptor)
        self._lengths[run_id] = message.seq + 1

    def _full(self, share: float) -> bool:
        free, total = self._disk(self._folder)
        if free < min(KEEP_FREE_BYTES, KEEP_FREE_SHARE * total):
            return True
        used = sum(path.stat().st_size for run_id in self._lengths for path in self._paths(run_id))
        return used >= share * self._cap_bytes

    def _paths(self, run_id: str) -> list[Path]:
        return sorted((self._folder / "runs" / run_id).glob("*.segment"))

    def _read(self, run_id: str, *, quarantine: bool = False) -> Iterator[run_pb2.Record]:
        for path in self._paths(run_id):
            data = path.read_bytes()
            damaged = 0
            for record in _records(data):
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
        place.mkdir(exist_ok=True)
        kept = sum(old.stat().st_size for old in place.iterdir())
        if kept + path.stat().st_size <= QUARANTINE_BYTES:
            shutil.copyfile(path, place / f"{run_id}-{path.name}")

    def _lock(self, run_id: str) -> bool:
        folder = self._folder / "runs" / run_id
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._locks[run_id] = descriptor
        return True

    def _forget(self, run_id: str) -> None:
        shutil.rmtree(self._folder / "runs" / run_id, ignore_errors=True)
        self._lengths.pop(run_id, None)
        self._finished.discard(run_id)
        os.close(self._locks.pop(run_id))


def open_spool(folder: Path | None = None, warn: Callable[[str], None] | None = None) -> Spool:
    """Return the spool of `folder` (the default one if None), or one in memory, said through `warn`."""
    place = folder or default_folder()
    try:
        spool = DiskSpool(place)
        probe = place / f"writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        if warn:
            warn(f"{place} can't be written ({error.strerror}): until sent, results are in memory only")
        return MemorySpool()
    if spool.damaged and warn:
        warn(f"{spool.damaged} damaged parts of the spool were skipped; copies are in {place / 'quarantine'}")
    return spool


def default_folder(environment: dict[str, str] | None = None) -> Path:
    """Return where results wait: systemd's state directory, else the user's."""
    known = os.environ if environment is None else environment
    if known.get("STATE_DIRECTORY"):
        return Path(known["STATE_DIRECTORY"]) / "spool"
    state = known.get("XDG_STATE_HOME") or Path(known.get("HOME") or "/var/tmp") / ".local/state"  # noqa: S108
    return Path(state) / "roofline" / "spool"


def _free_and_total(folder: Path) -> tuple[int, int]:
    usage = shutil.disk_usage(folder)
    return usage.free, usage.total


def _first_seq(path: Path) -> int:
    return int(path.stem)


def _records(data: bytes) -> Iterator[run_pb2.Record | None]:
    """Yield a segment's intact records in order, None for each damaged stretch."""
    at = 0
    whole = True
    while at < len(data):
        found = _record_at(data, at)
        if found is not None:
            record, at = found
            whole = True
            yield record
            continue
        if whole:
            whole = False
            yield None
        at = data.find(_MAGIC, at + 1)
        if at < 0:
            at = sys.maxsize


def _record_at(data: bytes, at: int) -> tuple[run_pb2.Record, int] | None:
    if len(data) - at < _HEAD.size:
        return None
    magic, length, crc = _HEAD.unpack_from(data, at)
    payload = data[at + _HEAD.size : at + _HEAD.size + length]
    if magic != _MAGIC or len(payload) < length or zlib.crc32(payload) != crc:
        return None
    try:
        return run_pb2.Record.FromString(payload), at + _HEAD.size + length
    except DecodeError:
        return None
