"""Walking an ONNX model: its graphs, its stored tensors, and what each tensor is used for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

DATA_FIELDS = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")

_WIDTHS = {
    "FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "BOOL": 8, "COMPLEX64": 64, "COMPLEX128": 128,
    "INT8": 8, "UINT8": 8, "INT16": 16, "UINT16": 16, "INT32": 32, "UINT32": 32, "INT64": 64, "UINT64": 64,
    "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8,
    "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2,
}  # fmt: skip
# By the enumeration's number; a type that the installed onnx doesn't know yet is left out.
BITS: dict[int, int] = {
    TensorProto.DataType.Value(name): width
    for name, width in _WIDTHS.items()
    if name in TensorProto.DataType.keys()  # noqa: SIM118 - an enumeration's wrapper, not a dictionary
}


@dataclass(frozen=True)
class Use:
    """One slot that a tensor feeds."""

    node: NodeProto
    slot: int


Uses = dict[str, list[Use]]


def graphs(model: ModelProto) -> Iterator[GraphProto]:
    """Yield the main graph, and those inside nodes, of functions too."""
    yield from _nested(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                yield from _nested(inner)


def _nested(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _nested(inner)


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs that a node carries: branches, bodies."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def flattened(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes in their order, those inside a node before it: each behind what it reads."""
    for node in nodes:
        for inner in subgraphs(node):
            yield from flattened(inner.node)
        yield node


def scopes(model: ModelProto) -> Iterator[list[NodeProto]]:
    """Yield the nodes that can see each other's tensors: the main graph's, then each function's."""
    yield list(flattened(model.graph.node))
    for function in model.functions:
        yield list(flattened(function.node))


def uses(nodes: Iterable[NodeProto]) -> Uses:
    """Return where each tensor is read."""
    found: Uses = {}
    for node in nodes:
        for slot, name in enumerate(node.input):
            if name:
                found.setdefault(name, []).append(Use(node, slot))
    return found


def constants(node: NodeProto) -> Iterator[TensorProto]:
    """Yield the tensors stored in a node's attributes."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            yield attribute.t
        yield from attribute.tensors


def stored(model: ModelProto) -> Iterator[tuple[str, TensorProto, list[NodeProto]]]:
    """Yield every stored tensor with the name by which nodes read it, and the nodes that can."""
    main, *functions = scopes(model)
    for graph in _nested(model.graph):
        for tensor in graph.initializer:
            yield tensor.name, tensor, main
    for function, nodes in zip(model.functions, functions, strict=True):
        for node in function.node:
            for graph in (inner for own in subgraphs(node) for inner in _nested(own)):
                for tensor in graph.initializer:
                    yield tensor.name, tensor, nodes
    for nodes in (main, *functions):
        for node in nodes:
            for tensor in constants(node):
                yield (node.output[0] if node.output else ""), tensor, nodes


def elements(tensor: TensorProto) -> int:
    """Return how many elements a tensor has; a scalar one."""
    return math.prod(tensor.dims)


def stored_bytes(tensor: TensorProto) -> int:
    """Return what a tensor's values take, packed; 0 for strings and for types not known here."""
    return (elements(tensor) * BITS.get(tensor.data_type, 0) + 7) // 8


def is_bare(tensor: TensorProto) -> bool:
    """Say whether a tensor's values are missing (and not merely none)."""
    return (
        elements(tensor) > 0
        and tensor.data_location != TensorProto.EXTERNAL
        and not tensor.raw_data
        and not any(len(getattr(tensor, name)) for name in DATA_FIELDS)
    )


def parameter_bytes(model: ModelProto) -> int:
    """Return what the stored tensors take once their values are there."""
    return sum(stored_bytes(tensor) for _, tensor, _ in stored(model))
