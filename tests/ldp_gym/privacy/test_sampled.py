"""The sampled audit: its weights, its intervals, and the bounds that they rest on."""

import math

import numpy as np
import pytest
from broken_channels import HonestLaplace, RareClearText, sharper
from helpers import ALPHA
from scipy.stats import binom

from ldp_gym.channels import RandomizedResponse
from ldp_gym.privacy.sampled import _draw_uniforms, sample_messages
from ldp_gym.statistics import largest_mean_below, least_mean

TABLE = np.eye(2)


@pytest.mark.parametrize("shift", [None, np.array([1.5, -0.5])])
def test_weighted_means_are_those_of_plain_uniforms(shift):
    """Probability 1/8 of a box, within six standard errors."""
    uniforms, weights = _draw_uniforms(np.random.default_rng(0), 200_000, 2, shift)
    in_box = (uniforms[:, 0] < 0.5) & (uniforms[:, 1] > 0.75)
    terms = weights * in_box
    error = terms.std() / math.sqrt(len(terms))
    assert abs(terms.mean() - 1 / 8) < 6.0 * error


def test_weighted_means_of_rare_events_are_unbiased():
    uniforms, weights = _draw_uniforms(np.random.default_rng(0), 100_000, 2)
    terms = weights * (uniforms[:, 1] < 1e-7)
    assert terms.mean() == pytest.approx(1e-7, rel=0.1)


def test_no_weight_is_above_the_inverse_of_the_plain_share():
    _, weights = _draw_uniforms(np.random.default_rng(0), 10_000, 3, np.array([3.0, 0.0, -2.0]))
    assert weights.max() <= 2.0


def test_a_lower_bound_on_a_mean_errs_at_most_at_the_stated_rate():
    rng = np.random.default_rng(0)
    errors = 0
    for _ in range(500):
        samples = rng.pareto(1.5, size=50)  # of mean 2, and no variance
        errors += least_mean(samples, error=0.05) > 2.0
    assert errors <= binom.isf(ALPHA, 500, 0.05)


def test_an_upper_bound_on_a_mean_errs_at_most_at_the_stated_rate():
    rng = np.random.default_rng(0)
    errors = 0
    for _ in range(500):
        samples = rng.random(50) ** 4  # of mean 1/5
        errors += largest_mean_below(samples, 1.0, error=0.05) < 0.2
    assert errors <= binom.isf(ALPHA, 500, 0.05)


def test_bounds_on_a_mean_are_close_to_it():
    samples = np.random.default_rng(0).random(20_000)
    assert 0.48 < least_mean(samples, error=1e-6) < 0.5
    assert 0.5 < largest_mean_below(samples, 1.0, error=1e-6) < 0.52


def test_the_mean_of_zeros_has_the_lower_bound_zero():
    assert least_mean(np.zeros(10), error=0.05) == 0.0


def test_a_lower_bound_is_the_mean_at_which_the_average_capital_reaches_the_inverse_error():
    """By definition, for one sample of 1 among 99 zeros and twelve bets."""
    samples = np.repeat([0.0, 1.0], [99, 1])
    bound = least_mean(samples, error=0.5)
    bets = np.geomspace(1e-3, 0.9, 12)
    capital = np.mean([np.prod(1.0 + bet * (samples / bound - 1.0)) for bet in bets])
    assert capital == pytest.approx(2.0, rel=1e-3)


def test_the_delta_of_randomized_response_is_found():
    """(p - e^eps' p') for the label itself: at eps' = 0.5 under messages of eps = 1."""
    channel = sharper(RandomizedResponse, 2.0, 2.0)(2, 3, 10, epsilon=0.5)
    sample = sample_messages(channel, np.full((2, 3), 1 / 3), None, 40_000)
    unit = 1.0 / (math.e + 2.0)
    delta = math.e * unit - math.exp(0.5) * unit
    assert sample.delta.low <= delta <= sample.delta.high
    assert sample.delta.value == pytest.approx(delta, rel=0.05)


def test_the_largest_ratio_of_the_messages_is_kept():
    sample = sample_messages(HonestLaplace(2, 2, 10), TABLE, None, 2_000)
    assert sample.largest.epsilon == pytest.approx(1.0)
    assert sample.delta.low == 0.0


def test_messages_of_probability_one_in_a_billion_are_drawn():
    sample = sample_messages(RareClearText(2, 2, 10), TABLE, None, 20_000)
    assert sample.largest.message > 1000.0


@pytest.mark.parametrize("seed", range(5))
def test_a_right_channel_is_not_convicted(seed):
    sample = sample_messages(HonestLaplace(2, 2, 10), TABLE, None, 2_000, seed)
    assert sample.delta.low == 0.0
    assert sample.impossible is None
