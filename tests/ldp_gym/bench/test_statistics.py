"""Intervals that cover, and slopes that are found."""

import numpy as np
import pytest
from scipy import stats

from ldp_gym.bench import statistics


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
