"""The ceilings of a device: the highest rates that its saturating micro-kernels reached.

A ceiling is a high quantile of ACHIEVED rates, with an interval, never a mean and never a
regression over applications: contention only ever lowers a rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roof_agent.records import Measurement
from roof_agent.roofs import LEVELS, QUANTILE, evidence
from roof_collector.analysis.roofline import Roofline

_RESAMPLES = 1000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ceiling:
    """One roof of a device, in the quantity's SI unit; `low` and `high` bound it at 95 %.

    `level` is "DRAM" for memory traffic beyond every cache and empty for arithmetic; `subject` is
    the kernel that reached it.
    """

    quantity: str
    element_type: str
    threads: int
    level: str
    value: float
    low: float
    high: float
    n: int
    subject: str
    store: str
    backend: str
    isa: str
    grade: str


def ceilings(measurements: Iterable[Measurement]) -> list[Ceiling]:
    """Return every ceiling that the measurements support.

    One a quantity, element type (arithmetic only: traffic has none), thread count and back end.
    Throttled and limited measurements don't count.
    """
    best: dict[tuple[str, str, int, str], tuple[tuple[int, float], Measurement]] = {}
    for measurement in measurements:
        found = evidence(measurement)
        if found is None:
            continue
        key = (measurement.quantity, _element_type(measurement), measurement.threads, measurement.backend)
        if key not in best or found > best[key][0]:
            best[key] = (found, measurement)
    # The interval is the costly part, and of the chosen ones alone.
    return [_ceiling(value, measurement) for _, ((_, value), measurement) in sorted(best.items(), key=_key)]


def roofline(found: Sequence[Ceiling], *, element_type: str = "float32", threads: int = 1) -> Roofline | None:
    """Return the two ceilings for one element type and thread count, None where one is missing.

    The native back end goes before the numpy twin; the two are never mixed.
    """
    for backend in ("native", "numpy"):
        own = [ceiling for ceiling in found if ceiling.threads == threads and ceiling.backend == backend]
        peaks = [c.value for c in own if c.quantity == "flops_per_s" and c.element_type == element_type]
        bandwidths = [c.value for c in own if c.quantity == "bytes_per_s"]
        if peaks and bandwidths:
            return Roofline(flops_per_s=max(peaks), bytes_per_s=max(bandwidths))
    return None


def _element_type(measurement: Measurement) -> str:
    """Return the type that tells ceilings apart: traffic has none."""
    return measurement.element_type if measurement.probe == "peak" else ""


def _key(item: tuple[tuple[str, str, int, str], object]) -> tuple[str, str, int, str]:
    return item[0]


def _ceiling(value: float, measurement: Measurement) -> Ceiling:
    rates = np.asarray(measurement.repetitions, dtype=float)
    low, high = _interval(rates)
    return Ceiling(
        quantity=measurement.quantity,
        element_type=_element_type(measurement),
        threads=measurement.threads,
        level=LEVELS[measurement.probe],
        value=value,
        low=low,
        high=high,
        n=len(rates),
        subject=measurement.subject,
        store=measurement.parameters.get("store", ""),
        backend=measurement.backend,
        isa=measurement.isa,
        grade=measurement.grade.value if measurement.grade else "",
    )


def _interval(rates: np.ndarray) -> tuple[float, float]:
    """Return the bootstrap percentile interval of the quantile (Efron and Tibshirani 1993, ch. 13)."""
    # A fixed seed: the same rows must give the same document.
    generator = np.random.default_rng(0)
    resampled = generator.choice(rates, size=(_RESAMPLES, len(rates)))
    quantiles = np.quantile(resampled, QUANTILE, axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(quantiles, [tail, 1 - tail])
    return float(low), float(high)
