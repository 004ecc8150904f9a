"""centred-exp3 on label losses: right in the long run where no hypothesis is, by enumeration."""

from functools import partial

import numpy as np
import pytest
from helpers import make_channel, total_kl

import ldp_gym
from ldp_agents import CentredEXP3
from ldp_gym import Game
from ldp_gym.core.errors import IncompatibleChannelError

TRUTH = np.array([0.9, 0.05, 0.05])
TABLE = np.array([[0.7, 0.15, 0.15], [0.95, 0.0499, 0.0001]])
"""The first has the smaller KL from the truth (0.12 against 0.27), the second is sharper, and nearer."""
CHANNELS = ["randomized-response", "subset-selection", "one-bit", "designed"]


def expected_losses(name, epsilon):
    """Losses per round in expectation: of the learner on labels, of messages, and of labels by hand."""
    channel = make_channel(name, 2, 3, 1000, epsilon=epsilon)
    listed = channel.list_messages(TABLE)
    density = np.exp(channel.log_density(listed.messages, TABLE) + listed.log_weights[:, None])
    chances = density @ TRUTH
    learner = CentredEXP3(Game(None, channel, 1000), losses="label")
    estimates = learner.losses(listed.messages, TABLE)[:, :2]
    lengths = 3 * TABLE.max(axis=0)
    clipped = -np.log((1 - 1 / 1000) * TABLE / lengths + 1 / (1000 * lengths.sum()))
    return chances @ estimates, -chances @ channel.log_likelihood(listed.messages, TABLE), clipped @ TRUTH


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("name", CHANNELS)
def test_it_prefers_the_hypothesis_of_the_least_label_loss(name, epsilon):
    estimated, _, clipped = expected_losses(name, epsilon)
    np.testing.assert_allclose(estimated, clipped, rtol=1e-8)
    assert estimated.argmin() == 0


@pytest.mark.parametrize(("epsilon", "preferred"), [(0.5, 1), (2.0, 1), (9.0, 0)])
def test_a_posterior_on_messages_prefers_the_sharper_one_at_small_eps(epsilon, preferred):
    """The bias of Bayes: its limit is the least expected loss of messages, and that is another hypothesis."""
    assert expected_losses("randomized-response", epsilon)[1].argmin() == preferred


def test_along_a_tape_and_on_an_adaptive_channel_it_is_what_it_is_in_turn():
    """Under a posterior that never advances, the groups tell all labels apart."""
    env = ldp_gym.LDPDistEnv(
        hypotheses="disjoint", num_hypotheses=3, channel="adaptive-groups", horizon=30, batch=30
    )
    label_losses = partial(CentredEXP3, losses="label")
    played = ldp_gym.evaluate(label_losses, env, episodes=1)
    assert played.kl[0, -1] == pytest.approx(total_kl(label_losses, env, seed=0))


def test_it_says_what_it_cannot_do():
    game = Game(None, make_channel("split", 2, 3, 10), 10)
    with pytest.raises(ValueError, match="losses must be"):
        CentredEXP3(game, losses="labels")
    with pytest.raises(ValueError, match="rate='known' bounds the losses of messages"):
        CentredEXP3(game, rate="known", losses="label")
    with pytest.raises(IncompatibleChannelError, match="do not tell all labels apart"):
        CentredEXP3(game, losses="label").losses(np.array([-1.0, 1.0]), TABLE)
