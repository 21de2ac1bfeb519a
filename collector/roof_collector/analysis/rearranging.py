"""Folding of operators that rearrange values: cut, join, pick, repeat."""

from __future__ import annotations

import math

import numpy as np

from roof_collector.analysis.folding import (
    Array,
    UnknownValueError,
    folds,
    integers,
    known,
    symbolic,
    tidy,
)
from roof_collector.analysis.node import Node
from roof_collector.analysis.symbols import Poly
from roof_collector.analysis.tensor import MAX_FOLDED_ELEMENTS


@folds("Reshape")
def _reshape(node: Node, values: list[Array | None]) -> list[Array]:
    value, dims = known(values[0]), integers(values[1])
    if not node.integer("allowzero", 0):
        dims = [value.shape[axis] if dim == 0 else dim for axis, dim in enumerate(dims)]
    return [value.reshape(dims)]


@folds("Flatten")
def _flatten(node: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    axis = node.integer("axis", 1)
    axis = axis + value.ndim if axis < 0 else axis
    return [value.reshape(math.prod(value.shape[:axis]), -1)]


@folds("Squeeze")
def _squeeze(node: Node, values: list[Array | None]) -> list[Array]:
    value, axes = known(values[0]), node.values(1, "axes")
    return [np.squeeze(value, None if axes is None else tuple(int(str(axis)) for axis in axes))]


@folds("Unsqueeze")
def _unsqueeze(node: Node, values: list[Array | None]) -> list[Array]:
    axes = node.values(1, "axes") or []
    return [np.expand_dims(known(values[0]), tuple(int(str(axis)) for axis in axes))]


@folds("Concat")
def _concat(node: Node, values: list[Array | None]) -> list[Array]:
    return [np.concatenate([known(value) for value in values], node.integer("axis", 0))]


@folds("Gather")
def _gather(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = known(values[0]), known(values[1])
    if symbolic(indices):
        raise UnknownValueError
    return [np.asarray(np.take(data, indices.astype(np.int64), node.integer("axis", 0)))]


@folds("GatherElements")
def _gather_elements(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = known(values[0]), known(values[1])
    if symbolic(indices):
        raise UnknownValueError
    axis = node.integer("axis", 0)
    return [np.take_along_axis(data, np.where(indices < 0, indices + data.shape[axis], indices), axis)]


@folds("GatherND")
def _gather_nd(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices = known(values[0]), known(values[1])
    if node.integer("batch_dims", 0) or symbolic(indices):
        raise UnknownValueError
    return [np.asarray(data[tuple(np.moveaxis(indices, -1, 0))])]


@folds("ScatterND")
def _scatter_nd(node: Node, values: list[Array | None]) -> list[Array]:
    data, indices, updates = known(values[0]), known(values[1]), known(values[2])
    if symbolic(indices) or node.text("reduction", "none") != "none":
        raise UnknownValueError
    result = data.astype(object) if symbolic(data, updates) else data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return [tidy(result)]


@folds("Slice")
def _slice(node: Node, values: list[Array | None]) -> list[Array]:
    data = known(values[0])
    starts, ends = node.values(1, "starts"), node.values(2, "ends")
    axes = node.values(3, "axes") or list(range(len(starts or ())))
    steps = node.values(4) or [1] * len(axes)
    if starts is None or ends is None:
        raise UnknownValueError
    cuts = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if any(isinstance(bound, Poly) for bound in (axis, start, end, step)):
            raise UnknownValueError
        length = data.shape[int(str(axis))]
        begin, stop, stride = int(str(start)), int(str(end)), int(str(step))
        cuts[int(str(axis))] = slice(begin, None if stride < 0 and stop < -length else stop, stride)
    return [data[tuple(cuts)]]


@folds("Split")
def _split(node: Node, values: list[Array | None]) -> list[Array]:
    data, axis = known(values[0]), node.integer("axis", 0)
    parts = node.values(1, "split")
    count = len(node.outputs)
    size = -(-data.shape[axis] // count)
    sizes = [int(str(part)) for part in parts] if parts else [size] * count
    return list(np.split(data, np.cumsum(sizes)[: count - 1], axis))


@folds("Transpose")
def _transpose(node: Node, values: list[Array | None]) -> list[Array]:
    return [np.transpose(known(values[0]), node.integers("perm"))]


@folds("Where")
def _where(_: Node, values: list[Array | None]) -> list[Array]:
    condition, left, right = (known(value) for value in values)
    if symbolic(condition):
        raise UnknownValueError
    if symbolic(left, right):
        left, right = left.astype(object), right.astype(object)
    return [tidy(np.where(condition, left, right))]


@folds("Expand")
def _expand(_: Node, values: list[Array | None]) -> list[Array]:
    data, dims = known(values[0]), integers(values[1])
    shape = np.broadcast_shapes(data.shape, tuple(dims))
    if math.prod(shape) > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.broadcast_to(data, shape)]


@folds("Tile")
def _tile(_: Node, values: list[Array | None]) -> list[Array]:
    data, repeats = known(values[0]), integers(values[1])
    if data.size * math.prod(repeats) > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.tile(data, repeats)]


@folds("Range")
def _range(_: Node, values: list[Array | None]) -> list[Array]:
    bounds = [known(value).reshape(-1) for value in values]
    if symbolic(*bounds):
        raise UnknownValueError
    start, limit, delta = (bound.tolist()[0] for bound in bounds)
    if not delta or (limit - start) / delta > MAX_FOLDED_ELEMENTS:
        raise UnknownValueError
    return [np.arange(start, limit, delta).astype(bounds[0].dtype)]


@folds("NonZero")
def _non_zero(_: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    if symbolic(value):
        raise UnknownValueError
    return [np.array(np.nonzero(value), np.int64)]


@folds("CumSum")
def _cumsum(node: Node, values: list[Array | None]) -> list[Array]:
    value = known(values[0])
    if symbolic(value) or node.integer("exclusive", 0) or node.integer("reverse", 0):
        raise UnknownValueError
    return [np.cumsum(value, integers(values[1])[0], dtype=value.dtype)]


@folds("Trilu")
def _trilu(node: Node, values: list[Array | None]) -> list[Array]:
    offset = integers(values[1])[0] if len(values) > 1 and values[1] is not None else 0
    return [(np.triu if node.integer("upper", 1) else np.tril)(known(values[0]), offset)]
