"""A random half-space of the labels, turned to where the likely hypotheses differ most."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.base import AdaptiveChannel
from ldp_gym.channels.half_space import HalfSpace, turn_contrast
from ldp_gym.core.arrays import FloatArray, sums_in_order

_TURNS = 3
"""Number of steps that turn the plane."""

_LEAST_PUBLIC_WEIGHT = 1e-12
"""Least public weight that a hypothesis is given."""


class AdaptiveHalfSpace(AdaptiveChannel, HalfSpace):
    """The side of a plane on which the label lies, where the likely hypotheses differ most.

    The plane is that of ``half-space``, turned by three steps, none of which lowers the variance of the true
    answer under the public posterior. So it is never blind: under a uniform truth the theorem of
    ``half-space`` holds with the same constant (docs/theory.md).
    """

    def _contrast(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        weights = np.maximum(self._public(posterior), _LEAST_PUBLIC_WEIGHT)
        weights = weights / sums_in_order(weights)
        return turn_contrast(self._plane(coins, candidates), candidates, weights, _TURNS)
