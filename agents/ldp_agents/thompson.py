"""Thompson sampling: one hypothesis, drawn from the posterior in every round."""

from __future__ import annotations

import numpy as np

from ldp_agents.base import RandomizedLearner, SmoothedLearner
from ldp_agents.bayes import Bayes
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages
from ldp_gym.core.sampling import categorical


class Thompson(RandomizedLearner, SmoothedLearner, Bayes):
    """Predicts a hypothesis drawn from Bayes' posterior, another one in every round, smoothed by 1/T.

    Sampling pays where an action decides what is seen next. Here it decides nothing, and the KL is convex in
    the prediction: on average over its coins it is charged at least as much as the posterior mean, smoothed
    alike. It shows what a learner with randomness of its own looks like.

    References:
        Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view of the
        evidence of two samples. Biometrika 25.
    """

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin with the prior, and the coins of new episodes."""
        super().reset(batch_shape)
        self._coin: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        """Begin with the prior, and new coins, in the games of ``mask``."""
        super().restart(mask)
        self._coin = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The hypothesis of this round, the same one however often it is asked for."""
        if self._coin is None:
            self._coin = self.draw_uniforms(1)[..., 0]
        chosen = categorical(self.weights, self._coin)
        return self._predict(np.eye(self.game.num_hypotheses)[chosen], self._check(candidates))

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Bayes' rule, and a new coin for the next round."""
        super().update(candidates, message)
        self._coin = None
