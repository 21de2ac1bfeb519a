"""Order statistics against numpy, and the interval's coverage against the definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roof_agent.statistics import quantile, summarize

finite = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)
samples = st.lists(finite, min_size=1, max_size=200)


@given(samples, st.floats(0, 1))
def test_quantile_is_numpys(values, q):
    scale = max(abs(value) for value in values) or 1.0
    assert quantile(sorted(values), q) == pytest.approx(np.quantile(values, q), rel=1e-9, abs=1e-9 * scale)


@given(samples)
def test_summary_is_numpys(values):
    found = summarize(values)
    scale = max(abs(value) for value in values) or 1.0

    def near(value):
        return pytest.approx(value, rel=1e-9, abs=1e-9 * scale)

    assert found.n == len(values)
    assert (found.min, found.max) == (min(values), max(values))
    assert found.q10 == near(np.quantile(values, 0.1))
    assert found.median == near(np.median(values))
    assert found.q90 == near(np.quantile(values, 0.9))
    assert found.mean == near(np.mean(values))
    assert found.mad == near(np.median(np.abs(np.array(values) - np.median(values))))
    assert found.min <= found.ci_low <= found.median <= found.ci_high <= found.max


@pytest.mark.parametrize("n", range(6, 120))
def test_interval_holds_95_percent_and_is_the_narrowest_that_does(n):
    found = summarize(range(n))
    # The values are their own ranks, from 0.
    low, high = int(found.ci_low), int(found.ci_high)
    assert low + high == n - 1

    def coverage(rank):
        """P(rank < B < n - rank) for B binomial (n, 1/2): the median lies between these two values."""
        return 1 - 2 * sum(math.comb(n, k) for k in range(rank + 1)) / 2**n

    assert coverage(low) >= 0.95
    assert coverage(low + 1) < 0.95


def test_interval_of_few_values_is_their_range():
    found = summarize([3.0, 1.0, 2.0])
    assert (found.ci_low, found.ci_high) == (1.0, 3.0)


def test_interval_catches_the_median_as_often_as_it_says():
    generator = np.random.default_rng(7)
    rows = generator.lognormal(0.0, 1.0, (3000, 15))
    hits = [found.ci_low <= 1.0 <= found.ci_high for found in map(summarize, rows.tolist())]
    # 96.5 % for n = 15; three standard errors of 3000 draws are 1 %.
    assert 0.95 <= sum(hits) / len(hits) <= 0.98


def test_nothing_has_no_statistics():
    with pytest.raises(ValueError, match="no repetitions"):
        summarize([])
