"""Sequences of nodes that several families share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Pair, Tensor


def conv_bn(
    g: Graph, x: Tensor, channels: int, kernel: Pair, *, stride: int = 1, pad: Pair = 0, groups: int = 1
) -> Tensor:
    """Convolution without bias, then batch normalisation."""
    return g.batch_norm(g.conv(x, channels, kernel, stride=stride, pad=pad, groups=groups))


def conv_bn_relu(
    g: Graph, x: Tensor, channels: int, kernel: Pair, *, stride: int = 1, pad: Pair = 0, groups: int = 1
) -> Tensor:
    """Convolution without bias, batch normalisation, ReLU."""
    return g.relu(conv_bn(g, x, channels, kernel, stride=stride, pad=pad, groups=groups))


def conv_relu(g: Graph, x: Tensor, channels: int, kernel: int, *, stride: int = 1, pad: int = 0) -> Tensor:
    """Convolution with bias, then ReLU."""
    return g.relu(g.conv(x, channels, kernel, stride=stride, pad=pad, bias=True))


def classifier(g: Graph, x: Tensor) -> Tensor:
    """Global average, then ImageNet's thousand classes."""
    return g.fully_connected(g.global_average_pool(x), 1000)
