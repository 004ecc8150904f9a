"""Predictions in half precision: the same games through every door."""

import gymnasium as gym
import numpy as np
import pytest

import ldp_gym
from ldp_gym.core import game_arrays
from ldp_gym.engine.game import Game

RULES = {"num_hypotheses": 3, "num_labels": 16, "horizon": 20}


class HalfPrecision:
    """Predict the mixture with fixed weights, in 16-bit floats whose sum misses 1 by 0.0007."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        pass

    def predict(self, candidates: np.ndarray) -> np.ndarray:
        mixture = np.array([0.5, 0.3, 0.2]) @ candidates
        return (1.0007 * mixture).astype(np.float16)

    def update(self, candidates: np.ndarray, message: np.ndarray) -> None:
        pass


def test_an_environment_charges_half_precision_as_evaluate_does():
    env = gym.make("LDPDist-v0", **RULES)
    learner = HalfPrecision(env.unwrapped.game)
    observation, _ = env.reset(seed=5)
    total = 0.0
    for _ in range(20):
        candidates = env.unwrapped.game.hypotheses(observation["context"])
        observation, reward, _, _, _ = env.step(learner.predict(candidates))
        total -= reward
    evaluation = ldp_gym.evaluate(HalfPrecision, RULES, episodes=1, seed=5)
    assert evaluation.kl[0, -1] == pytest.approx(total, rel=1e-12)


def test_rows_in_half_precision_are_renormalised():
    row = np.array([0.25, 0.7505], dtype=np.float16)
    assert float(row.astype(np.float64).sum()) == 1.00048828125
    assert game_arrays.prediction_floats("a row", row).sum() == 1.0


def test_a_sum_that_rounding_does_not_explain_is_left_for_the_check():
    row = np.array([0.25, 0.8], dtype=np.float16)
    assert game_arrays.prediction_floats("a row", row).tolist() == row.tolist()


def test_rows_in_double_precision_are_left_unchanged():
    row = np.array([0.25, 0.7505])
    assert game_arrays.prediction_floats("a row", row) is row
