"""Bayes over members and mixtures of pairs, by hand."""

import itertools

import numpy as np
import pytest
from likelihood_helpers import likelihoods, record_all, weights_along

import ldp_agents

RULES = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 60, "epsilon": 3.0}


def test_it_is_bayes_rule_over_members_and_pairs():
    game, tape = record_all(RULES)
    likelihood = likelihoods(game, tape)[0]
    along = weights_along(ldp_agents.Pairs(game, members=0.7), tape)[0]
    mixtures = [(0.7 / 3, np.eye(3)[k]) for k in range(3)]
    for i, j in itertools.combinations(range(3), 2):
        for n in range(1, 6):
            mixtures.append((0.3 / 15, n / 6 * np.eye(3)[i] + (6 - n) / 6 * np.eye(3)[j]))
    for t in range(60):
        posterior = np.array([prior * np.prod(likelihood[:t] @ mix) for prior, mix in mixtures])
        expected = posterior @ np.array([mix for _, mix in mixtures]) / posterior.sum()
        np.testing.assert_allclose(along[t], expected, rtol=1e-9)


def test_without_pairs_it_is_bayes():
    game, tape = record_all(RULES)
    ours, bayes = ldp_agents.Pairs(game, members=1.0), ldp_agents.Bayes(game)
    np.testing.assert_allclose(weights_along(ours, tape), weights_along(bayes, tape), rtol=1e-9)


def test_too_many_hypotheses_are_refused():
    game, _ = record_all({"hypotheses": "disjoint", "num_hypotheses": 129, "horizon": 2})
    with pytest.raises(ValueError, match="at most 128 hypotheses, got 129; 'robust'"):
        ldp_agents.Pairs(game)
