"""Pooling: window size operations an output element; global pooling, its whole input. LRN likewise."""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import MICROSOFT, NCHWC, NHWC, rule
from roof_collector.analysis.rules.shapes import like, window
from roof_collector.analysis.symbols import product
from roof_collector.analysis.tensor import INT64, Shape, Tensor


def pooled(node: Node, x: Shape) -> tuple[Shape, int]:
    """Return output shape (N, C first) and window size."""
    kernel = node.integers("kernel_shape")
    if not kernel or len(kernel) != len(x) - 2 or min(kernel) < 1:
        raise InvalidNodeError(f"kernel_shape {kernel} over {len(x)} dims")
    spatial = window(node, x[2:], kernel, ceil=bool(node.integer("ceil_mode", 0)))
    size = 1
    for length in kernel:
        size *= length
    return (*x[:2], *spatial), size


@rule("MaxPool", "AveragePool", "LpPool")
@rule("MaxPool", "AveragePool", domain=NCHWC)
def pool(node: Node) -> Cost:
    """Reduce each window; MaxPool may write the indices too."""
    out, size = pooled(node, node.shape(0))
    outputs = [Tensor(node.input(0).dtype, out), Tensor(INT64, out)][: len(node.outputs)]
    return Cost(outputs, _class(node, "pool"), other_ops=product(out) * size)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@rule("GlobalAveragePool", "GlobalMaxPool", domain=NCHWC)
def global_pool(node: Node) -> Cost:
    """Reduce each channel to one element."""
    x = node.shape(0)
    out = (*x[:2], *[1] * (len(x) - 2))
    return Cost([Tensor(node.input(0).dtype, out)], _class(node, "pool"), other_ops=product(x))


@rule("MaxPool", "AveragePool", domain=NHWC)
@rule("NhwcMaxPool", domain=MICROSOFT)
def pool_nhwc(node: Node) -> Cost:
    """Reduce each window of channels-last data."""
    x = node.shape(0)
    out, size = pooled(node, (x[0], x[-1], *x[1:-1]))
    shape = (out[0], *out[2:], out[1])
    return Cost([Tensor(node.input(0).dtype, shape)], "pool-nhwc", other_ops=product(out) * size)


@rule("QLinearAveragePool", domain=MICROSOFT)
def qlinear_pool(node: Node) -> Cost:
    """Average 8-bit windows."""
    x = node.shape(0)
    last = bool(node.integer("channels_last", 0))
    out, size = pooled(node, (x[0], x[-1], *x[1:-1]) if last else x)
    shape = (out[0], *out[2:], out[1]) if last else out
    return Cost([Tensor(node.input(0).dtype, shape)], "quantised-pool", other_ops=product(out) * size)


@rule("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_pool(node: Node) -> Cost:
    """Average whole 8-bit channels."""
    x = node.shape(0)
    ones = [1] * (len(x) - 2)
    out = (x[0], *ones, x[-1]) if node.integer("channels_last", 0) else (*x[:2], *ones)
    return Cost([Tensor(node.input(0).dtype, out)], "quantised-pool", other_ops=product(x))


@rule("LRN")
def lrn(node: Node) -> Cost:
    """Normalise over `size` neighbouring channels."""
    return Cost([like(node.input(0))], "normalisation", other_ops=node.elements(0) * node.integer("size", 1))


@rule("MaxUnpool")
def max_unpool(node: Node) -> Cost:
    """Scatter each element back to where it was the maximum."""
    x = node.shape(0)
    if (given := node.values(2)) is not None:
        return Cost([Tensor(node.input(0).dtype, tuple(given))], "movement")
    kernel = node.integers("kernel_shape") or []
    rank = len(kernel)
    strides = node.integers("strides") or [1] * rank
    pads = node.integers("pads") or [0] * (2 * rank)
    spatial = tuple(
        (dim - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + rank]
        for axis, dim in enumerate(x[2:])
    )
    return Cost([Tensor(node.input(0).dtype, (*x[:2], *spatial))], "movement")


@rule("MaxRoiPool")
def max_roi_pool(node: Node) -> Cost:
    """Pool regions; every region's elements are unknown, so one operation an output element."""
    out = (node.shape(1)[0], node.shape(0)[1], *(node.integers("pooled_shape") or ()))
    return Cost([Tensor(node.input(0).dtype, out)], "pool", other_ops=product(out))


@rule("RoiAlign")
def roi_align(node: Node) -> Cost:
    """Average `sampling_ratio`^2 samples (at least one) an output element."""
    size = (node.integer("output_height", 1), node.integer("output_width", 1))
    out = (node.shape(1)[0], node.shape(0)[1], *size)
    samples = max(node.integer("sampling_ratio", 0), 1) ** 2
    return Cost([Tensor(node.input(0).dtype, out)], "pool", other_ops=product(out) * samples)


def _class(node: Node, kind: str) -> str:
    return f"{kind}-nchwc" if node.domain == NCHWC else kind
