"""What a network is fed with."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from roof_agent.errors import MeasurementError
from roof_agent.models.inputs import bind, make

info = helper.make_tensor_value_info


def graph(
    *inputs: onnx.ValueInfoProto, nodes: tuple[onnx.NodeProto, ...] = (), rows: int = 7
) -> onnx.ModelProto:
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=(rows, 4))
    return helper.make_model(helper.make_graph(nodes, "g", inputs, [], [table]))


def test_open_dims_are_one_or_what_they_are_bound_to() -> None:
    model = graph(info("x", TensorProto.FLOAT, ["batch", 3, None, -1, "height"]))
    assert make(model)["x"].shape == (1, 3, 1, 1, 1)
    bind(model, {"height": 5, "batch": 2})
    assert make(model)["x"].shape == (2, 3, 1, 1, 5)


def test_a_dim_that_is_not_there_is_refused_with_those_that_are() -> None:
    model = graph(info("x", TensorProto.FLOAT, ["batch", "height"]))
    with pytest.raises(MeasurementError, match=r"called 'width': they are called batch, height"):
        bind(model, {"width": 1})
    with pytest.raises(MeasurementError, match="it has none with a name"):
        bind(graph(info("x", TensorProto.FLOAT, [1])), {"width": 1})


def test_identifiers_stay_within_the_table_they_index_even_behind_a_cast() -> None:
    nodes = (
        helper.make_node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "wide"], ["e"]),
    )
    ids = make(graph(info("ids", TensorProto.INT32, [1, 500]), nodes=nodes))["ids"]
    assert ids.dtype == np.int32
    assert (ids.min(), ids.max()) == (0, 6)


def test_masks_let_everything_pass_and_lengths_are_the_longest() -> None:
    feeds = make(
        graph(
            info("x", TensorProto.FLOAT, [1, 80, 9]),
            info("attention_mask", TensorProto.INT64, [1, 4]),
            info("x_len", TensorProto.INT32, [1]),
            info("flag", TensorProto.BOOL, []),
        )
    )
    assert feeds["attention_mask"].tolist() == [[1, 1, 1, 1]]
    assert feeds["x_len"].tolist() == [80]
    assert feeds["flag"].tolist() is True
    assert 0 < feeds["x"].min() < feeds["x"].max() < 1


@pytest.mark.parametrize(
    "kind", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT64", "BOOL", "STRING"]
)
def test_every_element_type_is_made(kind: str) -> None:
    (array,) = make(graph(info("x", TensorProto.DataType.Value(kind), [2, 3]))).values()
    assert array.shape == (2, 3)


def test_an_initializer_among_the_inputs_is_no_input() -> None:
    assert set(make(graph(info("x", TensorProto.FLOAT, [1]), info("table", TensorProto.FLOAT, [7, 4])))) == {
        "x"
    }


def test_a_file_takes_the_place_of_what_is_made_up(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32))
    model = graph(info("x", TensorProto.FLOAT, [6]))
    assert make(model, {"x": tmp_path / "x.npy"})["x"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(MeasurementError, match="no input 'y': they are x"):
        make(model, {"y": tmp_path / "x.npy"})
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(MeasurementError, match=r"input 'x': .*bad\.npy can't be read as \.npy"):
        make(model, {"x": tmp_path / "bad.npy"})


def test_what_has_nothing_to_compute_or_is_no_tensor_is_refused_by_name() -> None:
    with pytest.raises(MeasurementError, match="input 'x' has a dim of 0"):
        make(graph(info("x", TensorProto.FLOAT, [1, 0])))
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [1])
    with pytest.raises(MeasurementError, match="input 's' is of the kind sequence"):
        make(graph(sequence))


def test_the_seed_decides() -> None:
    model = graph(info("x", TensorProto.FLOAT, [9]))
    assert make(model, seed=1)["x"].tolist() == make(model, seed=1)["x"].tolist() != make(model)["x"].tolist()
