"""What travels and what doesn't; what a filled network is like."""

import math

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from roof_agent.models.network import name_apart
from roof_agent.models.weightless import MARK, digest, fill, parameter_bytes, strip


def floats(model: onnx.ModelProto) -> list[tuple[str, np.ndarray]]:
    tensors = list(model.graph.initializer)
    for node in model.graph.node:
        tensors += [attribute.t for attribute in node.attribute if attribute.type == 4]
    return [(tensor.name, numpy_helper.to_array(tensor)) for tensor in tensors]


def test_no_window_of_a_weights_bytes_survives(model: onnx.ModelProto) -> None:
    bare, _ = digest(strip(model))
    for name, array in floats(model):
        if name in {"low", "high", "shape"}:
            continue
        data = array.tobytes()
        for begin in range(0, len(data) - 3, 4):
            assert data[begin : begin + 4] not in bare, name
    assert b"secret" not in bare


def test_types_dims_and_what_steers_the_graph_are_kept(model: onnx.ModelProto) -> None:
    bare = strip(model)
    for old, new in zip(model.graph.initializer, bare.graph.initializer, strict=True):
        assert (old.name, old.data_type, old.dims) == (new.name, new.data_type, new.dims)
    kept = {tensor.name: tensor for tensor in bare.graph.initializer}
    assert numpy_helper.to_array(kept["shape"]).tolist() == [1, 256]
    assert numpy_helper.to_array(kept["high"]) == 6.0
    assert not kept["w"].raw_data
    assert {prop.key: prop.value for prop in bare.metadata_props} == {MARK: "1"}


def test_stripping_a_filled_network_gives_the_same_digest(model: onnx.ModelProto) -> None:
    bare = strip(model)
    data, name = digest(bare)
    assert digest(strip(fill(bare))) == (data, name)
    assert digest(strip(bare)) == (data, name)


def test_the_model_given_is_left_alone(model: onnx.ModelProto) -> None:
    before = model.SerializeToString(deterministic=True)
    strip(model)
    assert model.SerializeToString(deterministic=True) == before


def test_a_filled_network_runs_and_its_numbers_are_tame(model: onnx.ModelProto) -> None:
    filled = fill(strip(model))
    name_apart(filled)  # The runtime refuses two nodes of one name.
    for name, array in floats(filled):
        if np.issubdtype(array.dtype, np.floating) and name != "low":
            assert np.all(np.abs(array) >= 1e-5), name
    session = ort.InferenceSession(filled.SerializeToString(), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    assert np.all(np.isfinite(output))
    assert 0 < np.abs(output).max() < 1e4


def test_a_weight_that_is_there_is_not_replaced(model: onnx.ModelProto) -> None:
    before = model.SerializeToString(deterministic=True)
    assert fill(model).SerializeToString(deterministic=True) == before


def test_the_seed_decides(model: onnx.ModelProto) -> None:
    one, again, other = (fill(strip(model), seed).SerializeToString(deterministic=True) for seed in (1, 1, 2))
    assert one == again != other


def test_parameters_are_counted_without_their_data(model: onnx.ModelProto) -> None:
    expected = sum(array.nbytes for _, array in floats(model))
    assert parameter_bytes(strip(model)) == parameter_bytes(model) == expected


def test_weights_in_branches_functions_and_float_lists_are_stripped() -> None:
    secret = np.arange(1, 9, dtype=np.float32) * 1.2345
    branch = helper.make_graph(
        [helper.make_node("Add", ["x", "inner"], ["out"])],
        "branch",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [8])],
        [numpy_helper.from_array(secret, "inner")],
    )
    function = helper.make_function(
        "local",
        "f",
        ["a"],
        ["b"],
        [
            helper.make_node("Constant", [], ["k"], value_floats=secret.tolist()),
            helper.make_node("Mul", ["a", "k"], ["b"]),
        ],
        [helper.make_opsetid("", 17)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("If", ["flag"], ["t"], then_branch=branch, else_branch=branch),
            helper.make_node("f", ["t"], ["y"], domain="local"),
        ],
        "net",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [8]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=8)
    bare, _ = digest(strip(model))
    for number in secret:
        assert number.tobytes() not in bare
    session = ort.InferenceSession(fill(strip(model)).SerializeToString(), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": np.ones(8, np.float32), "flag": np.array(True)})
    assert np.all(np.isfinite(output))


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8, TensorProto.FLOAT16])
def test_every_element_type_of_weights_can_be_filled(kind: int) -> None:
    tensor = TensorProto(name="w", data_type=kind, dims=(5, 3))
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [], [tensor])
    filled = fill(helper.make_model(graph))
    array = numpy_helper.to_array(filled.graph.initializer[0])
    assert array.shape == (5, 3)
    assert math.isfinite(float(np.abs(array).sum()))


def test_scales_are_positive_and_zero_points_in_the_middle() -> None:
    tensors = [
        TensorProto(name="s", data_type=TensorProto.FLOAT, dims=()),
        TensorProto(name="z", data_type=TensorProto.UINT8, dims=()),
    ]
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])], [], tensors
    )
    scale, zero = (
        numpy_helper.to_array(tensor) for tensor in fill(helper.make_model(graph)).graph.initializer
    )
    assert scale > 0
    assert zero == 128
