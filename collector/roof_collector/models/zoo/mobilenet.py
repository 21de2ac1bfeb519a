"""MobileNet v1 (Howard et al., arXiv 1704.04861) and v2 (Sandler et al., arXiv 1801.04381).

Where v2's paper has ReLU6 the node is a Relu: the same count and the same traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import classifier, conv_bn, conv_bn_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

# Output channels and stride of each depthwise-separable block.
_V1_BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
# Table 2 of v2's paper: expansion, channels, repetitions, stride of the first.
_V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _depthwise(g: Graph, x: Tensor, stride: int) -> Tensor:
    return conv_bn_relu(g, x, x.channels, 3, stride=stride, pad=1, groups=x.channels)


def mobilenet_v1(g: Graph) -> Tensor:
    """Return the class scores."""
    x = conv_bn_relu(g, g.input, 32, 3, stride=2, pad=1)
    for channels, stride in _V1_BLOCKS:
        x = conv_bn_relu(g, _depthwise(g, x, stride), channels, 1)
    return classifier(g, x)


def _inverted_residual(g: Graph, x: Tensor, expansion: int, channels: int, stride: int) -> Tensor:
    wide = conv_bn_relu(g, x, expansion * x.channels, 1) if expansion > 1 else x
    projected = conv_bn(g, _depthwise(g, wide, stride), channels, 1)
    return g.add(x, projected) if projected.shape == x.shape else projected


def mobilenet_v2(g: Graph) -> Tensor:
    """Return the class scores."""
    x = conv_bn_relu(g, g.input, 32, 3, stride=2, pad=1)
    for expansion, channels, repetitions, stride in _V2_STAGES:
        for block in range(repetitions):
            x = _inverted_residual(g, x, expansion, channels, 1 if block else stride)
    return classifier(g, conv_bn_relu(g, x, 1280, 1))


register("mobilenet_v1", "MobileNet v1, 1.0, 224x224", mobilenet_v1)
register("mobilenet_v2", "MobileNet v2, 1.0, 224x224", mobilenet_v2)
