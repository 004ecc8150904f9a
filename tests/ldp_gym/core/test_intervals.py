"""Intervals against the distributions that they invert."""

import pickle

import numpy as np
import pytest
from helpers import ALPHA
from scipy import stats

from ldp_gym.core.intervals import largest_mean_interval, mean_interval, p_above, p_below, share_interval


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (10, 10)])
def test_the_exact_interval_of_a_share(hits, count):
    """At its ends, as many hits or more (or fewer) have a probability of 2.5%."""
    low, high = share_interval(hits, count, 0.95)
    assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, count, low) == pytest.approx(0.025)
    assert high == 1.0 if hits == count else stats.binom.cdf(hits, count, high) == pytest.approx(0.025)


@pytest.mark.parametrize("count", [4, 12, 40])
def test_a_p_value_is_the_level_at_which_the_interval_just_excludes(count):
    """For normal samples both are near Student's; far out, the p-value goes on falling."""
    sample = np.random.default_rng(count).standard_normal(count)
    low, high = mean_interval(sample, 0.95)
    assert p_above(sample, low) == pytest.approx(0.05, rel=0.15)
    assert p_below(sample, high) == pytest.approx(0.05, rel=0.15)
    near, far, farthest = (p_above(sample + shift, 0.0) for shift in (3.0, 30.0, 300.0))
    assert near > far > farthest
    assert p_above(np.ones(count), 0.0) < 1e-6 < 0.9 < p_above(np.ones(count), 2.0)


def test_p_values_of_a_true_hypothesis_are_seldom_small():
    """A p-value is below 1% in at most 1% of normal samples; error rate 1e-6."""
    samples = np.random.default_rng(0).standard_normal((1000, 16))
    hits = sum(p_above(sample, 0.0) < 0.01 for sample in samples)
    assert hits <= stats.binom.isf(ALPHA, 1000, 0.01)


def test_a_constant_sample_has_no_interval_and_says_what_it_may_miss():
    for sample in (np.full(32, 2.0), np.zeros(32), np.full(32, 0.1) + 1e-17):
        interval = mean_interval(sample, 0.95)
        assert tuple(interval) == (-np.inf, np.inf)
        assert interval.unseen == 3 / 32
    assert "up to 9.4% of the episodes, at most 100 each" in interval.warning(100.0)
    # The rule of three: none of n values shows an event of probability 3/n with probability 5% or less.
    for count in (10, 100, 1000):
        assert 0.02 < (1 - mean_interval(np.ones(count), 0.95).unseen) ** count <= 0.05


def test_a_nearly_constant_sample_is_marked_and_others_are_not():
    """Eight disjoint labels at eps = 8: log 8 and a little, unless an episode goes wrong, which none did."""
    rng = np.random.default_rng(0)
    calm = 2.0794 + 0.003 * rng.random(32)
    low, high = interval = mean_interval(calm, 0.95)
    assert low < calm.mean() < high
    assert interval.unseen == 3 / 32
    varied = mean_interval(calm + (np.arange(32) == 3), 0.95)
    assert varied.unseen == 0.0 == mean_interval(np.ones(1), 0.95).unseen
    assert varied.warning(100.0) == ""
    copied = pickle.loads(pickle.dumps(interval))
    assert (copied, copied.unseen) == (interval, interval.unseen)
    assert largest_mean_interval(np.stack([calm, calm + rng.random(32)]), 0.95).unseen == 0.0
