"""Views: a tensor under another shape or name. They move no bytes."""

from __future__ import annotations

from collections.abc import Sequence

from roof_collector.analysis.node import Cost, InvalidNodeError, Node, OpenShapeError
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.rules.shapes import axis_of, like
from roof_collector.analysis.symbols import Dim, Poly, floor_divide, product
from roof_collector.analysis.tensor import INT64, Shape, Tensor


def _view(node: Node, shape: Shape | None) -> Cost:
    x = node.input(0)
    return Cost([Tensor(x.dtype, shape, items=x.items)], "view", view=True, data=(0,))


@rule("Identity")
def identity(node: Node) -> Cost:
    """Give another name."""
    return _view(node, node.input(0).shape)


@rule("Reshape")
def reshape(node: Node) -> Cost:
    """Take the dims asked for; 0 copies a dim, -1 takes what is left."""
    wanted = node.values(1, "shape")
    x = node.input(0)
    if wanted is None:
        asked = node.optional(1)
        if (
            asked is None
            or asked.shape is None
            or not isinstance(asked.shape[0] if asked.shape else None, int)
        ):
            raise OpenShapeError(f"the dims that {node.outputs[0]!r} takes are unknown")
        raise OpenShapeError(f"the dims that {node.outputs[0]!r} takes depend on data")
    return _view(node, reshaped(x.shape, wanted, zero_copies=not node.integer("allowzero", 0)))


def reshaped(shape: Shape | None, wanted: Sequence[Dim], *, zero_copies: bool) -> Shape:
    """Return the dims that a Reshape to `wanted` gives."""
    dims: list[Dim] = list(wanted)
    for axis, dim in enumerate(dims):
        if dim == 0 and zero_copies:
            if shape is None:
                raise OpenShapeError("a dim is copied of an unknown shape")
            if axis >= len(shape):
                raise InvalidNodeError(f"dims {list(wanted)} copy dim {axis} of {len(shape)}")
            dims[axis] = shape[axis]
    if any(isinstance(dim, int) and dim < -1 for dim in dims) or dims.count(-1) > 1:
        raise InvalidNodeError(f"dims {list(wanted)}")
    if -1 in dims:
        if shape is None:
            raise OpenShapeError("a dim is what is left of an unknown shape")
        hole = dims.index(-1)
        dims[hole] = _left(shape, dims[:hole] + dims[hole + 1 :])
    elif shape is not None:
        old, new = product(shape), product(dims)
        if isinstance(old, int) and isinstance(new, int) and old != new:
            raise InvalidNodeError(f"{old} elements don't take the dims {dims}")
    return tuple(dims)


def _left(shape: Shape, others: Sequence[Dim]) -> Dim:
    total, rest = product(shape), product(others)
    if rest == 0:
        return 0
    if isinstance(total, int) and isinstance(rest, int) and total % rest:
        raise InvalidNodeError(f"{total} elements don't divide by {rest}")
    if isinstance(total, Poly) or isinstance(rest, Poly):
        # Dims on both sides cancel one by one before a division has to be exact.
        numerator, denominator = list(shape), []
        for dim in others:
            if dim in numerator:
                numerator.remove(dim)
            else:
                denominator.append(dim)
        return floor_divide(product(numerator), product(denominator))
    return total // rest


@rule("Flatten")
def flatten(node: Node) -> Cost:
    """Two dims."""
    shape = node.shape(0)
    axis = node.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return _view(node, (product(shape[:axis]), product(shape[axis:])))


@rule("Squeeze")
def squeeze(node: Node) -> Cost:
    """Drop dims of 1."""
    shape = node.shape(0)
    axes = node.values(1, "axes")
    if axes is None:
        if node.optional(1) is not None:
            raise OpenShapeError("which axes are squeezed depends on data")
        return _view(node, tuple(dim for dim in shape if dim != 1))
    dropped = {axis_of(int(str(axis)), len(shape)) for axis in axes}
    return _view(node, tuple(dim for axis, dim in enumerate(shape) if axis not in dropped))


@rule("Unsqueeze")
def unsqueeze(node: Node) -> Cost:
    """Add dims of 1."""
    shape = node.shape(0)
    axes = node.values(1, "axes")
    if axes is None:
        raise OpenShapeError("which axes are added depends on data")
    rank = len(shape) + len(axes)
    added = {axis_of(int(str(axis)), rank) for axis in axes}
    rest = iter(shape)
    return _view(node, tuple(1 if axis in added else next(rest) for axis in range(rank)))


@rule("Shape")
def shape_of(node: Node) -> Cost:
    """Write the dims, reading none of the data."""
    shape = node.input(0).shape
    if shape is None:
        return Cost([Tensor(INT64, None)], "shape", reads={0: 0})
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    return Cost([Tensor(INT64, (len(shape[start:end]),))], "shape", reads={0: 0})


@rule("Size")
def size_of(node: Node) -> Cost:
    """Write the number of elements."""
    return Cost([Tensor(INT64, ())], "shape", reads={0: 0})


@rule("Optional", "OptionalGetElement")
def optional(node: Node) -> Cost:
    """Wrap or unwrap."""
    return Cost([like(node.input(0))], "view", view=True, data=(0,))


@rule("OptionalHasElement")
def optional_has(node: Node) -> Cost:
    """Tell whether there is one."""
    from roof_collector.analysis.tensor import BOOL

    return Cost([Tensor(BOOL, ())], "shape", reads={0: 0})
