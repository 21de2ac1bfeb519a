"""Ceilings: which measurements count, which kernel wins, what the interval covers."""

from dataclasses import replace

import numpy as np
import pytest

from roof_agent.records import Grade, Measurement, Outcome, Work
from roof_agent.roofs import QUANTILE
from roof_collector.fit.ceilings import ceilings, roofline

PEAK = Measurement(
    probe="peak",
    subject="fma",
    quantity="flops_per_s",
    outcome=Outcome.OK,
    element_type="float32",
    threads=1,
    backend="native",
    isa="avx2",
    grade=Grade.CLEAN,
    repetitions=(90e9, 95e9, 100e9),
    work=Work(flops=1e9),
)
TRIAD = Measurement(
    probe="bandwidth",
    subject="triad",
    quantity="bytes_per_s",
    outcome=Outcome.OK,
    element_type="float64",
    threads=1,
    backend="native",
    isa="avx2",
    grade=Grade.CLEAN,
    parameters={"store": "nontemporal"},
    repetitions=(20e9, 21e9, 22e9),
    work=Work(stream_bytes=24.0, bus_bytes=24.0),
)
PLAIN = replace(
    TRIAD,
    parameters={"store": "plain"},
    repetitions=(30e9, 30e9, 30e9),
    work=Work(stream_bytes=24.0, bus_bytes=32.0),
)


def test_a_ceiling_is_the_high_quantile_of_achieved_rates() -> None:
    (found,) = ceilings([PEAK])
    assert found.value == pytest.approx(np.quantile(PEAK.repetitions, QUANTILE))
    assert found.low <= found.value <= found.high <= 100e9
    assert (found.subject, found.isa, found.n, found.level) == ("fma", "avx2", 3, "")


def test_certain_traffic_goes_before_faster_but_estimated_traffic() -> None:
    (found,) = ceilings([PLAIN, TRIAD])
    assert (found.store, found.level) == ("nontemporal", "DRAM")


def test_estimated_traffic_counts_where_there_is_nothing_better() -> None:
    (found,) = ceilings([PLAIN])
    assert found.value == 30e9


@pytest.mark.parametrize(
    "change",
    [
        {"grade": Grade.THROTTLED},
        {"grade": Grade.LIMITED},
        {"outcome": Outcome.FAILED},
        {"repetitions": ()},
        {"probe": "network", "quantity": "seconds"},
    ],
)
def test_what_is_no_evidence_is_left_out(change: dict[str, object]) -> None:
    assert ceilings([replace(PEAK, **change)]) == []  # type: ignore[arg-type]


def test_the_same_rows_give_the_same_interval() -> None:
    assert ceilings([PEAK, TRIAD]) == ceilings([TRIAD, PEAK])


def test_threads_and_back_ends_are_never_mixed() -> None:
    two = replace(PEAK, threads=2, repetitions=(200e9,) * 3)
    twin = replace(PEAK, backend="numpy", repetitions=(300e9,) * 3)
    found = ceilings([PEAK, two, twin, TRIAD])
    roof = roofline(found, threads=1)
    assert roof is not None
    assert roof.flops_per_s == pytest.approx(99.5e9)
    assert roofline(found, threads=2) is None
    assert roofline(found, element_type="float64") is None
