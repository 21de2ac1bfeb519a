"""Inception-v3 (Szegedy et al., arXiv 1512.00567) without its auxiliary classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import classifier
from roof_collector.models.zoo.blocks import conv_bn_relu as conv
from roof_collector.models.zoo.registry import IMAGE, register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor


def _chain(g: Graph, x: Tensor, *layers: tuple[int, int | tuple[int, int]]) -> Tensor:
    """Convolve in turn, each (channels, kernel) padded to keep the size."""
    for channels, kernel in layers:
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        x = conv(g, x, channels, (height, width), pad=(height // 2, width // 2))
    return x


def _pooled(g: Graph, x: Tensor, channels: int) -> Tensor:
    return conv(g, g.average_pool(x, 3, stride=1, pad=1), channels, 1)


def _module_a(g: Graph, x: Tensor, pooled: int) -> Tensor:
    return g.concat(
        conv(g, x, 64, 1),
        _chain(g, x, (48, 1), (64, 5)),
        _chain(g, x, (64, 1), (96, 3), (96, 3)),
        _pooled(g, x, pooled),
    )


def _reduction_a(g: Graph, x: Tensor) -> Tensor:
    return g.concat(
        conv(g, x, 384, 3, stride=2),
        conv(g, _chain(g, x, (64, 1), (96, 3)), 96, 3, stride=2),
        g.max_pool(x, 3, stride=2),
    )


def _module_b(g: Graph, x: Tensor, width: int) -> Tensor:
    row, column = (1, 7), (7, 1)
    return g.concat(
        conv(g, x, 192, 1),
        _chain(g, x, (width, 1), (width, row), (192, column)),
        _chain(g, x, (width, 1), (width, column), (width, row), (width, column), (192, row)),
        _pooled(g, x, 192),
    )


def _reduction_b(g: Graph, x: Tensor) -> Tensor:
    # The last convolution of the 7x7 branch stands behind that of the 3x3, as in the reference list of
    # layers that the tests hold.
    seven = _chain(g, x, (192, 1), (192, (1, 7)), (192, (7, 1)))
    three = conv(g, _chain(g, x, (192, 1)), 320, 3, stride=2)
    return g.concat(three, conv(g, seven, 192, 3, stride=2), g.max_pool(x, 3, stride=2))


def _module_c(g: Graph, x: Tensor) -> Tensor:
    one = conv(g, x, 320, 1)
    return g.concat(
        one,
        _fork(g, _chain(g, x, (384, 1))),
        _fork(g, _chain(g, x, (448, 1), (384, 3))),
        _pooled(g, x, 192),
    )


def _fork(g: Graph, x: Tensor) -> Tensor:
    return g.concat(_chain(g, x, (384, (1, 3))), _chain(g, x, (384, (3, 1))))


def inception_v3(g: Graph) -> Tensor:
    """Return the class scores."""
    x = conv(g, g.input, 32, 3, stride=2)
    x = conv(g, x, 32, 3)
    x = g.max_pool(conv(g, x, 64, 3, pad=1), 3, stride=2)
    x = conv(g, conv(g, x, 80, 1), 192, 3)
    x = g.max_pool(x, 3, stride=2)
    for pooled in (32, 64, 64):
        x = _module_a(g, x, pooled)
    x = _reduction_a(g, x)
    for width in (128, 160, 160, 192):
        x = _module_b(g, x, width)
    x = _reduction_b(g, x)
    for _ in range(2):
        x = _module_c(g, x)
    return classifier(g, x)


register("inception_v3", "Inception-v3 at 299x299", inception_v3, input_shape=(3, 299, 299))
register("inception_v3_224", "Inception-v3 at 224x224", inception_v3, input_shape=IMAGE)
