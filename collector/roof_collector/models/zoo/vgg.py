"""VGG-16 (Simonyan, Zisserman, arXiv 1409.1556, configuration D)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import conv_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16_conv(g: Graph) -> Tensor:
    """Return the output of the convolutions and their pools."""
    x = g.input
    for channels, convolutions in _STAGES:
        for _ in range(convolutions):
            x = conv_relu(g, x, channels, 3, pad=1)
        x = g.max_pool(x, 2, stride=2)
    return x


def vgg16(g: Graph) -> Tensor:
    """Return the class probabilities."""
    x = vgg16_conv(g)
    for _ in range(2):
        x = g.relu(g.fully_connected(x, 4096))
    return g.softmax(g.fully_connected(x, 1000))


register("vgg16", "VGG-16, configuration D", vgg16)
register("vgg16_conv", "VGG-16 without its fully connected layers", vgg16_conv)
