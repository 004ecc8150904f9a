"""Bayes' rule, priors, floors and ties of the learners, worked out by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import make_channel, record, small_rules

import ldp_agents
from ldp_agents.centred import CentredEXP3
from ldp_agents.likelihood import LinearWeights
from ldp_gym import Game
from ldp_gym.engine.posterior import bayes_rule, finite, log_ratios, spread_evenly
from ldp_gym.testing import check_learner


def test_bayes_rule_and_its_parts():
    """A prior of 1/2, 1/3, 1/6 and likelihoods 1/5, 3/5, 0: products 1/10, 1/5, 0."""
    prior, likelihoods = np.array([1 / 2, 1 / 3, 1 / 6]), np.array([1 / 5, 3 / 5, 0.0])
    posterior = bayes_rule(prior, likelihoods)
    np.testing.assert_allclose(posterior, [1 / 3, 2 / 3, 0.0], rtol=1e-15)
    np.testing.assert_allclose(spread_evenly(posterior, 0.3), [1 / 3, 17 / 30, 1 / 10], rtol=1e-15)
    logs = np.array([math.log(1 / 5), math.log(3 / 5), -math.inf])
    np.testing.assert_allclose(finite(logs), [*logs[:2], -1e6])
    np.testing.assert_allclose(log_ratios(logs)[:2], [math.log(1 / 3), 0.0], atol=1e-15)
    np.testing.assert_allclose(log_ratios(logs, 0.25)[:2], [math.log(1 / 3) / 4, 0.0], atol=1e-15)
    np.testing.assert_allclose(log_ratios(np.full(3, -math.inf)), 0.0), "ruled out by all"


@pytest.mark.parametrize(
    ("size", "gap", "counts"), [(0.0, 1e-11, 1), (0.0, 1e-13, 0), (1e6, 1e-5, 1), (1e6, 1e-7, 0)]
)
def test_a_spread_of_rounding_errors_moves_no_weight(size, gap, counts):
    """Estimates that differ by less than 1e-12 are equal; a rate of one over it would tell them apart."""
    game, tape = record(small_rules("laplace-single"), 1)
    learner = CentredEXP3(game)
    channel = SimpleNamespace(loss_estimates=lambda *_: size + np.array([0.0, 0.0, 2.0 * gap, 2.0 * gap]))
    learner.game = SimpleNamespace(channel=channel, num_hypotheses=4)
    _, spread = np.split(learner.losses(tape.messages[0, 0], tape.candidates[0, 0]), [4])
    assert spread[0] == pytest.approx(counts * gap**2, rel=1e-3, abs=0.0)


@pytest.mark.parametrize(("behind", "weights"), [(1e-10, [1 / 2, 1 / 2, 0]), (1e-8, [1, 0, 0])])
def test_mle_splits_ties_and_nothing_else(behind, weights):
    game = record({**small_rules("split"), "num_hypotheses": 3}, 1)[0]
    learner = ldp_agents.MLE(game)
    learner._state = np.array([5.0, 5.0 + behind, 6.0])
    np.testing.assert_allclose(learner.weights, weights)


class Stopped(LinearWeights):
    def advance(self, weights, likelihoods):
        return np.array([3.0, 1.0, 0.0, 0.0])


def test_weights_are_normalised_and_never_zero():
    learner = Stopped(record(small_rules("split"), 1)[0])
    learner.learn(np.ones(4))
    np.testing.assert_allclose(learner.weights, [0.75, 0.25, 2.5e-301, 2.5e-301], rtol=1e-9)


def test_the_prior_of_robust_and_when_it_does_without_pairs():
    """Prior 0.5 of a member, 0.08 of a pair, 0.05 of switches, 0.37 of a mixture; pairs up to K = 32."""
    learner = ldp_agents.Robust(record(small_rules("split"), 1)[0])
    np.testing.assert_allclose(learner.trust, [0.58, 0.05, 0.37], rtol=1e-12)
    pairs, share, soft = learner._experts
    np.testing.assert_allclose(np.exp(pairs._state[:4]), 0.5 / 0.58 / 4, rtol=1e-12)
    np.testing.assert_allclose(np.exp(pairs._state[4:]), 0.08 / 0.58 / 30, rtol=1e-12)
    assert (share.share, soft.rate) == (1 / 40, pytest.approx(math.sqrt(math.log(4) / 40)))
    sizes = {}
    for count in (32, 33):
        game = Game(None, make_channel("split", count, 64, 10), 10)
        sizes[count] = ldp_agents.Robust(game)._experts[0]._state.size
    assert sizes == {32: 32 + 5 * 32 * 31 // 2, 33: 33}
    check_learner("robust", hypotheses="disjoint", num_hypotheses=40, num_labels=80, horizon=5)
    assert ldp_agents.SoftBayes(record(small_rules(horizon=2), 1)[0]).rate == 0.5, "at most"
    with pytest.raises(ValueError, match="rate must be one of lemma, box, got 'fast'"):
        ldp_agents.make("wma", record(small_rules("laplace-vector"), 1)[0], rate="fast")
