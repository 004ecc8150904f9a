"""Estimates, p-values and verdicts against values worked out in other ways."""

import numpy as np
import pytest
from helpers import ALPHA
from scipy import stats

from ldp_gym import statistics


def ends(estimate):
    return estimate.low, estimate.high


def test_intervals_of_few_skewed_risks_cover_and_are_not_too_long():
    """Log-normal risks of skewness 3.3, n = 16: at least 94%, where Student has 88%; error rate 1e-6."""
    rng = np.random.default_rng(8)
    trials, sigma = 400, 0.75
    samples = rng.lognormal(-(sigma**2) / 2, sigma, size=(trials, 16))
    intervals = [statistics.mean(sample) for sample in samples]
    hits = sum(interval.contains(1.0) for interval in intervals)
    assert hits >= stats.binom.ppf(1e-6, trials, 0.94)
    student = stats.t.ppf(0.975, 15) * stats.sem(samples, axis=-1)
    assert np.mean([interval.half for interval in intervals]) <= 1.6 * student.mean()


def equal_slopes(rng):
    x = [10.0, 100.0, 1000.0]
    return statistics.slope(x, [5.0 * v**0.5 * np.exp(0.05 * rng.standard_normal(12)) for v in x])


def slopes_with_shared_seeds(rng):
    """Neighbours have much in common: the noise of the positions is a random walk."""
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    walk = np.cumsum(0.1 * rng.standard_normal((4, 30)), axis=0)
    return statistics.slope(x, list(np.sqrt(x)[:, None] * np.exp(walk - 0.005 * np.arange(1, 5)[:, None])))


def slopes_of_few_episodes(rng):
    few = [1 + 0.02 * rng.standard_normal(4), 3 * (1 + 0.05 * rng.standard_normal(2))]
    return statistics.slope([1.0, 10.0], few)


@pytest.mark.parametrize(
    ("draw", "truth", "trials", "least", "most"),
    [
        (lambda rng: statistics.mean(rng.exponential(size=60)), 1.0, 400, 0.92, 0.945),  # skewed
        (lambda rng: statistics.mean(rng.standard_normal(2)), 0.0, 400, 0.95, 1.0),
        (lambda rng: statistics.mean(rng.standard_normal(4)), 0.0, 400, 0.95, 1.0),
        (lambda rng: statistics.mean(rng.standard_normal(8)), 0.0, 400, 0.95, 1.0),
        (lambda rng: statistics.largest_mean(rng.standard_normal((16, 12))), 0.0, 400, 0.95, 1.0),
        (lambda rng: statistics.largest_mean(rng.standard_normal((16, 4))), 0.0, 400, 0.95, 1.0),
        (equal_slopes, 0.5, 400, 0.95, 0.95),
        (slopes_with_shared_seeds, 0.5, 400, 0.95, 0.95),
        (slopes_of_few_episodes, np.log10(3.0), 2000, 0.93, 1.0),
    ],
)
def test_intervals_cover_as_often_as_they_say(draw, truth, trials, least, most):
    """Between two rates, at error rate 1e-6."""
    rng = np.random.default_rng(6)
    hits = sum(draw(rng).contains(truth) for _ in range(trials))
    assert stats.binom.ppf(1e-6, trials, least) <= hits <= stats.binom.ppf(1 - 1e-6, trials, most)


def test_a_part_that_all_positions_share_is_no_error_of_the_slope():
    same = statistics.slope([1.0, 10.0, 100.0, 1000.0], [np.arange(1.0, 31.0)] * 4)
    assert same.value == pytest.approx(0.0, abs=1e-12)
    assert same.half == pytest.approx(0.0, abs=1e-12)


def test_pairs_take_the_tapes_out():
    rng = np.random.default_rng(2)
    tapes = 100.0 * rng.standard_normal(50)
    better, worse = tapes + rng.standard_normal(50), tapes + 5.0 + rng.standard_normal(50)
    found = statistics.difference(worse, better)
    assert found.low > 4.0
    assert found.high < 6.0


@pytest.mark.parametrize(("spread", "text"), [(1e-6, "rare failures may be unseen"), (1.0, "[")])
def test_an_interval_without_length_is_not_printed(spread, text):
    found = statistics.mean(2.08179 + spread * np.linspace(-1.0, 1.0, 32))
    assert found.unseen == (3 / 32 if spread < 1.0 else 0.0), "the rule of three"
    assert text in str(found)
    assert "[2.082, 2.082]" not in str(found)


def test_one_episode_has_no_interval():
    one, two = np.array([3.0]), np.array([2.0, 2.1])
    assert str(statistics.mean(one)) == "3.000"
    assert not np.isfinite(statistics.mean(one).low)
    assert not np.isfinite(statistics.slope([1, 2], [one, two]).low)
    assert not np.isfinite(statistics.slope([1, 2], [np.zeros(3), np.ones(3)]).low), "no logarithm of 0"


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (10, 10)])
def test_the_exact_interval_of_a_share(hits, count):
    """At its ends, as many hits or more (or fewer) have a probability of 2.5%."""
    low, high = statistics.share_interval(hits, count, 0.95)
    assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, count, low) == pytest.approx(0.025)
    assert high == 1.0 if hits == count else stats.binom.cdf(hits, count, high) == pytest.approx(0.025)


@pytest.mark.parametrize("count", [4, 12, 40])
def test_a_p_value_is_the_level_at_which_the_interval_just_excludes(count):
    """For normal samples both are near Student's; far out, the p-value goes on falling."""
    sample = np.random.default_rng(count).standard_normal(count)
    low, high = ends(statistics.mean(sample))
    assert statistics.p_above(sample, low) == pytest.approx(0.05, rel=0.15)
    assert statistics.p_below(sample, high) == pytest.approx(0.05, rel=0.15)
    near, far, farthest = (statistics.p_above(sample + shift, 0.0) for shift in (3.0, 30.0, 300.0))
    assert near > far > farthest
    assert statistics.p_above(np.ones(count), 0.0) < 1e-6 < 0.9 < statistics.p_above(np.ones(count), 2.0)


def test_p_values_of_a_true_hypothesis_are_seldom_small():
    """A p-value is below 1% in at most 1% of normal samples; error rate 1e-6."""
    samples = np.random.default_rng(0).standard_normal((1000, 16))
    hits = sum(statistics.p_above(sample, 0.0) < 0.01 for sample in samples)
    assert hits <= stats.binom.isf(ALPHA, 1000, 0.01)


def test_a_constant_sample_has_no_interval_and_says_what_it_may_miss():
    for sample in (np.full(32, 2.0), np.zeros(32), np.full(32, 0.1) + 1e-17):
        interval = statistics.mean(sample)
        assert ends(interval) == (-np.inf, np.inf)
        assert interval.unseen == 3 / 32
    assert "up to 9.4% of the episodes, at most 100 each" in interval.warning(100.0)
    # The rule of three: none of n values shows an event of probability 3/n with probability 5% or less.
    for count in (10, 100, 1000):
        assert 0.02 < (1 - statistics.mean(np.ones(count)).unseen) ** count <= 0.05


def test_a_nearly_constant_sample_is_marked_and_others_are_not():
    """Eight disjoint labels at eps = 8: log 8 and a little, unless an episode goes wrong, which none did."""
    rng = np.random.default_rng(0)
    calm = 2.0794 + 0.003 * rng.random(32)
    interval = statistics.mean(calm)
    assert interval.low < calm.mean() < interval.high
    assert interval.unseen == 3 / 32
    varied = statistics.mean(calm + (np.arange(32) == 3))
    assert varied.unseen == 0.0 == statistics.mean(np.ones(1)).unseen
    assert varied.warning(100.0) == ""
    assert statistics.largest_mean(np.stack([calm, calm + rng.random(32)])).unseen == 0.0
