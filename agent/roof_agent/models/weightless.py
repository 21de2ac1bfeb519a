"""Networks without their weights, and back.

How long a network takes hardly depends on its weights' values, so a graph travels with the types and
dims of its tensors alone: some KB for a VGG16 of 553 MB, and a user's weights never leave the board.
What is kept is what the graph can't run without: constants that are shapes, axes, indices or bounds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

MARK = "roofline.weightless"

# Integers this small and few are shapes, axes or indices; weights are larger or of more dims.
_KEPT_INTEGERS = 64
_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}

# Slots whose single numbers steer an operator: bounds, padding, exponents, ratios, sizes.
_STEERING_SLOTS: dict[str, tuple[int, ...]] = {
    "Clip": (1, 2),
    "Pad": (2,),
    "Pow": (1,),
    "Dropout": (1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
    "Range": (0, 1, 2),
    "OneHot": (1, 2),
    "NonMaxSuppression": (2, 3, 4),
}
_STEERING_NUMBERS = 8

_DATA_FIELDS = (
    "raw_data",
    "float_data",
    "double_data",
    "int32_data",
    "int64_data",
    "uint64_data",
    "string_data",
    "external_data",
)

# (slot, what it holds) of operators whose constants can't be any number.
_ROLES: dict[str, dict[int, str]] = {
    "BatchNormalization": {1: "gain", 2: "shift", 3: "shift", 4: "positive"},
    "InstanceNormalization": {1: "gain", 2: "shift"},
    "LayerNormalization": {1: "gain", 2: "shift"},
    "GroupNormalization": {1: "gain", 2: "shift"},
    "SkipLayerNormalization": {2: "gain", 3: "shift", 4: "shift"},
    "QuantizeLinear": {1: "scale", 2: "zero_point"},
    "DequantizeLinear": {1: "scale", 2: "zero_point"},
    "QLinearConv": {1: "scale", 2: "zero_point", 4: "scale", 5: "zero_point", 6: "scale", 7: "zero_point"},
    "QLinearMatMul": {1: "scale", 2: "zero_point", 4: "scale", 5: "zero_point", 6: "scale", 7: "zero_point"},
    "ConvInteger": {2: "zero_point", 3: "zero_point"},
    "MatMulInteger": {2: "zero_point", 3: "zero_point"},
    "Div": {1: "gain"},
}


def strip(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without its weights' values, doc strings and metadata."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    bare.ClearField("doc_string")
    del bare.metadata_props[:]
    bare.metadata_props.add(key=MARK, value="1")
    for graph in _graphs(bare.graph):
        consumers = _consumers(graph.node)
        graph.ClearField("doc_string")
        del graph.metadata_props[:]
        for tensor in graph.initializer:
            _strip_tensor(tensor, consumers.get(tensor.name, ()))
        for sparse in graph.sparse_initializer:
            sparse.values.ClearField("raw_data")
        _strip_nodes(graph.node, consumers)
    for function in bare.functions:
        function.ClearField("doc_string")
        _strip_nodes(function.node, _consumers(function.node))
    return bare


def fill(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return the model with seeded weights in every tensor that has none.

    He-scaled normal numbers: their products neither overflow nor turn denormal, both of which would
    change the time. The model given is changed in place, so that no second copy is held.
    """
    generator = np.random.default_rng(seed)
    for graph in _graphs(model.graph):
        consumers = _consumers(graph.node)
        for tensor in graph.initializer:
            if _is_bare(tensor):
                _fill_tensor(tensor, _role(consumers.get(tensor.name, ())), generator)
        _fill_nodes(graph.node, consumers, generator)
    for function in model.functions:
        _fill_nodes(function.node, _consumers(function.node), generator)
    return model


def digest(model: onnx.ModelProto) -> tuple[bytes, str]:
    """Return a weightless model's bytes and their SHA-256: its identity."""
    data = model.SerializeToString(deterministic=True)
    return data, hashlib.sha256(data).hexdigest()


def parameter_bytes(model: onnx.ModelProto) -> int:
    """Return what the weights take in memory once they are there."""
    total = 0
    for graph in _graphs(model.graph):
        for tensor in (*graph.initializer, *(value for _, value in _constants(graph.node))):
            total += math.prod(tensor.dims) * _item_bytes(tensor.data_type)
    return total


def _item_bytes(data_type: int) -> int:
    return np.dtype(helper.tensor_dtype_to_np_dtype(data_type)).itemsize if data_type else 0


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and those inside its nodes, the outer one first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
            for inner in attribute.graphs:
                yield from _graphs(inner)


Slots = tuple[tuple[str, int], ...]


def _consumers(nodes: Iterable[NodeProto]) -> dict[str, Slots]:
    """Return which slots of which operators each tensor feeds."""
    found: dict[str, Slots] = {}
    for node in nodes:
        for slot, name in enumerate(node.input):
            found[name] = (*found.get(name, ()), (node.op_type, slot))
    return found


def _constants(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    """Yield the tensors of Constant nodes with their names."""
    for node in nodes:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], attribute.t


def _strip_nodes(nodes: Iterable[NodeProto], consumers: dict[str, Slots]) -> None:
    for node in nodes:
        node.ClearField("doc_string")
        del node.metadata_props[:]
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            # A list of floats is a weight as well as a tensor is: it becomes a tensor, and bare.
            if node.op_type == "Constant" and attribute.name in {"value_floats", "value_ints"}:
                kind = TensorProto.FLOAT if attribute.name == "value_floats" else TensorProto.INT64
                numbers = attribute.floats or attribute.ints
                tensor = helper.make_tensor("", kind, (len(numbers),), numbers)
                attribute.Clear()
                attribute.CopyFrom(helper.make_attribute("value", tensor))
            if node.op_type != "ConstantOfShape" and attribute.type == AttributeProto.TENSOR:
                _strip_tensor(attribute.t, consumers.get(node.output[0], ()) if node.output else ())


def _strip_tensor(tensor: TensorProto, slots: Slots) -> None:
    tensor.ClearField("doc_string")
    del tensor.metadata_props[:]
    if _is_kept(tensor, slots):
        return
    for field in _DATA_FIELDS:
        tensor.ClearField(field)
    tensor.ClearField("data_location")


def _is_kept(tensor: TensorProto, slots: Slots) -> bool:
    if tensor.data_location == TensorProto.EXTERNAL:
        return False
    count = math.prod(tensor.dims)
    weight = any(slot in _ROLES.get(op_type, {}) for op_type, slot in slots)
    if tensor.data_type in _INTEGERS:
        return len(tensor.dims) <= 1 and count <= _KEPT_INTEGERS and not weight
    steering = any(slot in _STEERING_SLOTS.get(op_type, ()) for op_type, slot in slots)
    return steering and count <= _STEERING_NUMBERS


def _is_bare(tensor: TensorProto) -> bool:
    """Say whether a tensor's data are missing (and not merely none)."""
    if not math.prod(tensor.dims):
        return False
    return not (tensor.HasField("raw_data") or any(len(getattr(tensor, name)) for name in _DATA_FIELDS[1:]))


def _fill_nodes(
    nodes: Iterable[NodeProto], consumers: dict[str, Slots], generator: np.random.Generator
) -> None:
    for name, tensor in _constants(nodes):
        if _is_bare(tensor):
            _fill_tensor(tensor, _role(consumers.get(name, ())), generator)


def _role(slots: Slots) -> str:
    for op_type, slot in slots:
        if slot in _ROLES.get(op_type, {}):
            return _ROLES[op_type][slot]
    return ""


def _fill_tensor(tensor: TensorProto, role: str, generator: np.random.Generator) -> None:
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    dims = tuple(tensor.dims)
    if kind == np.dtype(object):
        tensor.string_data.extend([b""] * math.prod(dims))
        return
    tensor.raw_data = _values(kind, dims, role, generator).tobytes()
    if tensor.data_type in {TensorProto.INT4, TensorProto.UINT4}:
        # Two to a byte.
        tensor.raw_data = bytes((math.prod(dims) + 1) // 2)


def _values(
    kind: np.dtype[Any], dims: tuple[int, ...], role: str, generator: np.random.Generator
) -> NDArray[Any]:
    if np.issubdtype(kind, np.integer) or kind == np.dtype(bool):
        if role == "zero_point" or kind == np.dtype(bool):
            return np.zeros(dims, kind)
        low, high = (0, 256) if kind == np.dtype(np.uint8) else (-127, 128)
        if kind.itemsize > 1:
            # Biases of quantised layers, or indices: small and never negative.
            low, high = 0, 2
        return generator.integers(low, high, dims).astype(kind)
    if role == "scale":
        return np.full(dims, 1 / 64, kind)
    normal = generator.standard_normal(dims, np.float32)
    if role in {"gain", "positive"}:
        return (1 + 0.1 * np.abs(normal)).astype(kind)
    # He et al., "Delving deep into rectifiers", ICCV 2015: variance 2 / fan-in keeps the scale of
    # activations from layer to layer. Bias-like vectors stay small.
    fan_in = math.prod(dims[1:]) if len(dims) > 2 else dims[0] if len(dims) == 2 else 100
    scaled = normal * math.sqrt(2 / max(fan_in, 1))
    # What is nearly zero moves away from it: no zero for a sparse kernel, no denormal product.
    floor = 1e-4
    return np.where(np.abs(scaled) < floor, floor, scaled).astype(kind)
