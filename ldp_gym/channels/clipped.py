"""Base of the channels that reveal clipped log-likelihoods."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

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
"""Largest range in nats that counts as zero: scaled up, it would show rounding errors."""


class Kernel(NamedTuple):
    """Density of messages given the clipped label, ``q(z | h_t(y) = y')``, as a product.

    Attributes:
        density: a factor per label y', ``(..., M)``; 0 for labels that h_t never reaches.
        log_scale: logarithm of a factor that all labels share, ``(..., 1)``.
    """

    density: FloatArray
    log_scale: FloatArray


class LogKernel(NamedTuple):
    """Log density of messages given the clipped label, ``log q(z | h_t(y) = y')``, as a sum.

    Attributes:
        terms: a term per label y', ``(..., M)``; -inf for labels that h_t never reaches.
        log_norm: a term that all labels share, ``(...)``.
    """

    terms: FloatArray
    log_norm: FloatArray


class Ranges(NamedTuple):
    """Least and largest ``log pbar_j`` over the labels that h_t reaches, ``(..., K)`` each."""

    lowest: FloatArray
    highest: FloatArray


class ClippedChannel(Channel):
    """Base of the channels that reveal noisy log-likelihoods ``log pbar_j[h_t(y)]``, as losses.

    A message has the loss of one hypothesis, or those of all. The other arguments are those of
    every :class:`Channel`.

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
    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""

    @per_table
    def ranges(self, candidates: FloatArray, cells: Cells) -> Ranges:
        """Return the ranges of the log-likelihoods ``log pbar_j``."""
        lengths = cells.lengths[..., None, :]
        density = self.clipping.density(candidates, lengths, cells.total[..., None])
        return range_of(density, lengths)

    def _align(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Broadcast labels and uniforms to the leading axes of labels, candidates and uniforms."""
        labels = np.asarray(labels)
        shape = np.broadcast_shapes(labels.shape, uniforms.shape[:-1], candidates.shape[:-2])
        uniforms = np.broadcast_to(uniforms, (*shape, uniforms.shape[-1]))
        return np.broadcast_to(labels, shape), uniforms

    def _one_level(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, cells: Cells
    ) -> tuple[IntArray, FloatArray]:
        """Draw a coordinate J and ``log pbar_J[h_t(y)]`` for each label, from three uniforms."""
        labels, uniforms = self._align(labels, candidates, uniforms)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        coordinate = integers(self.num_hypotheses, uniforms[..., 2])
        mass = at(candidates, coordinate, clipped)
        density = self.clipping.density(mass, at(cells.lengths, clipped), cells.total[..., 0])
        return coordinate, np.log(density)

    def _levels(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """Return ``log pbar_j[y]``, ``(..., K, M)``; +inf for labels that h_t never reaches.

        Infinitely far from a message, they have a kernel of 0.
        """
        return self._levels_of(candidates, cells.lengths[..., None, :], cells.total[..., None])

    def _levels_of(self, masses: FloatArray, lengths: FloatArray, total: FloatArray) -> FloatArray:
        """Return ``log pbar_j[y]`` of masses ``f_j[y]``; +inf for labels that h_t never reaches."""
        log_density = np.log(self.clipping.density(masses, lengths, total))
        return np.where(lengths > 0.0, log_density, np.inf)

    def _kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> Kernel:
        """Return the density of messages given the clipped label; its largest factor is 1."""
        terms, log_norm = self._log_kernel(messages, candidates, cells)
        peak = terms.max(axis=-1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)  # not finite if no label sends the message
        terms -= peak
        return Kernel(np.exp(terms, out=terms), peak + log_norm[..., None])

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.log_density`; the base measure is Lebesgue's on what is revealed.

        A label keeps its own kernel with probability 1 - 1/T, or 0 if it has no cell; else it takes
        the average over the cells.
        """
        cells = self.clipping.cells(candidates)
        density, log_scale = self._kernel(messages, candidates, cells)
        average = np.einsum("...m,...m->...", density, cells.shares)[..., None]
        keeps_own = np.where(cells.lengths > 0.0, 1.0 - self.clipping.mixing, 0.0)
        density *= keeps_own
        density += (1.0 - keeps_own) * average

        with np.errstate(divide="ignore"):
            log_density = np.log(density, out=density)
        log_density += log_scale
        return log_density

    def unbiased_losses(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.unbiased_losses`: the loss estimates, without the part that h_t adds.

        :meth:`loss_estimates` are unbiased for ``-log pbar_k(h_t(y))``, and with probability 1/T
        h_t replaces the label's loss by the average over all cells, which is public.
        """
        estimates = self.loss_estimates(messages, candidates, posterior)
        losses = self.clipping.label_losses(candidates)
        shares = self.clipping.cells(candidates).shares
        average = np.einsum("...km,...m->...k", losses, shares)
        mixing = self.clipping.mixing
        return (estimates - mixing * average) / (1.0 - mixing)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.log_likelihood`; the kernel, averaged by the laws of ``h_t(y)``."""
        density, log_scale = self._kernel(messages, candidates, self.clipping.cells(candidates))
        likelihood = expectations(self.clipping.smooth_candidates(candidates), density)
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(likelihood, out=likelihood)
        log_likelihood += log_scale
        return log_likelihood


def range_of(density: FloatArray, lengths: FloatArray) -> Ranges:
    """Return the range of the logarithms of densities ``(..., M)`` on cells with a length."""
    reached = density
    if has_zero(lengths):
        reached = np.where(lengths > 0.0, density, np.inf)
    lowest = np.log(np.minimum.reduce(reached, axis=-1))
    # A cell without a length has the least density there is, so it is never the largest.
    highest = np.log(np.maximum.reduce(density, axis=-1))
    return Ranges(lowest, highest)


def mark_revealed(losses: FloatArray) -> FloatArray:
    """Replace losses of exactly 0, which means "not revealed", by the smallest normal float."""
    return np.where(losses == 0.0, np.finfo(np.float64).tiny, losses)


def reveals_one(messages: Messages) -> BoolArray:
    """Return a mask ``(...)`` of messages that reveal exactly one coordinate."""
    return np.count_nonzero(messages, axis=-1) == 1


def revealed_coordinate(messages: Messages) -> IntArray:
    """Return the only coordinate ``(...)`` that messages ``(..., K)`` reveal."""
    return (messages != 0.0).argmax(axis=-1)


def importance_weighted_losses(
    messages: Messages, revealed: FloatArray, ranges: Ranges
) -> FloatArray:
    """Return unbiased losses ``(..., K)`` from messages that reveal one coordinate of K.

    They are minus the centre of each range, and minus K times the revealed deviation from it.

    Args:
        messages: ``(..., K)``, 0 where nothing is revealed.
        revealed: log-likelihoods that the messages stand for, ``(..., K)``.
        ranges: public ranges of the log-likelihoods.
    """
    is_revealed = messages != 0.0
    centre = (ranges.lowest + ranges.highest) / 2.0
    deviation = np.where(is_revealed, revealed - centre, 0.0)
    return -centre - messages.shape[-1] * deviation
