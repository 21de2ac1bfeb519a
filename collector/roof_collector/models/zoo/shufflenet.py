"""ShuffleNet v1 (Zhang et al., arXiv 1707.01083) and v2 (Ma et al., arXiv 1807.11164)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import classifier, conv_bn, conv_bn_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

_REPETITIONS = (4, 8, 4)


def _stem(g: Graph, channels: int) -> Tensor:
    x = conv_bn_relu(g, g.input, channels, 3, stride=2, pad=1)
    return g.max_pool(x, 3, stride=2, pad=1)


def _depthwise(g: Graph, x: Tensor, stride: int) -> Tensor:
    return conv_bn(g, x, x.channels, 3, stride=stride, pad=1, groups=x.channels)


def _unit_v1(g: Graph, x: Tensor, channels: int, groups: int, *, first: bool, stride: int) -> Tensor:
    grown = channels - x.channels if stride == 2 else channels
    # The network's first pointwise layer is not grouped: its input has too few channels.
    y = conv_bn_relu(g, x, channels // 4, 1, groups=1 if first else groups)
    y = conv_bn(g, _depthwise(g, g.shuffle(y, groups), stride), grown, 1, groups=groups)
    if stride == 1:
        return g.relu(g.add(x, y))
    return g.relu(g.concat(g.average_pool(x, 3, stride=2, pad=1), y))


def shufflenet_v1(g: Graph, *, stem: int, width: int, groups: int) -> Tensor:
    """Return the class scores; `width` is the channels of the first of three stages."""
    x = _stem(g, stem)
    for stage, repetitions in enumerate(_REPETITIONS):
        for block in range(repetitions):
            first = stage == block == 0
            x = _unit_v1(g, x, width << stage, groups, first=first, stride=1 if block else 2)
    return classifier(g, x)


def _branch_v2(g: Graph, x: Tensor, channels: int, stride: int) -> Tensor:
    x = _depthwise(g, conv_bn_relu(g, x, channels, 1), stride)
    return conv_bn_relu(g, x, channels, 1)


def _unit_v2(g: Graph, x: Tensor) -> Tensor:
    half = x.channels // 2
    kept, worked = g.slice_channels(x, 0, half), g.slice_channels(x, half, x.channels)
    return g.shuffle(g.concat(kept, _branch_v2(g, worked, half, 1)), 2)


def _reduction_v2(g: Graph, x: Tensor, channels: int) -> Tensor:
    half = channels // 2
    shortcut = conv_bn_relu(g, _depthwise(g, x, 2), half, 1)
    return g.shuffle(g.concat(shortcut, _branch_v2(g, x, half, 2)), 2)


def shufflenet_v2(g: Graph, *, widths: tuple[int, ...], last: int) -> Tensor:
    """Return the class scores; `widths` are the channels of the three stages."""
    x = _stem(g, 24)
    for channels, repetitions in zip(widths, _REPETITIONS, strict=True):
        x = _reduction_v2(g, x, channels)
        for _ in range(repetitions - 1):
            x = _unit_v2(g, x)
    return classifier(g, conv_bn_relu(g, x, last, 1))


for _scale, _groups, _stem_width, _width in (
    ("0_5", 3, 12, 120),
    ("0_5", 8, 16, 192),
    ("1_0", 3, 24, 240),
    ("1_0", 8, 24, 384),
):
    register(
        f"shufflenet_v1_x{_scale}_g{_groups}",
        f"ShuffleNet v1, width {_scale.replace('_', '.')}, {_groups} groups",
        partial(shufflenet_v1, stem=_stem_width, width=_width, groups=_groups),
    )
register(
    "shufflenet_v2_x1_0",
    "ShuffleNet v2, width 1.0",
    partial(shufflenet_v2, widths=(116, 232, 464), last=1024),
)
