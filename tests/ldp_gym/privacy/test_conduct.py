"""Whoever leaks between users, or writes where it should not, is seen without statistics."""

import numpy as np
import pytest
from helpers import CHANNELS, make_channel
from sly_channels import (
    LiesWhenSent,
    LongDouble,
    NextOfMany,
    PreviousUser,
    Thousand,
    WritesIntoCandidates,
)

from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.privacy.conduct import find_misconduct


@pytest.mark.parametrize("name", CHANNELS)
def test_our_channels_keep_users_apart(name):
    assert find_misconduct(make_channel(name, 4, 6, 50)) is None


@pytest.mark.parametrize(
    ("liar", "lie"),
    [
        (PreviousUser, "tell nothing of other users"),
        (NextOfMany, "tell nothing of other users"),
        (WritesIntoCandidates, "candidates left as they were"),
        (LiesWhenSent, "from send() as from encode"),
        (LongDouble, "at most 64 bits"),
        (Thousand, "of 1000 users"),
    ],
)
def test_misconduct_is_named(liar, lie):
    assert lie in find_misconduct(liar(3, 5, 50))


def test_likelihoods_that_send_makes_up_are_seen():
    class Inventive(RandomizedResponse):
        def send(self, labels, candidates, uniforms, posterior=None):
            messages, log_likelihood = super().send(labels, candidates, uniforms, posterior)
            return messages, np.roll(log_likelihood, 1, axis=-1)

    assert "from log_likelihood()" in find_misconduct(Inventive(3, 5, 50))
