"""Opponents for both seats: what they read, and that they play the rules that they are made of."""

import numpy as np
import pytest

import ldp_gym
from ldp_agents.adversaries import CostliestToLearn, RandomContexts
from ldp_agents.designers import GreedyQuestions, RandomQuestions
from ldp_agents.opponents import (
    DesignerOpponent,
    NatureOpponent,
    answer_information,
    read_pair_state,
)
from ldp_gym.channels.asked_bit import AskedBit
from ldp_gym.theory.information import information_rate

RULES = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "pool_size": 5, "horizon": 6}
"""A small game."""


@pytest.fixture
def env():
    return ldp_gym.parallel_env(epsilon=1.5, **RULES)


def test_the_candidates_are_those_of_the_pool():
    env = ldp_gym.parallel_env(redraw_hypotheses=False, **RULES)
    observations, _ = env.reset(seed=0)
    state = read_pair_state(observations, num_hypotheses=3, pool_size=5)
    np.testing.assert_allclose(state.candidates[0], env.game.hypotheses(env.pool), atol=1e-6)


def test_the_information_of_an_answer_is_that_of_the_channel():
    table = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    weights = np.array([0.5, 0.3, 0.2])
    contrast = np.array([0.4, -0.9, 0.3])
    channel = AskedBit(3, 4, 10, epsilon=1.5, policy=lambda posterior: contrast)
    expected = information_rate(channel, table, weights).rate
    assert answer_information(weights, table, contrast, 1.5) == pytest.approx(expected, rel=1e-9)


def test_nature_plays_the_context_that_costs_most_to_learn(env):
    """Loss * min(rounds left, entropy / information of the greedy question), by hand."""
    nature = NatureOpponent(env, CostliestToLearn(env))
    designer = DesignerOpponent(env, GreedyQuestions(env))
    observations, _ = env.reset(seed=0)
    for rounds_left in (6, 5, 4):
        state = read_pair_state(observations, num_hypotheses=3, pool_size=5)
        weights = state.weights[0]
        losses = np.exp(observations["nature"][7:].astype(float))
        contrasts = designer(observations)
        information = [
            answer_information(weights, table, contrast, 1.5)
            for table, contrast in zip(state.candidates[0], contrasts, strict=True)
        ]
        entropy = -(weights * np.log(weights)).sum()
        costs = losses * np.minimum(rounds_left, entropy / np.array(information))
        choice = nature(observations)
        assert costs[choice] == pytest.approx(costs.max(), rel=1e-4)
        observations, *_ = env.step({"nature": choice, "designer": contrasts})


def test_opponents_play_a_game_to_its_end(env):
    nature = NatureOpponent(env, RandomContexts(env))
    designer = DesignerOpponent(env, RandomQuestions(env))
    observations, _ = env.reset(seed=0)
    rounds = 0
    while env.agents:
        actions = {"nature": nature(observations), "designer": designer(observations)}
        observations, *_ = env.step(actions)
        rounds += 1
    assert rounds == 6
