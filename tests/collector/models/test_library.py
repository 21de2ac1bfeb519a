"""The library and its verb: what is kept has no weights, what is exported runs, what is wrong is told."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from roof_collector.cli import main


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'roofline.sqlite'}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_exported_with_random_weights_it_runs_and_is_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, other = (tmp_path / name for name in ("first.onnx", "second.onnx", "other.onnx"))
    for path, seed in ((first, "1"), (second, "1"), (other, "2")):
        flags = ("--weights", "random", "--seed", seed)
        code, out, _ = run(capsys, "models", "export", "zoo:shufflenet_v1_x0_5_g3", str(path), *flags)
        assert (code, out) == (0, "")
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    session = onnxruntime.InferenceSession(first, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"input": np.ones((1, 3, 224, 224), np.float32)})
    assert np.isfinite(result).all()
    smallest = np.finfo(np.float32).tiny
    for weight in onnx.load(first).graph.initializer:
        values = np.abs(onnx.numpy_helper.to_array(weight))
        assert weight.data_type == onnx.TensorProto.INT64 or (values >= smallest).all(), weight.name


def test_exported_without_weights_it_is_small_and_of_the_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "vgg16.onnx"
    assert run(capsys, "models", "export", "zoo:vgg16", str(path), "--batch", "4")[0] == 0
    assert path.stat().st_size < 10_000
    model = onnx.load(path)
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [4, 3, 224, 224]


def test_added_it_is_listed_without_its_weights(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.onnx"
    run(capsys, "models", "export", "zoo:squeezenet1_0", str(path), "--weights", "random")
    code, out, _ = run(capsys, "models", "add", str(path), "--database", database, "--json")
    added = json.loads(out)
    assert code == 0
    assert added["size_bytes"] < 10_000 < path.stat().st_size
    # The same file again is the same network, whatever it is called now.
    again = run(capsys, "models", "add", str(path), "--name", "twin", "--database", database, "--json")[1]
    assert json.loads(again) == added
    listed = json.loads(run(capsys, "models", "list", "--database", database, "--json")[1])
    assert [(found["name"], found["sha256"]) for found in listed["added"]] == [("mine", added["sha256"])]
    assert "mine" in run(capsys, "models", "list", "--database", database)[1]


def test_the_zoo_is_listed_without_any_database(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "models", "list", "--json", "--database", database)
    listed = json.loads(out)
    assert code == 0
    assert {"name": "resnet18", "input": [3, 224, 224], "help": "ResNet-18"} in listed["zoo"]
    assert listed["added"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "absent.onnx"), "absent.onnx: there is no such file"),
        (("add", "."), ".: is not a file"),
        (("add", "text.onnx"), "text.onnx: is not an ONNX model"),
        (("add", "empty.onnx"), "holds no graph"),
        (("add", "text.onnx", "--name", "resnet18"), "resnet18 is a network of the zoo"),
        (("export", "zoo:resnet19", "out.onnx"), "the zoo has no network 'resnet19'"),
        (("export", "mine.onnx", "out.onnx"), "no network of the zoo"),
        (("export", "zoo:resnet18", "absent/out.onnx"), "can't write absent/out.onnx"),
        (("export", "zoo:resnet18", "out.onnx", "--batch", "0"), "batch of 0"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.onnx").write_text("not a network, whatever its name says\n")
    Path("empty.onnx").write_bytes(b"")
    own = ("--database", database) if arguments[0] == "add" else ()
    code, out, err = run(capsys, "models", *arguments, *own)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
