"""Relations and label evidence against the channels' own laws."""

import numpy as np
import pytest
from helpers import CHANNELS, record, small_rules

import ldp_gym
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.engine.scenario import Scenario
from ldp_gym.wrappers.features.evidence import LabelEvidence, nodes
from ldp_gym.wrappers.features.relations import relation_of

PRIVATE = [name for name in CHANNELS if name != "identity"]


def exact_weights(channel):
    """The weight with which label evidence is the log-likelihood, written out per kind of relation."""
    relation = relation_of(channel)
    points = nodes(relation)
    if relation.kind == "agreement":
        return np.log(np.exp(-channel.epsilon) + points * (1.0 - np.exp(-channel.epsilon)))
    return -points if relation.kind == "laplace" else -(points**2) / 2.0


def posterior_along(game, tape):
    """The public posterior before each round of a tape, where the channel is adaptive."""
    if tape.log_likelihoods is None:
        return None
    return game.public_posterior((len(tape.messages),)).along(tape.log_likelihoods)


@pytest.mark.parametrize("channel", PRIVATE)
def test_with_the_right_weight_label_evidence_is_the_likelihood(channel):
    """Up to a constant of each message, and to what a weight loses between its nodes."""
    game, tape = record(small_rules(channel), 12, episodes=2)
    exact = LabelEvidence(game.channel, exact_weights(game.channel)[None])
    posterior = posterior_along(game, tape)
    evidence = exact(tape.messages, tape.candidates, posterior)[..., 0]
    likelihood = game.channel.log_likelihood(tape.messages, tape.candidates, posterior)
    gap = evidence - likelihood
    np.testing.assert_allclose(gap - gap.mean(axis=-1, keepdims=True), 0.0, atol=3e-3)


@pytest.mark.parametrize("channel", PRIVATE)
def test_relations_lie_between_their_ends(channel):
    game, tape = record(small_rules(channel), 12, episodes=2)
    relation = relation_of(game.channel)
    posterior = posterior_along(game, tape)
    for values in relation.read(tape.messages, tape.candidates, posterior):
        assert values.shape == (2, 12, 6)
        assert values.min() >= relation.low
        assert values.max() <= relation.high


def test_a_channel_that_does_not_say_is_refused():
    class Silent(ldp_gym.channels.Split):
        agreement = ldp_gym.channels.Channel.agreement

    game = Scenario(**small_rules()).game
    channel = Silent(4, 6, 40)
    evidence = LabelEvidence(channel, np.zeros((1, 65)))
    with pytest.raises(IncompatibleChannelError, match=r"Silent does not say .* define agreement\(\)"):
        evidence(np.ones((1, 4)), game.hypotheses(np.zeros((1, 3))))
