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


class DrawnCoordinate(NamedTuple):
    """One random coordinate of a label's clipped log-likelihoods.

    Attributes:
        coordinate: the hypothesis J, ``(...)``.
        log_likelihood: ``log pbar_J[h_t(y)]``, ``(...)``.
    """

    coordinate: IntArray
    log_likelihood: FloatArray


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
        """Return the least and the largest ``log pbar_j`` of each hypothesis, ``(..., K)`` each."""
        lengths = cells.lengths[..., None, :]
        density = self.clipping.density(candidates, lengths, cells.total[..., None])
        return range_of(density, lengths)

    def _align(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Broadcast labels ``(...)`` and uniforms ``(..., n)`` to their common leading axes.

        These include the leading axes of the candidates ``(..., K, M)``.
        """
        labels = np.asarray(labels)
        shape = np.broadcast_shapes(labels.shape, uniforms.shape[:-1], candidates.shape[:-2])
        uniforms = np.broadcast_to(uniforms, (*shape, uniforms.shape[-1]))
        return np.broadcast_to(labels, shape), uniforms

    def _draw_coordinate(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, cells: Cells
    ) -> DrawnCoordinate:
        """Draw a hypothesis J and its clipped log-likelihood of each label, from three uniforms.

        It is ``log pbar_J[h_t(y)]``: the random map h_t of :class:`Clipping` may replace the label
        y (two uniforms), and ``pbar_J`` is the density of ``f_J`` after it.
        """
        labels, uniforms = self._align(labels, candidates, uniforms)
        clipping_coins = uniforms[..., :2]
        coordinate_coin = uniforms[..., 2]

        clipped = self.clipping.draw(labels, cells, clipping_coins)
        coordinate = integers(self.num_hypotheses, coordinate_coin)
        mass = at(candidates, coordinate, clipped)
        density = self.clipping.density(mass, at(cells.lengths, clipped), cells.total[..., 0])
        return DrawnCoordinate(coordinate, np.log(density))

    def _log_pbar(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """Return the clipped log-likelihoods ``log pbar_j[y]`` of candidates, ``(..., K, M)``.

        ``pbar_j`` is the density of ``f_j`` after the random map h_t of :class:`Clipping`.
        It is +inf for labels that h_t never reaches: infinitely far from any message, they get the
        density 0.
        """
        lengths = cells.lengths[..., None, :]
        return self._log_pbar_of_masses(candidates, lengths, cells.total[..., None])

    def _log_pbar_of_masses(
        self, masses: FloatArray, lengths: FloatArray, total: FloatArray
    ) -> FloatArray:
        """Return ``log pbar_j[y]`` of labels y, elementwise; +inf where h_t never reaches y.

        Args:
            masses: probabilities ``f_j[y]``.
            lengths: lengths ``l_y`` of the labels' cells.
            total: total length N' of all cells.
        """
        log_density = np.log(self.clipping.density(masses, lengths, total))
        return np.where(lengths > 0.0, log_density, np.inf)

    def _kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> Kernel:
        """Return the density of messages given the clipped label ``h_t(y)``, as a product.

        The log density comes as a sum, with a term for each label. Here the labels' factors are
        scaled so that the largest is 1, and the scale goes into the common factor.
        """
        log_kernel = self._log_kernel(messages, candidates, cells)
        terms = log_kernel.terms
        peak = terms.max(axis=-1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)  # not finite if no label sends the message
        terms -= peak
        return Kernel(np.exp(terms, out=terms), peak + log_kernel.log_norm[..., None])

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the log density ``log q(z | y)`` of messages for all labels, ``(..., M)``.

        With probability 1 - 1/T the clipped label ``h_t(y)`` is y itself, with probability 0 if y
        has no cell. Otherwise it is random, and the density is averaged over the cells. The base
        measure is Lebesgue's on the revealed numbers.
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
        """Return unbiased estimates ``(..., K)`` of the clipped log-loss ``-log pbar_k(y)``.

        The loss estimates are unbiased for ``-log pbar_k(h_t(y))``. With probability 1/T h_t
        replaces the label's loss by the average over all cells. That is public, and subtracted.
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
        """Return the hypotheses' log-likelihoods, ``(..., K)``.

        The density given the clipped label is averaged over the law of ``h_t(y)``, with y drawn
        from ``f_k``.
        """
        density, log_scale = self._kernel(messages, candidates, self.clipping.cells(candidates))
        likelihood = expectations(self.clipping.smooth_candidates(candidates), density)
        with np.errstate(divide="ignore"):
            log_likelihood = np.log(likelihood, out=likelihood)
        log_likelihood += log_scale
        return log_likelihood


def range_of(density: FloatArray, lengths: FloatArray) -> Ranges:
    """Return the least and the largest log density over the labels that h_t reaches, ``(...)``.

    Args:
        density: densities ``pbar_j`` on the labels' cells, ``(..., M)``.
        lengths: lengths of the cells, ``(..., M)``; h_t never reaches a label whose cell has none.
    """
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
    """Return unbiased losses ``(..., K)`` from messages that reveal one log-likelihood of K.

    A loss is minus the centre of the hypothesis' public range. For the revealed hypothesis it is
    lower by K times the revealed deviation from the centre. Every hypothesis is revealed with
    probability 1/K, so that the losses are minus the log-likelihoods on average.

    Args:
        messages: ``(..., K)``, 0 where nothing is revealed.
        revealed: log-likelihoods that the messages stand for, ``(..., K)``.
        ranges: public ranges of the log-likelihoods.
    """
    is_revealed = messages != 0.0
    centre = (ranges.lowest + ranges.highest) / 2.0
    deviation = np.where(is_revealed, revealed - centre, 0.0)
    return -centre - messages.shape[-1] * deviation
