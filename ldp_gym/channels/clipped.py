"""Base of the channels that reveal clipped log-likelihoods."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Channel, Public
from ldp_gym.channels.clipping import Cells, Clipping
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    at,
    expectations,
    has_zero,
    per_table,
)
from ldp_gym.core.sampling import integers

NEGLIGIBLE = 1e-5
"""Largest range (on one-bit half of it), in nats, that counts as zero: scaling would show rounding errors."""


class ClippedChannel(Channel):
    """A channel that reveals a noisy ``log pbar_j[h_t(y)]`` of one or all of the K hypotheses, as a loss.

    The other arguments are those of every :class:`Channel`.

    Args:
        clipping: ``"continuous"``, or ``"paper"`` with its ceilings, which breaks the promise.
    """

    reveals_losses: ClassVar[bool] = True

    def __init__(self, *sizes: int, clipping: str = "continuous", **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.clipping = Clipping(self.horizon, clipping)

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages, ``R^K``: a loss for each hypothesis."""
        return gym.spaces.Box(-np.inf, np.inf, (self.num_hypotheses,), dtype=np.float64)

    @abstractmethod
    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        """``log q(z | h_t(y) = y')`` as a sum: a term per y' (-inf where h_t never goes), a shared term."""

    @per_table
    def ranges(self, candidates: FloatArray, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """The least and the largest ``log pbar_j`` over the labels that h_t reaches, ``(..., K)`` each."""
        lengths = cells.lengths[..., None, :]
        return range_of(self.clipping.density(candidates, lengths, cells.total[..., None]), lengths)

    def _align(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Labels and uniforms, broadcast to the leading axes of labels, candidates and uniforms."""
        labels = np.asarray(labels)
        shape = np.broadcast_shapes(labels.shape, uniforms.shape[:-1], candidates.shape[:-2])
        return np.broadcast_to(labels, shape), np.broadcast_to(
            uniforms, (*shape, uniforms.shape[-1])
        )

    def _one_level(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, cells: Cells
    ) -> tuple[IntArray, FloatArray]:
        """A random coordinate J and ``log pbar_J[h_t(y)]`` of each label, from three uniforms each."""
        labels, uniforms = self._align(labels, candidates, uniforms)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        coordinate = integers(self.num_hypotheses, uniforms[..., 2])
        mass = at(candidates, coordinate, clipped)
        density = self.clipping.density(mass, at(cells.lengths, clipped), cells.total[..., 0])
        return coordinate, np.log(density)

    def _levels(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """``log pbar_j[y]``, ``(..., K, M)``; +inf where h_t never goes, so that its kernel is 0."""
        return self._levels_of(candidates, cells.lengths[..., None, :], cells.total[..., None])

    def _levels_of(self, masses: FloatArray, lengths: FloatArray, total: FloatArray) -> FloatArray:
        """``log pbar_j[y]`` of the given masses ``f_j[y]``; +inf where h_t never goes."""
        return np.where(
            lengths > 0.0, np.log(self.clipping.density(masses, lengths, total)), np.inf
        )

    def _kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        """``q(z | h_t(y) = y')`` as ``(density, log_scale)``: shapes ``(..., M)`` and ``(..., 1)``."""
        log_kernel, log_norm = self._log_kernel(messages, candidates, cells)
        peak = log_kernel.max(axis=-1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)  # a message that no label sends
        log_kernel -= peak
        return np.exp(log_kernel, out=log_kernel), peak + log_norm[..., None]

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.log_density`; the base measure is Lebesgue's in the revealed coordinates.

        A label keeps its own kernel with probability 1 - 1/T (0 if it has no cell), else takes the
        average.
        """
        cells = self.clipping.cells(candidates)
        kernel, log_scale = self._kernel(messages, candidates, cells)
        average = np.einsum("...m,...m->...", kernel, cells.shares)[..., None]
        own = np.where(cells.lengths > 0.0, 1.0 - self.clipping.mixing, 0.0)
        kernel *= own
        kernel += (1.0 - own) * average
        with np.errstate(divide="ignore"):
            np.log(kernel, out=kernel)
        kernel += log_scale
        return kernel

    def unbiased_losses(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.unbiased_losses`: the loss estimates, without the part that h_t adds.

        :meth:`loss_estimates` are unbiased for ``-log pbar_k(h_t(y))``, and with probability 1/T
        h_t replaces the label's loss by the average over all cells, which is public.
        """
        estimates, mixing = (
            self.loss_estimates(messages, candidates, posterior),
            self.clipping.mixing,
        )
        losses = self.clipping.label_losses(candidates)
        average = np.einsum("...km,...m->...k", losses, self.clipping.cells(candidates).shares)
        return (estimates - mixing * average) / (1.0 - mixing)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.log_likelihood`; the kernels mixed by the laws of ``h_t(y)``."""
        kernel, log_scale = self._kernel(messages, candidates, self.clipping.cells(candidates))
        likelihood = expectations(self.clipping.smooth_candidates(candidates), kernel)
        with np.errstate(divide="ignore"):
            np.log(likelihood, out=likelihood)
        likelihood += log_scale
        return likelihood


def range_of(density: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest logarithm of densities ``(..., M)`` on the cells that have a length."""
    lowest = np.where(lengths > 0.0, density, np.inf) if has_zero(lengths) else density
    # A cell without a length has the least density there is, so it is never the largest.
    return np.log(np.minimum.reduce(lowest, axis=-1)), np.log(np.maximum.reduce(density, axis=-1))


def mark_revealed(losses: FloatArray) -> FloatArray:
    """Replace losses of exactly 0, which means "not revealed", by the smallest normal float."""
    return np.where(losses == 0.0, np.finfo(np.float64).tiny, losses)


def reveals_one(messages: Messages) -> BoolArray:
    """Mask ``(...)`` of messages that reveal exactly one coordinate."""
    return np.count_nonzero(messages, axis=-1) == 1


def revealed_coordinate(messages: Messages) -> IntArray:
    """The coordinate that each message reveals, on channels that reveal one."""
    return (messages != 0.0).argmax(axis=-1)


def importance_weighted_losses(
    messages: Messages, revealed: FloatArray, lowest: FloatArray, highest: FloatArray
) -> FloatArray:
    """Unbiased losses ``(..., K)``: minus each range's centre, and K times the revealed deviation from it."""
    shown, centre = messages != 0.0, (lowest + highest) / 2.0
    return -centre - messages.shape[-1] * np.where(shown, revealed - centre, 0.0)
