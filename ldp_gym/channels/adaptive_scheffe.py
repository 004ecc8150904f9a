"""A likely pair of hypotheses."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.adaptive import AdaptiveChannel
from ldp_gym.channels.comparison import UNLIKELY, Pair, pair_sides
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.sampling import categorical


class AdaptiveScheffe(AdaptiveChannel, Pair):
    """Compares two hypotheses that are still likely: which one likes the label better?

    The question that Gopi et al. (2020) ask in rounds, asked of those who are still in the running.
    """

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        weights = np.broadcast_to(np.maximum(posterior, UNLIKELY), (*coins.shape[:-1], self.num_hypotheses))
        one = categorical(weights, coins[..., 0])
        others = np.where(np.arange(self.num_hypotheses) == one[..., None], 0.0, weights)
        return pair_sides(one, categorical(others, coins[..., 1]), self.num_hypotheses)

    def _all_sides(self, posterior: FloatArray | None) -> tuple[FloatArray, FloatArray] | None:
        weights = np.maximum(self._public(posterior), UNLIKELY)
        others = (1.0 - np.eye(self.num_hypotheses)) @ weights  # without the cancellation of 1 - w
        one, other = np.triu_indices(self.num_hypotheses, 1)
        chances = weights[one] * weights[other] * (1.0 / others[one] + 1.0 / others[other])
        return self._pairs(), chances / weights.sum()
