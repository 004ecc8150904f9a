import math

import numpy as np
import pytest
from conftest import CHANNELS, make_channel

import ldp_gym
from ldp_gym import theory

PURE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].pure and name != "identity"]


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
    assert abs(split.rate - expected) < 5 * split.error


def test_without_privacy_the_label_tells_its_entropy():
    rate, _ = theory.information_rate(make_channel("identity", 3, 3, 10), np.eye(3), [0.5, 0.25, 0.25])
    assert math.isclose(rate, 1.5 * math.log(2), rel_tol=1e-12)


def test_the_wheel_comes_close_to_the_capacity():
    rate, error = theory.information_rate(make_channel("wheel", 60, 60, 10), np.eye(60))
    assert rate > 0.97 * theory.capacity(1.0) - 5 * error
