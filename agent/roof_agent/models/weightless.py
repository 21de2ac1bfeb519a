"""Networks without their weights, and back.

How long a network takes hardly depends on its weights' values, so a graph travels with the types and
dims of its tensors alone: some KB for a VGG16 of 553 MB, and a user's weights never leave the board.
What stays is what the graph can't run without, see `kept`. A tensor without its values is no valid ONNX,
so that no runtime can mistake a weightless graph for a network; the graph is marked besides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, MutableSequence
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from roof_agent.errors import MeasurementError
from roof_agent.models.filling import chunks
from roof_agent.models.kept import Scope, is_mathematical
from roof_agent.models.roles import COMPUTING
from roof_agent.models.tensors import BITS, elements, flattened, is_bare, parameter_bytes, stored

__all__ = [
    "MARK",
    "digest",
    "fill",
    "is_weightless",
    "parameter_bytes",
    "stored",
    "strip",
    "weight_type",
    "write",
]

MARK = "roofline.weightless"

# Lists of numbers in attributes above this length are a model's (trees, coefficients), not a layer's.
_ATTRIBUTE_NUMBERS = 16
_ATTRIBUTE_BYTES = 4096
# Smaller tensors stay in the model's own file.
_EXTERNAL_BYTES = 1024

Keeps = Callable[[str, TensorProto], bool]


def strip(model: ModelProto) -> ModelProto:
    """Return the model without its weights' values, doc strings and metadata.

    The weights aren't copied on the way, and the model given is left alone.
    """
    bare = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.metadata_props.add(key=MARK, value="1")
    _strip_graph(model.graph, bare.graph, Scope(list(flattened(model.graph.node))).keeps)
    for function in model.functions:
        own = bare.functions.add(
            name=function.name,
            domain=function.domain,
            overload=function.overload,
            input=function.input,
            output=function.output,
            attribute=function.attribute,
            opset_import=function.opset_import,
        )
        keeps = Scope(list(flattened(function.node))).keeps
        for default in function.attribute_proto:
            _strip_attribute(default, own.attribute_proto.add(), "", keeps)
        _strip_nodes(function.node, own.node, keeps)
    return bare


def is_weightless(model: ModelProto) -> bool:
    """Say whether any tensor of the model lacks its values."""
    return any(is_bare(tensor) for _, tensor, _ in stored(model))


def fill(model: ModelProto, seed: int = 0) -> ModelProto:
    """Return the model with seeded values in every tensor that has none.

    The model given is changed, so that no second copy is held.
    """
    return _fill(model, seed, lambda tensor, pieces: setattr(tensor, "raw_data", b"".join(pieces)))


def write(model: ModelProto, path: Path, seed: int = 0) -> None:
    """Fill a model into the file `path`, with its weights in a file beside it, some MiB at a time.

    The model given is changed: its tensors then refer to that file. Raises MeasurementError where there
    isn't room for it.
    """
    weights = path.with_suffix(".weights")
    try:
        with weights.open("wb") as file:

            def place(tensor: TensorProto, pieces: Iterable[bytes]) -> None:
                first, *rest = pieces
                if not rest and len(first) < _EXTERNAL_BYTES:
                    tensor.raw_data = first
                    return
                offset = file.seek(-(-file.tell() // 4096) * 4096)
                for piece in (first, *rest):
                    file.write(piece)
                tensor.data_location = TensorProto.EXTERNAL
                place = {"location": weights.name, "offset": offset, "length": file.tell() - offset}
                for key, value in place.items():
                    tensor.external_data.add(key=key, value=str(value))

            _fill(model, seed, place)
        path.write_bytes(model.SerializeToString())
    except OSError as error:
        raise MeasurementError(f"its weights can't be written to {path.parent}: {error.strerror}") from error


def weight_type(model: ModelProto) -> str:
    """Return the element type of most of the weights, such as float32 or int8; empty without weights."""
    sizes: dict[int, int] = {}
    for name, tensor, nodes in stored(model):
        if is_bare(tensor) and any(name in node.input for node in nodes if node.op_type in COMPUTING):
            sizes[tensor.data_type] = sizes.get(tensor.data_type, 0) + elements(tensor)
    if not sizes:
        return ""
    name = TensorProto.DataType.Name(max(sizes, key=lambda kind: sizes[kind])).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def digest(model: ModelProto) -> tuple[bytes, str]:
    """Return a weightless model's bytes and their SHA-256: its identity."""
    data = model.SerializeToString(deterministic=True)
    return data, hashlib.sha256(data).hexdigest()


def _fill(model: ModelProto, seed: int, place: Callable[[TensorProto, Iterable[bytes]], None]) -> ModelProto:
    scopes: dict[int, Scope] = {}
    for position, (name, tensor, nodes) in enumerate(stored(model)):
        if not is_bare(tensor):
            continue
        if tensor.data_type == TensorProto.STRING:
            tensor.string_data.extend([b"-"] * elements(tensor))
        elif tensor.data_type not in BITS:
            raise MeasurementError(
                f"its tensor {name!r} has the element type {tensor.data_type}, unknown here"
            )
        else:
            if id(nodes) not in scopes:
                scopes[id(nodes)] = Scope(nodes)
            place(tensor, chunks(tensor, name, scopes[id(nodes)], np.random.default_rng([seed, position])))
    return model


def _strip_graph(graph: GraphProto, bare: GraphProto, keeps: Keeps) -> None:
    bare.name = graph.name
    for ours, theirs in (
        (bare.input, graph.input),
        (bare.output, graph.output),
        (bare.value_info, graph.value_info),
    ):
        ours.extend(ValueInfoProto(name=value.name, type=value.type) for value in theirs)
    for tensor in graph.initializer:
        _strip_tensor(tensor, bare.initializer.add(), tensor.name, keeps)
    for sparse in graph.sparse_initializer:
        # The runtime makes it dense as well.
        bare.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    _strip_nodes(graph.node, bare.node, keeps)


def _strip_nodes(nodes: Iterable[NodeProto], bare: MutableSequence[NodeProto], keeps: Keeps) -> None:
    for node in nodes:
        own = NodeProto(
            op_type=node.op_type,
            domain=node.domain,
            overload=node.overload,
            name=node.name,
            input=node.input,
            output=node.output,
        )
        # One number for a whole tensor: mostly the zero of a first state, which runtimes know.
        own_keeps = _keeps_mathematics if node.op_type == "ConstantOfShape" else keeps
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name.startswith(
                ("value_float", "value_ints", "sparse")
            ):
                value = own.attribute.add(name="value", type=AttributeProto.TENSOR)
                _strip_tensor(_as_tensor(attribute), value.t, node.output[0], keeps)
            else:
                _strip_attribute(
                    attribute, own.attribute.add(), node.output[0] if node.output else "", own_keeps
                )
        bare.append(own)


def _keeps_mathematics(_: str, tensor: TensorProto) -> bool:
    return elements(tensor) == 1 and is_mathematical(tensor)


def _strip_attribute(attribute: AttributeProto, bare: AttributeProto, output: str, keeps: Keeps) -> None:
    bare.name, bare.type = attribute.name, attribute.type
    if attribute.ref_attr_name:
        bare.ref_attr_name = attribute.ref_attr_name
    if attribute.type == AttributeProto.TENSOR:
        _strip_tensor(attribute.t, bare.t, output, keeps)
    elif attribute.type == AttributeProto.GRAPH:
        _strip_graph(attribute.g, bare.g, keeps)
    elif attribute.type == AttributeProto.FLOATS:
        many = len(attribute.floats) > _ATTRIBUTE_NUMBERS
        bare.floats.extend([1.0] * len(attribute.floats) if many else attribute.floats)
    elif attribute.type == AttributeProto.STRING and len(attribute.s) <= _ATTRIBUTE_BYTES:
        bare.s = attribute.s
    elif attribute.type in {
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
    }:
        bare.CopyFrom(attribute)
        bare.ClearField("doc_string")
    for tensor in attribute.tensors:
        _strip_tensor(tensor, bare.tensors.add(), output, keeps)
    for graph in attribute.graphs:
        _strip_graph(graph, bare.graphs.add(), keeps)


def _as_tensor(attribute: AttributeProto) -> TensorProto:
    """Return what a Constant node holds in a form of its own as the tensor that it stands for."""
    if attribute.name == "sparse_value":
        sparse = attribute.sparse_tensor
        return TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
    if attribute.name == "value_float":
        return helper.make_tensor("", TensorProto.FLOAT, (), [attribute.f])
    if attribute.name == "value_floats":
        return helper.make_tensor("", TensorProto.FLOAT, (len(attribute.floats),), attribute.floats)
    return helper.make_tensor("", TensorProto.INT64, (len(attribute.ints),), attribute.ints)


def _strip_tensor(tensor: TensorProto, bare: TensorProto, name: str, keeps: Keeps) -> None:
    if not is_bare(tensor) and keeps(name, tensor):
        bare.CopyFrom(tensor)
        bare.ClearField("doc_string")
        del bare.metadata_props[:]
    else:
        bare.name, bare.data_type = tensor.name, tensor.data_type
        bare.dims.extend(tensor.dims)
