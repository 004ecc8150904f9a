"""Soft-Bayes line by line, and its bound against the best mixture."""

import numpy as np
import pytest
from likelihood_helpers import likelihoods, message_losses, record_all, weights_along

import ldp_agents
from ldp_gym import theory

RULES = {"num_hypotheses": 4, "num_labels": 5, "context_dim": 2, "horizon": 300}


def test_it_steps_towards_bayes_rule():
    game, tape = record_all(RULES)
    likelihood = likelihoods(game, tape)[0]
    along = weights_along(ldp_agents.SoftBayes(game, rate=0.3), tape)[0]
    weights = np.full(4, 0.25)
    for t in range(300):
        np.testing.assert_allclose(along[t], weights, rtol=1e-9)
        posterior = weights * likelihood[t] / (weights @ likelihood[t])
        weights = 0.7 * weights + 0.3 * posterior


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("channel", ["laplace-single", "split", "randomized-response"])
def test_no_mixture_beats_it_by_more_than_the_bound(channel, epsilon):
    """The best mixture by the EM algorithm, which climbs the concave likelihood; it is near, or worse."""
    rules = {
        **RULES,
        "channel": channel,
        "epsilon": epsilon,
        "truth": "mixture",
        "truth_kwargs": {"num_members": 3},
    }
    game, tape = record_all(rules, episodes=4)
    likelihood, rate = likelihoods(game, tape), 0.05
    assert (likelihood.max(axis=-1) <= np.exp(epsilon) * likelihood.min(axis=-1) * (1 + 1e-9)).all()
    paid = message_losses(weights_along(ldp_agents.SoftBayes(game, rate=rate), tape), likelihood)
    best = np.full((4, 4), 0.25)
    for _ in range(500):
        share = best[:, None] * likelihood
        best = (share / share.sum(axis=-1, keepdims=True)).mean(axis=1)
    least = message_losses(np.broadcast_to(best[:, None], likelihood.shape), likelihood)
    bound = theory.soft_bayes_bound(4, 300, epsilon, rate)
    assert (paid <= least + bound).all()


def test_the_rate_fits_the_horizon_unless_given():
    game, _ = record_all(RULES)
    assert ldp_agents.SoftBayes(game).rate == pytest.approx(np.sqrt(np.log(4) / 300))
    assert ldp_agents.SoftBayes(record_all({**RULES, "horizon": 2})[0]).rate == 0.5
    with pytest.raises(ValueError, match="rate must lie in"):
        ldp_agents.SoftBayes(game, rate=0.0)
