"""Rules that ask questions: contrasts from observations, with or without candidates."""

import gymnasium as gym
import numpy as np
import pytest

from ldp_agents.designers import GreedyQuestions, RandomQuestions
from ldp_gym.envs.ask import greedy_contrast

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "horizon": 20}


def test_greedy_questions_are_about_the_table_of_the_class():
    env = gym.make_vec("LDPAsk-v0", 3, **RULES)
    rows, _ = env.reset(seed=1)
    rows = env.step(np.eye(3, 4))[0]
    table = env.unwrapped.game.hypotheses(np.zeros(1))
    expected = greedy_contrast(rows[:, :4].astype(float), table)
    np.testing.assert_allclose(GreedyQuestions(env)(rows), expected)


def test_greedy_questions_are_about_the_candidates_that_are_observed():
    env = gym.make_vec("LDPAsk-v0", 3, redraw_hypotheses=True, **RULES)
    env.reset(seed=1)
    rows = env.step(np.eye(3, 4))[0]
    expected = greedy_contrast(rows[:, :4].astype(float), env.unwrapped.candidates)
    contrasts = GreedyQuestions(env)(rows)
    # A contrast and its negative ask the same; single precision may turn one into the other.
    same_sign = np.sign(contrasts[:, :1] * expected[:, :1])
    np.testing.assert_allclose(contrasts, same_sign * expected, rtol=1e-4)


def test_random_questions_fill_the_cube():
    env = gym.make_vec("LDPAsk-v0", 400, **RULES)
    contrasts, state = RandomQuestions(env).predict(env.reset(seed=1)[0])
    assert contrasts.shape == (400, 4)
    assert contrasts.min() == pytest.approx(-1.0, abs=0.02)
    assert contrasts.max() == pytest.approx(1.0, abs=0.02)
    assert state is None
