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
from ldp_gym.theory.pairwise import pair_information

NINE_LABELS = np.random.default_rng(1).dirichlet(np.full(9, 0.4), size=5)
POSTERIOR = np.random.default_rng(2).dirichlet(np.ones(5))

DISCRETE = [name for name in PURE if name != "laplace-single"]
"""Pure channels whose messages can be listed, or listed given the public coins."""

# -- One message ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize(
    "weights", [None, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.02, 0.02, 0.9, 0.02, 0.02, 0.02]]
)
def test_no_message_about_disjoint_supports_tells_more_than_the_capacity(name, epsilon, weights):
    """Five standard errors are allowed."""
    channel = make_channel(name, 6, 6, 10**6, epsilon=epsilon)
    rate, error = theory.information_rate(channel, np.eye(6), weights, samples=20_000)
    assert rate >= -5 * error - 1e-12
    assert rate <= theory.capacity(epsilon) + 5 * error


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("name", DISCRETE)
def test_the_information_of_listed_messages_is_that_of_sent_ones(name, epsilon):
    """Against 20,000 messages that are sent, at an error rate of 1e-6 and less."""
    channel = make_channel(name, 5, 9, 50, epsilon=epsilon)
    rate, error = theory.information_rate(channel, NINE_LABELS, POSTERIOR)
    assert 0.0 < rate <= theory.capacity(epsilon) * (1 + 1e-9)

    rng = np.random.default_rng(0)
    public = POSTERIOR if channel.adaptive else None
    truths = rng.choice(5, size=20_000, p=POSTERIOR)
    labels = categorical(NINE_LABELS[truths], rng.random(20_000))
    messages = channel.privatize(labels, NINE_LABELS, rng, public)
    posterior = np.exp(channel.log_likelihood(messages, NINE_LABELS, public)) * POSTERIOR
    posterior /= posterior.sum(axis=-1, keepdims=True)
    logs = np.log(np.maximum(posterior, 1e-300) / POSTERIOR)
    gains = (posterior * logs).sum(axis=-1)
    assert abs(rate - gains.mean()) <= 6.0 * math.hypot(error, stats.sem(gains))


@pytest.mark.parametrize("name", DISCRETE)
def test_the_information_is_exact_where_all_messages_are_listed(name):
    channel = make_channel(name, 5, 9, 50)
    public = POSTERIOR if channel.adaptive else None
    complete = channel.list_messages(NINE_LABELS, public).complete
    _, error = theory.information_rate(channel, NINE_LABELS, POSTERIOR)
    assert (error == 0.0) == complete


@pytest.mark.parametrize("name", ["adaptive-groups", "adaptive-split", "wheel", "split"])
def test_with_many_hypotheses_some_draws_of_the_coins_stand_for_all(name):
    """Exact given the coins: every part, and so the mean, is within the capacity."""
    table = np.random.default_rng(3).dirichlet(np.full(30, 0.3), size=24)
    prior = np.full(24, 1 / 24)
    channel = make_channel(name, 24, 30, 50)
    public = prior if channel.adaptive else None
    assert not channel.list_messages(table, public).complete

    rate, error = theory.information_rate(channel, table, prior)
    assert 0.0 < rate <= theory.capacity(1.0)
    assert 0.0 < error < 0.05 * rate


@pytest.mark.parametrize("name", ["subset-selection", "unary-encoding", "vote"])
def test_windows_on_a_circle_stand_for_all_sets(name, monkeypatch):
    channel = make_channel(name, 5, 9, 50)
    exact, error_of_exact = theory.information_rate(channel, NINE_LABELS, POSTERIOR)
    assert error_of_exact == 0.0

    monkeypatch.setattr(listing, "MOST_MESSAGES", 3)
    listed = channel.list_messages(NINE_LABELS)
    log_density = channel.log_density(listed.messages, NINE_LABELS)
    density = np.exp(log_density + listed.log_weights[:, None])
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-9)
    rate, error = theory.information_rate(channel, NINE_LABELS, POSTERIOR)
    assert 0.0 < error < 0.05 * exact
    assert abs(rate - exact) < 6.0 * error


@pytest.mark.parametrize("name", ["subset-selection", "unary-encoding", "vote"])
def test_a_list_of_messages_fits_into_memory(name, monkeypatch):
    """There is room for 50 draws of 5 x 5 numbers."""
    channel = make_channel(name, 5, 9, 50)
    monkeypatch.setattr(listing, "MOST_MESSAGES", 3)
    monkeypatch.setattr(base, "_LARGEST_LIST", 50 * 25)
    assert channel.list_messages(NINE_LABELS).draws[-1] < 60


def test_the_order_of_two_uniform_numbers_has_its_law():
    """X in [0.5, 1.5], Y in [0.75, 2.25]: P(X > Y) = (0.75^2 / 2) / 1.5."""
    chances = _order_chances(listing.all_orders(2), np.array([1.0, 1.5]))
    np.testing.assert_allclose(chances, [0.1875, 0.8125])


def test_equal_uniform_numbers_come_in_any_order():
    np.testing.assert_allclose(_order_chances(listing.all_orders(3), np.full(3, 0.2)), 1 / 6)


def test_stratified_uniforms_have_one_number_in_every_part():
    drawn = _stratified_uniforms(50, 3)
    assert drawn.shape == (50, 3)
    parts = np.sort(np.floor(50 * drawn), axis=0)
    np.testing.assert_array_equal(parts, np.arange(50.0)[:, None] + np.zeros(3))


@pytest.mark.parametrize("name", ["randomized-response", "split"])
def test_the_information_of_a_flipped_fair_bit_by_hand(name):
    flip = 1 / (1 + math.e)
    rate, error = theory.information_rate(make_channel(name, 2, 2, 10), np.eye(2))
    assert rate == pytest.approx(math.log(2) - entropy([flip, 1 - flip]), rel=1e-12)
    assert error == 0.0


@pytest.mark.parametrize(
    ("weights", "expected"), [([0.5, 0.25, 0.25], 1.5 * math.log(2)), ([1.0, 0.0, 0.0], 0.0)]
)
def test_the_information_of_labels_that_are_not_hidden_is_the_entropy(weights, expected):
    channel = make_channel("identity", 3, 3, 10)
    rate, _ = theory.information_rate(channel, np.eye(3), weights)
    assert rate == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CHANNELS)
def test_the_information_from_a_few_messages_is_near_that_from_many(name):
    """Under several posteriors; exact where there are few messages."""
    channel = make_channel(name, 4, 6, 100)
    candidates = np.random.default_rng(3).dirichlet(np.ones(6), size=(5, 4))
    posteriors = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.0, 0.5, 0.5, 0.0]])
    space = channel.message_space
    few_messages = isinstance(space, gym.spaces.Discrete) and space.n <= 64

    estimates = theory.MessageInformation(channel, candidates[None])(posteriors)
    assert estimates.shape == (3, 5)
    for (i, j), estimate in np.ndenumerate(estimates):
        rate, error = theory.information_rate(channel, candidates[j], posteriors[i], samples=4000)
        if few_messages:
            assert estimate == pytest.approx(rate, rel=1e-9, abs=1e-12)
        assert abs(estimate - rate) < 0.6 * rate + 5 * error + 1e-12


def test_the_wheel_comes_close_to_the_capacity():
    rate, error = theory.information_rate(make_channel("wheel", 20, 20, 10), np.eye(20))
    assert rate > 0.97 * theory.capacity(1.0) - 5 * error


def test_the_best_of_all_messages_comes_close_to_the_capacity():
    """By a linear program where sets with just the best share exist: at eps = 1 that is 0.339, so 3 of 9."""
    assert 0.999 < most_information(np.full(9, 1 / 9), 1.0) / theory.capacity(1.0) <= 1.0


# -- Pairs ---------------------------------------------------------------------------------------------


def test_the_information_about_a_pair_is_that_of_its_messages():
    """Randomized response on three labels: the Jensen-Shannon divergence of the two message laws."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    keep = math.e / (math.e + 2.0)
    laws = table * keep + (1.0 - table) * (1.0 - keep) / 2.0
    information = pair_information(make_channel("randomized-response", *table.shape, 50), table)
    for (j, k), of_pair in np.ndenumerate(information):
        mixed = entropy((laws[j] + laws[k]) / 2.0)
        expected = mixed - (entropy(laws[j]) + entropy(laws[k])) / 2.0
        assert of_pair == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", READABLE)
def test_equal_hypotheses_have_no_information_between_them(name):
    table = np.random.default_rng(2).dirichlet(np.ones(4), size=3)[[0, 1, 1]]
    information = pair_information(make_channel(name, *table.shape, 50), table)
    assert information[1, 2] == 0.0
    assert information[0, 1] > 0.0


@pytest.mark.parametrize("name", READABLE)
def test_equal_hypotheses_are_no_blind_pair(name):
    table = np.random.default_rng(2).dirichlet(np.ones(4), size=3)[[0, 1, 1]]
    assert theory.blind_pairs(make_channel(name, *table.shape, 50), table) == []


@pytest.mark.parametrize("name", ["split", "vote", "wheel"])
def test_blind_channels_are_found(name):
    channel = make_channel(name, *BLIND.shape, 50)
    assert theory.blind_pairs(channel, BLIND) == [(0, 1)]
    assert theory.blind_pairs(channel, BLIND[[2, 0, 1]]) == [(1, 2)]


@pytest.mark.parametrize("name", sorted(set(CHANNELS) - {"split", "vote", "wheel"}))
def test_other_channels_are_not_blind(name):
    assert theory.blind_pairs(make_channel(name, *BLIND.shape, 50), BLIND) == []


def test_a_pair_is_not_blind_if_one_table_tells_it_apart():
    channel = make_channel("split", *BLIND.shape, 50)
    assert theory.blind_pairs(channel, np.stack([BLIND, BLIND[[2, 0, 1]]])) == []


def test_a_pair_counts_as_blind_only_if_it_differs_by_more_than_the_distance():
    channel = make_channel("split", *BLIND.shape, 50)
    assert theory.blind_pairs(channel, BLIND, distance=0.3) == []


MILLION = 10**6


@pytest.fixture
def halves():
    """Two hypotheses, uniform on either half of a million labels."""
    return np.repeat([[2.0, 0.0], [0.0, 2.0]], MILLION // 2, axis=1) / MILLION


def test_a_million_labels_hide_a_pair_but_not_completely(halves):
    """Ratios 1 +- d, d near (e^eps - 1) / M: information d^2 / 2."""
    channel = make_channel("randomized-response", 2, MILLION, 10)
    d = (math.e - 1) / (MILLION + math.e - 1)
    assert pair_information(channel, halves)[0, 1] == pytest.approx(d**2 / 2, rel=1e-6)


def test_the_tolerance_decides_which_information_counts_as_none(halves):
    channel = make_channel("randomized-response", 2, MILLION, 10)
    assert theory.blind_pairs(channel, halves) == []
    assert theory.blind_pairs(channel, halves, tolerance=1e-11) == [(0, 1)]


# -- The limit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [3, 1000])
@pytest.mark.parametrize("size", [8, 32, 128])
def test_the_information_limit_term_by_term(size, rounds):
    terms = math.log(size) - np.arange(rounds) * theory.capacity(1.0)
    expected = np.maximum(terms, 0.0).sum()
    assert theory.information_limit(size, rounds, 1.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("size", "limit"), [(8, 18.6), (32, 50.4), (128, 97.9)])
def test_the_information_limit_by_number(size, limit):
    assert theory.information_limit(size, 1000, 1.0) == pytest.approx(limit, abs=0.05)
