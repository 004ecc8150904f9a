"""Lists of messages: complete ones are exact, and draws of public coins are unbiased."""

import math

import gymnasium as gym
import numpy as np
import pytest

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels import listing, subset_selection
from ldp_gym.channels.adaptive_groups import _order_chances
from ldp_gym.channels.base import Channel
from ldp_gym.channels.listing import all_orders, list_windows

TABLE = np.random.default_rng(1).dirichlet(np.full(9, 0.4), size=5)
POSTERIOR = np.random.default_rng(2).dirichlet(np.ones(5))
SAMPLED = {"laplace-single", "laplace-vector", "gaussian-vector"}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("name", sorted(set(ldp_gym.CHANNELS) - SAMPLED - {"identity"}))
def test_what_a_message_tells_is_exact_and_within_the_capacity(name, epsilon):
    channel = ldp_gym.CHANNELS[name](5, 9, 50, epsilon=epsilon)
    rate, error = theory.information_rate(channel, TABLE, POSTERIOR)
    public = POSTERIOR if channel.adaptive else None
    assert (error == 0.0) == channel.list_messages(TABLE, public).complete
    assert 0.0 < rate <= theory.capacity(epsilon) * (1 + 1e-9)
    sampled = _monte_carlo(channel, POSTERIOR, public)
    assert abs(rate - sampled[0]) <= 6.0 * math.hypot(error, sampled[1])  # a bound of 1e-6 and less


class Bits(ldp_gym.CHANNELS["unary-encoding"]):
    """A channel of one's own that says nothing about lists: its space does."""

    list_messages = Channel.list_messages


class Digits(ldp_gym.CHANNELS["randomized-response"]):
    """The name of a label in digits from one to three."""

    list_messages = Channel.list_messages

    @property
    def message_space(self):
        return gym.spaces.MultiDiscrete([3, 3], start=[1, 1])

    def encode(self, *arguments):
        return np.stack(np.divmod(super().encode(*arguments), 3), axis=-1) + 1

    def log_density(self, messages, *arguments):
        return super().log_density((messages[..., 0] - 1) * 3 + messages[..., 1] - 1, *arguments)

    log_likelihood = Channel.log_likelihood


@pytest.mark.parametrize(
    ("maker", "like"), [(Bits, "unary-encoding"), (Digits, "randomized-response")], ids=["bits", "digits"]
)
def test_messages_in_any_finite_space_are_listed(maker, like):
    own, ours = (maker(5, 9, 50, epsilon=1.0) for maker in (maker, ldp_gym.CHANNELS[like]))
    listed = own.list_messages(TABLE)
    assert listed.complete
    assert all(message in own.message_space for message in listed.messages)
    rate, error = theory.information_rate(own, TABLE, POSTERIOR)
    assert error == 0.0
    assert rate == pytest.approx(theory.information_rate(ours, TABLE, POSTERIOR).rate, rel=1e-9)


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Box(0.0, 1.0, (3,)), gym.spaces.MultiBinary(40), gym.spaces.MultiDiscrete([1000, 1000])],
)
def test_spaces_without_end_are_not_listed(space):
    assert listing.list_space(space) is None


def test_points_of_spaces_by_hand():
    assert listing.list_space(gym.spaces.Discrete(2, start=5)).tolist() == [5, 6]
    assert listing.list_space(gym.spaces.MultiBinary(2)).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    grid = listing.list_space(gym.spaces.MultiDiscrete(np.array([[1, 2], [1, 1]])))
    assert grid.tolist() == [[[0, 0], [0, 0]], [[0, 1], [0, 0]]]


def _monte_carlo(channel, prior, public):
    """The same from messages that are sent: an independent estimate and its error."""
    rng = np.random.default_rng(0)
    truths = rng.choice(5, size=20_000, p=prior)
    labels = (np.cumsum(TABLE, axis=-1)[truths] < rng.random((20_000, 1))).sum(axis=-1).clip(0, 8)
    likelihood = np.exp(channel.log_likelihood(channel.privatize(labels, TABLE, rng, public), TABLE, public))
    posterior = likelihood * prior
    posterior /= posterior.sum(axis=-1, keepdims=True)
    gains = np.where(posterior > 0.0, posterior * np.log(np.maximum(posterior, 1e-300) / prior), 0.0).sum(
        axis=-1
    )
    return gains.mean(), gains.std(ddof=1) / math.sqrt(len(gains))


@pytest.mark.parametrize("name", ["adaptive-groups", "adaptive-split", "wheel", "adaptive-wheel", "split"])
def test_with_many_hypotheses_some_draws_of_the_coins_stand_for_all(name):
    """Exact given the coins: every part, and so the mean, is within the capacity."""
    size = 24
    table = np.random.default_rng(3).dirichlet(np.full(30, 0.3), size=size)
    channel = ldp_gym.CHANNELS[name](size, 30, 50, epsilon=1.0)
    prior = np.full(size, 1.0 / size)
    listed = channel.list_messages(table, prior if channel.adaptive else None)
    assert not listed.complete
    rate, error = theory.information_rate(channel, table, prior)
    assert 0.0 < rate <= theory.capacity(1.0)
    assert 0.0 < error < 0.05 * rate


@pytest.mark.parametrize("name", ["subset-selection", "unary-encoding", "vote"])
def test_windows_on_a_circle_stand_for_all_sets(name, monkeypatch):
    channel = ldp_gym.CHANNELS[name](5, 9, 50, epsilon=1.0)
    exact, nothing = theory.information_rate(channel, TABLE, POSTERIOR)
    assert nothing == 0.0
    for module in (listing, subset_selection):
        monkeypatch.setattr(module, "MOST_MESSAGES", 3)
    listed = channel.list_messages(TABLE)
    density = np.exp(channel.log_density(listed.messages, TABLE) + listed.log_weights[:, None])
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-9)
    rate, error = theory.information_rate(channel, TABLE, POSTERIOR)
    assert 0.0 < error < 0.05 * exact
    assert abs(rate - exact) < 6.0 * error


def test_windows_have_their_sizes():
    listed = list_windows(7, np.array([2, 5]), np.zeros(2))
    assert listed.messages.reshape(2, 7, 7).sum(axis=-1).tolist() == [[2.0] * 7, [5.0] * 7]
    assert listed.messages.reshape(2, 7, 7).sum(axis=1).tolist() == [[2.0] * 7, [5.0] * 7]


def test_the_order_of_uniform_numbers_has_its_law():
    """By hand for two; for four, against 400,000 draws, at an error rate below 1e-6 in all."""
    two = _order_chances(all_orders(2), np.array([1.0, 1.5]))
    # X in [0.5, 1.5], Y in [0.75, 2.25]: P(X > Y) = (0.75^2 / 2) / 1.5.
    np.testing.assert_allclose(two, [0.1875, 0.8125])
    np.testing.assert_allclose(_order_chances(all_orders(3), np.full(3, 0.2)), 1 / 6)
    weights = np.array([0.4, 0.3, 0.25, 0.05])
    chances = _order_chances(all_orders(4), weights)
    assert abs(chances.sum() - 1.0) < 1e-12
    draws = (-weights * (0.5 + np.random.default_rng(0).random((400_000, 4)))).argsort(axis=-1)
    codes = draws @ 4 ** np.arange(4)
    seen = np.array([(codes == order @ 4 ** np.arange(4)).mean() for order in all_orders(4)])
    assert (np.abs(seen - chances) <= 6.0 * np.sqrt(chances * (1 - chances) / 400_000) + 1e-12).all()


def test_a_list_has_no_more_than_fits_into_memory():
    assert listing.num_circles(1024) * 1024**2 <= 21_000_000
    channel = ldp_gym.CHANNELS["subset-selection"](2, 200, 50, epsilon=1.0)
    table = np.random.default_rng(0).dirichlet(np.ones(200), size=2)
    rate, error = theory.information_rate(channel, table)
    assert 0.0 < error < 0.2 * rate
