"""The ceilings of a device: the highest rates that its saturating micro-kernels reached.

A ceiling is a high quantile of ACHIEVED rates, with an interval, never a mean and never a
regression over applications: contention only ever lowers a rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roof_agent.records import Grade, Measurement, Outcome
from roof_collector.analysis.roofline import Roofline

# High enough to see past contention, low enough not to be one lucky repetition.
QUANTILE = 0.95
_RESAMPLES = 1000
_CONFIDENCE = 0.95

# Grades whose rates say what the board is capable of. A throttled or limited board achieves less
# than its ceiling; noise lowers some repetitions and leaves the high quantile standing.
_TRUSTED = {None, Grade.CLEAN, Grade.NOISY}


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
    best: dict[tuple[str, str, int, str], tuple[int, Ceiling]] = {}
    for measurement in measurements:
        found = _ceiling(measurement)
        if found is None:
            continue
        rank, ceiling = found
        key = (ceiling.quantity, ceiling.element_type, ceiling.threads, ceiling.backend)
        if key not in best or (rank, ceiling.value) > (best[key][0], best[key][1].value):
            best[key] = (rank, ceiling)
    return [best[key][1] for key in sorted(best)]


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


def _ceiling(measurement: Measurement) -> tuple[int, Ceiling] | None:
    """Return a candidate and its rank, None where the measurement is no evidence for a ceiling."""
    if (
        measurement.outcome is not Outcome.OK
        or measurement.grade not in _TRUSTED
        or not measurement.repetitions
    ):
        return None
    if measurement.probe == "peak":
        rank, level, element_type = 0, "", measurement.element_type
    elif measurement.probe == "bandwidth":
        # How many bytes a plain store really costs is an estimate (write-allocate or not), so kernels
        # whose traffic is certain go first.
        certain = measurement.work is not None and measurement.work.stream_bytes == measurement.work.bus_bytes
        rank, level, element_type = int(certain), "DRAM", ""
    else:
        return None
    rates = np.asarray(measurement.repetitions, dtype=float)
    low, high = _interval(rates)
    return rank, Ceiling(
        quantity=measurement.quantity,
        element_type=element_type,
        threads=measurement.threads,
        level=level,
        value=float(np.quantile(rates, QUANTILE)),
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
