import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from helpers import PURE, make_channel
from scipy import optimize

import ldp_gym
from ldp_gym import theory


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", PURE)
def test_no_message_tells_more_than_the_capacity(name, epsilon):
    """On disjoint supports, under three posteriors; five standard errors are allowed."""
    channel = make_channel(name, 6, 6, 10**6, epsilon=epsilon)
    for weights in (None, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.02, 0.02, 0.9, 0.02, 0.02, 0.02]):
        rate, error = theory.information_rate(channel, np.eye(6), weights, samples=20_000)
        assert -5 * error - 1e-12 <= rate <= theory.capacity(epsilon) + 5 * error


def test_randomized_response_by_hand():
    """One fair bit through a binary symmetric channel: log 2 less the entropy of the flip."""
    flip = 1 / (1 + math.e)
    expected = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    channel = make_channel("randomized-response", 2, 2, 10)
    rate, error = theory.information_rate(channel, np.eye(2))
    assert error == 0.0
    assert math.isclose(rate, expected, rel_tol=1e-12)
    split = theory.information_rate(make_channel("split", 2, 2, 10), np.eye(2))
    assert split == (pytest.approx(expected, rel=1e-12), 0.0)


@pytest.mark.parametrize("name", ldp_gym.CHANNELS.names())
def test_what_a_message_tells_at_a_glance_is_near_what_it_tells(name):
    """A few messages against many, under several posteriors; exact where there are few messages."""
    channel = make_channel(name, 4, 6, 100, epsilon=1.0)
    candidates = np.random.default_rng(3).dirichlet(np.ones(6), size=(5, 4))
    posteriors = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.0, 0.5, 0.5, 0.0]])
    glances = theory.MessageInformation(channel, candidates[None])(posteriors)
    assert glances.shape == (3, 5)
    for weights, row in zip(posteriors, glances, strict=True):
        for table, glance in zip(candidates, row, strict=True):
            rate, error = theory.information_rate(channel, table, weights, samples=4000)
            if isinstance(channel.message_space, gym.spaces.Discrete) and channel.message_space.n <= 64:
                assert math.isclose(glance, rate, rel_tol=1e-9, abs_tol=1e-12)
            assert abs(glance - rate) < 0.6 * rate + 5 * error + 1e-12


def test_without_privacy_the_label_tells_its_entropy():
    rate, _ = theory.information_rate(make_channel("identity", 3, 3, 10), np.eye(3), [0.5, 0.25, 0.25])
    assert math.isclose(rate, 1.5 * math.log(2), rel_tol=1e-12)


def test_a_hypothesis_that_is_ruled_out_tells_nothing():
    with pytest.warns(ldp_gym.NoPrivacyWarning):
        identity = make_channel("identity", 2, 2, 10)
    assert theory.information_rate(identity, np.eye(2), [1.0, 0.0]) == (0.0, 0.0)


def test_the_wheel_comes_close_to_the_capacity():
    rate, error = theory.information_rate(make_channel("wheel", 60, 60, 10), np.eye(60))
    assert rate > 0.97 * theory.capacity(1.0) - 5 * error


def most_information(weights, epsilon):
    """The most that an eps-private message can tell on disjoint supports: a linear program.

    A channel is a family of sets S of hypotheses: a message has probability ``c_S e^eps`` for the members of
    its set and ``c_S`` for the others (the extremal mechanisms of Kairouz, Oh and Viswanath 2016).
    """
    sets = np.array(list(itertools.product((0, 1), repeat=len(weights))))[1:-1]
    raised = np.where(sets, math.exp(epsilon), 1.0)
    total = raised @ weights
    gain = epsilon * math.exp(epsilon) * (sets @ weights) - total * np.log(total)
    return -optimize.linprog(-gain, A_eq=raised.T, b_eq=np.ones(len(weights))).fun


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.9), (1.0, 0.9), (3.0, 0.9)])
def test_groups_tell_almost_all_that_a_message_can(epsilon, share):
    """Against the best of all eps-private channels, under random posteriors; exact on both sides."""
    channel = make_channel("adaptive-groups", 6, 6, 10, epsilon=epsilon)
    rng = np.random.default_rng(0)
    told = most = 0.0
    for weights in rng.dirichlet(np.ones(6), size=40):
        groups = channel.privatize(0, np.eye(6), rng, weights)[:-1]
        messages = np.array([[*groups, named] for named in range(groups.max() + 1)])
        likelihood = np.exp(channel.log_likelihood(messages, np.eye(6), weights))
        mean = likelihood @ weights
        information = ((likelihood * np.log(likelihood / mean[:, None])) @ weights).sum()
        best = most_information(weights, epsilon)
        assert information <= best * (1 + 1e-9)
        told, most = told + information, most + best
    assert told > share * most


def test_the_linear_program_reaches_the_capacity():
    """Where sets with just the best share exist: at eps = 1 that is 0.339, so 3 of 9 come close."""
    assert 0.999 < most_information(np.full(9, 1 / 9), 1.0) / theory.capacity(1.0) <= 1.0


def test_what_is_no_posterior_is_refused():
    channel = make_channel("randomized-response", 2, 3, 10)
    table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    for weights in ([1.0], [0.5, 0.6], [math.nan, 0.5], [[0.5, 0.5]]):
        with pytest.raises(ValueError, match="posterior"):
            theory.information_rate(channel, table, weights)
    with pytest.raises(ValueError, match=r"candidates of shape \(2, 3\)"):
        theory.information_rate(channel, np.eye(2))
    with pytest.raises(ValueError, match="samples must be at least 2, got 0"):
        theory.information_rate(make_channel("split", 2, 3, 10), table, samples=0)
