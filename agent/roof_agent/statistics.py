"""Order statistics of repetitions, in plain Python: the agent's parent process has no numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roof_agent.records import Statistics

_CONFIDENCE = 0.95


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the q-quantile of ascending values, linear between neighbours (Hyndman and Fan's type 7)."""
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def summarize(values: Sequence[float]) -> Statistics:
    """Return the statistics of one measurement's repetitions. Raises ValueError for none."""
    if not values:
        raise ValueError("no repetitions")
    ordered = sorted(values)
    median = quantile(ordered, 0.5)
    low, high = _median_interval(ordered)
    return Statistics(
        n=len(ordered),
        min=ordered[0],
        q10=quantile(ordered, 0.1),
        median=median,
        q90=quantile(ordered, 0.9),
        max=ordered[-1],
        mean=math.fsum(ordered) / len(ordered),
        mad=quantile(sorted(abs(value - median) for value in ordered), 0.5),
        ci_low=low,
        ci_high=high,
    )


def _median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return order statistics that hold the median with at least 95 %, whatever the distribution.

    The number of values below the median is binomial (n, 1/2): Conover, Practical Nonparametric
    Statistics, 3rd ed., section 3.2. Below six values no pair reaches 95 % and the range is returned.
    """
    n = len(ordered)
    tail, rank = 0.0, 0
    while rank < n // 2:
        tail += math.comb(n, rank) * 0.5**n
        if 2 * tail > 1 - _CONFIDENCE:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]
