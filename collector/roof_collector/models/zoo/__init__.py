"""The zoo: well-known networks as weightless ONNX, written node by node in milliseconds.

Every family is one module, and its variants are data. The initializers of a built network carry
type and dims; only shapes and scalars that the graph's meaning hangs on carry data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roof_agent.errors import UsageError
from roof_collector.models.zoo import (
    googlenet,
    inception,
    mobilenet,
    resnet,
    shufflenet,
    squeezenet,
    transformer,
    vgg,
)
from roof_collector.models.zoo.registry import NETWORKS, Network

if TYPE_CHECKING:
    import onnx

__all__ = ["NETWORKS", "Network", "build", "names"]

_FAMILIES = (vgg, resnet, googlenet, inception, mobilenet, shufflenet, squeezenet, transformer)


def names() -> tuple[str, ...]:
    """Return the networks' names in the order in which they are listed."""
    return tuple(NETWORKS)


def build(name: str, *, batch: int = 1, element_type: str = "float32") -> onnx.ModelProto:
    """Return the weightless network `name`, with input "input" [batch, ...] and output "output".

    `element_type` (float32, float16, bfloat16, float64) is that of every weight and activation. An
    unknown name or type, or a batch below 1, is a UsageError.
    """
    from roof_collector.models.zoo.graph import ELEMENT_TYPES, Graph

    if name not in NETWORKS:
        raise UsageError(f"the zoo has no network {name!r}; it has {', '.join(NETWORKS)}")
    if element_type not in ELEMENT_TYPES:
        raise UsageError(
            f"a network of the zoo can't be {element_type!r}; it can be {', '.join(ELEMENT_TYPES)}"
        )
    if batch < 1:
        raise UsageError(f"a batch of {batch} isn't possible; it is 1 or more")
    network = NETWORKS[name]
    graph = Graph(name, network.input_shape, batch=batch, element_type=element_type)
    return graph.model(network.layers(graph))
