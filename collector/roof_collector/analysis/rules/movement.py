"""Operators that only move data: join, cut, permute, repeat, pad. No arithmetic."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node, OpenShapeError
from roof_collector.analysis.rules.elementwise import scale_slots
from roof_collector.analysis.rules.registry import MICROSOFT, NCHWC, rule
from roof_collector.analysis.rules.shapes import axis_of, broadcast
from roof_collector.analysis.symbols import Dim, Poly, floor_divide, product
from roof_collector.analysis.tensor import Shape, Tensor

# An exporter's way to say "to the end": no real dim is as long.
BEYOND = 10_000_000


@rule("Concat")
def concat(node: Node) -> Cost:
    """Join along one axis."""
    shapes = [node.shape(slot) for slot in range(len(node.inputs))]
    if not shapes or any(len(shape) != len(shapes[0]) for shape in shapes):
        raise InvalidNodeError("joins tensors of different ranks")
    axis = axis_of(node.integer("axis", 1), len(shapes[0]))
    dims: list[Dim] = []
    for position in range(len(shapes[0])):
        column = [shape[position] for shape in shapes]
        if position == axis:
            dims.append(sum(column[1:], column[0]))
        else:
            known = [dim for dim in column if isinstance(dim, int)]
            if any(dim != known[0] for dim in known):
                raise InvalidNodeError(f"joins dims {column} along another axis")
            dims.append(known[0] if known else column[0])
    return Cost([Tensor(node.input(0).dtype, tuple(dims))], "movement", weights=scale_slots(node))


@rule("Slice")
def slice_(node: Node) -> Cost:
    """Cut; reads what it writes."""
    shape = list(node.shape(0))
    starts, ends = node.values(1, "starts"), node.values(2, "ends")
    axes = node.values(3, "axes")
    steps = node.values(4) or None
    if axes is None and node.optional(3) is None:
        axes = list(range(len(starts) if starts is not None else len(shape)))
    if axes is None:
        raise OpenShapeError("which axes are cut depends on data")
    for position, given in enumerate(axes):
        axis = axis_of(int(str(given)), len(shape))
        if starts is None or ends is None:
            shape[axis] = _unknown(node, axis)
            continue
        step = steps[position] if steps is not None else 1
        shape[axis] = cut(shape[axis], starts[position], ends[position], step)
    elements = product(shape)
    reads: dict[int, Dim] = {0: elements, 1: 0, 2: 0, 3: 0, 4: 0}
    return Cost([Tensor(node.input(0).dtype, tuple(shape))], "movement", reads=reads, data=(0,))


def cut(dim: Dim, start: Dim, end: Dim, step: Dim) -> Dim:
    """Return the length of dim[start:end:step]."""
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return len(range(*slice(start, _backward_end(dim, end, step), step).indices(dim)))
    if not isinstance(step, int):
        raise OpenShapeError("the step of a slice depends on data")
    if step < 0:
        whole = isinstance(end, int) and end < -BEYOND
        return -floor_divide(-dim, -step) if whole else -floor_divide(-(start - end), -step)
    first = _bounded(dim, start)
    last = _bounded(dim, end)
    length = last - first
    if isinstance(length, int) and length < 0:
        return 0
    return length if step == 1 else -floor_divide(-length, step)


def _backward_end(dim: int, end: int, step: int) -> int | None:
    # An end before the first element: Python would count it from the back.
    return None if step < 0 and end < -dim else end


def _bounded(dim: Dim, position: Dim) -> Dim:
    if isinstance(position, int):
        if position < 0:
            return 0 if position < -BEYOND else dim + position
        if isinstance(dim, int):
            return min(position, dim)
        return dim if position > BEYOND else position
    return position


def _unknown(node: Node, axis: int) -> Dim:
    return Poly({((f"{node.outputs[0]}.{axis}", 1),): 1})


@rule("Split")
def split(node: Node) -> Cost:
    """Cut into parts; reads what it writes."""
    shape = node.shape(0)
    axis = axis_of(node.integer("axis", 0), len(shape))
    parts = node.values(1, "split")
    count = len(node.outputs)
    if parts is None:
        size = -floor_divide(-shape[axis], count)
        parts = [size] * (count - 1) + [shape[axis] - size * (count - 1)]
    if len(parts) != count:
        raise InvalidNodeError(f"splits into {count} parts of {parts}")
    outputs = [Tensor(node.input(0).dtype, (*shape[:axis], part, *shape[axis + 1 :])) for part in parts]
    return Cost(outputs, "movement", reads={1: 0}, data=(0,))


@rule("Transpose")
@rule("Transpose", domain=MICROSOFT)
def transpose(node: Node) -> Cost:
    """Permute the axes."""
    shape = node.shape(0)
    order = node.integers("perm") or list(reversed(range(len(shape))))
    if sorted(order) != list(range(len(shape))):
        raise InvalidNodeError(f"permutes {len(shape)} dims by {order}")
    out = tuple(shape[axis] for axis in order)
    return Cost([Tensor(node.input(0).dtype, out)], "transpose", data=(0,))


@rule("Expand")
def expand(node: Node) -> Cost:
    """Broadcast to dims given as data."""
    wanted = node.values(1)
    if wanted is None:
        raise OpenShapeError("the dims to expand to depend on data")
    out = broadcast(node.shape(0), tuple(wanted))
    return Cost([Tensor(node.input(0).dtype, out)], "movement", data=(0,))


@rule("Tile")
def tile(node: Node) -> Cost:
    """Repeat along each axis."""
    shape, repeats = node.shape(0), node.values(1)
    if repeats is None:
        raise OpenShapeError("how often to repeat depends on data")
    out = tuple(dim * repeat for dim, repeat in zip(shape, repeats, strict=True))
    return Cost([Tensor(node.input(0).dtype, out)], "movement", data=(0,))


@rule("Pad")
@rule("Pad", domain=MICROSOFT)
def pad(node: Node) -> Cost:
    """Add (or, with negative pads, cut) at the edges."""
    shape = node.shape(0)
    pads = node.values(1, "pads")
    if pads is None:
        raise OpenShapeError("the pads depend on data")
    axes = [int(str(axis)) for axis in (node.values(3) or range(len(shape)))]
    if len(pads) != 2 * len(axes):
        raise InvalidNodeError(f"{len(pads)} pads for {len(axes)} axes")
    out = list(shape)
    for position, axis in enumerate(axes):
        out[axis] = out[axis] + pads[position] + pads[position + len(axes)]
    return Cost([Tensor(node.input(0).dtype, tuple(out))], "movement", data=(0,))


@rule("DepthToSpace")
def depth_to_space(node: Node) -> Cost:
    """Move blocks of channels into space."""
    batch, channels, height, width = node.shape(0, 4)
    block = node.integer("blocksize", 1)
    out: Shape = (batch, floor_divide(channels, block * block), height * block, width * block)
    return Cost([Tensor(node.input(0).dtype, out)], "movement", data=(0,))


@rule("SpaceToDepth")
def space_to_depth(node: Node) -> Cost:
    """Move blocks of space into channels."""
    batch, channels, height, width = node.shape(0, 4)
    block = node.integer("blocksize", 1)
    out: Shape = (batch, channels * (block * block), floor_divide(height, block), floor_divide(width, block))
    return Cost([Tensor(node.input(0).dtype, out)], "movement", data=(0,))


@rule("ReverseSequence", "Trilu", "Scatter", "ScatterElements", "ScatterND", "TensorScatter")
def same_shape(node: Node) -> Cost:
    """Write the whole of the data with some of it moved or replaced."""
    data = node.input(0)
    return Cost([Tensor(data.dtype, data.shape)], "movement", data=(0,))


@rule("ReorderInput", domain=NCHWC)
def reorder_input(node: Node) -> Cost:
    """NCHW (or channels last) to onnxruntime's blocked layout; channels padded to whole blocks.

    The block isn't in the graph: the engine corrects the channels by the convolution that reads them.
    """
    shape = node.shape(0)
    if node.integer("channels_last", 0):
        shape = (shape[0], shape[-1], *shape[1:-1])
    return Cost([Tensor(node.input(0).dtype, shape)], "reorder")


@rule("ReorderOutput", domain=NCHWC)
def reorder_output(node: Node) -> Cost:
    """Blocked layout to NCHW (or channels last), the padded channels dropped."""
    shape = node.shape(0)
    channels = node.integer("channels", 0) or shape[1]
    out: Shape = (shape[0], channels, *shape[2:])
    if node.integer("channels_last", 0):
        out = (out[0], *out[2:], channels)
    return Cost([Tensor(node.input(0).dtype, out)], "reorder")


@rule("MemcpyFromHost", "MemcpyToHost")
def memcpy(node: Node) -> Cost:
    """Copy between devices."""
    data = node.input(0)
    return Cost([Tensor(data.dtype, data.shape)], "reorder", data=(0,))
