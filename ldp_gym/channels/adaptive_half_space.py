"""A random half-space of the labels that is turned towards what the likely hypotheses differ in.

Let w be the public posterior, and ``V(S) = sum_k w_k (f_k(S) - f(S))^2`` with ``f = sum_k w_k f_k``: how much
the answers about a set S of labels differ. A step replaces S by the set S' of the labels y with
``sum_k w_k (f_k(S) - f(S)) f_k[y] > 0``, which maximises the covariance of ``f_k(S)`` and ``f_k(S')``. At S
the covariance is V(S), so it is at least that at S', and by Cauchy and Schwarz ``V(S') >= V(S)``. So the
steps keep what the half-space that they start from promises on average over the posterior (docs/theory.md).
"""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.adaptive import AdaptiveChannel
from ldp_gym.channels.half_space import HalfSpace, label_sides
from ldp_gym.core.arrays import FloatArray, sums_in_order

_STEPS = 3
"""Number of steps that turn the half-space."""

_UNLIKELY = 1e-12
"""Least public weight that a hypothesis is given."""


class AdaptiveHalfSpace(AdaptiveChannel, HalfSpace):
    """The side of a plane on which the label lies, where the likely hypotheses differ most.

    The plane is that of ``half-space``, turned by three steps, each of which raises the posterior variance of
    the true answer. Never blind: under a uniform truth the theorem of ``half-space`` holds with the same
    constant.
    """

    def _contrast(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        weights = np.maximum(self._public(posterior), _UNLIKELY)
        weights = weights / sums_in_order(weights)
        likeliest = weights.argmax(axis=-1)[..., None]
        contrast = super()._contrast(coins, candidates, posterior)
        for _ in range(_STEPS):
            sides = label_sides(contrast, candidates)
            answers = sums_in_order(candidates * sides[..., None, :])[..., 0]
            reference = np.broadcast_to(likeliest, (*answers.shape[:-1], 1))
            answers -= np.take_along_axis(answers, reference, axis=-1)  # small differences keep their digits
            mean = sums_in_order(weights * answers)
            turned = weights * (answers - mean)
            largest = np.abs(turned).max(axis=-1, keepdims=True)
            contrast = np.where(largest > 0.0, turned / np.where(largest > 0.0, largest, 1.0), contrast)
        return contrast
