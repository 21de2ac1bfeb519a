"""Data sheets: every figure has its source, the talk's ridges, the reference latencies of every network."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from roof_agent.errors import UsageError
from roof_collector.analysis.devices import datasheet, datasheet_names, element_type
from roof_collector.analysis.roofline import layers_seconds, model_seconds

DATA = Path(__file__).parents[2] / "data" / "zoo"
COLUMNS = {"V100": "v100", "Xavier": "xavier", "RPi3": "rpi3", "RPi3_1core": "rpi3_1core"}


@dataclass(frozen=True)
class Row:
    macc: int
    memory_bytes: int


def reference() -> dict[str, list[Row]]:
    rows = defaultdict(list)
    with (DATA / "zoo_layers.csv").open() as lines:
        for row in csv.DictReader(lines):
            rows[row["model"]].append(Row(int(row["macc"]), int(row["bytes_ideal"])))
    return rows


def seed_table() -> list[dict[str, str]]:
    with (DATA / "seed_table.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("row", seed_table(), ids=lambda row: row["model"])
def test_reference_latencies(row: dict[str, str]) -> None:
    layers = reference()[row["model"]]
    for column, name in COLUMNS.items():
        roofline = datasheet(name).roofline()
        assert layers_seconds(layers, roofline) * 1e3 == pytest.approx(
            float(row[f"{column}_ms_layers"]), rel=1e-9
        )
        assert model_seconds(layers, roofline) * 1e3 == pytest.approx(
            float(row[f"{column}_ms_model"]), rel=1e-9
        )


@pytest.mark.parametrize(
    ("name", "ridge"), [("v100", 133.3), ("xavier", 219.0), ("rpi3", 10.67), ("rpi3_1core", 2.67)]
)
def test_the_talks_ridges(name: str, ridge: float) -> None:
    assert datasheet(name).roofline().ridge == pytest.approx(ridge, rel=2e-3)


def test_the_pi_3s_cache() -> None:
    assert datasheet("rpi3").last_cache_bytes == 512 * 1024


@pytest.mark.parametrize("name", datasheet_names())
def test_every_figure_is_positive_and_names_its_source(name: str) -> None:
    sheet = datasheet(name)
    figures = [
        *((peak.flops_per_s, peak.source) for peak in sheet.peaks),
        *((bandwidth.bytes_per_s, bandwidth.source) for bandwidth in sheet.bandwidths),
        *((cache.size_bytes, cache.source) for cache in sheet.caches),
    ]
    assert all(value > 0 and len(source) > 15 for value, source in figures)
    assert len({peak.element_type for peak in sheet.peaks}) == len(sheet.peaks)
    assert all(element_type(peak.element_type) == peak.element_type for peak in sheet.peaks)
    assert sheet.roofline().ridge > 1
    assert sheet.title


def test_a_peak_is_taken_at_the_asked_element_type_or_refused() -> None:
    v100 = datasheet("v100")
    assert v100.roofline("fp32").flops_per_s == 15e12
    assert v100.roofline().flops_per_s == v100.roofline("half").flops_per_s == 120e12
    assert v100.states("float16")
    assert not v100.states("int8")
    with pytest.raises(UsageError, match=r"no peak for int8; it has float16, float32, float64"):
        v100.roofline("int8")
    with pytest.raises(UsageError, match="no bandwidth of l2"):
        v100.roofline(level="l2")


def test_names_may_be_spelled_with_hyphens_and_capitals() -> None:
    assert datasheet("RPi3-1core") is not None
    with pytest.raises(UsageError, match="no data sheet of 'pi9'; there are a100"):
        datasheet("pi9")
