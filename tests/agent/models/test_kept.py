"""Which values stay in a weightless graph."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from roof_agent.models.kept import is_mathematical
from roof_agent.models.tensors import is_bare
from roof_agent.models.weightless import digest, fill, is_weightless, strip, weight_type, write

info = helper.make_tensor_value_info


def kept(nodes: list[onnx.NodeProto], **tensors: object) -> set[str]:
    """Return the names of the tensors whose values stay."""
    stored = [
        numpy_helper.from_array(
            np.asarray(value, None if isinstance(value, np.ndarray) else np.float32), name
        )
        for name, value in tensors.items()
    ]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, None)], [], stored)
    bare = strip(helper.make_model(graph))
    return {tensor.name for tensor in bare.graph.initializer if not is_bare(tensor)}


def node(op_type: str, *inputs: str, output: str = "y") -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, [output])


@pytest.mark.parametrize(
    "value",
    [0, 1, -1, 0.5, 1.5, 2**0.5, 1 / 64**0.5, 1 / 3, 1e-5, 1e-12, 0.044715, -1e4, -3.4028234663852886e38],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_what_anybody_could_have_written_is_mathematics(value: float, kind: type[np.floating]) -> None:
    with np.errstate(over="ignore", under="ignore"):
        array = np.asarray(value).astype(kind)
    assert is_mathematical(numpy_helper.from_array(array))


def test_a_trained_number_is_not() -> None:
    numbers = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    assert not any(is_mathematical(numpy_helper.from_array(number)) for number in numbers)


def test_mathematics_stays_in_arithmetic_and_nowhere_else() -> None:
    assert kept([node("Pow", "x", "two")], two=2.0) == {"two"}
    assert kept([node("Mul", "x", "learned")], learned=0.7312) == set()
    assert kept([node("Mul", "x", "two")], two=[2.0, 2.0]) == set()
    # The bias of a convolution to one channel is a weight even where it is 0.
    assert kept([node("Conv", "x", "w", "b")], w=[[[[0.3]]]], b=[0.0]) == set()
    assert kept([node("QuantizeLinear", "x", "step")], step=0.5) == set()
    assert kept([node("MatMul", "x", "one")], one=[[1.0]]) == set()


def test_what_only_decides_shapes_stays_also_when_it_is_computed() -> None:
    scales = [node("Concat", "a", "b", output="s"), node("Resize", "x", "", "s")]
    assert kept(scales, a=[1.0, 1.0], b=[1.37, 2.41]) == {"a", "b"}
    # As soon as one reader computes with it, it may be a weight.
    assert kept([*scales, node("Mul", "x", "a", output="z")], a=[1.0, 1.0], b=[1.37, 2.41]) == {"b"}


def test_integers_stay_as_shapes_and_indices_and_not_as_weights() -> None:
    integers = np.arange(1, 9, dtype=np.int64)
    assert kept([node("Reshape", "x", "i")], i=integers) == {"i"}
    assert kept([node("Gather", "x", "i")], i=np.arange(5000).reshape(2, 2500)) == {"i"}
    assert kept([node("MatMul", "x", "i")], i=integers) == set()
    assert kept([node("Add", "x", "i")], i=np.arange(5000)) == set()
    assert kept([node("DequantizeLinear", "i", "s")], i=integers.astype(np.int32), s=0.1) == set()
    assert kept([node("MatMulInteger", "x", "i")], i=integers.astype(np.int8)) == set()


def test_a_first_state_of_zeros_stays_and_another_number_does_not() -> None:
    for value, stays in ((0.0, True), (0.7312, False)):
        constant = helper.make_node(
            "ConstantOfShape", ["shape"], ["h"], value=numpy_helper.from_array(np.array([value], np.float32))
        )
        graph = helper.make_graph([constant], "g", [info("shape", TensorProto.INT64, [1])], [])
        assert is_weightless(strip(helper.make_model(graph))) is not stays


def test_lists_of_numbers_in_attributes_do_not_travel() -> None:
    trees = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_values=[0.7312 + i for i in range(40)],
    )
    graph = helper.make_graph([trees], "g", [info("x", TensorProto.FLOAT, [1, 4])], [])
    bare = strip(helper.make_model(graph))
    assert list(bare.graph.node[0].attribute[0].floats) == [1.0] * 40


def test_a_constant_inside_a_branch_still_loads() -> None:
    branch = helper.make_graph(
        [
            helper.make_node(
                "Constant", [], ["k"], value=numpy_helper.from_array(np.full(3, 0.7, np.float32))
            ),
            helper.make_node("Add", ["x", "k"], ["out"]),
        ],
        "branch",
        [],
        [info("out", TensorProto.FLOAT, [3])],
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch)],
        "g",
        [info("x", TensorProto.FLOAT, [3]), info("flag", TensorProto.BOOL, [])],
        [info("y", TensorProto.FLOAT, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    filled = fill(strip(model)).SerializeToString()
    ort.InferenceSession(filled, providers=["CPUExecutionProvider"])


def quantized() -> onnx.ModelProto:
    """Return a quantised convolution and a quantised product, as exporters write them."""
    generator = np.random.default_rng(3)
    stored = {
        "s": np.float32(0.02),
        "z": np.uint8(117),
        "w": generator.integers(-127, 127, (8, 4, 3, 3), np.int8),
        "ws": np.full(8, 0.013, np.float32),
        "wz": np.zeros(8, np.int8),
        "b": generator.integers(-999, 999, 8, np.int32),
        "m": generator.integers(0, 255, (5, 6), np.uint8),
        "mz": np.uint8(99),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearConv", ["q", "s", "z", "w", "ws", "wz", "s", "z", "b"], ["c"]),
        helper.make_node("QLinearMatMul", ["c", "s", "z", "m", "s", "mz", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, [1, 4, 7, 7])],
        [info("y", TensorProto.FLOAT, [1, 8, 5, 6])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_quantised_network_is_filled_with_valid_numbers() -> None:
    bare = strip(quantized())
    assert all(is_bare(tensor) for tensor in bare.graph.initializer)
    filled = fill(bare)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in filled.graph.initializer}
    assert values["s"] > 0
    assert values["z"] == 128
    assert not values["wz"].any()
    assert values["w"].all()
    assert values["w"].min() < 0 < values["w"].max()
    session = ort.InferenceSession(filled.SerializeToString(), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": np.ones((1, 4, 7, 7), np.float32)})
    # Neither all at one end nor all alike, which some kernels would be quicker with.
    assert len(np.unique(output)) > 10


def test_the_type_of_most_weights_is_told(model: onnx.ModelProto) -> None:
    assert weight_type(strip(model)) == "float32"
    assert weight_type(strip(quantized())) == "int8"
    assert weight_type(helper.make_model(helper.make_graph([node("Relu", "x")], "g", [], []))) == ""


def test_weights_written_to_a_file_are_those_filled_in_memory(model: onnx.ModelProto, tmp_path: Path) -> None:
    bare = strip(model)
    data, _ = digest(bare)
    write(onnx.ModelProto.FromString(data), tmp_path / "net.onnx", seed=5)
    # What is large stands beside the model, not in it.
    assert (tmp_path / "net.onnx").stat().st_size < (tmp_path / "net.weights").stat().st_size
    read = onnx.load(tmp_path / "net.onnx")
    expected = fill(onnx.ModelProto.FromString(data), seed=5)
    for ours, theirs in zip(read.graph.initializer, expected.graph.initializer, strict=True):
        assert np.array_equal(numpy_helper.to_array(ours), numpy_helper.to_array(theirs)), ours.name


def test_a_large_tensor_is_filled_whole_and_without_zeros() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(1500, 1501))
    graph = helper.make_graph([node("MatMul", "x", "w")], "g", [], [], [tensor])
    (array,) = (numpy_helper.to_array(own) for own in fill(helper.make_model(graph)).graph.initializer)
    assert array.shape == (1500, 1501)
    assert np.abs(array).min() > 1e-7
    assert array.std() == pytest.approx((2 / 1500) ** 0.5, rel=0.01)
