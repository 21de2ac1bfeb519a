"""GoogLeNet (Szegedy et al., arXiv 1409.4842).

With its local response normalisation, without its auxiliary classifiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import classifier, conv_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

# Table 1 of the paper: 1x1, 3x3 after its reduction, 5x5 after its reduction, behind the pool.
_INCEPTIONS = (
    (
        (64, (96, 128), (16, 32), 32),
        (128, (128, 192), (32, 96), 64),
    ),
    (
        (192, (96, 208), (16, 48), 64),
        (160, (112, 224), (24, 64), 64),
        (128, (128, 256), (24, 64), 64),
        (112, (144, 288), (32, 64), 64),
        (256, (160, 320), (32, 128), 128),
    ),
    (
        (256, (160, 320), (32, 128), 128),
        (384, (192, 384), (48, 128), 128),
    ),
)


def _inception(
    g: Graph, x: Tensor, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int
) -> Tensor:
    return g.concat(
        conv_relu(g, x, one, 1),
        conv_relu(g, conv_relu(g, x, three[0], 1), three[1], 3, pad=1),
        conv_relu(g, conv_relu(g, x, five[0], 1), five[1], 5, pad=2),
        conv_relu(g, g.max_pool(x, 3, stride=1, pad=1), pooled, 1),
    )


def googlenet(g: Graph) -> Tensor:
    """Return the class probabilities."""
    x = conv_relu(g, g.input, 64, 7, stride=2, pad=3)
    x = g.lrn(g.max_pool(x, 3, stride=2, ceil=True), size=5)
    x = conv_relu(g, conv_relu(g, x, 64, 1), 192, 3, pad=1)
    x = g.lrn(x, size=5)
    for stage in _INCEPTIONS:
        x = g.max_pool(x, 3, stride=2, ceil=True)
        for widths in stage:
            x = _inception(g, x, *widths)
    return g.softmax(classifier(g, x))


register("googlenet", "GoogLeNet with local response normalisation", googlenet)
