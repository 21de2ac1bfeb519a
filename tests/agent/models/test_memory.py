"""How much memory a network takes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from roof_agent.models.memory import BASE_BYTES, estimate_bytes, peak_activation_bytes, peak_rss_bytes
from roof_agent.models.weightless import strip


def chain(*sizes: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Tile", [f"t{i}", f"s{i}"], [f"t{i + 1}"]) for i in range(len(sizes) - 1)]
    shapes = [
        helper.make_tensor(f"s{i}", TensorProto.INT64, (1,), [size // sizes[i]])
        for i, size in enumerate(sizes[1:])
    ]
    ends = [
        helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, [size])
        for i, size in ((0, sizes[0]), (len(sizes) - 1, sizes[-1]))
    ]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], shapes))


@pytest.mark.parametrize(
    ("sizes", "floats"),
    [((1, 10), 11), ((1, 10, 100, 100), 200), ((1, 50, 50, 100, 100), 200), ((6, 6, 6), 12)],
)
def test_the_peak_is_the_two_neighbours_that_are_largest(sizes: tuple[int, ...], floats: int) -> None:
    assert peak_activation_bytes(chain(*sizes)) == 4 * floats


def test_what_is_read_again_later_stays(model: onnx.ModelProto) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Add", ["b", "x"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [100]) for name in "xy"]
    assert peak_activation_bytes(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))) == 1200


def test_the_estimate_needs_no_weights(model: onnx.ModelProto) -> None:
    assert estimate_bytes(strip(model)) == estimate_bytes(model) > BASE_BYTES


def test_the_peak_of_this_process_is_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("Name:\tx\nVmHWM:\t    1234 kB\n")
    assert peak_rss_bytes(tmp_path) == 1234 << 10
    before = peak_rss_bytes()
    assert np.ones(32 << 20, np.uint8).all()
    assert peak_rss_bytes() >= max(before, 32 << 20)
