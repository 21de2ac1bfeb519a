"""Drawings: points lie on the roof, the axes are labelled, the files are what they say they are."""

from pathlib import Path

import pytest

from roof_collector.analysis.devices import datasheet
from roof_collector.analysis.drawing import Point, save, text_roofline

PI = datasheet("rpi3").roofline()
POINTS = [Point("low", 0.5, 0.2), Point("ridge", PI.ridge, 0.3), Point("high", 300.0, 0.5)]


def test_each_point_stands_on_the_roof_where_the_model_puts_it() -> None:
    lines = text_roofline(POINTS, PI).splitlines()
    canvas = [line[15:] for line in lines if " |" in line]
    where = {
        mark: (row, line.index(mark)) for row, line in enumerate(canvas) for mark in "ABC" if mark in line
    }
    assert where["B"][0] == where["C"][0] == 0
    assert where["A"][1] < where["B"][1] < where["C"][1]
    # ln(38.4 / 1.8) of ln(38.4 / 0.36), the height of the roof from 0.1 FLOP/byte on, in 15 rows.
    assert where["A"][0] == 10
    assert lines[0].startswith("38.40 GFLOP/s")
    assert any("ridge 10.67" in line for line in lines)
    assert [line.strip() for line in lines[-3:]] == ["A low (0.5)", "B ridge (10.67)", "C high (300)"]


def test_points_in_one_place_are_marked_as_several() -> None:
    drawn = text_roofline([Point("one", 50.0), Point("two", 50.0)], PI, legend=False)
    assert "*" in drawn
    assert "A" not in drawn


@pytest.mark.parametrize(("kind", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_files_are_what_they_say_and_the_same_each_time(kind: str, magic: bytes, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    save(POINTS, PI, "Raspberry Pi 3", first, kind)
    save(POINTS, PI, "Raspberry Pi 3", second, kind)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()
