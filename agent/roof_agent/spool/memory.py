"""A spool that lives as long as its process."""

from __future__ import annotations

from collections.abc import Iterator

from roof_agent.spool.base import Spool
from roofline.v1 import run_pb2

# Boards with 512 MiB have to measure beside it.
CAP_BYTES = 16 << 20


class MemorySpool(Spool):
    """A spool for boards whose disk can't be written."""

    def __init__(self, cap_bytes: int = CAP_BYTES) -> None:
        super().__init__(cap_bytes)
        self._kept = Kept()

    def _records(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        return self._kept.records(run_id, from_seq)

    def _write(self, run_id: str, message: run_pb2.Record) -> None:
        self._kept.append(run_id, message)

    def _discard(self, run_id: str, next_seq: int) -> None:
        self._kept.discard(run_id, next_seq)

    def _forget(self, run_id: str) -> None:
        super()._forget(run_id)
        self._kept.forget(run_id)

    def _full(self, share: float) -> bool:
        return self._kept.bytes >= share * self._cap_bytes


class Kept:
    """Messages by run, and their size."""

    def __init__(self) -> None:
        self.bytes = 0
        self._runs: dict[str, list[run_pb2.Record]] = {}

    def __contains__(self, run_id: str) -> bool:
        """Say whether there is anything of a run."""
        return run_id in self._runs

    def append(self, run_id: str, message: run_pb2.Record) -> None:
        """Add a message to a run."""
        self._runs.setdefault(run_id, []).append(message)
        self.bytes += message.ByteSize()

    def records(self, run_id: str, from_seq: int) -> Iterator[run_pb2.Record]:
        """Return a run's messages from `from_seq` on, as they are now."""
        return iter([message for message in self._runs.get(run_id, []) if message.seq >= from_seq])

    def discard(self, run_id: str, next_seq: int) -> None:
        """Remove a run's messages below `next_seq`."""
        if run_id in self._runs:
            self._runs[run_id] = list(self.records(run_id, next_seq))
            self.bytes = sum(message.ByteSize() for run in self._runs.values() for message in run)

    def forget(self, run_id: str) -> None:
        """Remove a run."""
        self.bytes -= sum(message.ByteSize() for message in self._runs.pop(run_id, []))
