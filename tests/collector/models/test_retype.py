"""A network as if of another element type: every tensor follows, what steers the graph doesn't."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from roof_agent.errors import UsageError
from roof_collector.analysis import analyze
from roof_collector.models import zoo
from roof_collector.models.retype import TYPES, retyped


@pytest.fixture
def model() -> onnx.ModelProto:
    """Weights in an initializer, a Constant, a ConstantOfShape; a Cast; a Clip with bounds; an If."""
    branch = helper.make_graph(
        [helper.make_node("Add", ["cast", "inner"], ["sum"])],
        "branch",
        [],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [4, 6])],
        [numpy_helper.from_array(np.ones((4, 6), np.float32), "inner")],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(np.ones(6, np.float32))),
        helper.make_node("Add", ["product", "b"], ["biased"]),
        helper.make_node(
            "ConstantOfShape", ["shape"], ["filled"], value=numpy_helper.from_array(np.zeros(1, np.float32))
        ),
        helper.make_node("Mul", ["biased", "filled"], ["scaled"]),
        helper.make_node("Clip", ["scaled", "low", "high"], ["bounded"]),
        helper.make_node("Cast", ["bounded"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch),
    ]
    graph = helper.make_graph(
        nodes,
        "mixed",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 5]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 6])],
        [
            numpy_helper.from_array(np.ones((5, 6), np.float32), "w"),
            numpy_helper.from_array(np.array([4, 6], np.int64), "shape"),
            numpy_helper.from_array(np.array(0, np.float32), "low"),
            numpy_helper.from_array(np.array(6, np.float32), "high"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("element_type", ["float16", "int8", "float64"])
def test_every_tensor_follows(model: onnx.ModelProto, element_type: str) -> None:
    before, after = analyze(model), analyze(retyped(model, element_type))
    assert (after.totals.macc, after.totals.params) == (before.totals.macc, before.totals.params)
    assert after.totals.uncounted == 0
    found = {dtype for layer in after.layers for dtype, _ in layer.outputs}
    assert found == {element_type}
    scale = {"float16": 2, "int8": 4, "float64": 0.5}[element_type]
    assert after.totals.output_bytes * scale == before.totals.output_bytes


def test_bounds_and_shapes_keep_type_and_value(model: onnx.ModelProto) -> None:
    kept = {tensor.name: tensor for tensor in retyped(model, "int8").graph.initializer}
    assert numpy_helper.to_array(kept["high"]) == np.float32(6)
    assert numpy_helper.to_array(kept["shape"]).tolist() == [4, 6]
    assert kept["w"].data_type == TensorProto.INT8
    assert not kept["w"].raw_data


def test_the_model_given_stays_as_it_is(model: onnx.ModelProto) -> None:
    before = model.SerializeToString(deterministic=True)
    retyped(model, "int8")
    assert model.SerializeToString(deterministic=True) == before


def test_the_zoo_as_built_in_half_precision_is_the_same_count() -> None:
    built = analyze(zoo.build("se_resnet50", element_type="float16")).totals
    assert analyze(retyped(zoo.build("se_resnet50"), "float16")).totals == built


def test_an_unknown_type_is_told() -> None:
    with pytest.raises(UsageError, match=f"no element type 'fp7'; there are {', '.join(TYPES)}"):
        retyped(zoo.build("squeezenet1_0"), "fp7")
