"""Resizes and samplings: one operation an output element."""

from __future__ import annotations

import math

from roof_collector.analysis.node import Cost, InvalidNodeError, Node, OpenShapeError
from roof_collector.analysis.rules.registry import NCHWC, rule
from roof_collector.analysis.rules.shapes import axis_of
from roof_collector.analysis.symbols import Dim, floor_divide, product
from roof_collector.analysis.tensor import Shape, Tensor


def _scaled(dim: Dim, scale: float) -> Dim:
    if isinstance(dim, int):
        return math.floor(dim * scale)
    if scale == int(scale):
        return dim * int(scale)
    numerator, denominator = float(scale).as_integer_ratio()
    return floor_divide(dim * numerator, denominator)


def _resized(node: Node, out: Shape) -> Cost:
    return Cost([Tensor(node.input(0).dtype, out)], "resize", other_ops=product(out), data=(0,))


@rule("Resize")
def resize(node: Node) -> Cost:
    """Resize to `sizes` or by `scales`; before opset 11 the scales are the second input."""
    shape = node.shape(0)
    old = node.version < 11
    scales = node.optional(1 if old else 2)
    axes = [axis_of(axis, len(shape)) for axis in node.integers("axes") or range(len(shape))]
    out = list(shape)
    if not old and node.optional(3) is not None:
        sizes = node.values(3)
        if sizes is None:
            raise OpenShapeError("the sizes to resize to depend on data")
        for axis, size in zip(axes, _kept_ratio(node, shape, axes, sizes), strict=True):
            out[axis] = size
        return _resized(node, tuple(out))
    if scales is None or scales.value is None:
        raise OpenShapeError("the scales to resize by depend on data")
    for axis, scale in zip(axes, _numbers(scales), strict=True):
        out[axis] = _scaled(shape[axis], scale)
    return _resized(node, tuple(out))


def _kept_ratio(node: Node, shape: Shape, axes: list[int], sizes: list[Dim]) -> list[Dim]:
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy not in {"not_larger", "not_smaller"}:
        return sizes
    if not all(
        isinstance(size, int) and isinstance(shape[axis], int) for axis, size in zip(axes, sizes, strict=True)
    ):
        raise OpenShapeError("an aspect ratio is kept between open dims")
    ratios = [int(str(size)) / int(str(shape[axis])) for axis, size in zip(axes, sizes, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [math.floor(int(str(shape[axis])) * ratio + 0.5) for axis in axes]


def _numbers(tensor: Tensor) -> list[float]:
    if tensor.value is None:
        raise OpenShapeError("the scales to resize by depend on data")
    return [float(scale) for scale in tensor.value.reshape(-1).tolist()]


@rule("Upsample")
@rule("Upsample", domain=NCHWC)
def upsample(node: Node) -> Cost:
    """Resize by scales, as it was spelled before opset 10 and is in the blocked layout."""
    shape = node.shape(0)
    given = node.attribute("scales")
    scales = [float(scale) for scale in given] if given is not None else _numbers(node.input(1))
    if len(scales) != len(shape):
        raise InvalidNodeError(f"{len(scales)} scales for {len(shape)} dims")
    return _resized(node, tuple(_scaled(dim, scale) for dim, scale in zip(shape, scales, strict=True)))


@rule("GridSample")
def grid_sample(node: Node) -> Cost:
    """Sample at the grid's points."""
    x, grid = node.shape(0), node.shape(1)
    return _resized(node, (*x[:2], *grid[1:-1]))


@rule("AffineGrid")
def affine_grid(node: Node) -> Cost:
    """Make sampling points: a product with a [d, d+1] matrix for each."""
    size = node.values(1)
    if size is None:
        raise OpenShapeError("the size of the grid depends on data")
    rank = len(size) - 2
    points = product((size[0], *size[2:]))
    out = (size[0], *size[2:], rank)
    return Cost([Tensor(node.input(0).dtype, out)], "resize", macc=points * rank * (rank + 1))


@rule("CenterCropPad")
def center_crop_pad(node: Node) -> Cost:
    """Cut or pad around the centre."""
    shape, wanted = list(node.shape(0)), node.values(1)
    if wanted is None:
        raise OpenShapeError("the size to crop to depends on data")
    for axis, dim in zip(node.integers("axes") or range(len(shape)), wanted, strict=True):
        shape[axis] = dim
    return Cost([Tensor(node.input(0).dtype, tuple(shape))], "movement", data=(0,))


@rule("Col2Im")
def col2im(node: Node) -> Cost:
    """Add columns into images: one addition an input element."""
    x, image, block = node.shape(0, 3), node.values(1), node.values(2)
    if image is None or block is None:
        raise OpenShapeError("the size of the image depends on data")
    out = (x[0], floor_divide(x[1], product(block)), *image)
    return Cost([Tensor(node.input(0).dtype, out)], "resize", other_ops=node.elements(0))
