"""What the pages read: the store, and what is worked out from it once and kept.

Kept are only figures of things that never change: the counted layers of a graph named by its digest,
and the ceilings of a run up to a record. So several collectors on one database need not agree.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, Row

from roof_agent.errors import RoofError, UsageError
from roof_collector.fit.ceilings import Ceiling, ceilings
from roof_collector.store import queries

if TYPE_CHECKING:
    from roof_collector.analysis import Layer

Value = TypeVar("Value")

_KEPT_GRAPHS = 500
_KEPT_RUNS = 2000


@dataclass(frozen=True)
class Counted:
    """An executed graph's layers, or why there are none."""

    layers: tuple[Layer, ...] = ()
    problem: str = ""


def count_graph(data: bytes) -> tuple[Layer, ...]:
    """Count a serialized weightless graph, node by node. Raises UsageError where that can't be done."""
    # onnx is heavy: not before a graph is there to count.
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    from roof_collector.analysis import analyze

    try:
        model = ModelProto.FromString(data)
    except DecodeError as error:
        raise UsageError("it is no ONNX model") from error
    found = analyze(model)
    found.require_numbers()
    return found.layers


class _Kept(Generic[Value]):
    """The most recently used values; safe among threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._size:
                self._values.popitem(last=False)


class PageStore:
    """The store as pages read it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._graphs: _Kept[Counted] = _Kept(_KEPT_GRAPHS)
        self._ceilings: _Kept[tuple[Ceiling, ...]] = _Kept(_KEPT_RUNS)

    def connect(self) -> Connection:
        """Return a connection; pages only read."""
        return self._engine.connect()

    def ceilings_of(self, connection: Connection, runs: Sequence[Row[Any]]) -> dict[int, tuple[Ceiling, ...]]:
        """Return the ceilings that each run's measurements support, by the run's number."""
        found: dict[int, tuple[Ceiling, ...]] = {}
        missing: dict[int, Row[Any]] = {}
        for row in runs:
            kept = self._ceilings.get((row.id, row.next_seq))
            if kept is None:
                missing[row.id] = row
            else:
                found[row.id] = kept
        if missing:
            for number, measurements in queries.ceiling_measurements(connection, missing).items():
                found[number] = tuple(ceilings(measurements))
                self._ceilings.put((number, missing[number].next_seq), found[number])
        return found

    def graphs(self, connection: Connection, digests: Iterable[str]) -> dict[str, Counted]:
        """Return the counted graphs of these digests; each is counted once."""
        wanted = set(digests)
        found = {digest: kept for digest in wanted if (kept := self._graphs.get(digest)) is not None}
        missing = wanted - found.keys()
        data = queries.models(connection, missing)
        for digest in missing:
            if digest not in data:
                # Not kept: the graph may still arrive.
                found[digest] = Counted(problem="the graph that ran has not arrived")
                continue
            found[digest] = _counted(data[digest])
            self._graphs.put(digest, found[digest])
        return found


def _counted(data: bytes) -> Counted:
    try:
        return Counted(count_graph(data))
    except RoofError as error:
        return Counted(problem=f"the graph that ran can't be counted: {error}")
