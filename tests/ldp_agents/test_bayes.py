"""Bayes with a rate and a prior of one's own, and where every hypothesis was ruled out."""

import numpy as np
import pytest
from likelihood_helpers import record_all

import ldp_agents
import ldp_gym
from ldp_gym.testing import check_learner

GAME = {"num_hypotheses": 4, "num_labels": 6, "context_dim": 2, "horizon": 40}
PRIOR = (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_weights_are_the_prior_times_the_tempered_likelihoods(rate):
    game, tape = record_all(GAME)
    learner = ldp_agents.Bayes(game, rate=rate, prior=PRIOR)
    learner.reset((1,))
    played = learner.play(tape.candidates, tape.messages)[0]
    weights = np.array(PRIOR)
    for t in range(40):
        f = tape.candidates[0, t]
        np.testing.assert_allclose(played[t], weights @ f, rtol=1e-9)
        weights = weights * np.exp(game.channel.log_likelihood(tape.messages[0, t], f)) ** rate
        weights /= weights.sum()


def test_it_keeps_the_contract_with_options():
    check_learner(lambda game: ldp_agents.Bayes(game, rate=0.5, prior=PRIOR))
    check_learner(lambda game: ldp_agents.Bayes(game, prior=(0.5, 0.0, 0.5, 0.0)), channel="adaptive-split")


def test_a_prior_of_zero_rules_out():
    game, tape = record_all(GAME)
    learner = ldp_agents.Bayes(game, prior=(0.5, 0.0, 0.5, 0.0))
    learner.reset((1,))
    learner.play(tape.candidates, tape.messages)
    assert (learner.weights[0, [1, 3]] == 0.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "rate must be positive"),
        ({"prior": [0.5, 0.5]}, "prior must be 4 probabilities"),
        ({"prior": [0.5, 0.5, 0.5, 0.5]}, "prior sums to 2"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ldp_agents.Bayes(record_all(GAME)[0], **options)


@pytest.mark.parametrize("name", ["bayes", "mle", "fixed-share", "soft-bayes", "pairs", "robust"])
def test_labels_that_every_hypothesis_rules_out_leave_predictions(name):
    """Without privacy, a mixture of disjoint members rules each of them out, one by one."""
    rules = {
        "hypotheses": "disjoint",
        "channel": "identity",
        "epsilon": float("inf"),
        "truth": "mixture",
        "horizon": 30,
    }
    result = ldp_gym.evaluate(name, rules, episodes=2)
    assert not np.isnan(result.kl).any()
    assert np.isfinite(result.weights).all()
