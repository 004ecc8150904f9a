"""Bayes over the class and the mixtures of two of its members."""

from __future__ import annotations

import numpy as np

from ldp_agents.likelihood import LikelihoodLearner, finite_logs
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, softmax
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import log_ratios

_PAIR_SHARES = tuple(n / 6 for n in range(1, 6))
"""Weights of the first of a pair in their five mixtures."""

_MOST_HYPOTHESES = 128
"""Largest number of hypotheses that ``Pairs`` takes."""

MOST_BESIDE_OTHERS = 32
"""Number of hypotheses above which a learner with other experts does without pairs, to save time."""


class Pairs(LikelihoodLearner):
    """Bayes for a truth that is a member, or a mixture of two: five mixtures of every pair.

    Memory and time per round grow with ``K^3``.

    Args:
        game: the public rules, of at most 128 hypotheses.
        members: the prior probability, in (0, 1], that the truth is a member. At 1 there are no pairs.
    """

    def __init__(self, game: Game, members: float = 0.5) -> None:
        members = validation.positive("members", members, most=1.0)
        num_hypotheses = require_game(game).num_hypotheses
        pairs = mixtures_of_two(num_hypotheses) if members < 1.0 else np.empty((0, num_hypotheses))
        self._mixtures = np.concatenate([np.eye(num_hypotheses), pairs])  # (N, K)
        prior = [
            np.full(num_hypotheses, members / num_hypotheses),
            np.full(len(pairs), (1.0 - members) / max(len(pairs), 1)),
        ]
        self._log_prior = np.log(np.concatenate(prior))
        super().__init__(game)

    @property
    def weights(self) -> FloatArray:
        mean: FloatArray = softmax(self._state) @ self._mixtures
        return mean

    @property
    def _prior(self) -> FloatArray:
        return self._log_prior

    def learn(self, likelihoods: FloatArray) -> None:
        """Bayes' rule: a mixture has the mixture of the likelihoods."""
        self._state = self._state + log_ratios(finite_logs(likelihoods @ self._mixtures.T))


def mixtures_of_two(num_hypotheses: int) -> FloatArray:
    """Five mixtures of every pair of hypotheses: weights ``(N, K)``."""
    if num_hypotheses > _MOST_HYPOTHESES:
        raise ValueError(
            f"'pairs' keeps {len(_PAIR_SHARES)} mixtures of every pair of hypotheses, and takes at most "
            f"{_MOST_HYPOTHESES} hypotheses, got {num_hypotheses}; 'robust' and 'soft-bayes' take more"
        )
    first, second = np.triu_indices(num_hypotheses, 1)
    mixtures = np.zeros((len(first), len(_PAIR_SHARES), num_hypotheses))
    mixtures[np.arange(len(first)), :, first] = _PAIR_SHARES
    mixtures[np.arange(len(first)), :, second] = 1.0 - np.array(_PAIR_SHARES)
    return mixtures.reshape(-1, num_hypotheses)
