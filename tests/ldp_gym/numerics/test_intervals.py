"""Intervals against the distributions that they invert."""

import pytest
from scipy import stats

from ldp_gym.numerics.intervals import share_interval


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (10, 10)])
def test_the_exact_interval_of_a_share(hits, count):
    """At its ends, as many hits or more (or fewer) have a probability of 2.5%."""
    low, high = share_interval(hits, count, 0.95)
    assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, count, low) == pytest.approx(0.025)
    assert high == 1.0 if hits == count else stats.binom.cdf(hits, count, high) == pytest.approx(0.025)
