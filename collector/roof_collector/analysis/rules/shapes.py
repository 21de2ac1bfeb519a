"""Shape arithmetic that several families of operators share."""

from __future__ import annotations

from collections.abc import Sequence

from roof_collector.analysis.node import InvalidNodeError, Node
from roof_collector.analysis.symbols import Dim, ceil_divide
from roof_collector.analysis.tensor import Shape, Tensor


def like(tensor: Tensor, dtype: int | None = None) -> Tensor:
    """Return a tensor of the same shape, of another type where one is given."""
    return Tensor(tensor.dtype if dtype is None else dtype, tensor.shape)


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that numpy's broadcasting makes."""
    rank = max(len(shape) for shape in shapes)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            result[axis] = broadcast_dim(result[axis], dim)
    return tuple(result)


def broadcast_dim(left: Dim, right: Dim) -> Dim:
    """Return one broadcast dim; of an open and a known one, the known one if it isn't 1."""
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        raise InvalidNodeError(f"dims {left} and {right} don't broadcast")
    return left if isinstance(left, int) else right if isinstance(right, int) else left


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise InvalidNodeError(f"axis {axis} of {rank} dims")
    return axis % rank if rank else 0


def window(node: Node, spatial: Shape, kernel: Sequence[Dim], *, ceil: bool = False) -> Shape:
    """Return the spatial output of a convolution or pooling window over `spatial`.

    Strides, dilations, pads and auto_pad are read of the node, as the standard defines them.
    """
    rank = len(spatial)
    strides = _of_rank(node, "strides", rank, 1)
    dilations = _of_rank(node, "dilations", rank, 1)
    if any(stride < 1 for stride in strides):
        raise InvalidNodeError(f"strides {strides}")
    auto_pad = node.text("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad in {"SAME_UPPER", "SAME_LOWER"}:
        return tuple(ceil_divide(dim, stride) for dim, stride in zip(spatial, strides, strict=True))
    pads = [0] * (2 * rank) if auto_pad == "VALID" else _of_rank(node, "pads", 2 * rank, 0)
    result: list[Dim] = []
    for axis, dim in enumerate(spatial):
        span = dim + (pads[axis] + pads[axis + rank]) - ((kernel[axis] - 1) * dilations[axis] + 1)
        if isinstance(span, int) and span < 0:
            # An empty input gives an empty output; a window that doesn't fit is an error.
            if dim == 0:
                result.append(0)
                continue
            raise InvalidNodeError(f"a window of {kernel[axis]} doesn't fit into {dim}")
        size = (ceil_divide(span, strides[axis]) if ceil else span // strides[axis]) + 1
        if ceil and isinstance(size, int) and isinstance(dim, int):
            # The last window starts inside the input or its left padding (onnx since 1.17).
            size -= (size - 1) * strides[axis] >= dim + pads[axis]
        result.append(size)
    return tuple(result)


def _of_rank(node: Node, name: str, length: int, default: int) -> list[int]:
    found = node.integers(name)
    if not found:
        return [default] * length
    if len(found) != length:
        raise InvalidNodeError(f"{name} {found} where it takes {length} numbers")
    return found
