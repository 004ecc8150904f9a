"""The black box: its power, its bound, and what it says of its messages."""

import numpy as np
import pytest
from helpers import PURE, make_channel

from ldp_gym.privacy import audit

TABLE = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)


@pytest.mark.parametrize("name", PURE)
def test_the_black_box_finds_most_of_eps_and_never_more(name):
    """True eps 1.5 (less for Laplace noise). The bound exceeds the truth with probability 1e-6 at most.

    What a hash of the label says, only those can read who know the hash: docs/privacy.md says so.
    """
    channel = make_channel(name, 8, 16, 1000, epsilon=1.5)
    public = audit.uniform_posterior(channel)
    truth = audit.exact_epsilon(channel, TABLE, public).epsilon
    found = audit.estimate_epsilon(channel, TABLE, 200_000, confidence=1 - 1e-6, posterior=public)
    share = 0.2 if name == "local-hashing" else 0.75
    assert share * truth < found.epsilon <= truth


def test_it_says_what_became_of_the_messages():
    channel = make_channel("randomized-response", 2, 5, 10)
    found = audit.estimate_epsilon(channel, TABLE[:2, :5] / TABLE[:2, :5].sum(-1, keepdims=True), 200_000)
    assert found.trials == 200_000
    assert found.explored + 2 * found.tested == found.trials
    assert max(found.counts) <= found.tested == 50_000
    assert found.usage.startswith("200,000 messages: 100,000 to choose two labels and an event")
    few = audit.estimate_epsilon(channel, np.full((2, 5), 0.2), 107)
    assert few.explored + 2 * few.tested == few.trials <= 107


def test_an_event_that_needs_two_answers():
    """The label's bit is the exclusive or of two signs: no coordinate tells it by itself."""

    class Exclusive(type(make_channel("gaussian-vector", 2, 2, 10))):
        def encode(self, labels, candidates, uniforms, posterior=None):
            signs = np.where(uniforms[..., 2:3] < 0.5, -1.0, 1.0)
            other = np.where(np.asarray(labels)[..., None] == 1, signs, -signs)
            return np.concatenate([signs, other], axis=-1)

    channel = Exclusive(2, 2, 10, epsilon=1.0, delta=1e-5)
    found = audit.estimate_epsilon(channel, np.array([[0.9, 0.1], [0.2, 0.8]]), 20_000)
    assert found.epsilon > 4.0
    assert "coordinate" in found.event
