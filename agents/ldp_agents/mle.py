"""Follow the leader: the maximum-likelihood hypothesis, as a contrast to Bayes."""

from __future__ import annotations

import numpy as np

from ldp_agents.bayes import Bayes
from ldp_gym import Game
from ldp_gym.arrays import FloatArray
from ldp_gym.clipping import Clipping

_TIE = 1e-9


class MLE(Bayes):
    """Predicts the hypothesis of the largest likelihood (all of them, where they tie), smoothed by 1/T.

    It trusts its leader from the first message on, and pays for it: the smoothing keeps the KL finite, not
    small.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self._clipping: Clipping = getattr(game.channel, "clipping", None) or Clipping(game.horizon)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        leads = (totals <= totals.min(axis=axis, keepdims=True) + _TIE).astype(np.float64)
        return leads / leads.sum(axis=axis, keepdims=True)

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._clipping.smooth(weights, candidates)
