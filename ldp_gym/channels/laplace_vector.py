"""Algorithm 1's channel: all K clipped log-likelihoods, each with Laplace noise."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ldp_gym import theory
from ldp_gym.arrays import FloatArray, IntArray, Messages, at, masses
from ldp_gym.channels.base import CHANNELS
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.sampling import laplace


@CHANNELS.register("laplace-vector")
class LaplaceVector(ClippedChannel):
    """``Ytilde_t`` of eq. (tildey): the losses of all hypotheses. Needs delta > 0.

    Privacy: each coordinate alone is eps'-private; advanced composition over the K of them makes the vector
    (eps, delta)-private (Lemma ldpfortildey). ``h_t(y)`` is drawn once and shared by all coordinates: the
    vector is a post-processing of it, so the conclusion holds.
    """

    pure: ClassVar[bool] = False

    @property
    def num_uniforms(self) -> int:
        """Two for h_t, and one for each coordinate's noise."""
        return 2 + self.num_hypotheses

    def _noise_scale(self) -> float:
        return theory.vector_noise_scale(self.num_hypotheses, self.horizon, self.epsilon, self.delta)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        cells = self.clipping.cells(candidates)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        mass = masses(candidates, clipped)
        density = self.clipping.density(mass, at(cells.lengths, clipped)[..., None], cells.total)
        return self.reveal(np.log(density), self.noise_scale * laplace(uniforms[..., 2:]))

    def _log_kernel(self, messages: Messages, levels: FloatArray) -> FloatArray:
        revealed = self.conceal(messages)
        kernel = np.zeros((*messages.shape[:-1], self.num_labels))
        # Coordinate by coordinate, so that no batch of (K, M) arrays is built for a constant class.
        for j in range(self.num_hypotheses):
            kernel -= np.abs(levels[..., j, :] - revealed[..., j, None])
        kernel /= self.noise_scale
        return kernel

    def _log_norm(self) -> float:
        return -self.num_hypotheses * math.log(2.0 * self.noise_scale * self.slope)
