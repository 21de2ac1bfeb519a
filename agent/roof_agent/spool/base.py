"""What every spool does: numbers records, keeps to its room, and counts what it drops."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from roof_agent.records import Content, Measurement, ModelPart, Record, RunEnd
from roof_agent.wire import record_message
from roofline.v1 import run_pb2

CAP_BYTES = 64 << 20
# From this share of the room on, measurements are kept without their raw repetitions.
_REPETITIONS_SHARE = 0.75
# A collector takes messages of 1 MiB, and a batch holds at least one record.
_RECORD_BYTES = 768 << 10
_PIECE_BYTES = 128 << 10


class Spool(abc.ABC):
    """Records of runs by their sequence number, kept until a collector has them; for several threads."""

    def __init__(self, cap_bytes: int) -> None:
        self._cap_bytes = cap_bytes
        self._lock = threading.RLock()
        self._ends: dict[str, int] = {}
        self._acked: dict[str, int] = {}
        self._closed: set[str] = set()
        self._dropped: dict[str, int] = {}
        # Records, or their repetitions, that there was no room for; parts of files that couldn't be read.
        self.dropped = 0
        self.damaged = 0
        # Called after each record.
        self.listener: Callable[[], None] | None = None

    def append(self, run_id: str, content: Content) -> int | None:
        """Keep a record and return its sequence number, None where there was no room for it.

        Raw repetitions are dropped first, then whole measurements; a run's start and end never. A model
        becomes as many records as it has pieces; the last one's number is returned. RunEnd gets the
        count of what was dropped, and closes the run.
        """
        seq = None
        with self._lock:
            for piece in _pieces(content):
                seq = self._append(run_id, piece)
            if isinstance(content, RunEnd):
                self.close(run_id)
        if self.listener is not None:
            self.listener()
        return seq

    def positions(self) -> dict[str, int]:
        """Return the runs that aren't wholly acknowledged, each with the number of its records."""
        with self._lock:
            return dict(self._ends)

    def unacknowledged(self) -> int:
        """Return how many records no collector has acknowledged."""
        with self._lock:
            return sum(max(end - self._acked.get(run_id, 0), 0) for run_id, end in self._ends.items())

    def pending(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Yield the records from `from_seq` on without a gap: a lost one comes without content."""
        with self._lock:
            end = self._ends.get(run_id, 0)
            found = self._records(run_id, from_seq)
        expected = from_seq
        for record in found:
            if not expected <= record.seq < end:
                continue
            for lost in range(expected, record.seq):
                yield run_pb2.Record(seq=lost)
            yield record
            expected = record.seq + 1
        for lost in range(expected, end):
            yield run_pb2.Record(seq=lost)

    def ack(self, run_id: str, next_seq: int) -> None:
        """Forget the records below `next_seq`: the collector has committed them."""
        with self._lock:
            if run_id not in self._ends:
                return
            # Nobody can have what isn't there yet.
            next_seq = min(next_seq, self._ends[run_id])
            self._acked[run_id] = max(next_seq, self._acked.get(run_id, 0))
            if run_id in self._closed and self._acked[run_id] >= self._ends[run_id]:
                self._forget(run_id)
            else:
                self._discard(run_id, next_seq)

    def close(self, run_id: str) -> None:
        """Say that nothing is added to a run any more."""
        with self._lock:
            self._closed.add(run_id)
            if run_id in self._ends and self._acked.get(run_id, 0) >= self._ends[run_id]:
                self._forget(run_id)

    def release(self) -> None:  # noqa: B027 - no need for each to have one
        """Let other processes have what is here; nothing is to be done where nothing is shared."""

    def _append(self, run_id: str, content: Content) -> int | None:
        if isinstance(content, RunEnd):
            content = replace(content, dropped=self._dropped.get(run_id, 0))
        if isinstance(content, Measurement) and content.repetitions and self._full(_REPETITIONS_SHARE):
            content = self._without_repetitions(run_id, content)
        if isinstance(content, Measurement | ModelPart) and self._full(1.0):
            self._drop(run_id)
            return None
        seq = self._ends.get(run_id, 0)
        message = record_message(Record(seq, content))
        if isinstance(content, Measurement) and message.ByteSize() > _RECORD_BYTES:
            message = record_message(Record(seq, self._without_repetitions(run_id, content)))
        if message.ByteSize() > _RECORD_BYTES:
            self._drop(run_id)
            return None
        self._write(run_id, message)
        self._ends[run_id] = seq + 1
        return seq

    def _without_repetitions(self, run_id: str, content: Measurement) -> Measurement:
        self._drop(run_id)
        return replace(content, repetitions=())

    def _drop(self, run_id: str) -> None:
        self.dropped += 1
        self._dropped[run_id] = self._dropped.get(run_id, 0) + 1

    def _forget(self, run_id: str) -> None:
        """Remove all of a run."""
        self._ends.pop(run_id)
        self._acked.pop(run_id, None)
        self._dropped.pop(run_id, None)
        self._closed.discard(run_id)

    @abc.abstractmethod
    def _records(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Return the records that are there in order; ones before `from_seq` may be among them."""

    @abc.abstractmethod
    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        """Append a record."""

    @abc.abstractmethod
    def _discard(self, run_id: str, next_seq: int) -> None:
        """Make room: the records of a run below `next_seq` aren't needed any more."""

    @abc.abstractmethod
    def _full(self, share: float) -> bool:
        """Say whether `share` of the room is used."""


def _pieces(content: Content) -> Iterator[Content]:
    if not isinstance(content, ModelPart) or len(content.data) <= _PIECE_BYTES:
        yield content
        return
    for at in range(0, len(content.data), _PIECE_BYTES):
        yield replace(content, offset=content.offset + at, data=content.data[at : at + _PIECE_BYTES])
