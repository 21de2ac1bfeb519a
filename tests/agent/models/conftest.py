"""Small networks made on the spot."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

Weights = Callable[..., np.ndarray]


def build() -> onnx.ModelProto:
    """Return conv, batch normalisation, relu, clip, reshape by constant, gemm; every weight random."""
    generator = np.random.default_rng(7)

    def weight(name: str, *dims: int) -> TensorProto:
        return numpy_helper.from_array(np.abs(generator.standard_normal(dims, np.float32)) + 0.5, name)

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "var"], ["n"], name="same"),
        helper.make_node("Relu", ["n"], ["r"], name="same", doc_string="secret of /home/me"),
        helper.make_node("Clip", ["r", "low", "high"], ["k"]),
        helper.make_node("Constant", [], ["hidden"], value=weight("", 1, 4, 1, 1)),
        helper.make_node("Add", ["k", "hidden"], ["a"]),
        helper.make_node("Reshape", ["a", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [
            weight("w", 4, 3, 3, 3),
            weight("b", 4),
            *(weight(name, 4) for name in ("gamma", "beta", "mean", "var")),
            numpy_helper.from_array(np.float32(0.0), "low"),
            numpy_helper.from_array(np.float32(6.0), "high"),
            numpy_helper.from_array(np.array([1, 256], np.int64), "shape"),
            weight("fw", 256, 10),
            weight("fb", 10),
        ],
        doc_string="secret of /home/me",
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="author", value="secret of /home/me")
    return model


@pytest.fixture
def model() -> onnx.ModelProto:
    return build()
