"""A network as if its numbers were of another element type: what quantising it would change in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from roof_agent.errors import UsageError
from roof_agent.models.weightless import strip

TYPES = {
    "float64": TensorProto.DOUBLE,
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
}
_FLOATS = {TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
_DATA_FIELDS = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data")


def retyped(model: onnx.ModelProto, element_type: str) -> onnx.ModelProto:
    """Return a weightless copy of the model whose floating-point tensors are all of `element_type`.

    Numbers that steer the graph (bounds, scales of a resize) keep their type. It is a copy for
    counting: no scale or zero point is added, and for integers most operators wouldn't run.
    """
    if element_type not in TYPES:
        raise UsageError(f"no element type {element_type!r}; there are {', '.join(TYPES)}")
    copy, wanted = strip(model), TYPES[element_type]
    for graph in _graphs(copy.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type in _FLOATS:
                value.type.tensor_type.elem_type = wanted
        for tensor in graph.initializer:
            _retype(tensor, wanted)
        _retype_nodes(graph.node, wanted)
    for function in copy.functions:
        _retype_nodes(function.node, wanted)
    return copy


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _retype(tensor: TensorProto, wanted: int) -> None:
    if tensor.data_type in _FLOATS and not any(len(getattr(tensor, field)) for field in _DATA_FIELDS):
        tensor.data_type = wanted


def _retype_nodes(nodes: Iterable[NodeProto], wanted: int) -> None:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                if node.op_type == "ConstantOfShape" and attribute.t.data_type in _FLOATS:
                    for field in _DATA_FIELDS:
                        attribute.t.ClearField(field)
                _retype(attribute.t, wanted)
            # What Cast and the random generators make.
            elif attribute.name in {"to", "dtype"} and attribute.i in _FLOATS:
                attribute.i = wanted
