"""Policies of LDPAsk-v0 that do not learn: which private question the next user is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.game import game_of
from ldp_gym.envs.ask import greedy_contrast


class QuestionPolicy(ABC):
    """Base of rules that ask questions, with the ``predict`` of stable-baselines3.

    Define :meth:`ask`.

    Args:
        game: an environment of LDPAsk-v0, single or vector, or its Game.
    """

    def __init__(self, game: Any) -> None:
        self.game: Game = game_of(game)

    @abstractmethod
    def ask(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        """Contrasts ``(B, K)`` for posteriors ``(B, K)`` and candidates ``(K, M)`` or ``(B, K, M)``."""

    def __call__(self, observations: npt.NDArray[Any]) -> FloatArray:
        """Contrasts ``(B, K)`` for observations ``(B, n)`` of LDPAsk-v0.

        A row begins with the posterior (K weights). If the candidates vary it ends with them: K M
        probabilities behind the first 2 K + 1 numbers.
        """
        numbers = np.asarray(observations, dtype=np.float64)
        num_games = len(numbers)
        num_hypotheses = self.game.num_hypotheses
        weights = numbers[:, :num_hypotheses]

        first = 2 * num_hypotheses + 1
        if numbers.shape[1] > first:
            candidates = numbers[:, first:].reshape(num_games, num_hypotheses, -1)
        else:
            hypotheses = self.game.hypotheses
            assert hypotheses is not None, "redrawn candidates are observed"
            candidates = hypotheses(
                np.zeros(hypotheses.context_dim)
            )  # without contexts: any will do
        return self.ask(weights, candidates)

    def predict(
        self,
        observations: npt.NDArray[Any],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[FloatArray, Any]:
        """The contrasts, and no state, as stable-baselines3 has them."""
        return self(observations), None


class RandomQuestions(QuestionPolicy):
    """Contrasts whose coefficients are uniform in [-1, 1].

    Args:
        game: an environment of LDPAsk-v0, single or vector, or its Game.
        seed: seed of the contrasts.
    """

    def __init__(self, game: Any, seed: int = 0) -> None:
        super().__init__(game)
        self._rng = np.random.default_rng(validation.seed("seed", seed))

    def ask(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._rng.uniform(-1.0, 1.0, weights.shape)


class GreedyQuestions(QuestionPolicy):
    """The questions whose answers vary most between hypotheses, by a local search."""

    def ask(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return greedy_contrast(weights, candidates)
