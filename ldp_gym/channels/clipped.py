"""What the channels that reveal clipped log-likelihoods share: h_t, the noise's scale, and the density."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym import validation
from ldp_gym.arrays import FloatArray, IntArray, Messages
from ldp_gym.channels.base import Channel
from ldp_gym.channels.noise import NoiseLaw
from ldp_gym.clipping import Cells, Clipping

CALIBRATIONS = ("paper", "tight")

_NEGLIGIBLE = 1e-5
"""A range, in nats, so small that the rounding of log-likelihoods would show in noise of its size."""


class Noise(NamedTuple):
    """How a round's log-likelihoods turn into losses: all of it public.

    Attributes:
        scale: the noise scale b_j of each coordinate, in log-likelihood units, ``(..., K)``.
        offset: ``c'``, ``(...)``.
        slope: ``c = 1 / (log(KT) + 2 c')``, ``(...)``.
    """

    scale: FloatArray
    offset: FloatArray
    slope: FloatArray


class ClippedChannel(Channel):
    """A noisy, affine image of ``log pbar_j[h_t(y)]`` in one or all of the K coordinates.

    A message is ``-c (log pbar_j[h_t(y)] + noise + log M - c')``, eqs. (tildey) and (tildeypdp).

    Args:
        num_hypotheses: K.
        num_labels: M.
        horizon: T.
        epsilon: the privacy level.
        delta: see the channel.
        clipping: ``"continuous"``, or ``"paper"`` with its ceilings, which breaks the promise.
        calibration: ``"paper"``: noise for log-likelihoods of range ``log(KT)``, whatever the context;
            ``"tight"``: for the public range ``D_j(x_t) = max_y log pbar_j - min_y log pbar_j`` of each
            coordinate, which is never larger. The offset stays common to all coordinates, from the largest
            scale: otherwise the truth need not have the least expected loss.
        gamma: sets the offset c', within which all noise of an episode stays with probability 1 - e^-gamma;
            log T when not given.
    """

    reveals_losses: ClassVar[bool] = True
    law: ClassVar[NoiseLaw]

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        clipping: str = "continuous",
        calibration: str = "paper",
        gamma: float | None = None,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta)
        if calibration not in CALIBRATIONS:
            raise ValueError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {calibration!r}")
        self.calibration = calibration
        self.clipping = Clipping(self.horizon, clipping)
        self.log_kt = math.log(self.num_hypotheses) + math.log(self.horizon)
        gamma = math.log(self.horizon) if gamma is None else validation.positive("gamma", gamma)
        self._reach = self.law.reach(gamma + self.log_kt)
        # Worked out once: the accounting takes a moment, and a step must not pay for it.
        scale = self._paper_scale() if calibration == "paper" else self._unit_scale()
        self._scale = np.full(self.num_hypotheses, scale)
        if not 0.0 < 1.0 / (self.log_kt + 2.0 * self._reach * scale) < np.inf:
            raise ValueError(f"{self!r} would need noise beyond the floats, of scale {scale}: raise epsilon")

    @property
    def message_space(self) -> gym.spaces.Box:
        """``R^K``: a loss for each hypothesis."""
        return gym.spaces.Box(-np.inf, np.inf, (self.num_hypotheses,), dtype=np.float64)

    @abstractmethod
    def _unit_scale(self) -> float:
        """The noise scale that hides coordinates of range 1."""

    def _paper_scale(self) -> float:
        """The noise scale that hides coordinates of range ``log(KT)``, eq. (clipping)."""
        return self._unit_scale() * self.log_kt

    @abstractmethod
    def _log_kernel(
        self, messages: Messages, levels: FloatArray, noise: Noise
    ) -> tuple[FloatArray, FloatArray]:
        """``log q(z | h_t(y) = y')`` from :meth:`_levels`: what depends on y', ``(..., M)``, and the rest."""

    def noise(self, candidates: FloatArray, cells: Cells | None = None) -> Noise:
        """The public noise scales, offset and slope at these candidates."""
        scale = self._scale
        if self.calibration == "tight":
            ranges = self.ranges(candidates, cells or self.clipping.cells(candidates))
            # A coordinate of no range carries no label: at unit scale the rounding of its levels, of which
            # a tiny range consists, is hidden too.
            scale = scale * ranges
            scale = np.where(ranges > _NEGLIGIBLE, scale, np.maximum(scale, 1.0))
        offset = self._reach * scale.max(axis=-1)
        return Noise(scale, offset, 1.0 / (self.log_kt + 2.0 * offset))

    def ranges(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """``D_j = max_y log pbar_j - min_y log pbar_j`` over the labels that h_t reaches, ``(..., K)``."""
        lengths = cells.lengths[..., None, :]
        density = self.clipping.density(candidates, lengths, cells.total[..., None])
        highest = np.maximum.reduce(density, axis=-1, where=lengths > 0.0, initial=0.0)
        lowest = np.minimum.reduce(density, axis=-1, where=lengths > 0.0, initial=np.inf)
        return np.log(highest / lowest)

    def aligned(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Labels and uniforms with all leading axes of the three."""
        labels = np.asarray(labels)
        shape = np.broadcast_shapes(labels.shape, uniforms.shape[:-1], candidates.shape[:-2])
        return np.broadcast_to(labels, shape), np.broadcast_to(uniforms, (*shape, uniforms.shape[-1]))

    def reveal(self, log_likelihood: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """The loss that a noisy log-likelihood turns into, eq. (tildey)."""
        losses = -slope * (log_likelihood + (np.log(self.num_labels) - offset))
        # An exact zero would read as "none yet".
        return np.where(losses == 0.0, np.finfo(np.float64).tiny, losses)

    def conceal(self, losses: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """The inverse of :meth:`reveal`: the noisy log-likelihood that a loss stands for."""
        return offset - np.log(self.num_labels) - losses / slope

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
        levels, noise = self._levels(candidates, cells), self.noise(candidates, cells)
        log_kernel, log_norm = self._log_kernel(messages, levels, noise)
        peak = log_kernel.max(axis=-1, keepdims=True)
        kernel = np.exp(log_kernel - peak)
        average = np.einsum("...m,...m->...", kernel, cells.shares)[..., None]
        own = np.where(cells.lengths > 0.0, 1.0 - self.clipping.mixing, 0.0)
        return own * kernel + (1.0 - own) * average, peak + log_norm[..., None]

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
