"""ResNet (He et al., arXiv 1512.03385) and its squeeze-and-excitation form (Hu et al., arXiv 1709.01507).

A bottleneck has its stride on the 3x3, as in version 1.5; the gate is made of 1x1 convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import classifier, conv_bn, conv_bn_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

Branch = Callable[["Graph", "Tensor", int, int], "Tensor"]

_SQUEEZE = 16


def basic(g: Graph, x: Tensor, width: int, stride: int) -> Tensor:
    """Two 3x3 convolutions of `width` channels."""
    x = conv_bn_relu(g, x, width, 3, stride=stride, pad=1)
    return conv_bn(g, x, width, 3, pad=1)


def bottleneck(g: Graph, x: Tensor, width: int, stride: int) -> Tensor:
    """1x1 down to `width`, 3x3, 1x1 up to four times `width`."""
    x = conv_bn_relu(g, x, width, 1)
    x = conv_bn_relu(g, x, width, 3, stride=stride, pad=1)
    return conv_bn(g, x, 4 * width, 1)


def se_bottleneck(g: Graph, x: Tensor, width: int, stride: int) -> Tensor:
    """Weight the bottleneck's output channels with a gate computed from their means."""
    x = bottleneck(g, x, width, stride)
    squeezed = g.relu(g.conv(g.global_average_pool(x), x.channels // _SQUEEZE, 1, bias=True))
    return g.multiply(x, g.sigmoid(g.conv(squeezed, x.channels, 1, bias=True)))


def resnet(g: Graph, *, blocks: Sequence[int], branch: Branch) -> Tensor:
    """Return the class scores of a ResNet of four stages."""
    x = conv_bn_relu(g, g.input, 64, 7, stride=2, pad=3)
    x = g.max_pool(x, 3, stride=2, pad=1)
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage and not block else 1
            residual = branch(g, x, 64 << stage, stride)
            shortcut = x
            if residual.shape != x.shape:
                shortcut = conv_bn(g, x, residual.channels, 1, stride=stride)
            x = g.relu(g.add(residual, shortcut))
    return classifier(g, x)


for _name, _text, _blocks, _branch in (
    ("resnet18", "ResNet-18", (2, 2, 2, 2), basic),
    ("resnet50", "ResNet-50 v1.5", (3, 4, 6, 3), bottleneck),
    ("resnet152", "ResNet-152 v1.5", (3, 8, 36, 3), bottleneck),
    ("se_resnet50", "ResNet-50 v1.5 with squeeze and excitation", (3, 4, 6, 3), se_bottleneck),
):
    register(_name, _text, partial(resnet, blocks=_blocks, branch=_branch))
