"""Peak activation memory of the order of execution: what a micro-controller has to hold at once.

A tensor lives from the node that makes it to the last that reads it; graph inputs from the start,
graph outputs to the end. Views and fused nodes share their source's memory. Weights aren't counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from roof_collector.analysis.row import Row
from roof_collector.analysis.symbols import Dim, floor_divide, rank
from roof_collector.analysis.tensor import Tensor


def peak_bytes(rows: Sequence[Row], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Dim, Dim]:
    """Return the peak in bytes, plain and with depthwise layers computed in place."""
    storage = _storage(rows)
    sizes = _sizes(rows, inputs, storage)
    last = _last_uses(rows, outputs, storage)
    ending: dict[int, list[int]] = {}
    for key, step in last.items():
        ending.setdefault(step, []).append(key)

    live: set[int] = {id(tensor) for tensor in inputs}
    held: Dim = _total(sizes, live)
    plain, in_place = _Peak(held), _Peak(held)
    for step, row in enumerate(rows):
        fresh: Dim = 0
        for tensor in row.outputs:
            key = storage.get(id(tensor), id(tensor))
            if key not in live and tensor.name and not tensor.constant:
                live.add(key)
                fresh = fresh + sizes.get(key, 0)
        held = held + fresh
        plain.see(held)
        depthwise = row.cost.kind.endswith("depthwise")
        in_place.see(held - _saved(row, step, last, storage) if depthwise else held)
        for key in ending.get(step, ()):
            if key in live:
                live.discard(key)
                held = held - sizes.get(key, 0)
    return plain.value, in_place.value


class _Peak:
    def __init__(self, value: Dim) -> None:
        self.value = value
        self._rank = rank(value)

    def see(self, value: Dim) -> None:
        ranked = value if isinstance(value, int) else rank(value)
        if ranked > self._rank:
            self.value, self._rank = value, ranked


def _storage(rows: Sequence[Row]) -> dict[int, int]:
    """Return, for each tensor that shares another's memory, whose (by identity)."""
    storage: dict[int, int] = {}
    for row in rows:
        # A Concat done by addresses holds all its parts, not the first alone: it is counted as its own.
        if not row.cost.view and (row.host is None or row.op_type == "Concat"):
            continue
        source = next((tensor for tensor in row.inputs if tensor is not None and not tensor.constant), None)
        if source is not None:
            for tensor in row.outputs:
                storage[id(tensor)] = storage.get(id(source), id(source))
    return storage


def _sizes(rows: Sequence[Row], inputs: Sequence[Tensor], storage: dict[int, int]) -> dict[int, Dim]:
    sizes: dict[int, Dim] = {id(tensor): tensor.nbytes or 0 for tensor in inputs}
    for row in rows:
        for tensor in row.outputs:
            if id(tensor) not in storage:
                sizes[id(tensor)] = tensor.nbytes or 0
    return sizes


def _last_uses(rows: Sequence[Row], outputs: Sequence[Tensor], storage: dict[int, int]) -> dict[int, int]:
    """Return the step that uses each tensor last; a graph output outlives them all."""
    last: dict[int, int] = {}
    for step, row in enumerate(rows):
        for tensor in (*row.inputs, *row.outputs):
            # Constants are no activations; a view of one is none either.
            if tensor is not None and not tensor.constant:
                last[storage.get(id(tensor), id(tensor))] = step
    for tensor in outputs:
        last[storage.get(id(tensor), id(tensor))] = len(rows)
    return last


def _total(sizes: dict[int, Dim], keys: set[int]) -> Dim:
    total: Dim = 0
    for key in keys:
        total = total + sizes[key]
    return total


def _saved(row: Row, step: int, last: dict[int, int], storage: dict[int, int]) -> Dim:
    """Return what a depthwise layer saves that writes over its input, through a buffer of one channel."""
    source = row.inputs[0] if row.inputs else None
    if source is None or last.get(storage.get(id(source), id(source))) != step:
        return 0
    read, written, shape = source.nbytes, row.outputs[0].nbytes, row.outputs[0].shape
    if read is None or written is None or not shape or len(shape) < 2 or rank(written) > rank(read):
        return 0
    return written - floor_divide(written, shape[1])
