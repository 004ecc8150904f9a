"""Information of messages about hypotheses, about pairs of them, and pairs that a channel is blind to."""

import math

import gymnasium as gym
import numpy as np
import pytest
from extremal import entropy, most_information
from helpers import BLIND, CHANNELS, PURE, READABLE, make_channel
from scipy import stats

from ldp_gym import theory
from ldp_gym.channels import base, listing
from ldp_gym.channels.adaptive_groups import _order_chances
from ldp_gym.core.sampling import categorical
from ldp_gym.theory.information import _stratified_uniforms

NINE = np.random.default_rng(1).dirichlet(np.full(9, 0.4), size=5)
POSTERIOR = np.random.default_rng(2).dirichlet(np.ones(5))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("name", PURE)
def test_no_message_tells_more_than_the_capacity(name, epsilon):
    """On disjoint supports, under three posteriors; five standard errors are allowed.

    On a dense table against 20,000 messages that are sent, at an error rate of 1e-6 and less; exact where all
    messages are listed.
    """
    channel, rng = make_channel(name, 6, 6, 10**6, epsilon=epsilon), np.random.default_rng(0)
    for weights in (None, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.02, 0.02, 0.9, 0.02, 0.02, 0.02]):
        rate, error = theory.information_rate(channel, np.eye(6), weights, samples=20_000)
        assert -5 * error - 1e-12 <= rate <= theory.capacity(epsilon) + 5 * error
    if name == "laplace-single":
        return
    channel = make_channel(name, 5, 9, 50, epsilon=epsilon)
    rate, error = theory.information_rate(channel, NINE, POSTERIOR)
    public = POSTERIOR if channel.adaptive else None
    assert (error == 0.0) == channel.list_messages(NINE, public).complete
    assert 0.0 < rate <= theory.capacity(epsilon) * (1 + 1e-9)
    labels = categorical(NINE[rng.choice(5, size=20_000, p=POSTERIOR)], rng.random(20_000))
    messages = channel.privatize(labels, NINE, rng, public)
    posterior = np.exp(channel.log_likelihood(messages, NINE, public)) * POSTERIOR
    posterior /= posterior.sum(axis=-1, keepdims=True)
    gains = (posterior * np.log(np.maximum(posterior, 1e-300) / POSTERIOR)).sum(axis=-1)
    assert abs(rate - gains.mean()) <= 6.0 * math.hypot(error, stats.sem(gains))


@pytest.mark.parametrize("name", ["adaptive-groups", "adaptive-split", "wheel", "split"])
def test_with_many_hypotheses_some_draws_of_the_coins_stand_for_all(name):
    """Exact given the coins: every part, and so the mean, is within the capacity."""
    table, prior = (
        np.random.default_rng(3).dirichlet(np.full(30, 0.3), size=24),
        np.full(24, 1 / 24),
    )
    channel = make_channel(name, 24, 30, 50)
    assert not channel.list_messages(table, prior if channel.adaptive else None).complete
    rate, error = theory.information_rate(channel, table, prior)
    assert 0.0 < rate <= theory.capacity(1.0)
    assert 0.0 < error < 0.05 * rate


@pytest.mark.parametrize("name", ["subset-selection", "unary-encoding", "vote"])
def test_windows_on_a_circle_stand_for_all_sets(name, monkeypatch):
    channel = make_channel(name, 5, 9, 50)
    exact, nothing = theory.information_rate(channel, NINE, POSTERIOR)
    assert nothing == 0.0
    monkeypatch.setattr(listing, "MOST_MESSAGES", 3)
    listed = channel.list_messages(NINE)
    density = np.exp(channel.log_density(listed.messages, NINE) + listed.log_weights[:, None])
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-9)
    rate, error = theory.information_rate(channel, NINE, POSTERIOR)
    assert 0.0 < error < 0.05 * exact
    assert abs(rate - exact) < 6.0 * error
    monkeypatch.setattr(
        base, "_LARGEST_LIST", 50 * 25
    )  # a list fits into memory: 50 draws of 5 x 5
    assert channel.list_messages(NINE).draws[-1] < 60


def test_the_order_of_uniform_numbers_has_its_law():
    """X in [0.5, 1.5], Y in [0.75, 2.25]: P(X > Y) = (0.75^2 / 2) / 1.5; equals come in any order."""
    np.testing.assert_allclose(
        _order_chances(listing.all_orders(2), np.array([1.0, 1.5])), [0.1875, 0.8125]
    )
    np.testing.assert_allclose(_order_chances(listing.all_orders(3), np.full(3, 0.2)), 1 / 6)


def test_stratified_uniforms_have_one_number_in_every_part():
    drawn = _stratified_uniforms(50, 3)
    assert drawn.shape == (50, 3)
    parts = np.sort(np.floor(50 * drawn), axis=0)
    np.testing.assert_array_equal(parts, np.arange(50.0)[:, None] + np.zeros(3))


def test_information_by_hand():
    """One fair bit through a binary symmetric channel; and labels that are not hidden."""
    flip = 1 / (1 + math.e)
    expected = math.log(2) - entropy([flip, 1 - flip])
    for name in ("randomized-response", "split"):
        channel = make_channel(name, 2, 2, 10)
        assert theory.information_rate(channel, np.eye(2)) == (
            pytest.approx(expected, rel=1e-12),
            0.0,
        )
    for weights, expected in (([0.5, 0.25, 0.25], 1.5 * math.log(2)), ([1.0, 0.0, 0.0], 0.0)):
        rate, _ = theory.information_rate(make_channel("identity", 3, 3, 10), np.eye(3), weights)
        assert rate == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CHANNELS)
def test_what_a_message_tells_at_a_glance_is_near_what_it_tells(name):
    """A few messages against many, under several posteriors; exact where there are few messages."""
    channel = make_channel(name, 4, 6, 100)
    candidates = np.random.default_rng(3).dirichlet(np.ones(6), size=(5, 4))
    posteriors = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.0, 0.5, 0.5, 0.0]])
    glances = theory.MessageInformation(channel, candidates[None])(posteriors)
    assert glances.shape == (3, 5)
    for (i, j), glance in np.ndenumerate(glances):
        rate, error = theory.information_rate(channel, candidates[j], posteriors[i], samples=4000)
        if isinstance(channel.message_space, gym.spaces.Discrete) and channel.message_space.n <= 64:
            assert math.isclose(glance, rate, rel_tol=1e-9, abs_tol=1e-12)
        assert abs(glance - rate) < 0.6 * rate + 5 * error + 1e-12


def test_the_wheel_and_the_linear_program_come_close_to_the_capacity():
    """The program where sets with just the best share exist: at eps = 1 that is 0.339, so 3 of 9."""
    rate, error = theory.information_rate(make_channel("wheel", 20, 20, 10), np.eye(20))
    assert rate > 0.97 * theory.capacity(1.0) - 5 * error
    assert 0.999 < most_information(np.full(9, 1 / 9), 1.0) / theory.capacity(1.0) <= 1.0


def test_the_information_about_a_pair_is_that_of_its_messages():
    """Randomized response on three labels: the Jensen-Shannon divergence of the two message laws."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    keep = math.e / (math.e + 2.0)
    laws = table * keep + (1.0 - table) * (1.0 - keep) / 2.0
    found = theory.pair_information(make_channel("randomized-response", *table.shape, 50), table)
    for (j, k), information in np.ndenumerate(found):
        told = entropy((laws[j] + laws[k]) / 2.0) - (entropy(laws[j]) + entropy(laws[k])) / 2.0
        assert information == pytest.approx(told, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", READABLE)
def test_equal_hypotheses_have_no_information_between_them(name):
    table = np.random.default_rng(2).dirichlet(np.ones(4), size=3)[[0, 1, 1]]
    channel = make_channel(name, *table.shape, 50)
    found = theory.pair_information(channel, table)
    assert found[1, 2] == 0.0 < found[0, 1]
    assert theory.blind_pairs(channel, table) == []  # they do not differ


@pytest.mark.parametrize("name", sorted(CHANNELS))
def test_blind_channels_are_found_unless_one_table_tells_a_pair_apart(name):
    channel, other = make_channel(name, *BLIND.shape, 50), BLIND[[2, 0, 1]]
    blind = name in ("split", "vote", "wheel")
    assert theory.blind_pairs(channel, BLIND) == [(0, 1)] * blind
    assert theory.blind_pairs(channel, other) == [(1, 2)] * blind
    assert theory.blind_pairs(channel, np.stack([BLIND, other])) == []
    assert theory.blind_pairs(channel, BLIND, distance=0.3) == []


def test_a_million_labels_hide_a_pair_well_and_not_completely():
    """Uniform on either half of the labels: ratios 1 +- d, d near (e^eps - 1) / M, information d^2 / 2."""
    num_labels = 10**6
    table = np.repeat([[2.0, 0.0], [0.0, 2.0]], num_labels // 2, axis=1) / num_labels
    channel = make_channel("randomized-response", 2, num_labels, 10)
    d = (math.e - 1) / (num_labels + math.e - 1)
    assert theory.pair_information(channel, table)[0, 1] == pytest.approx(d**2 / 2, rel=1e-6)
    assert theory.blind_pairs(channel, table) == []
    assert theory.blind_pairs(channel, table, tolerance=1e-11) == [(0, 1)]


@pytest.mark.parametrize(("size", "limit"), [(8, 18.6), (32, 50.4), (128, 97.9)])
def test_the_information_limit(size, limit):
    terms = np.maximum(0.0, math.log(size) - np.arange(1000) * theory.capacity(1.0))
    for rounds in (3, 1000):
        found = theory.information_limit(size, rounds, 1.0)
        assert math.isclose(found, terms[:rounds].sum(), rel_tol=1e-12)
    assert round(found, 1) == limit
