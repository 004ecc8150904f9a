"""Softmax of linear scores: contexts matter."""

from __future__ import annotations

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.streams import Purpose, stream
from ldp_gym.hypotheses.base import HypothesisClass


class SoftmaxLinear(HypothesisClass):
    """``f_j(x) = softmax(W_j x)`` with standard normal weights ``W_j``: contexts matter.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d.
        class_seed: the seed of the weights.
        scale: the standard deviation of the weights; larger values give sharper distributions.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        num_labels: int = 16,
        context_dim: int = 4,
        class_seed: int = 0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, context_dim)
        shape = (self.num_hypotheses, self.num_labels, self.context_dim)
        validation.fits_memory("context_dim", shape[2], shape[0] * shape[1], "the weights")
        scale = validation.positive("scale", scale, most=1e100)
        rng = stream(Purpose.CLASS, validation.seed("class_seed", class_seed))
        self.weights = scale * rng.standard_normal(shape)
        self.weights.flags.writeable = False

    def __call__(self, contexts: FloatArray) -> FloatArray:
        # einsum, not a BLAS product: its sums do not depend on the batch's shape, so neither do labels.
        candidates: FloatArray = np.einsum("...d,kmd->...km", contexts, self.weights)
        candidates -= candidates.max(axis=-1, keepdims=True)
        np.exp(candidates, out=candidates)
        candidates /= np.add.reduce(candidates, axis=-1, keepdims=True)
        return candidates
