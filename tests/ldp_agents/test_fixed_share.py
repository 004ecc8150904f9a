"""Fixed share against a sum over all sequences of hypotheses, and its bound."""

import itertools

import numpy as np
import pytest
from likelihood_helpers import likelihoods, message_losses, record_all, weights_along

import ldp_agents
from ldp_gym import theory

SMALL = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 6, "epsilon": 3.0}


def test_it_is_the_posterior_over_all_sequences_of_hypotheses():
    """The law of the next hypothesis, by listing all 3^6 sequences with their prior."""
    game, tape = record_all(SMALL)
    share, likelihood = 0.2, likelihoods(game, tape)[0]
    weights = weights_along(ldp_agents.FixedShare(game, share=share), tape)[0]
    for t in range(6):
        expected = np.zeros(3)
        for path in itertools.product(range(3), repeat=t + 1):
            chance = 1.0 / 3.0
            for before, after in itertools.pairwise(path):
                chance *= share / 3.0 + (1.0 - share) * (before == after)
            expected[path[-1]] += chance * np.prod([likelihood[s, path[s]] for s in range(t)])
        np.testing.assert_allclose(weights[t], expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("switches", [0, 1, 3])
def test_no_sequence_of_hypotheses_beats_it_by_more_than_the_bound(switches):
    """The best sequence with so many switches, by dynamic programming, on messages of a switching truth."""
    rules = {**SMALL, "horizon": 200, "truth": "switching", "truth_kwargs": {"num_switches": 3}}
    game, tape = record_all(rules, episodes=4)
    likelihood, share = likelihoods(game, tape), 0.02
    paid = message_losses(weights_along(ldp_agents.FixedShare(game, share=share), tape), likelihood)
    bound = theory.fixed_share_bound(3, 200, switches, share)
    for one, total in enumerate(paid):
        losses = -np.log(likelihood[one])
        best = np.full((switches + 1, 3), np.inf)  # by switches so far and hypothesis now
        best[0] = losses[0]
        for loss in losses[1:]:
            moved = np.vstack([np.full(3, np.inf), np.tile(best[:-1].min(axis=1, keepdims=True), 3)])
            best = np.minimum(best, moved) + loss
        assert total <= best.min() + bound


def test_the_share_is_one_switch_per_episode_unless_given():
    game, _ = record_all(SMALL)
    assert ldp_agents.FixedShare(game).share == pytest.approx(1 / 6)
    with pytest.raises(ValueError, match="share must lie in"):
        ldp_agents.FixedShare(game, share=1.0)
