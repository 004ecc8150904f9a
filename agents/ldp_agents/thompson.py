"""Thompson sampling: one hypothesis, drawn from the posterior in every round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ldp_agents.base import SmoothedLearner
from ldp_agents.bayes import Bayes
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.sampling import categorical, open_uniforms


class Thompson(SmoothedLearner, Bayes):
    """Predicts a hypothesis drawn from Bayes' posterior, a new one in every round, smoothed by 1/T.

    Here an action does not decide what is seen next, and the KL is convex in the prediction: on average it
    loses at least as much as the posterior mean, smoothed alike. It is an example of a randomized learner.

    References:
        Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view of the
        evidence of two samples. Biometrika 25.
    """

    randomized: ClassVar[bool] = True

    def reset(
        self, batch_shape: tuple[int, ...] = (), generators: Sequence[np.random.Generator] | None = None
    ) -> None:
        """Begin with the prior, and a generator for each game; fresh ones when not given."""
        super().reset(batch_shape)
        self._generators = generators or np.random.default_rng().spawn(math.prod(batch_shape))
        self._uniforms = open_uniforms(self._generators, (1,)).reshape(batch_shape)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The hypothesis of this round, the same one however often it is asked for."""
        chosen = categorical(self.weights, self._uniforms)
        return self._predict(np.eye(self.game.num_hypotheses)[chosen], self._check(candidates))

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Bayes' rule, and a new draw for the next round."""
        super().update(candidates, message)
        self._uniforms = open_uniforms(self._generators, (1,)).reshape(self._uniforms.shape)
