"""Liars are caught, at the default effort where a leak is rare; honest channels are not.

``benchmarks/liars.py`` measures the same liars with many seeds.
"""

import math

import numpy as np
import pytest
from helpers import CHANNELS, make_channel
from liar_channels import ClearText
from sly_channels import LIARS

from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.privacy.honesty import ALPHA, Inquiry, find_lie
from ldp_gym.testing import check_channel

RARE = [
    "Randomized response, clear text once in 100",
    "Randomized response, message 0 in 2% whatever the label",
    "Laplace noise, the label in the last bits once in 100",
    "Laplace noise, 100 + label once in 1,000",
    "Laplace noise, a place near 0.5 by the label, once in 100",
    "Laplace noise, the all-zero message in 2% whatever the label",
    "Randomized response at 3, M = 6, clear text once in 100",
    "Randomized response, one label in the clear once in 10",
    "Randomized response, clear text where every candidate is certain",
    "Adaptive split, the true answer once the posterior is exactly certain",
    "Randomized response, clear text in 4 of 5 where messages come one at a time",
]
HOPELESS = [
    "Laplace noise, the label's parity hidden by a keyed hash of the other bits",
    "Randomized response at 5, M = 6, clear text once in 100",
    "Laplace noise of 0.9 times its scale",
    "Laplace noise, the label in the last bits where the first 8 bits of the mantissa are 77",
    "Clear text after 2,000 calls",
]


@pytest.mark.parametrize("what", [what for what in LIARS if what not in RARE + HOPELESS])
def test_liars_are_caught(what):
    assert find_lie(LIARS[what](3, 5), samples=30_000) is not None


@pytest.mark.parametrize("what", RARE)
def test_rare_leaks_are_caught_at_the_default_effort(what):
    assert find_lie(LIARS[what](3, 5)) is not None


@pytest.mark.parametrize("what", HOPELESS)
def test_what_is_said_not_to_be_caught_is_not(what):
    """A stated limit, not a wish: whoever can find it may turn this test round."""
    assert find_lie(LIARS[what](3, 5), samples=30_000) is None


@pytest.mark.parametrize("name", CHANNELS)
def test_honest_channels_leave_bettors_poor(name):
    """Fails with probability 1e-6 for each channel and seed."""
    for seed in range(2):
        inquiry = Inquiry(make_channel(name, 4, 6, 50), samples=20_000, seed=seed)
        assert inquiry.impossible_message() is None
        assert inquiry.hidden_ratio() is None
        assert inquiry.evidence().log_odds < -math.log(ALPHA)


def test_the_sample_has_all_messages_and_their_beliefs():
    inquiry = Inquiry(RandomizedResponse(3, 5, 10), samples=8_000)
    sample = inquiry.sample
    assert 8_000 <= sample.counts.sum() < 20_000  # and those with candidates of their own, and alone
    np.testing.assert_allclose(sample.beliefs.sum(axis=-1), 1.0)
    keep = math.e / (math.e + 4)
    np.testing.assert_allclose(sample.beliefs.max(axis=-1), keep)
    assert len(sample.ends) == 5
    assert sample.ends[-1] == len(sample.messages)


def test_equal_messages_are_one_row():
    inquiry = Inquiry(RandomizedResponse(3, 5, 10), samples=100_000)
    assert (inquiry.sample.situations < 5).sum() == 5 * 5 * 5  # situations, blocks, messages


def test_the_error_says_what_gives_the_label_away():
    with pytest.raises(AssertionError, match=r"follow log_density: whoever looks at .*odds of 10\^\d+ to 1"):
        check_channel(ClearText(2, 5, 10, epsilon=0.01), samples=5_000)


def test_a_density_that_is_no_number_is_a_lie():
    class Nameless(RandomizedResponse):
        def log_density(self, messages, candidates, posterior=None):
            return np.full((*np.shape(messages), self.num_labels), np.nan)

    assert "is nan" in find_lie(Nameless(2, 5, 10), samples=1_000)


def test_a_message_of_density_zero_is_a_lie():
    class Denied(LaplaceSingle):
        def log_density(self, messages, candidates, posterior=None):
            density = super().log_density(messages, candidates, posterior)
            density[..., 2] = -np.inf
            return density

    assert "given label 2 is -inf" in find_lie(Denied(2, 5, 10), samples=1_000)


def test_many_labels_are_sampled():
    inquiry = Inquiry(LaplaceSingle(2, 1000, 10), samples=1_000, seed=3)
    assert len(inquiry.labels) == 64
    assert len(set(inquiry.labels.tolist())) == 64
    assert inquiry.sample.beliefs.shape[-1] == 64


def test_samples_are_validated():
    with pytest.raises(ValueError, match="samples must be at least 1000, got 10"):
        check_channel(RandomizedResponse(2, 5, 10), samples=10)
