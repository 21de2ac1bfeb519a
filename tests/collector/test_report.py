"""A run as text: the documents' own figures, nothing hidden."""

from dataclasses import replace
from typing import Any

import pytest

from roof_collector.report import render
from roof_collector.web.documents import (
    LayerRow,
    LayerTotals,
    MeasurementRow,
    NetworkDocument,
    NetworkRow,
    RooflineRow,
    RunDocument,
    RunRow,
)
from roof_collector.web.tables import TablePage


def row(kind: type, **known: Any) -> Any:
    """Return a document's row with what isn't given empty."""
    return kind(**dict.fromkeys(kind.__dataclass_fields__) | known)


TRIAD = row(
    MeasurementRow,
    probe="bandwidth",
    subject="triad",
    store="plain",
    quantity="bytes_per_s",
    element_type="float64",
    threads=1,
    backend="native",
    isa="avx2",
    outcome="ok",
    grade="noisy",
    best=23.62e9,
    median=22.5e9,
)
LAYER = row(
    LayerRow,
    index=0,
    name="conv",
    op_type="Conv",
    macc=1_000_000,
    memory_bytes=4096,
    intensity=488.28,
    roofline_seconds=20e-6,
    bound="compute",
    measured_seconds=30e-6,
    ratio=1.5,
)
NETWORK = row(
    NetworkRow,
    name="net",
    threads=1,
    macc=1_000_000,
    layers=1,
    roofline_seconds=20e-6,
    measured_seconds=31e-6,
    ratio=1.55,
    ceilings_backend="native",
    grade="clean",
    problem="",
)
RUN = RunDocument(
    schema=1,
    run=row(RunRow, run_id="r"),
    device={},
    rooflines=[RooflineRow("float32", 1, "native", 100e9, 40e9, 2.5)],
    networks=TablePage([NETWORK], 1),
    measurements=TablePage([TRIAD], 1),
)
DOCUMENT = NetworkDocument(
    schema=1,
    run=RUN.run,
    device={},
    network=NETWORK,
    roofline=RUN.rooflines[0],
    totals=LayerTotals(1, 0, 1_000_000, 2_000_000, 4096, 20e-6, 30e-6, 0.0, 0),
    layers=TablePage([LAYER], 1),
)


def lines(text: str, first: str) -> str:
    """Return the line that begins so, with single blanks."""
    return " ".join(next(line for line in text.splitlines() if line.startswith(first)).split())


def test_every_part_stands_in_the_text_with_its_figures_and_units() -> None:
    text = render(RUN, [DOCUMENT])
    assert lines(text, "triad") == "triad plain float64 1 23.62 GB/s 22.50 GB/s native avx2 noisy"
    assert lines(text, "float32") == "float32 1 100.0 GFLOP/s 40.00 GB/s 2.50 FLOP/B native"
    assert lines(text, "net  ") == "net 1 1,000,000 20.00 us 31.00 us 1.55 native clean"
    assert lines(text, "conv") == "conv Conv 1,000,000 4,096 488.28 compute 20.00 us 30.00 us 1.50"
    assert lines(text, "sum") == "sum 1,000,000 4,096 20.00 us 30.00 us 1.50"


def test_the_numpy_twin_is_never_mistaken_for_the_native_kernels() -> None:
    twin = replace(TRIAD, backend="numpy", isa="numpy")
    text = render(replace(RUN, measurements=TablePage([twin], 1)), [])
    assert "native" not in lines(text, "triad")
    assert "numpy" in lines(text, "triad")


def test_what_gave_no_result_is_said_once_a_reason() -> None:
    missing = replace(TRIAD, best=None, median=None, outcome="unavailable", reason="no such kernel")
    text = render(replace(RUN, measurements=TablePage([missing, missing], 2)), [])
    assert text.count("bandwidth triad plain unavailable: no such kernel") == 1


@pytest.mark.parametrize("problem", ["the graph that ran has not arrived", "no ceilings"])
def test_a_network_without_layers_says_why(problem: str) -> None:
    broken = replace(NETWORK, macc=None, problem=problem)
    document = replace(DOCUMENT, network=broken, layers=TablePage([], 0))
    assert problem in render(replace(RUN, networks=TablePage([broken], 1)), [document])


def test_what_the_sums_lack_is_said() -> None:
    totals = replace(DOCUMENT.totals, unjoined_seconds=2e-3, uncounted=3)
    text = render(RUN, [replace(DOCUMENT, totals=totals)])
    assert "2.000 ms of the profile belong to no layer" in text
    assert "3 operators aren't counted" in text
