"""The zoo: every node as the reference list has it, valid and runnable graphs, no weights inside."""

import csv
import math
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from roof_agent.errors import UsageError
from roof_collector.models import zoo

DATA = Path(__file__).parents[2] / "data" / "zoo"
KINDS = {
    "BatchNormalization": "BN",
    "Gemm": "FC",
    "GlobalAveragePool": "GAP",
    "Transpose": "Shuffle",
    "AveragePool": "AvgPool",
}
VIEWS = ("Flatten", "Reshape")


def reference() -> dict[str, list[dict[str, str]]]:
    rows = defaultdict(list)
    with (DATA / "zoo_layers.csv").open() as lines:
        for row in csv.DictReader(lines):
            rows[row["model"]].append(row)
    return rows


REFERENCE = reference()


def shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    values = [*inferred.input, *inferred.value_info, *inferred.output]
    return {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}


def attributes(node: onnx.NodeProto) -> dict[str, object]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def parameters(model: onnx.ModelProto, node: onnx.NodeProto) -> int:
    """Weights, biases, scales and shifts of a node: what a normalisation stores beside them is none."""
    dims = {weight.name: weight.dims for weight in model.graph.initializer}
    slots = node.input[1:3] if node.op_type in {"Conv", "Gemm", "BatchNormalization"} else ()
    return sum(math.prod(dims[name]) for name in slots if name in dims)


def test_every_network_of_the_seed_table_is_there() -> None:
    with (DATA / "seed_table.csv").open() as lines:
        wanted = {row["model"] for row in csv.DictReader(lines)}
    assert wanted | {"se_resnet50", "transformer_encoder"} == set(zoo.names())


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_node_for_node(name: str) -> None:
    model = zoo.build(name)
    shape_of = shapes(model)
    views = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type in VIEWS}

    def source(tensor: str) -> str:
        while tensor in views:
            tensor = views[tensor]
        return tensor

    def elements(tensor: str) -> int:
        return math.prod(shape_of[tensor])

    nodes = [node for node in model.graph.node if node.op_type not in VIEWS]
    assert len(nodes) == len(REFERENCE[name])
    for node, row in zip(nodes, REFERENCE[name], strict=True):
        inputs = dict(pair.split(":") for pair in row["inputs"].split())
        assert (node.name, KINDS.get(node.op_type, node.op_type)) == (row["name"], row["op"])
        assert [source(tensor) for tensor in node.input[: len(inputs)]] == list(inputs), node.name
        for tensor, size in inputs.items():
            assert elements(tensor) == math.prod(map(int, size.split("x"))), node.name
        assert elements(node.output[0]) == math.prod(map(int, row["output"].split("x"))), node.name
        assert parameters(model, node) == int(row["params"]), node.name
        has = attributes(node)
        if row["op"] == "Conv":
            assert row["kernel"] == "x".join(map(str, has["kernel_shape"])), node.name
            assert row["pad"] == "x".join(map(str, has["pads"][:2])), node.name
            assert has["pads"][:2] == has["pads"][2:], node.name
            assert (int(row["groups"]), int(row["bias"])) == (has["group"], len(node.input) - 2), node.name
        if row["op"] in {"MaxPool", "AvgPool"}:
            assert has["kernel_shape"] == [int(row["kernel"])] * 2, node.name
            assert has["pads"] == [int(row["pad"])] * 4, node.name
            assert has.get("ceil_mode", 0) == int(row["ceil"]), node.name
        if row["op"] in {"Conv", "MaxPool", "AvgPool"}:
            assert has["strides"] == [int(row["stride"])] * 2, node.name
        if row["op"] == "Shuffle":
            assert shape_of[node.output[0]][2] == int(row["groups"]), node.name


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give every empty initializer small weights (repeated: quick to make) and variances of one."""
    weights = np.random.default_rng(0).standard_normal(1009, dtype=np.float32) * 0.05
    for weight in model.graph.initializer:
        if not (weight.raw_data or weight.float_data or weight.int64_data):
            values = np.ones(1, np.float32) if weight.name.endswith(".var") else weights
            weight.raw_data = np.resize(values, math.prod(weight.dims)).tobytes()
    return model


# The two with the most weights cost seconds and have no node that their smaller kin lack.
@pytest.mark.parametrize("name", sorted(set(zoo.names()) - {"vgg16", "resnet152"}))
def test_valid_and_runnable_once_filled(name: str) -> None:
    model = filled(zoo.build(name))
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    (result,) = session.run(["output"], {"input": np.ones(given.shape, np.float32)})
    assert given.name == "input"
    assert np.isfinite(result).all()
    assert list(result.shape) == shapes(model)["output"]


@pytest.mark.parametrize("name", zoo.names())
def test_carries_no_weight_and_is_quick_to_build(name: str) -> None:
    started = time.process_time()
    model = zoo.build(name)
    elapsed_seconds = time.process_time() - started
    for weight in model.graph.initializer:
        is_meaning = weight.data_type == TensorProto.INT64 or not weight.dims
        assert is_meaning or weight.ByteSize() < 100, weight.name
        assert all(dim > 0 for dim in weight.dims)
    assert len(model.SerializeToString()) < 100_000
    assert elapsed_seconds < 0.5


def test_batch_and_element_type_reach_every_tensor() -> None:
    model = zoo.build("shufflenet_v2_x1_0", batch=3, element_type="float16")
    assert {weight.data_type for weight in model.graph.initializer} == {
        TensorProto.FLOAT16,
        TensorProto.INT64,
    }
    assert shapes(model)["input"] == [3, 3, 224, 224]
    assert {shape[0] for shape in shapes(model).values()} == {3}


def test_same_network_is_the_same_bytes() -> None:
    def written() -> bytes:
        return zoo.build("resnet18").SerializeToString(deterministic=True)

    assert written() == written()


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("resnet19", {}, "no network 'resnet19'"),
        ("resnet18", {"batch": 0}, "batch of 0"),
        ("resnet18", {"element_type": "int3"}, "can't be 'int3'"),
    ],
)
def test_what_cannot_be_built_is_one_clear_line(name: str, options: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        zoo.build(name, **options)
