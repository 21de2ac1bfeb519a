"""The counting engine: acceptance graphs, the talk's figures, bound dims, control flow, presets."""

import json
import math
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from roof_agent.errors import UsageError
from roof_collector.analysis import Analysis, Layer, analyze, load_model
from roof_collector.analysis.symbols import evaluate

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
EXPECTED: dict[str, dict[str, Any]] = json.loads((GRAPHS / "expected.json").read_text())
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weight(name: str, *dims: int, dtype: int = FLOAT) -> TensorProto:
    """A weightless initializer: type and dims, no data."""
    return TensorProto(name=name, data_type=dtype, dims=dims)


def integers(name: str, *values: int) -> TensorProto:
    return helper.make_tensor(name, INT64, (len(values),), values)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[Any, ...]],
    initializers: list[TensorProto],
    outputs: tuple[str, ...] = ("y",),
    opset: int = 17,
    **kwargs: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        initializers,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, **kwargs)


def conv(x: str, w: str, y: str, size: int = 3, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(
        "Conv", [x, w], [y], name=y, kernel_shape=[size] * 2, pads=[size // 2] * 4, **attributes
    )


def only(analysis: Analysis, name: str) -> Layer:
    [layer] = [layer for layer in analysis.layers if layer.name == name]
    return layer


@pytest.mark.parametrize("name", EXPECTED)
def test_acceptance_graphs(name: str) -> None:
    wanted = EXPECTED[name]
    found = analyze(load_model(GRAPHS / f"{name}.onnx"), bind=wanted["bind"])
    assert (found.totals.macc, found.totals.params) == (wanted["macc"], wanted["params"])
    assert found.totals.uncounted == 0
    for node, (read, params, written) in wanted.get("bytes", {}).items():
        layer = only(found, node)
        assert (layer.input_bytes, layer.param_bytes, layer.output_bytes) == (read, params, written)


# ---- The talk's figures: flops, memory in bytes, intensity.


def matmul(rows: int, depth: int, columns: int) -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model([node], {"x": (rows, depth)}, [weight("w", depth, columns)])


def bottleneck() -> onnx.ModelProto:
    nodes = [conv("x", "w1", "a", 1), conv("a", "w2", "b", 3), conv("b", "w3", "y", 1)]
    weights = [weight("w1", 64, 256, 1, 1), weight("w2", 64, 64, 3, 3), weight("w3", 256, 64, 1, 1)]
    return model(nodes, {"x": (1, 256, 56, 56)}, weights)


@pytest.mark.parametrize(
    ("network", "flops", "memory_bytes", "intensity"),
    [
        (matmul(1000, 1000, 1000), 2_000_000_000, 12_000_000, 166.7),
        (matmul(1000, 1000, 1), 2_000_000, 4_008_000, 0.499),
        (
            model([conv("x", "w", "y")], {"x": (1, 256, 56, 56)}, [weight("w", 256, 256, 3, 3)]),
            3_699_376_128,
            8_781_824,
            421,
        ),
        (bottleneck(), 436_731_904, 9_912_320, 44.1),
    ],
)
def test_the_talks_figures(network: onnx.ModelProto, flops: int, memory_bytes: int, intensity: float) -> None:
    totals = analyze(network, fusion="ideal").totals
    assert (totals.flops, totals.memory_bytes) == (flops, memory_bytes)
    assert totals.intensity == pytest.approx(intensity, rel=1e-3)


# ---- Bound and open dims.


def dynamic() -> onnx.ModelProto:
    """Reshape by computed dims, then a product; value_info left at batch 1."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["d"], axis=0),
        helper.make_node("Reshape", ["x", "d"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"], name="product"),
    ]
    constants = [integers("zero", 0), integers("rest", -1), weight("w", 12, 5)]
    stale = [
        helper.make_tensor_value_info("flat", FLOAT, (1, 12)),
        helper.make_tensor_value_info("y", FLOAT, (1, 5)),
    ]
    network = model(nodes, {"x": ("N", 3, "T")}, constants)
    network.graph.value_info.extend(stale)
    return network


def test_bound_dims_win_over_what_the_exporter_left() -> None:
    found = analyze(dynamic(), bind={"N": 7, "T": 4})
    assert only(found, "product").outputs == (("float32", (7, 5)),)
    assert found.totals.macc == 7 * 12 * 5
    assert found.symbols == ()


def test_open_dims_leave_exact_polynomials() -> None:
    found = analyze(dynamic(), bind={"T": 4})
    assert str(found.totals.macc) == "60*N"
    assert found.symbols == ("N",)
    assert found.to_json()["totals"]["macc"] == "60*N"
    assert found.totals.intensity is None
    with pytest.raises(UsageError, match="N are open"):
        found.require_numbers()


@pytest.mark.parametrize("height", [31, 32, 64, 97])
def test_a_polynomial_takes_the_value_of_the_bound_count(height: int) -> None:
    nodes = [
        conv("x", "w", "a", strides=[2, 2]),
        helper.make_node("MaxPool", ["a"], ["y"], kernel_shape=[3, 3], strides=[2, 2]),
    ]
    network = model(nodes, {"x": (1, 3, "H", "H")}, [weight("w", 8, 3, 3, 3)])
    opened, bound = analyze(network).totals, analyze(network, bind={"H": height}).totals
    for count in ("macc", "other_ops", "memory_bytes"):
        assert evaluate(getattr(opened, count), {"H": height}) == getattr(bound, count)


def test_shape_and_batch() -> None:
    network = model([conv("x", "w", "y")], {"x": ("unk__1", 3, None, -1)}, [weight("w", 8, 3, 3, 3)])
    assert analyze(network, shapes={"x": (2, 3, 8, 8)}).totals.macc == 2 * 8 * 8 * 8 * 27
    found = analyze(network, shapes={"x": ("B", 3, 8, 8)}, bind={"B": 5})
    assert found.totals.macc == 5 * 8 * 8 * 8 * 27
    assert analyze(network, shapes={"x": (1, 3, 8, 8)}, batch=3).totals.macc == 8 * 8 * 8 * 27
    fixed = model([conv("x", "w", "y")], {"x": (1, 3, 8, 8)}, [weight("w", 8, 3, 3, 3)])
    assert analyze(fixed, batch=3).totals.macc == 3 * 8 * 8 * 8 * 27


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bind": {"M": 1}}, "no input has a dim 'M'; the open dims are: N, T"),
        ({"bind": {"N": -4}}, "can't be -4"),
        ({"shapes": {"z": (1,)}}, "no input 'z'; it has x"),
        ({"shapes": {"x": (1, 3)}}, "has 3 dims, not 2"),
        ({"values": {"x": "one"}}, "can't be 'one'"),
        ({"batch": 0}, "batch of 0"),
        ({"fusion": "best"}, "no fusion preset 'best'; there are none, basic, ideal"),
    ],
)
def test_what_names_nothing_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        analyze(dynamic(), **arguments)


# ---- Parameters and bytes.


def test_params_are_distinct_constants_that_are_used() -> None:
    nodes = [
        helper.make_node("Identity", ["w"], ["again"]),
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "again"], ["y"]),
    ]
    found = analyze(model(nodes, {"x": (2, 4)}, [weight("w", 4, 4), weight("unused", 100)]))
    assert found.totals.params == 16
    assert [layer.params for layer in found.layers] == [0, 16, 16]
    assert [layer.param_bytes for layer in found.layers] == [0, 64, 64]


@pytest.mark.parametrize(
    "chain", ["Identity", "Cast", "Reshape", "Transpose", "DequantizeLinear", "ConstantOfShape"]
)
def test_a_tensor_made_of_constants_is_a_parameter_of_its_reader(chain: str) -> None:
    sources = {
        "Identity": (["w"], {}, weight("w", 4, 4), 64),
        "Cast": (["w"], {"to": FLOAT}, weight("w", 4, 4, dtype=TensorProto.FLOAT16), 64),
        "Reshape": (["w", "dims"], {}, weight("w", 16), 64),
        "Transpose": (["w"], {}, weight("w", 4, 4), 64),
        "DequantizeLinear": (["w", "scale"], {}, weight("w", 4, 4, dtype=TensorProto.INT8), 64),
        "ConstantOfShape": (["dims"], {}, weight("w", 4, 4), 64),
    }
    inputs, attributes, stored, read = sources[chain]
    nodes = [
        helper.make_node(chain, inputs, ["c"], **attributes),
        helper.make_node("MatMul", ["x", "c"], ["y"], name="product"),
    ]
    found = analyze(model(nodes, {"x": (2, 4)}, [stored, integers("dims", 4, 4), weight("scale")]))
    product = only(found, "product")
    assert (product.input_bytes, product.param_bytes, product.params) == (32, read, 16)
    assert found.totals.params == 16


def test_int4_is_packed_and_rounded_up() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["c"], name="dq")]
    found = analyze(
        model(nodes, {}, [weight("w", 3, 3, dtype=TensorProto.INT4), weight("s")], ("c",), opset=21)
    )
    assert only(found, "dq").param_bytes == 5 + 4


def test_one_tensor_in_two_slots_is_read_once() -> None:
    found = analyze(model([helper.make_node("Mul", ["x", "x"], ["y"])], {"x": (4, 4)}, []))
    assert (found.totals.input_bytes, found.totals.output_bytes) == (64, 64)


# ---- Control flow and functions.


def test_an_if_shows_each_branch_and_counts_the_worst() -> None:
    found = analyze(load_model(GRAPHS / "if_branches.onnx"))
    [row] = [layer for layer in found.layers if layer.op_type == "If"]
    assert {branch.name: branch.macc for branch in row.branches} == {"then": 3888, "else": 19200}
    assert row.macc == 19200
    assert "worst branch: else" in row.note


def loop(trips: list[TensorProto], *, keep: bool = True) -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "w"], ["h2"], name="inner"),
            helper.make_node("Identity" if keep else "Not", ["go"], ["go2"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("h", FLOAT, None),
        ],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in ("go2", "h2", "h2")],
    )
    names = [trip.name for trip in trips] or [""]
    node = helper.make_node("Loop", [names[0], "", "x"], ["y", "all"], name="loop", body=body)
    return model([node], {"x": (2, 4)}, [*trips, weight("w", 4, 4)], ("y", "all"))


def test_a_loop_is_its_body_times_its_trips() -> None:
    [row] = analyze(loop([helper.make_tensor("m", INT64, (), [6])])).layers
    assert row.macc == 6 * 32
    assert row.params == 16
    assert row.outputs[1] == ("float32", (6, 2, 4))
    assert row.param_bytes == 6 * 64


def test_a_loop_of_unknown_length_is_counted_once_and_says_so() -> None:
    [row] = analyze(loop([], keep=False)).layers
    assert row.macc == 32
    assert "per iteration" in row.note


def test_a_function_is_inlined_at_the_index_of_its_call() -> None:
    found = analyze(load_model(GRAPHS / "local_function_twice.onnx"))
    products = [layer for layer in found.layers if layer.op_type == "MatMul"]
    assert len({layer.index for layer in products}) == 2
    assert len({layer.name for layer in products if layer.name}) in {0, 2}


def test_an_operator_without_a_rule_is_never_a_silent_zero() -> None:
    nodes = [
        helper.make_node("Novelty", ["x"], ["h"], domain="com.example"),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    network = model(nodes, {"x": (2, 4)}, [])
    network.opset_import.append(helper.make_opsetid("com.example", 1))
    found = analyze(network)
    assert found.totals.uncounted == 2
    assert "no rule for Novelty of com.example" in found.layers[0].uncounted


# ---- Fusion presets.


def block() -> onnx.ModelProto:
    """conv, BN, Relu, conv, bias Add, residual Add, Relu, Concat, Relu, in float32."""
    stored = [weight(f"s{index}", 8) for index in range(4)]
    nodes = [
        conv("x", "w1", "c1"),
        helper.make_node("BatchNormalization", ["c1", "s0", "s1", "s2", "s3"], ["b1"], name="b1"),
        helper.make_node("Relu", ["b1"], ["r1"], name="r1"),
        conv("r1", "w2", "c2"),
        helper.make_node("Add", ["c2", "bias"], ["a2"], name="a2"),
        helper.make_node("Add", ["a2", "x"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["r2"], name="r2"),
        helper.make_node("Concat", ["r2", "x"], ["cat"], axis=1, name="cat"),
        helper.make_node("Relu", ["cat"], ["y"], name="y"),
    ]
    weights = [weight("w1", 8, 8, 3, 3), weight("w2", 8, 8, 3, 3), weight("bias", 8, 1, 1), *stored]
    return model(nodes, {"x": (1, 8, 4, 4)}, weights)


TENSOR = 8 * 4 * 4 * 4
WEIGHTS = 8 * 8 * 9 * 4
BIAS = 8 * 4


PRODUCT = 2 * TENSOR + WEIGHTS
ROWS = {
    "none": {
        "c1": PRODUCT,
        "b1": 2 * TENSOR + 4 * BIAS,
        "r1": 2 * TENSOR,
        "c2": PRODUCT,
        "a2": 2 * TENSOR + BIAS,
        "sum": 3 * TENSOR,
        "r2": 2 * TENSOR,
        "cat": 4 * TENSOR,
        "y": 4 * TENSOR,
    },
    "basic": {
        "c1": PRODUCT + BIAS,
        "b1": 0,
        "r1": 0,
        "c2": PRODUCT + BIAS,
        "a2": 0,
        "sum": 3 * TENSOR,
        "r2": 0,
        "cat": 4 * TENSOR,
        "y": 4 * TENSOR,
    },
    "ideal": {
        "c1": PRODUCT + BIAS,
        "b1": 0,
        "r1": 0,
        "c2": PRODUCT + BIAS,
        "a2": 0,
        "sum": 0,
        "r2": 0,
        "cat": 0,
        "y": 0,
    },
}


@pytest.mark.parametrize(
    ("preset", "residual_read", "wanted"),
    [*((name, False, rows) for name, rows in ROWS.items()), ("ideal", True, {"sum": TENSOR})],
)
def test_presets(preset: str, residual_read: bool, wanted: dict[str, int]) -> None:  # noqa: FBT001
    found = analyze(block(), fusion=preset, residual_read=residual_read)
    assert {name: only(found, name).memory_bytes for name in wanted} == wanted
    assert found.totals.macc == 2 * 4 * 4 * 8 * 8 * 9
    if preset != "none":
        assert only(found, "c1").fused == ("b1", "r1")
        assert only(found, "c1").rewrites == ("batch-norm", "activation")
        assert only(found, "c2").rewrites == ("bias",)
        assert found.totals.flops == 2 * found.totals.macc
    if preset == "ideal":
        assert "residual-add" in only(found, "sum").rewrites
        assert only(found, "cat").rewrites == ("concat-by-address",)


def test_what_has_another_reader_is_not_fused() -> None:
    nodes = [
        conv("x", "w", "c"),
        helper.make_node("Relu", ["c"], ["r"], name="r"),
        helper.make_node("Mul", ["c", "r"], ["y"]),
    ]
    found = analyze(model(nodes, {"x": (1, 4, 4, 4)}, [weight("w", 4, 4, 3, 3)]), fusion="basic")
    assert only(found, "c").fused == ()
    assert only(found, "r").memory_bytes > 0


def test_quantised_nodes_run_in_their_stored_type_under_a_preset() -> None:
    network = load_model(GRAPHS / "qdq_conv.onnx")
    literal = next(layer for layer in analyze(network).layers if layer.op_type == "Conv")
    folded = next(layer for layer in analyze(network, fusion="basic").layers if layer.op_type == "Conv")
    assert folded.input_bytes * 4 == literal.input_bytes
    assert folded.output_bytes * 4 == literal.output_bytes
    assert folded.param_bytes < literal.param_bytes
    assert "quantise" in folded.rewrites


def test_what_is_read_as_a_float_stays_dequantised() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["h"], name="dq"),
        helper.make_node("Softmax", ["h"], ["y"], name="softmax"),
    ]
    network = model(nodes, {}, [weight("s")])
    network.graph.input.append(helper.make_tensor_value_info("q", TensorProto.INT8, (2, 8)))
    found = analyze(network, fusion="basic")
    assert only(found, "dq").memory_bytes == 16 + 4 + 64
    assert only(found, "softmax").memory_bytes == 2 * 64


# ---- Peak memory, classes, the document.


def test_peak_activation_memory() -> None:
    nodes = [conv("x", "w1", "a"), conv("a", "w2", "b", group=8), conv("b", "w3", "y", 1)]
    weights = [weight("w1", 8, 2, 3, 3), weight("w2", 8, 1, 3, 3), weight("w3", 2, 8, 1, 1)]
    totals = analyze(model(nodes, {"x": (1, 2, 4, 4)}, weights)).totals
    wide, narrow, channel = 8 * 64, 2 * 64, 64
    assert totals.peak_activation_bytes == 2 * wide
    assert totals.peak_activation_inplace_bytes == max(wide + channel, wide + narrow)


def test_classes() -> None:
    nodes = [
        conv("x", "w1", "dense"),
        conv("x", "w2", "pointwise", 1),
        conv("x", "w3", "grouped", group=2),
        conv("x", "w4", "depthwise", group=4),
    ]
    weights = [
        weight("w1", 4, 4, 3, 3),
        weight("w2", 4, 4, 1, 1),
        weight("w3", 4, 2, 3, 3),
        weight("w4", 8, 1, 3, 3),
    ]
    names = ("dense", "pointwise", "grouped", "depthwise")
    for layer in analyze(model(nodes, {"x": (1, 4, 4, 4)}, weights, names)).layers:
        assert layer.layer_class == layer.name


def test_the_document() -> None:
    document = json.loads(json.dumps(analyze(load_model(GRAPHS / "depthwise.onnx")).to_json()))
    assert document["schema"] == 1
    totals, layers = document["totals"], document["layers"]
    keys = [
        "params",
        "macc",
        "flops",
        "other_ops",
        "input_bytes",
        "param_bytes",
        "output_bytes",
        "memory_bytes",
        "intensity",
    ]
    assert set(totals) >= {*keys, "layers", "uncounted", "peak_activation_bytes"}
    assert set(layers[0]) >= {
        "index",
        "name",
        "op_type",
        "class",
        *keys,
        "inputs",
        "outputs",
        "fused",
        "uncounted",
    }
    for key in keys[1:-1]:
        assert totals[key] == sum(layer[key] for layer in layers)
    assert layers[0]["inputs"][0] == ["float32", [1, 24, 20, 20]]


def test_light_models_of_the_onnx_package() -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    wanted = {
        "bvlc_alexnet": (60_965_224, 654_560_384),
        "densenet121": (8_062_504, 2_834_161_664),
        "inception_v1": (6_998_552, 1_431_556_352),
        "inception_v2": (11_214_888, 2_018_851_840),
        "resnet50": (25_557_032, 4_089_184_256),
        "shufflenet": (1_393_320, 124_664_528),
        "squeezenet": (1_235_496, 349_151_936),
        "vgg19": (143_667_240, 19_632_062_464),
        "zfnet512": (87_250_536, 1_481_727_008),
    }
    found = {}
    for path in folder.glob("light_*.onnx"):
        totals = analyze(load_model(path)).totals
        assert totals.uncounted == 0
        assert math.isfinite(totals.intensity or 0)
        found[path.stem.removeprefix("light_")] = (totals.params, totals.macc)
    assert found == wanted


def test_linear_attention_is_counted_by_tokens_not_pairs() -> None:
    names = ["q", "k", "v"]
    node = helper.make_node(
        "LinearAttention", names, ["y"], q_num_heads=4, kv_num_heads=2, update_rule="delta"
    )
    dims: dict[str, tuple[Any, ...]] = {"q": (1, "T", 32), "k": (1, "T", 16), "v": (1, "T", 12)}
    found = analyze(model([node], dims, [], opset=27), bind={"T": 10})
    assert found.totals.macc == 10 * 8 * 6 * (4 + 2 * 2)
    assert found.layers[0].outputs == (("float32", (1, 10, 24)),)


@pytest.mark.parametrize(("op_type", "dims"), [("Add", "N + 3"), ("Sub", "N - 3"), ("Mul", "3*N")])
def test_arithmetic_on_open_dims_is_exact(op_type: str, dims: str) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node(op_type, ["s", "three"], ["d"]),
        helper.make_node("ConstantOfShape", ["d"], ["y"]),
    ]
    found = analyze(model(nodes, {"x": ("N",)}, [integers("three", 3)]))
    assert found.layers[-1].outputs == (("float32", (dims,)),)
