"""Operators that make a tensor of little or nothing: constants, ranges, random numbers."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from roof_collector.analysis.node import Cost, Node, OpenShapeError, as_dim
from roof_collector.analysis.rules.registry import rule
from roof_collector.analysis.symbols import Dim, Poly, ceil_divide, product, symbol
from roof_collector.analysis.tensor import FLOAT, INT64, MAX_FOLDED_ELEMENTS, NUMPY_TYPES, Shape, Tensor
from roof_collector.analysis.values import tensor_of


@rule("Constant")
def constant(node: Node) -> Cost:
    """State a weight or a shape in the graph; nothing runs."""
    value = node.attribute("value")
    if isinstance(value, TensorProto):
        return Cost([tensor_of(value)], "view", view=True)
    for name, dtype in (
        ("value_int", INT64),
        ("value_ints", INT64),
        ("value_float", FLOAT),
        ("value_floats", FLOAT),
    ):
        if node.has(name):
            values = np.asarray(node.attribute(name), NUMPY_TYPES[dtype])
            return Cost([Tensor(dtype, values.shape, values)], "view", view=True)
    if (sparse := node.attribute("sparse_value")) is not None:
        return Cost([Tensor(sparse.values.data_type, tuple(sparse.dims))], "view", view=True)
    strings = node.attribute("value_strings")
    shape: Shape = () if strings is None else (len(strings),)
    return Cost([Tensor(TensorProto.STRING, shape)], "view", view=True)


@rule("ConstantOfShape")
def constant_of_shape(node: Node) -> Cost:
    """One value all over; small models keep whole weights so."""
    dims = node.values(0)
    if dims is None:
        raise OpenShapeError("the dims to fill depend on data")
    given = node.attribute("value")
    dtype = given.data_type if given is not None else FLOAT
    out = Tensor(dtype, tuple(dims))
    elements = product(dims)
    if isinstance(elements, int) and elements <= MAX_FOLDED_ELEMENTS and dtype in NUMPY_TYPES:
        filling = tensor_of(given).value if given is not None else np.zeros(1, np.float32)
        if filling is not None and filling.size == 1:
            out.value = np.full([int(str(dim)) for dim in dims], filling.reshape(-1)[0], NUMPY_TYPES[dtype])
    return Cost([out], "generator", reads={0: 0}, data=())


@rule("Range")
def range_(node: Node) -> Cost:
    """Evenly spaced numbers."""
    bounds = [node.input(slot).value for slot in range(3)]
    dtype = node.input(0).dtype
    length: Dim = symbol(f"{node.outputs[0]}.length")
    if all(bound is not None for bound in bounds):
        start, limit, delta = (bound.reshape(-1).tolist()[0] for bound in bounds if bound is not None)
        if not any(isinstance(bound, Poly) for bound in (start, limit, delta)):
            length = max(0, math.ceil((limit - start) / delta)) if delta else length
        elif all(isinstance(bound, Poly) or bound == int(bound) for bound in (start, limit, delta)):
            length = ceil_divide(as_dim(limit) - as_dim(start), as_dim(delta))
    return Cost([Tensor(dtype, (length,))], "generator", data=())


@rule("EyeLike", "RandomNormalLike", "RandomUniformLike")
def like_another(node: Node) -> Cost:
    """Fill a tensor of another's dims, reading none of it."""
    dtype = node.integer("dtype", node.input(0).dtype)
    return Cost([Tensor(dtype, node.shape(0))], "generator", reads={0: 0}, data=())


@rule("RandomNormal", "RandomUniform")
def random(node: Node) -> Cost:
    """Random numbers; new ones each time, so no constant."""
    return Cost([Tensor(node.integer("dtype", FLOAT), tuple(node.integers("shape") or ()))], "generator")


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def signal_window(node: Node) -> Cost:
    """Make a window of the length given."""
    size = node.values(0)
    length: Dim = size[0] if size else symbol(f"{node.outputs[0]}.length")
    return Cost([Tensor(node.integer("output_datatype", FLOAT), (length,))], "generator", data=())


@rule("MelWeightMatrix")
def mel_weight_matrix(node: Node) -> Cost:
    """Make a matrix [spectrogram bins, mel bins]."""
    bins, length = node.values(0), node.values(1)
    rows: Dim = length[0] // 2 + 1 if length else symbol(f"{node.outputs[0]}.rows")
    columns: Dim = bins[0] if bins else symbol(f"{node.outputs[0]}.columns")
    return Cost([Tensor(node.integer("output_datatype", FLOAT), (rows, columns))], "generator", data=())
