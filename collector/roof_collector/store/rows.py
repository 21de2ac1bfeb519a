"""What arrives, in the shape of the tables: validated, and not yet of any run's number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Part:
    """A piece of a weightless model, record `seq` of its run."""

    seq: int
    sha256: str
    name: str
    size_bytes: int
    start_byte: int
    data: bytes


@dataclass
class Rows:
    """Records `first` to `end` (without it) of a run.

    Rows are tuples in the order of their table's columns, without `run` and `received_at`: the first
    of each is its record's number. `start` and `finish` are columns of the run's own row.
    """

    first: int
    end: int
    start: dict[str, Any] | None = None
    finish: dict[str, Any] | None = None
    finish_seq: int = -1
    measurements: list[Row] = field(default_factory=list)
    networks: list[Row] = field(default_factory=list)
    layers: list[Row] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    rejections: list[tuple[int, str]] = field(default_factory=list)

    def between(self, first: int, end: int) -> Rows:
        """Return the rows of records `first` to `end` (without it)."""
        return Rows(
            first,
            end,
            start=self.start if first == 0 else None,
            finish=self.finish if first <= self.finish_seq < end else None,
            finish_seq=self.finish_seq,
            measurements=_between(self.measurements, first, end),
            networks=_between(self.networks, first, end),
            layers=_between(self.layers, first, end),
            parts=[part for part in self.parts if first <= part.seq < end],
            rejections=[(seq, reason) for seq, reason in self.rejections if first <= seq < end],
        )

    def singly(self) -> Iterator[Rows]:
        """Yield each record's rows."""
        for seq in range(self.first, self.end):
            yield self.between(seq, seq + 1)


def _between(rows: Sequence[Row], first: int, end: int) -> list[Row]:
    return [row for row in rows if first <= row[0] < end]


@dataclass(frozen=True)
class Greeting:
    """A session began: columns of its device, and the runs that its agent would go on with."""

    device: dict[str, Any]
    run_ids: tuple[str, ...]
    stream: str


@dataclass(frozen=True)
class Welcome:
    """The device's row, and of each run that was named the first record that isn't here."""

    device_id: int
    next_seqs: dict[str, int]


@dataclass(frozen=True)
class Batch:
    """Rows of one run of a device, and the session that they came by."""

    device_id: int
    run_id: str
    stream: str
    rows: Rows


@dataclass(frozen=True)
class Receipt:
    """All records of the run below `next_seq` are stored or rejected."""

    next_seq: int
    rejections: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Beat:
    """How far a run is."""

    device_id: int
    run_id: str
    stream: str
    done: int
    planned: int
    current: str


@dataclass(frozen=True)
class Farewell:
    """A session ended."""

    stream: str


Job = Greeting | Batch | Beat | Farewell
