"""Convolutions of any rank: plain, grouped, depthwise, transposed, quantised, and the runtime's own.

macc = N * Cin/g * prod(K) * Cout * prod(out); transposed, each input element does Cout/g * prod(K).
A bias turns 2K-1 operations into 2K: it is never added again.
"""

from __future__ import annotations

from roof_collector.analysis.node import Cost, InvalidNodeError, Node
from roof_collector.analysis.rules.registry import MICROSOFT, NCHWC, NHWC, rule
from roof_collector.analysis.rules.shapes import window
from roof_collector.analysis.symbols import Dim, Poly, product
from roof_collector.analysis.tensor import FLOAT, INT32, Shape, Tensor


def kernel_class(channels: Dim, out_channels: Dim, groups: int, kernel: Shape) -> str:
    """Return dense, pointwise, grouped or depthwise."""
    if groups > 1:
        return "depthwise" if channels == groups else "grouped"
    return "pointwise" if all(size == 1 for size in kernel) else "dense"


def convolution(node: Node, x: Shape, weight: Shape) -> tuple[Shape, Dim, str]:
    """Return output shape (N, C first), macc and class of a convolution over `x`."""
    if len(x) < 2 or len(weight) != len(x):
        raise InvalidNodeError(f"convolves {len(x)} dims with a weight of {len(weight)}")
    groups = node.integer("group", 1)
    batch, channels, spatial = x[0], x[1], x[2:]
    out_channels, depth, kernel = weight[0], weight[1], _kernel(node, weight[2:])
    if groups < 1 or (isinstance(channels, int) and isinstance(depth, int) and channels != depth * groups):
        raise InvalidNodeError(f"{channels} channels don't fit {groups} groups of {depth}")
    if isinstance(out_channels, int) and out_channels % groups:
        raise InvalidNodeError(f"{out_channels} output channels don't fit {groups} groups")
    out = (batch, out_channels, *window(node, spatial, kernel))
    macc = product(out) * depth * product(kernel)
    return out, macc, kernel_class(channels, out_channels, groups, kernel)


def _kernel(node: Node, stored: Shape) -> Shape:
    given = node.integers("kernel_shape")
    if given and len(given) == len(stored):
        if any(
            isinstance(size, int) and size != size_given
            for size, size_given in zip(stored, given, strict=True)
        ):
            raise InvalidNodeError(f"kernel_shape {given} with a weight of {list(stored)}")
        return tuple(given)
    return stored


@rule("Conv")
@rule("FusedConv", domain=MICROSOFT)
def conv(node: Node) -> Cost:
    """Conv; FusedConv adds an activation and, as a fourth input, the residual."""
    out, macc, kind = convolution(node, node.shape(0), node.shape(1))
    return Cost([Tensor(node.input(0).dtype, out)], kind, macc, weights=(1, 2))


@rule("Conv", domain=NCHWC)
def conv_nchwc(node: Node) -> Cost:
    """Convolve in onnxruntime's blocked layout; the weight's dims are padded to whole blocks.

    The first layer reads plain NCHW, so the weight's depth, not the input's channels, is the layout's.
    """
    x, weight = node.shape(0), node.shape(1)
    groups = node.integer("group", 1)
    kernel = _kernel(node, weight[2:])
    # Depthwise weights keep Cin/g = 1 and pad the groups instead.
    padded = weight[0] if weight[1] == 1 and groups > 1 else weight[1] * groups
    if isinstance(x[1], int) and isinstance(padded, int) and x[1] > padded:
        raise InvalidNodeError(f"{x[1]} channels don't fit a weight padded to {padded}")
    out = (x[0], weight[0], *window(node, x[2:], kernel))
    macc = product(out) * weight[1] * product(kernel)
    kind = kernel_class(padded if groups > 1 and weight[1] == 1 else x[1], weight[0], 1, kernel)
    if groups > 1:
        kind = "depthwise" if weight[1] == 1 else "grouped"
    return Cost([Tensor(node.input(0).dtype, out)], f"{kind}-nchwc", macc, weights=(1, 2))


@rule("Conv", "NhwcFusedConv", domain=NHWC)
@rule("NhwcFusedConv", domain=MICROSOFT)
def conv_nhwc(node: Node) -> Cost:
    """Convolve channels-last data."""
    x = node.shape(0)
    out, macc, kind = convolution(node, (x[0], x[-1], *x[1:-1]), node.shape(1))
    return Cost(
        [Tensor(node.input(0).dtype, (out[0], *out[2:], out[1]))], f"{kind}-nhwc", macc, weights=(1, 2)
    )


@rule("ConvInteger")
@rule("ConvInteger", domain=MICROSOFT)
def conv_integer(node: Node) -> Cost:
    """Convolve 8-bit integers to int32."""
    out, macc, kind = convolution(node, node.shape(0), node.shape(1))
    return Cost([Tensor(INT32, out)], f"quantised-{kind}", macc, weights=(1,))


@rule("QLinearConv")
@rule("QLinearConv", domain=MICROSOFT)
@rule("QLinearConv", domain=NHWC)
def qlinear_conv(node: Node) -> Cost:
    """Convolve 8-bit integers to 8-bit integers; the bias is the ninth input."""
    x = node.shape(0)
    last = bool(node.integer("channels_last", int(node.domain == NHWC)))
    first = (x[0], x[-1], *x[1:-1]) if last else x
    out, macc, kind = convolution(node, first, node.shape(3))
    zero = node.optional(7)
    dtype = zero.dtype if zero is not None else node.input(0).dtype
    shape = (out[0], *out[2:], out[1]) if last else out
    return Cost([Tensor(dtype, shape)], f"quantised-{kind}", macc, weights=(3, 8))


@rule("ConvTranspose")
@rule("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose(node: Node) -> Cost:
    """Transposed convolution: counted over the input."""
    x, weight = node.shape(0), node.shape(1)
    if len(x) < 3 or len(weight) != len(x) or x[1] != weight[0]:
        raise InvalidNodeError(f"transposes {list(x)} with a weight of {list(weight)}")
    groups, kernel = node.integer("group", 1), _kernel(node, weight[2:])
    spatial = _transposed_size(node, x[2:], kernel)
    macc = product(x) * weight[1] * product(kernel)
    out = (x[0], weight[1] * groups, *spatial)
    return Cost([Tensor(node.input(0).dtype, out)], "transposed", macc, weights=(1, 2))


def _transposed_size(node: Node, spatial: Shape, kernel: Shape) -> Shape:
    rank = len(spatial)
    if given := node.integers("output_shape"):
        return tuple(given[-rank:])
    strides = node.integers("strides") or [1] * rank
    dilations = node.integers("dilations") or [1] * rank
    if (node.text("auto_pad", "NOTSET") or "NOTSET") in {"SAME_UPPER", "SAME_LOWER"}:
        return tuple(dim * stride for dim, stride in zip(spatial, strides, strict=True))
    pads = node.integers("pads") or [0] * (2 * rank)
    more = node.integers("output_padding") or [0] * rank
    sizes = tuple(
        (spatial[axis] - 1) * strides[axis]
        + more[axis]
        + (kernel[axis] - 1) * dilations[axis]
        + 1
        - pads[axis]
        - pads[axis + rank]
        for axis in range(rank)
    )
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise InvalidNodeError(f"pads {pads} leave nothing of the output")
    return sizes


@rule("DeformConv")
def deform_conv(node: Node) -> Cost:
    """Convolve at learned offsets: the maccs of the plain one; interpolation is other work.

    Four products and sums a sampled element (bilinear), as deform_conv2d in torchvision does them.
    """
    out, macc, _ = convolution(node, node.shape(0), node.shape(1))
    return Cost([Tensor(node.input(0).dtype, out)], "dense", macc, weights=(1, 3))


@rule("CausalConvWithState")
@rule("CausalConvWithState", domain=MICROSOFT)
def causal_conv(node: Node) -> Cost:
    """Depthwise causal convolution over [N, C, T] with a carried state of K-1 steps."""
    x, weight = node.shape(0), node.shape(1)
    state: Dim | Poly = product(weight[2:]) - 1
    dtype = node.input(0).dtype
    outputs = [Tensor(dtype, x), Tensor(dtype, (*x[:2], state))][: len(node.outputs)]
    return Cost(outputs, "depthwise", product(x) * product(weight[1:]), weights=(1, 2))


@rule("DynamicQuantizeConv", domain=MICROSOFT)
def dynamic_quantize_conv(node: Node) -> Cost:
    """Quantise the float input on the way, convolve in integers, give floats."""
    out, macc, kind = convolution(node, node.shape(0), node.shape(1))
    return Cost([Tensor(FLOAT, out)], f"quantised-{kind}", macc, weights=(1, 4))
