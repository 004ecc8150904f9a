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
    """A contrast of the likely hypotheses: does it favour the label?

    The contrast of ``half-space`` is turned three times. A step takes the labels on the positive side, and
    replaces each coefficient by how far the hypothesis' probability of them is above the mean, times its
    public weight. The user answers as there, with flip probability ``1 / (e^eps + 1)``.

    Example:
        K = 3, posterior (0.6, 0.25, 0.15). The contrast (1, -1, 0) has label 0 on its positive side, with
        probabilities (0.6, 0.3, 0.1), 0.45 on average. A step turns it to (1, -0.42, -0.58), which has
        label 1 on that side too: the answers (0.9, 0.7, 0.2) tell the likely hypotheses apart better.

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> contrast, posterior = np.array([1.0, -1.0, 0.0]), np.array([0.6, 0.25, 0.15])
        >>> turn_contrast(contrast, table, posterior, steps=1).round(2).tolist()
        [1.0, -0.42, -0.58]

    Privacy: the contrast depends on public things only. Given the contrast, the answer is that of
    ``half-space``: its ratio for two labels is at most ``e^eps``.

    When to use it: users can wait for each other; the first choice up to about eps = 1. It is never blind: no
    step lowers the variance of the true answer under the public posterior, so under a uniform truth the
    theorem of ``half-space`` holds with the same constant (docs/theory.md). When not: at eps of 2 and more
    ``adaptive-groups`` says more per message.
    """

    def _contrast(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        weights = np.maximum(self._public(posterior), _LEAST_PUBLIC_WEIGHT)
        weights = weights / sums_in_order(weights)
        return turn_contrast(self._plane(coins, candidates), candidates, weights, _TURNS)
