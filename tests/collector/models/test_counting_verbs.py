"""analyze, predict and table on the command line: the documents, the tables, the exit codes."""

import csv
import io
import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from roof_collector.cli import main

DATA = Path(__file__).parents[2] / "data" / "zoo"
TOTALS = {
    "params", "macc", "flops", "other_ops", "input_bytes", "param_bytes", "output_bytes", "memory_bytes",
    "intensity", "layers", "uncounted", "peak_activation_bytes",
}  # fmt: skip
LAYER = {
    "index", "name", "op_type", "class", "params", "macc", "flops", "other_ops", "input_bytes", "param_bytes",
    "output_bytes", "memory_bytes", "intensity", "inputs", "outputs", "fused",
}  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def seed(name: str) -> dict[str, str]:
    with (DATA / "seed_table.csv").open() as lines:
        return next(row for row in csv.DictReader(lines) if row["model"] == name)


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """MatMul over a named dim, then an operator that nobody has a rule for."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Mystery", ["y"], ["z"], name="unknown", domain="example"),
    ]
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 4])],
        [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8, 4])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    return path


def test_analyze_prints_the_documented_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "analyze", "zoo:squeezenet1_0", "--fusion", "ideal")
    assert found["schema"] == 1
    assert set(found["totals"]) >= TOTALS
    assert all(set(layer) >= LAYER for layer in found["layers"])
    assert found["totals"]["memory_bytes"] == int(seed("squeezenet1_0")["fused_mac_bytes"])
    assert found["layers"][0]["inputs"][0] == ["float32", [1, 3, 224, 224]]
    assert found["layers"][0]["fused"] == ["relu_2"]


def test_analyze_sorts_and_limits_layers_and_leaves_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "analyze", "zoo:resnet18", "--sort", "params", "--limit", "2")
    assert [layer["params"] for layer in found["layers"]] == [2359296, 2359296]
    assert found["totals"]["params"] == 11_689_512


def test_analyze_shows_a_table_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "analyze", "zoo:resnet18", "--fusion", "basic")
    lines = out.splitlines()
    first = next(line for line in lines if line.startswith("conv_1 "))
    assert code == 0
    assert first.split() == [
        "conv_1", "Conv", "dense", "1x64x112x112", "9.408", "k", "118.0", "M", "236.0", "M", "3.851", "MB",
        "61.29", "batch-norm,", "activation",
    ]  # fmt: skip
    assert not any(line.startswith("relu_3 ") for line in lines)
    assert ["macc", "1,814,073,344", "(1.814", "G)"] in [line.split() for line in lines]
    assert "relu_3 " in run(capsys, "analyze", "zoo:resnet18", "--fusion", "basic", "--all")[1]


def test_analyze_counts_as_if_of_another_type_and_batch(capsys: pytest.CaptureFixture[str]) -> None:
    full = document(capsys, "analyze", "zoo:resnet18")["totals"]
    half = document(capsys, "analyze", "zoo:resnet18", "--dtype", "fp16")["totals"]
    quarter = document(capsys, "analyze", "zoo:resnet18", "--dtype", "int8", "--batch", "2")["totals"]
    assert half["memory_bytes"] * 2 == full["memory_bytes"]
    assert quarter["param_bytes"] * 4 == full["param_bytes"]
    assert quarter["output_bytes"] * 2 == full["output_bytes"]
    assert half["macc"] * 2 == quarter["macc"]
    assert half["params"] == quarter["params"] == full["params"]


def test_open_dims_are_polynomials_until_they_are_bound(
    open_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, err = run(capsys, "analyze", str(open_model), "--json")
    assert json.loads(out)["totals"]["macc"] == "32*N"
    assert "1 of 2 layers are not counted (Mystery)" in err
    for flags in (["--bind", "N=3"], ["--shape", "x=3x8"], ["--batch", "3"]):
        _, out, _ = run(capsys, "analyze", str(open_model), "--json", *flags)
        assert json.loads(out)["totals"]["macc"] == 96, flags
    code, _, err = run(capsys, "predict", str(open_model), "--profile", "datasheet:rpi3")
    assert code == 2
    assert "the dims N are open: bind them" in err


def test_a_value_decides_a_branch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def branch(name: str, width: int) -> onnx.GraphProto:
        weight = TensorProto(name=f"{name}_w", data_type=TensorProto.FLOAT, dims=[8, width])
        product = helper.make_node("MatMul", ["x", weight.name], [f"{name}_y"])
        result = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
        return helper.make_graph([product], name, [], [result], [weight])

    graph = helper.make_graph(
        [helper.make_node("If", ["flag"], ["y"], then_branch=branch("a", 4), else_branch=branch("b", 6))],
        "choice",
        [
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "choice.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    for flags, macc in (((), 48), (("--value", "flag=true"), 32), (("--value", "flag=0"), 48)):
        assert document(capsys, "analyze", str(path), *flags)["totals"]["macc"] == macc, flags


def test_strict_refuses_what_is_not_counted(open_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (("analyze",), ("predict", "--profile", "datasheet:rpi3")):
        arguments = (*verb, str(open_model), "--bind", "N=1", "--json")
        code, out, _ = run(capsys, *arguments)
        assert (code, json.loads(out)["totals"]["uncounted"]) == (0, 1)
        assert run(capsys, *arguments, "--strict")[0] == 3
    assert run(capsys, "analyze", "zoo:resnet18", "--strict", "--json")[0] == 0


@pytest.mark.parametrize("name", ["mobilenet_v2", "vgg16", "shufflenet_v2_x1_0"])
@pytest.mark.parametrize(
    ("column", "device"),
    [("V100", "v100"), ("Xavier", "xavier"), ("RPi3", "rpi3"), ("RPi3_1core", "rpi3_1core")],
)
def test_predict_gives_the_reference_latencies(
    name: str, column: str, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = ("--profile", f"datasheet:{device}", "--fusion", "ideal")
    found = document(capsys, "predict", f"zoo:{name}", *profile)
    totals, row = found["totals"], seed(name)
    assert totals["roofline_seconds"] * 1e3 == pytest.approx(float(row[f"{column}_ms_layers"]), rel=1e-9)
    assert totals["roofline_model_seconds"] * 1e3 == pytest.approx(float(row[f"{column}_ms_model"]), rel=1e-9)
    assert totals["seconds"] == totals["roofline_seconds"]
    assert totals["low_seconds"] is totals["high_seconds"] is None
    assert sum(layer["roofline_seconds"] for layer in found["layers"]) == pytest.approx(totals["seconds"])
    assert {layer["bound"] for layer in found["layers"]} <= {"compute", "memory"}


def test_predict_takes_the_headlines_peak_the_types_or_the_asked_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def peak(*flags: str) -> tuple[str, float]:
        profile = document(capsys, "predict", "zoo:resnet18", "--profile", "datasheet:v100", *flags)[
            "profile"
        ]
        return profile["element_type"], profile["flops_per_s"]

    assert peak() == ("float16", 120e12)
    assert peak("--dtype", "fp32") == ("float32", 15e12)
    assert peak("--peak", "float64") == ("float64", 7.5e12)
    code, _, err = run(capsys, "predict", "zoo:resnet18", "--profile", "datasheet:v100", "--dtype", "int8")
    assert code == 0
    assert "states no peak for int8; float16's is supposed" in err


def test_predict_shows_what_binds_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, png = tmp_path / "roof.svg", tmp_path / "roof.png"
    code, out, _ = run(
        capsys, "predict", "zoo:mobilenet_v1", "--profile", "datasheet:rpi3", "--sort", "seconds",
        "--draw", "--svg", str(svg), "--png", str(png),
    )  # fmt: skip
    assert code == 0
    assert "38.40 GFLOP/s (float32), 3.600 GB/s, ridge 10.67 FLOP/B" in out
    assert "sum of the layers  35.52 ms, 25% of it bound by memory" in out
    assert "as one layer       29.62 ms" in out
    assert "FLOP/byte; ridge 10.67" in out
    assert svg.read_bytes().startswith(b"<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_table_has_every_value_of_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("vgg16_conv", "googlenet", "shufflenet_v1_x0_5_g8")
    code, out, _ = run(capsys, "table", *(f"zoo:{name}" for name in names), "--format", "csv")
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(out))}
    assert code == 0
    assert set(rows) == set(names)
    for name, row in rows.items():
        for ours, theirs in (
            ("params", "params"), ("macc", "macc"), ("none_flops", "raw_flops"),
            ("none_memory_bytes", "raw_mac_bytes"), ("basic_memory_bytes", "convfuse_only_bytes"),
            ("ideal_memory_bytes", "fused_mac_bytes"), ("ideal_read_memory_bytes", "fused_addread_bytes"),
        ):  # fmt: skip
            assert row[ours] == seed(name)[theirs], (name, ours)
        assert float(row["ideal_intensity"]) == pytest.approx(float(seed(name)["fused_I"]), rel=1e-9)
        assert float(row["xavier_seconds"]) * 1e3 == pytest.approx(
            float(seed(name)["Xavier_ms_layers"]), rel=1e-9
        )


def test_table_in_its_other_forms(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "table", "zoo:resnet18", "--json", "--device", "rpi4")[1])
    assert found["networks"][0]["macc"] == 1_814_073_344
    assert found["devices"][0] | {"title": ""} == {
        "name": "rpi4", "title": "", "flops_per_s": 48e9, "bytes_per_s": 12.8e9, "ridge": 3.75,
    }  # fmt: skip
    markdown = run(capsys, "table", "zoo:resnet18", "--format", "markdown")[1].splitlines()
    assert markdown[0].startswith("| network | params | macc |")
    assert markdown[2].startswith("| resnet18 | 11.69 M | 1.814 G | 117.0 MB | 31.11 |")
    text = run(capsys, "table", "zoo:resnet18", "zoo:vgg16", "--draw")[1]
    assert "A resnet18 (52.18)" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("analyze", "absent.onnx"), "absent.onnx: there is no such file"),
        (("analyze", "zoo:alexnet"), "the zoo has no network 'alexnet'"),
        (("analyze", "zoo:resnet18", "--bind", "M=3"), "no input has a dim 'M'"),
        (("analyze", "zoo:resnet18", "--bind", "M=x"), "--bind M=x: not a whole number"),
        (("analyze", "zoo:resnet18", "--value", "input=1,b"), "--value input=1,b: not a number"),
        (("analyze", "zoo:resnet18", "--shape", "input=1x3"), "has 4 dims, not 2"),
        (("predict", "zoo:resnet18", "--profile", "rpi3"), "no profile 'rpi3': give datasheet:NAME"),
        (("predict", "zoo:resnet18", "--profile", "datasheet:x"), "there is no data sheet of 'x'"),
        (("predict", "zoo:resnet18", "--profile", "datasheet:rpi3", "--peak", "int8"), "no peak for int8"),
        (("predict", "zoo:resnet18", "--profile", "datasheet:rpi3", "--svg", "no/x"), "can't write no/x"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert says in err
