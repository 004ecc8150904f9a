"""Two sides of equal posterior."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.adaptive import AdaptiveChannel
from ldp_gym.channels.comparison import UNLIKELY, Division
from ldp_gym.channels.listing import MOST_ORDERED, all_orders
from ldp_gym.core.arrays import FloatArray, along

_HALF = 0.5 - 1e-9
"""Half of the posterior, less the rounding of its sums."""


class AdaptiveSplit(AdaptiveChannel, Division):
    """Compares two sides that are about equally likely so far: which one likes the label better?

    The hypotheses are put in a random order and cut where half of the posterior is reached. As the posterior
    concentrates, the question becomes the likeliest hypothesis against all others.
    """

    @property
    def _num_coins(self) -> int:
        return self.num_hypotheses

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        # One that has half goes first, and alone.
        places = along(np.where(posterior >= 0.5, -1.0, coins).argsort(axis=-1))
        if posterior.shape != coins.shape:
            posterior = np.broadcast_to(posterior, coins.shape)
        weights = posterior.reshape(-1)[places]
        centres = np.add.accumulate(weights, axis=-1)
        weights *= 0.5
        centres -= weights
        first = centres < _HALF
        first[..., 0], first[..., -1] = True, False  # neither side is empty
        sides = np.empty(coins.shape, dtype=np.bool_)
        sides.reshape(-1)[places] = first
        return np.where(sides == sides[..., :1], 1.0, -1.0)

    def _all_sides(self, posterior: FloatArray | None) -> tuple[FloatArray, FloatArray] | None:
        if self.num_hypotheses > MOST_ORDERED:
            return None
        orders = all_orders(self.num_hypotheses).astype(np.float64)  # coins that come in every order
        sides, counts = np.unique(self._sides(orders, posterior), axis=0, return_counts=True)
        return sides, counts / len(orders)

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        weights, first = np.maximum(posterior, UNLIKELY), sides > 0.0
        of_first = np.where(first, weights, 0.0)
        total_first = np.add.reduce(of_first, axis=-1, keepdims=True)
        total_second = np.add.reduce(weights - of_first, axis=-1, keepdims=True)
        return sides * weights / np.where(first, total_first, total_second)
