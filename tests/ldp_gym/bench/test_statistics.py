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


def test_slopes_cover_as_often_as_they_say():
    rng = np.random.default_rng(1)
    trials, x = 400, [10.0, 100.0, 1000.0]
    slopes = [
        statistics.slope(x, [5.0 * v**0.5 * np.exp(0.05 * rng.standard_normal(12)) for v in x])
        for _ in range(trials)
    ]
    hits = sum(slope.contains(0.5) for slope in slopes)
    assert stats.binom.ppf(1e-6, trials, 0.95) <= hits <= stats.binom.ppf(1 - 1e-6, trials, 0.95)


def test_slopes_know_that_seeds_are_shared():
    rng = np.random.default_rng(6)
    trials, x = 400, [1.0, 10.0, 100.0, 1000.0]
    hits, lengths = 0, []
    for _ in range(trials):
        walk = np.cumsum(0.1 * rng.standard_normal((4, 30)), axis=0)  # neighbours have much in common
        samples = [
            v**0.5 * np.exp(step - 0.005 * (i + 1)) for i, (v, step) in enumerate(zip(x, walk, strict=True))
        ]
        found = statistics.slope(x, samples)
        hits += found.contains(0.5)
        lengths.append(found.half)
    assert stats.binom.ppf(1e-6, trials, 0.95) <= hits <= stats.binom.ppf(1 - 1e-6, trials, 0.95)
    same = statistics.slope(x, [np.arange(1.0, 31.0)] * 4)
    assert same.value == pytest.approx(0.0, abs=1e-12)
    assert same.half == pytest.approx(0.0, abs=1e-12), "what all have in common is no error of the slope"


def test_slopes_of_few_and_unequal_episodes_are_not_too_sure():
    rng = np.random.default_rng(7)
    trials = 400
    hits = sum(
        statistics.slope(
            [1.0, 10.0], [1 + 0.02 * rng.standard_normal(4), 3 * (1 + 0.05 * rng.standard_normal(2))]
        ).contains(np.log10(3.0))
        for _ in range(trials)
    )
    assert hits >= stats.binom.ppf(1e-6, trials, 0.93)
    assert not np.isfinite(statistics.slope([1, 2], [np.zeros(3), np.ones(3)]).low)


@pytest.mark.parametrize(
    ("draw", "truth", "least", "most"),
    [
        (lambda rng: statistics.mean(rng.exponential(size=60)), 1.0, 0.92, 0.99),  # skewed
        (lambda rng: statistics.mean(rng.standard_normal(2)), 0.0, 0.95, 1.0),
        (lambda rng: statistics.mean(rng.standard_normal(4)), 0.0, 0.95, 1.0),
        (lambda rng: statistics.mean(rng.standard_normal(8)), 0.0, 0.95, 1.0),
        (lambda rng: statistics.largest_mean(rng.standard_normal((16, 12))), 0.0, 0.95, 1.0),
    ],
    ids=["exponential", "two", "four", "eight", "worst of many"],
)
def test_intervals_cover_as_often_as_they_say(draw, truth, least, most):
    rng, trials = np.random.default_rng(0), 400
    hits = sum(draw(rng).contains(truth) for _ in range(trials))
    assert stats.binom.ppf(1e-6, trials, least) <= hits <= most * trials


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
    assert text in str(found)
    assert "[2.082, 2.082]" not in str(found)


def test_one_episode_has_no_interval():
    assert str(statistics.mean(np.array([3.0]))) == "3.000"
    assert not np.isfinite(statistics.mean(np.array([3.0])).low)
    assert not np.isfinite(statistics.slope([1, 2], [np.array([1.0]), np.array([2.0, 2.1])]).low)
