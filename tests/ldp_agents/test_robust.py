"""Robust: what it promises on every sequence of messages, and what it was made for."""

import numpy as np
import pytest
from helpers import ALPHA
from likelihood_helpers import likelihoods, message_losses, record_all, weights_along
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_agents.robust import MEMBER, PAIR, PRIOR

TABLES = {
    "hypotheses": "dirichlet",
    "redraw_hypotheses": True,
    "observe_candidates": True,
    "num_hypotheses": 8,
}
TABLES |= {"num_labels": 16, "horizon": 1000}


@pytest.mark.parametrize("truth", ["uniform", "mixture", "switching"])
def test_it_pays_for_messages_what_any_expert_pays_and_the_log_of_its_prior(truth):
    rules = {"num_hypotheses": 4, "num_labels": 5, "context_dim": 2, "horizon": 200, "truth": truth}
    game, tape = record_all(rules, episodes=4)
    likelihood = likelihoods(game, tape)
    paid = message_losses(weights_along(ldp_agents.Robust(game), tape), likelihood)
    experts = [
        ldp_agents.Pairs(game, members=MEMBER / (MEMBER + PAIR)),
        ldp_agents.FixedShare(game),
        ldp_agents.SoftBayes(game),
    ]
    each = [message_losses(weights_along(expert, tape), likelihood) for expert in experts]
    for expert, prior in zip(each, PRIOR, strict=True):
        assert (paid <= expert - np.log(prior) + 1e-9).all()
    # Bayes over experts to the letter: the likelihoods add up, weighed by the prior.
    mixed = -np.log(sum(prior * np.exp(-expert) for expert, prior in zip(each, PRIOR, strict=True)))
    np.testing.assert_allclose(paid, mixed, rtol=1e-9)


@pytest.mark.parametrize(
    ("truth", "options", "expert"),
    [("uniform", {}, 0), ("switching", {"switches": [500]}, 1), ("mixture", {"num_members": 8}, 2)],
)
def test_it_trusts_the_expert_that_expects_the_truth(truth, options, expert):
    rules = {**TABLES, "channel": "split", "epsilon": 4.0, "truth": truth, "truth_kwargs": options}
    game, tape = record_all(rules, episodes=8)
    learner = ldp_agents.Robust(game)
    learner.reset((8,))
    learner.play(tape.candidates, tape.messages)
    assert (learner.trust.mean(axis=0).argmax()) == expert


def test_no_truth_makes_it_fall_far_behind():
    """Its risk is not shown, with an error rate of 1e-6, to be above 1.8 times that of any other.

    The tables are of other seeds than any it was tuned on.
    """
    episodes, others = 16, ("uniform", "bayes", "fixed-share", "soft-bayes", "pairs")
    truths = {
        "uniform": {},
        "mixture": {"num_members": 2, "weights": [0.5, 0.5]},
        "switching": {"switches": [500]},
    }
    for truth, options in truths.items():
        rules = {**TABLES, "channel": "split", "epsilon": 4.0, "truth": truth, "truth_kwargs": options}
        robust, *rest = (
            ldp_gym.evaluate(name, rules, episodes=episodes, seed=900).kl[:, -1]
            for name in ("robust", *others)
        )
        strictest = stats.t.isf(ALPHA / (len(truths) * len(others)), episodes - 1)
        for name, totals in zip(others, rest, strict=True):
            excess = robust - 1.8 * totals
            assert excess.mean() <= strictest * stats.sem(excess), (truth, name, robust.mean(), totals.mean())


def test_of_many_hypotheses_the_first_expert_is_bayes():
    game, tape = record_all({"hypotheses": "disjoint", "num_hypotheses": 40, "num_labels": 80, "horizon": 5})
    learner = ldp_agents.Robust(game)
    learner.reset((1,))
    assert learner.play(tape.candidates, tape.messages).shape == (1, 5, 80)
