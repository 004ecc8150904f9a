"""What a learner is handed in ``evaluate`` is its own: nothing leads to the referee's objects."""

import threading

import numpy as np
import pytest
from helpers import Stepwise

import ldp_agents
import ldp_gym
from ldp_gym.hypotheses.base import HypothesisClass

GAMES = [
    {"hypotheses": "dirichlet", "horizon": 40},
    {"horizon": 40},
    {"horizon": 40, "channel": "laplace-single", "nature": "adversary"},
    {"hypotheses": "dirichlet", "horizon": 40, "redraw_hypotheses": True, "observe_candidates": True},
    {"hypotheses": "dirichlet", "horizon": 40, "channel": "adaptive-split"},
]


def roots(array):
    """An array, and all that it is a view of."""
    while array is not None:
        yield array
        array = array.base


def rewrite(*arrays):
    for array in arrays:
        for root in reversed(list(roots(array))):
            root.flags.writeable = True
            root[...] = 0


class Looker(Stepwise):
    """Follows every view to what it is a view of."""

    updates = 0

    def update(self, candidates, message):
        Looker.updates += 1
        assert all(root.shape == message.shape for root in roots(message)), "messages to come"
        assert sum(root.size for root in roots(candidates)) <= 2 * candidates.size


class Vandal(Stepwise):
    """Rewrites what it gets, and predicts from what it got first."""

    def predict(self, candidates):
        if candidates.any():  # else it has rewritten it
            self.first = super().predict(candidates)
        return self.first

    def update(self, candidates, message):
        rewrite(candidates, message)


class Patcher(Stepwise):
    """Puts its own channel and class in the place of those in its game."""

    def __init__(self, game):
        super().__init__(game)
        game.channel.encode = lambda *_, **__: pytest.fail("the referee called the learner's channel")
        if game.hypotheses is not None:
            vars(game.hypotheses).clear()


class TapeVandal(ldp_agents.Uniform):
    """Rewrites a block of tape once it has predicted."""

    def play(self, candidates, messages, log_likelihoods=None):
        predictions = super().play(candidates, messages, log_likelihoods).copy()
        rewrite(candidates, messages)
        return predictions


@pytest.mark.parametrize("rules", GAMES)
def test_no_view_leads_further(rules):
    before = Looker.updates
    ldp_gym.evaluate(Looker, rules, episodes=3)  # the learner looks, and fails if it sees more
    assert Looker.updates == before + rules["horizon"]


@pytest.mark.parametrize("rules", GAMES)
@pytest.mark.parametrize("vandal", [Vandal, Patcher, TapeVandal])
def test_what_it_does_to_them_changes_nothing(rules, vandal):
    expected = ldp_gym.evaluate(Stepwise, rules, episodes=3)
    env = ldp_gym.LDPDistEnv(**rules)
    context = np.ones(env.scenario.hypotheses.context_dim)
    table = env.scenario.hypotheses(context).copy()
    found = ldp_gym.evaluate(vandal, env, episodes=3)
    np.testing.assert_allclose(found.kl, expected.kl, rtol=1e-12)
    np.testing.assert_allclose(found.comparator, expected.comparator, rtol=1e-12)
    np.testing.assert_array_equal(env.scenario.hypotheses(context), table)


class Uncopyable(HypothesisClass):
    """Holds what cannot be copied."""

    num_hypotheses, num_labels, context_dim, constant = 2, 3, 1, True

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, contexts):
        return np.full((2, 3), 1 / 3)


def test_a_class_that_cannot_be_copied_is_named():
    with pytest.raises(TypeError, match="cannot be copied .*lock"):
        ldp_gym.evaluate("uniform", {"hypotheses": Uncopyable(), "horizon": 5}, episodes=1)
