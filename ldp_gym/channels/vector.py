"""All K clipped log-likelihoods with Laplace or Gaussian noise: Algorithm 1's channel, and its rival."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ldp_gym.channels import accounting
from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.clipping import Cells
from ldp_gym.channels.noisy import GAUSS, LAPLACE, NoiseLaw, NoisyChannel
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at, masses

_CELLS = 2**14
"""How many distances are worked out at a time: 128 KiB."""


class VectorChannel(NoisyChannel):
    """The losses of all hypotheses, each with noise of its own. Needs delta > 0.

    ``h_t(y)`` is drawn once and shared by all coordinates: a message is a randomization of it, so what hides
    ``h_t(y)`` hides y.
    """

    pure: ClassVar[bool] = False

    @property
    def num_uniforms(self) -> int:
        """Two for h_t, and one for each coordinate's noise."""
        return 2 + self.num_hypotheses

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        labels, uniforms = self._align(labels, candidates, uniforms)
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        lengths = at(cells.lengths, clipped)[..., None]
        density = self.clipping.density(masses(candidates, clipped), lengths, cells.total)
        noisy = np.log(density) + noise.scale * self.law.draw(uniforms[..., 2:])
        return self.to_loss(noisy, noise.offset[..., None], noise.slope[..., None])

    def distances(self, messages: Messages, candidates: FloatArray, cells: Cells) -> Iterator[FloatArray]:
        for block in self._distance_blocks(messages, candidates, cells):
            yield from np.moveaxis(block, -2, 0)

    def _distance_blocks(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """The distances of a few coordinates at a time, ``(..., J, M)``, so that they stay in the cache."""
        noise = self.noise(candidates, cells)
        revealed = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None]) / noise.scale
        levels = self._levels(candidates, cells) / noise.scale[..., None]
        few = max(1, _CELLS // max(1, revealed[..., 0].size * self.num_labels))
        for start in range(0, self.num_hypotheses, few):
            now = slice(start, start + few)
            yield levels[..., now, :] - revealed[..., now, None]

    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        kernel, noise = np.zeros((*messages.shape[:-1], self.num_labels)), self.noise(candidates, cells)
        for distances in self._distance_blocks(messages, candidates, cells):
            log_kernels = self.law.log_kernel(distances)
            # Summed up in the order of the coordinates, so that the last bit does not depend on the blocks.
            log_kernels[..., 0, :] += kernel
            np.add.reduce(log_kernels, axis=-2, out=kernel)
        log_norm = self.law.log_norm - np.log(noise.scale * noise.slope[..., None])
        return kernel, np.broadcast_to(log_norm.sum(axis=-1), messages.shape[:-1])

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The noisy log-likelihoods themselves, without the public offset."""
        noise = self.noise(candidates)
        return -self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])

    def loss_variance(self, candidates: FloatArray) -> FloatArray:
        return self._coordinate_variance(candidates).mean(axis=-1)

    @abstractmethod
    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """The least delta of the noise when coordinates move by ``shifts`` ``(K,)``, in their scales."""

    def delta_bounds(
        self, candidates: FloatArray, epsilon: float, posterior: FloatArray | None = None
    ) -> DeltaBounds:
        """Bounds on the least delta, from the noise's own accounting.

        Above: no two labels move a coordinate by more than its range, and mixing by h_t only helps. Below:
        two labels that are far apart, and the event S on which their kernels P and P' differ most. Mixed
        with a share mu = 1/T of the average A over all cells, they differ by at least
        ``(1 - mu) delta - (e^eps - 1) mu A(S)``. With delta' the bound from above, any kernel has
        ``P''(S) <= e^eps P'(S) + delta'``, and ``e^eps P' <= P`` on S, so that ``A(S) <= P(S) + delta'``.
        """
        cells = self.clipping.cells(candidates)
        levels = self._levels(candidates, cells)[:, cells.lengths > 0.0]
        levels = levels / self.noise(candidates, cells).scale[:, None]
        upper = self._delta(np.ptp(levels, axis=-1), epsilon).upper
        shifts = _far_apart(levels)
        mixing, gain = self.clipping.mixing, np.expm1(min(epsilon, 700.0))
        # delta(e) >= (1 - e^(e - eps)) P(S) for every e below eps.
        levels_below = (0.5 * epsilon, 0.9 * epsilon)
        tails = [self._delta(shifts, e).upper / -np.expm1(e - epsilon) for e in levels_below]
        average = min(1.0, min(tails) + upper)
        lower = (1.0 - mixing) * self._delta(shifts, epsilon).lower - gain * mixing * average
        return DeltaBounds(max(0.0, float(lower)), upper)


class LaplaceVector(VectorChannel):
    """The log-likelihood of every hypothesis, with Laplace noise (Algorithm 1, eq. (8)); needs delta > 0.

    Privacy: each coordinate alone is eps'-private; advanced composition over the K of them makes the vector
    (eps, delta)-private (Lemma 3). With ``calibration="tight"`` the composition is accounted
    numerically, and is never worse than the pure one: 3 to 4 times less noise.
    """

    law: ClassVar[NoiseLaw] = LAPLACE

    def _unit_scale(self) -> float:
        return accounting.laplace_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _paper_scale(self) -> float:
        return accounting.vector_noise_scale(self.num_hypotheses, self.horizon, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        return accounting.laplace_delta(shifts, epsilon)


class GaussianVector(VectorChannel):
    """The log-likelihood of every hypothesis, each with Gaussian noise; needs delta > 0.

    Privacy: K coordinates, each scaled to its range, move by at most sqrt(K) in Euclidean norm between two
    labels; the analytic Gaussian mechanism (Balle and Wang 2018) hides that with the least variance.

    Use it for learners that average messages, such as WMA, and K of 8 or more: at eps = 1 its noise has a
    smaller standard deviation than that of ``laplace-vector``. The exact posterior does as well on Laplace
    noise, whose density has a sharper peak.
    """

    law: ClassVar[NoiseLaw] = GAUSS

    def _unit_scale(self) -> float:
        return accounting.gaussian_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        delta = accounting.gaussian_delta(float(np.sqrt(np.square(shifts).sum())), epsilon)
        return DeltaBounds(delta, delta)


def _far_apart(levels: FloatArray) -> FloatArray:
    """By how much the two labels that are farthest apart move each coordinate, among those extreme in one."""
    extreme = levels[:, np.unique([levels.argmax(axis=-1), levels.argmin(axis=-1)])]
    shifts = np.abs(extreme[:, :, None] - extreme[:, None, :]).reshape(len(levels), -1)
    return shifts[:, np.square(shifts).sum(axis=0).argmax()]
