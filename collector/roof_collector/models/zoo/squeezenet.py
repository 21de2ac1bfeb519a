"""SqueezeNet 1.0 (Iandola et al., arXiv 1602.07360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_collector.models.zoo.blocks import conv_relu
from roof_collector.models.zoo.registry import register

if TYPE_CHECKING:
    from roof_collector.models.zoo.graph import Graph, Tensor

# Channels of each fire module's squeeze layer, and of each of its two expand layers; the modules
# of one row share a resolution.
_FIRES = (
    ((16, 64), (16, 64), (32, 128)),
    ((32, 128), (48, 192), (48, 192), (64, 256)),
    ((64, 256),),
)


def _fire(g: Graph, x: Tensor, squeeze: int, expand: int) -> Tensor:
    x = conv_relu(g, x, squeeze, 1)
    return g.concat(conv_relu(g, x, expand, 1), conv_relu(g, x, expand, 3, pad=1))


def squeezenet1_0(g: Graph) -> Tensor:
    """Return the class probabilities."""
    x = conv_relu(g, g.input, 96, 7, stride=2)
    for stage in _FIRES:
        x = g.max_pool(x, 3, stride=2, ceil=True)
        for squeeze, expand in stage:
            x = _fire(g, x, squeeze, expand)
    return g.softmax(g.global_average_pool(conv_relu(g, x, 1000, 1)))


register("squeezenet1_0", "SqueezeNet 1.0 at 224x224", squeezenet1_0)
