"""All K clipped log-likelihoods with Laplace or Gaussian noise: Algorithm 1's channel, and its rival."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ldp_gym.channels import accounting
from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.base import Public
from ldp_gym.channels.clipped import GAUSS, LAPLACE, NoiseLaw, NoisyChannel
from ldp_gym.channels.clipping import Cells
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at, masses


class VectorChannel(NoisyChannel):
    """The losses of all hypotheses, each with independent noise. Needs delta > 0.

    ``h_t(y)`` is drawn once and shared by all coordinates, so what hides ``h_t(y)`` hides y.
    """

    pure: ClassVar[bool] = False

    @property
    def num_uniforms(self) -> int:
        """Two for h_t, and one for each coordinate's noise."""
        return 2 + self.num_hypotheses

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Public = None
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
        noise = self.noise(candidates, cells)
        revealed = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None]) / noise.scale
        levels = self._levels(candidates, cells) / noise.scale[..., None]
        for j in range(self.num_hypotheses):
            yield levels[..., j, :] - revealed[..., j, None]

    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        kernel, noise = np.zeros((*messages.shape[:-1], self.num_labels)), self.noise(candidates, cells)
        for distances in self.distances(messages, candidates, cells):
            kernel += self.law.log_kernel(distances)
        log_norm = self.law.log_norm - np.log(noise.scale * noise.slope[..., None])
        return kernel, np.broadcast_to(log_norm.sum(axis=-1), messages.shape[:-1])

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """The noisy log-likelihoods themselves, without the public offset."""
        noise = self.noise(candidates)
        return -self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])

    def loss_variance(self, candidates: FloatArray) -> FloatArray:
        return self._coordinate_variance(candidates).mean(axis=-1)

    @abstractmethod
    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """The least delta of the noise when coordinates move by ``shifts`` ``(K,)``, in their scales."""

    def delta_bounds(self, candidates: FloatArray, epsilon: float, posterior: Public = None) -> DeltaBounds:
        """Bounds on the least delta, from the noise's own accounting.

        Above: no two labels move a coordinate by more than its range, and mixing by h_t only helps. Below:
        two labels that are far apart, and the event S on which their kernels P and P' differ most. Mixed
        with a share mu = 1/T of the average A over all cells, they differ by at least
        ``(1 - mu) delta - (e^eps - 1) mu A(S)``, and ``A(S) <= P(S) + delta'`` with delta' the bound above.
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
    """The log-likelihoods of all hypotheses, each with Laplace noise (Algorithm 1, eq. (8)); needs delta > 0.

    Every coordinate gets independent noise of scale
    ``(2 sqrt(2K ln(1/delta)) + sqrt(K eps)) log(KT) / eps``; with ``calibration="tight"`` the composition is
    accounted numerically, from the range that each coordinate really has.

    Example:
        K = 3, T = 100, eps = 1, delta = 1e-5; pure composition would need ``3 log 300 = 17``.

        >>> table = np.full((3, 3), 1 / 3)
        >>> LaplaceVector(3, 3, 100, delta=1e-5).noise(table).scale.round(1).tolist()
        [104.7, 104.7, 104.7]

    Privacy: each coordinate has range at most ``log(KT)``, and advanced composition over the K of them makes
    the vector (eps, delta)-private (Lemma 3).

    When to use it: to reproduce the paper. When not: K below about 100 with the paper's scale, which is
    larger than that of pure composition; pass ``calibration="tight"``, 3 to 4 times less noise.
    """

    law: ClassVar[NoiseLaw] = LAPLACE

    def _unit_scale(self) -> float:
        return accounting.laplace_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _paper_scale(self) -> float:
        return accounting.vector_noise_scale(self.num_hypotheses, self.horizon, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        return accounting.laplace_delta(shifts, epsilon)


class GaussianVector(VectorChannel):
    """The log-likelihoods of all hypotheses, each with Gaussian noise; needs delta > 0.

    As :class:`LaplaceVector`, with normal noise: scaled to ranges of 1, K coordinates move by at most sqrt(K)
    in Euclidean norm, which the analytic Gaussian mechanism (Balle and Wang 2018) hides.

    Example:
        K = 3, T = 100, eps = 1, delta = 1e-5: a standard deviation of 37 in log-likelihood units.

        >>> GaussianVector(3, 3, 100, delta=1e-5).noise(np.full((3, 3), 1 / 3)).scale.round(1).tolist()
        [36.9, 36.9, 36.9]

    Privacy: with shift s in units of the standard deviation, delta is
    ``Phi(s/2 - eps/s) - e^eps Phi(-s/2 - eps/s)``; the scale solves this for ``s = sqrt(K)`` ranges.

    When to use it: learners that average messages, such as WMA, and K of 8 or more. When not: Bayes does as
    well on Laplace noise, whose density has a sharper peak.
    """

    law: ClassVar[NoiseLaw] = GAUSS

    def _unit_scale(self) -> float:
        return accounting.gaussian_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        delta = accounting.gaussian_delta(float(np.sqrt(np.square(shifts).sum())), epsilon)
        return DeltaBounds(delta, delta)


def _far_apart(levels: FloatArray) -> FloatArray:
    """Shifts of all coordinates between the two farthest labels, among those extreme in a coordinate."""
    extreme = levels[:, np.unique([levels.argmax(axis=-1), levels.argmin(axis=-1)])]
    shifts = np.abs(extreme[:, :, None] - extreme[:, None, :]).reshape(len(levels), -1)
    return shifts[:, np.square(shifts).sum(axis=0).argmax()]
