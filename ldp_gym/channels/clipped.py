"""What the channels that reveal clipped log-likelihoods share: h_t, and the mixture it makes of a density."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym import theory
from ldp_gym.arrays import FloatArray, Messages
from ldp_gym.channels.base import Channel
from ldp_gym.clipping import Cells, Clipping


class ClippedChannel(Channel):
    """A noisy, affine image of ``log pbar_j[h_t(y)]`` in one or all of the K coordinates.

    A message is ``-c (log pbar_j[h_t(y)] + noise + log M - c')``, eqs. (tildey) and (tildeypdp).

    Args:
        num_hypotheses: K.
        num_labels: M.
        horizon: T.
        epsilon: the privacy level.
        delta: see the channel.
        clipping: ``"continuous"``, or ``"paper"`` with its ceilings, which is not quite eps-private.
        gamma: sets the range ``c'`` within which the noise stays in all rounds with probability
            1 - e^-gamma; log T when not given.

    Attributes:
        noise_scale: the Laplace scale b, in log-likelihood units.
        offset: ``c'``.
        slope: ``c = 1 / (log(KT) + 2 c')``.
    """

    reveals_losses: ClassVar[bool] = True
    noise_scale: float

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        clipping: str = "continuous",
        gamma: float | None = None,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta)
        self.clipping = Clipping(self.horizon, clipping)
        self.noise_scale = self._noise_scale()
        self.offset = theory.offset(self.num_hypotheses, self.horizon, self.noise_scale, gamma)
        self.slope = 1.0 / (np.log(self.num_hypotheses) + np.log(self.horizon) + 2.0 * self.offset)

    @property
    def message_space(self) -> gym.spaces.Box:
        """``R^K``: a loss for each hypothesis."""
        return gym.spaces.Box(-np.inf, np.inf, (self.num_hypotheses,), dtype=np.float64)

    @abstractmethod
    def _noise_scale(self) -> float:
        """The Laplace scale b."""

    @abstractmethod
    def _log_kernel(self, messages: Messages, levels: FloatArray) -> FloatArray:
        """``log q(z | h_t(y) = y')`` up to :meth:`_log_norm`, ``(..., M)``, from :meth:`_levels`."""

    @abstractmethod
    def _log_norm(self) -> float:
        """The constant that :meth:`_log_kernel` leaves out."""

    def reveal(self, log_density: FloatArray, noise: FloatArray) -> FloatArray:
        """The loss that a clipped log-likelihood and its noise turn into, eq. (tildey)."""
        losses = -self.slope * (log_density + noise + np.log(self.num_labels) - self.offset)
        # An exact zero would read as "none yet".
        return np.where(losses == 0.0, np.finfo(np.float64).tiny, losses)

    def conceal(self, losses: FloatArray) -> FloatArray:
        """The inverse of :meth:`reveal`: the noisy log-likelihood that a loss stands for."""
        return self.offset - np.log(self.num_labels) - losses / self.slope

    def _levels(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """``log pbar_j[y]``, ``(..., K, M)``; +inf where h_t never goes, so that its kernel is 0."""
        lengths = cells.lengths[..., None, :]
        levels = np.log(self.clipping.density(candidates, lengths, cells.total[..., None]))
        return np.where(lengths > 0.0, levels, np.inf)

    def _density(self, messages: Messages, candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``q(z | y)`` as ``(density, log_scale)``: shapes ``(..., M)`` and ``(..., 1)``.

        h_t mixes the kernels: label y keeps its own with probability 1 - 1/T, and else takes the average of
        all by their cells' share; a label without a cell always takes the average.
        """
        cells = self.clipping.cells(candidates)
        log_kernel = self._log_kernel(messages, self._levels(candidates, cells))
        peak = log_kernel.max(axis=-1, keepdims=True)
        kernel = np.exp(log_kernel - peak)
        average = np.einsum("...m,...m->...", kernel, cells.shares)[..., None]
        own = np.where(cells.lengths > 0.0, 1.0 - self.clipping.mixing, 0.0)
        return own * kernel + (1.0 - own) * average, peak + self._log_norm()

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """See :meth:`Channel.log_density`; the base measure is Lebesgue's in the revealed coordinates."""
        density, log_scale = self._density(messages, candidates)
        return np.log(density) + log_scale

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """See :meth:`Channel.log_likelihood`; the mixing keeps every density within reach of floats."""
        density, log_scale = self._density(messages, candidates)
        likelihood = np.log(np.einsum("...km,...m->...k", candidates, density)) + log_scale
        return np.where(self.is_none(messages)[..., None], 0.0, likelihood)
