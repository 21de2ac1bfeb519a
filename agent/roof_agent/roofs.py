"""Which measurements are evidence for a roof, and what it is: one rule for the terminal and the fit.

A roof is a high quantile of ACHIEVED rates, never a mean: contention only ever lowers a rate.
"""

from __future__ import annotations

from roof_agent.records import Grade, Measurement, Outcome
from roof_agent.statistics import quantile

# High enough to see past contention, low enough not to be one lucky repetition.
QUANTILE = 0.95

# The probes that saturate a roof, and the level of the memory that each is about.
LEVELS = {"peak": "", "bandwidth": "DRAM"}

# Grades whose rates say what the board is capable of. A throttled or limited board achieves less
# than its roof; noise lowers some repetitions and leaves the high quantile standing.
_TRUSTED = {None, Grade.CLEAN, Grade.NOISY}


def evidence(measurement: Measurement) -> tuple[int, float] | None:
    """Return how good an evidence for a roof a measurement is and the roof's height, None for none.

    The larger tuple wins. How many bytes a plain store really costs is an estimate (write-allocate or
    not), so kernels whose traffic is certain go first.
    """
    usable = measurement.outcome is Outcome.OK and measurement.grade in _TRUSTED
    if not usable or not measurement.repetitions or measurement.probe not in LEVELS:
        return None
    work = measurement.work
    certain = work is not None and work.stream_bytes == work.bus_bytes
    height = quantile(sorted(measurement.repetitions), QUANTILE)
    return int(measurement.probe == "bandwidth" and certain), height
