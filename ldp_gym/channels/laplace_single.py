"""Algorithm 2's channel: one random coordinate of the clipped log-likelihoods, with Laplace noise."""

from __future__ import annotations

import math

import numpy as np

from ldp_gym import theory
from ldp_gym.arrays import FloatArray, IntArray, Messages, at
from ldp_gym.channels.base import CHANNELS
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.sampling import integers, laplace


@CHANNELS.register("laplace-single")
class LaplaceSingle(ClippedChannel):
    """``Z_{t,J}`` of eq. (tildeypdp): the loss of a uniformly random hypothesis J, and 0 elsewhere. Pure.

    Privacy: J does not depend on the label; the revealed log-likelihood has range at most ``log(KT)``,
    eq. (clipping), so Laplace noise of scale ``log(KT) / eps`` hides it (Lemma pldpfortildey).

    The base measure of :meth:`log_density` counts coordinates and takes Lebesgue's within one.
    """

    num_uniforms = 4  # two for h_t, the coordinate, the noise

    def _noise_scale(self) -> float:
        return theory.single_noise_scale(self.num_hypotheses, self.horizon, self.epsilon)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        cells = self.clipping.cells(candidates)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        coordinate = integers(self.num_hypotheses, uniforms[..., 2])
        mass = at(candidates, coordinate, clipped)
        density = self.clipping.density(mass, at(cells.lengths, clipped), cells.total[..., 0])
        loss = self.reveal(np.log(density), self.noise_scale * laplace(uniforms[..., 3]))
        messages = np.zeros((*labels.shape, self.num_hypotheses))
        np.put_along_axis(messages, coordinate[..., None], loss[..., None], axis=-1)
        return messages

    def _log_kernel(self, messages: Messages, levels: FloatArray) -> FloatArray:
        coordinate = (messages != 0.0).argmax(axis=-1)
        revealed = self.conceal(at(messages, coordinate))[..., None]
        kernel: FloatArray = at(levels, coordinate, slice(None)) - revealed
        np.abs(kernel, out=kernel)
        kernel /= -self.noise_scale
        return kernel

    def _log_norm(self) -> float:
        return -math.log(self.num_hypotheses) - math.log(2.0 * self.noise_scale * self.slope)
