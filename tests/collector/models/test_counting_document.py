"""docs/counting.md: its table is the command's, its figures are the engine's."""

import re
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from roof_collector.analysis import analyze
from roof_collector.analysis.devices import datasheet_names
from roof_collector.cli import main
from roof_collector.models import zoo

DOCUMENT = Path(__file__).parents[3] / "docs" / "counting.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_the_table_is_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """To renew it: paste the output of the command that stands above it."""
    found = re.search(r"<!-- table: roof-collector (.*?) -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    assert found is not None
    assert main(found[1].split()) == 0
    assert found[2] == capsys.readouterr().out


def test_every_data_sheet_is_named() -> None:
    assert all(f"`{name}`" in TEXT for name in datasheet_names())


@pytest.mark.parametrize(
    ("right", "flops", "memory_bytes", "intensity"),
    [((1000, 1000), 2_000_000_000, 12_000_000, 166.7), ((1000,), 2_000_000, 4_008_000, 0.499)],
)
def test_the_talks_products(right: tuple[int, ...], flops: int, memory_bytes: int, intensity: float) -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"])],
        "product",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [1000, 1000]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, right),
        ],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, None)],
    )
    totals = analyze(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])).totals
    assert (totals.flops, totals.memory_bytes) == (flops, memory_bytes)
    assert totals.intensity == pytest.approx(intensity, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "residual_read", "said"),
    [
        ("shufflenet_v1_x0_5_g3", False, "4.47"),
        ("shufflenet_v1_x0_5_g3", True, "3.84"),
        ("shufflenet_v1_x0_5_g8", False, "3.17"),
        ("shufflenet_v1_x0_5_g8", True, "2.70"),
        ("vgg16_conv", False, "170.5"),
    ],
)
def test_what_does_not_come_out_is_said_as_it_is(name: str, residual_read: bool, said: str) -> None:  # noqa: FBT001
    totals = analyze(zoo.build(name), fusion="ideal", residual_read=residual_read).totals
    digits = len(said.split(".")[1])
    assert f"{totals.intensity:.{digits}f}" == said
    assert f"| {said} |" in TEXT
