"""One random coordinate of the clipped log-likelihoods, scaled to [-1, 1]: as one bit, and as a hybrid."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.clipped import (
    NEGLIGIBLE,
    ClippedChannel,
    importance_weighted_losses,
    mark_revealed,
    range_of,
    revealed_coordinate,
    reveals_one,
)
from ldp_gym.channels.clipping import Cells
from ldp_gym.channels.listing import MessageList, complete_list
from ldp_gym.core import validation
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    at,
    has_zero,
    one_hot,
    per_table,
)
from ldp_gym.core.sampling import integers

_Scales = tuple[FloatArray, FloatArray, FloatArray]
"""Public ranges: centres and half widths (0 for no range) ``(...)``, and ``pbar`` of labels ``(..., M)``."""


class OneBit(ClippedChannel):
    """The log-likelihood of one random hypothesis, rounded to one random bit (Duchi et al. 2018).

    A random coordinate of the clipped log-likelihoods is scaled by its public range to t in [-1,
    1], and reported as +C with probability ``(1 + t / C) / 2``, else as -C,
    ``C = (e^eps + 1) / (e^eps - 1)``: its mean is t. The report is mapped back to log-likelihood
    units.

    Example:
        K = 3, eps = 1: C = 2.164. The probability of +C from the top (t = 1) and the middle of the
        range:

        >>> OneBit(3, 3, 100).report_density(np.array([1.0, 1.0]), np.array([1.0, 0.0])).round(3).tolist()
        [0.731, 0.5]

    Privacy: the coordinate does not depend on the label, and the probability of a bit lies between
    ``1 / (e^eps + 1)`` and ``e^eps / (e^eps + 1)``. Its worst-case variance on [-1, 1] at eps =
    0.1, 1, 4 is 400.7, 4.68, 1.08; that of Laplace noise is 800, 8, 0.50.

    When to use it: unbiased losses at eps up to about 2, or finite messages. When not: above that
    ``hybrid`` has less noise.

    The base measure of :meth:`log_density` counts coordinates, and within one is the mechanism's.
    """

    free_of_num_labels: ClassVar[bool] = True

    def _valid_epsilon(self, epsilon: float) -> float:
        return validation.squarable("epsilon", epsilon)  # a report, about 2 / eps, is squared

    num_public_coins = 1  # it draws the revealed coordinate
    _num_coins = 1

    @property
    def _bit(self) -> float:
        """Size C of a one-bit report: ``1 / tanh(eps / 2)``."""
        return 1.0 / math.tanh(self.epsilon / 2.0)

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        """Unbiased reports x of values t in [-1, 1], from coins ``(..., 1)``, or 3 on :class:`Hybrid`."""
        return np.where(coins[..., 0] < (1.0 + values / self._bit) / 2.0, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """The density of reports x given values t, elementwise."""
        return (1.0 + np.sign(reports) * values / self._bit) / 2.0

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Agreement of values t with reports x: 1 at the end that the bit names, 0 at the other."""
        return (1.0 + np.sign(reports) * values) / 2.0

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A report for every piece on which the densities of values ``(M,)`` are constant, and its size."""
        return np.array([-self._bit, self._bit]), np.ones(2)

    def possible(self, messages: Messages) -> BoolArray:
        return reveals_one(messages)

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: two for h_t, one for the coordinate, and the mechanism's own coins."""
        return 3 + self._num_coins

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        cells = self.clipping.cells(candidates)
        coordinate, level = self._one_level(labels, candidates, uniforms, cells)
        centre, half, _ = self._scales_at(coordinate, candidates, cells)
        reports = self.randomize(_values(level, centre, half), uniforms[..., 3:])
        return self._reveal(centre + half * reports, coordinate)

    def _reveal(self, log_likelihoods: FloatArray, coordinates: IntArray) -> Messages:
        """Messages that reveal reported log-likelihoods ``(...)`` of coordinates ``(...)``."""
        return one_hot(mark_revealed(-log_likelihoods), coordinates, self.num_hypotheses)

    @per_table
    def _scales(self, candidates: FloatArray, cells: Cells) -> _Scales:
        return self._scales_of(candidates, cells.lengths[..., None, :], cells.total[..., None])

    def _scales_at(self, coordinate: IntArray, candidates: FloatArray, cells: Cells) -> _Scales:
        if candidates.ndim == 2 and coordinate.size > len(candidates):  # one table for many rounds
            centre, half, density = self._scales(candidates, cells)
            return centre[coordinate], half[coordinate], density[coordinate]
        return self._scales_of(at(candidates, coordinate, slice(None)), cells.lengths, cells.total)

    def _scales_of(self, masses: FloatArray, lengths: FloatArray, total: FloatArray) -> _Scales:
        density = self.clipping.density(masses, lengths, total)
        lowest, highest = range_of(density, lengths)
        half = (highest - lowest) / 2.0
        return (lowest + highest) / 2.0, np.where(half > NEGLIGIBLE, half, 0.0), density

    def _read(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Reports x ``(..., 1)``, each label's value t ``(..., M)``, and half the range ``(..., 1)``."""
        coordinate = revealed_coordinate(messages)
        if candidates.ndim == 2 and coordinate.size > len(candidates):  # one table for many rounds
            scales = self._scales(candidates, cells)
            centre, half, values = (
                part[coordinate] for part in (*scales[:2], _label_values(*scales))
            )
        else:
            scales = self._scales_at(coordinate, candidates, cells)
            centre, half, values = (*scales[:2], _label_values(*scales))
        return (
            _to_unit_range(-at(messages, coordinate), centre, half)[..., None],
            values,
            half[..., None],
        )

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Agreement of the report with each label ``h_t(y)``."""
        cells = self.clipping.cells(candidates)
        reports, values, half = self._read(messages, candidates, cells)
        says = (half > 0.0) & (cells.lengths > 0.0)  # a report says nothing where there is no range
        return np.where(says, self.report_agreement(reports, values), 0.5)

    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        reports, values, half = self._read(messages, candidates, cells)
        density = self.report_density(reports, values)
        np.copyto(density, 1.0, where=half <= 0.0)
        if has_zero(cells.lengths):
            np.copyto(density, 0.0, where=cells.lengths <= 0.0)
        with np.errstate(divide="ignore"):
            kernel = np.log(density, out=density)
        return kernel, np.full(kernel.shape[:-1], -math.log(self.num_hypotheses))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Importance-weighted loss estimates: public centres, plus K times the revealed deviation."""
        ranges = self.ranges(candidates, self.clipping.cells(candidates))
        return importance_weighted_losses(messages, -messages, *ranges)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """A message for every coordinate and every piece on which the density is constant."""
        cells = self.clipping.cells(candidates)
        scales, reached = self._scales(candidates, cells), cells.lengths > 0.0
        messages, weights = [], []
        for j, (centre, half, density) in enumerate(zip(*scales, strict=True)):
            reports, lengths = (
                np.zeros(1),
                np.ones(1),
            )  # where there is no range, there is one report
            if half > 0.0:
                reports, lengths = self.pieces(
                    np.unique(_values(np.log(density[reached]), centre, half))
                )
            messages.append(self._reveal(centre + half * reports, np.full(len(reports), j)))
            weights.append(lengths)
        return complete_list(np.concatenate(messages), np.log(np.concatenate(weights)))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """All messages of :meth:`list_messages`."""
        return self.list_messages(candidates, posterior).messages

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Both bits of the coordinate, or the one report where it has no range."""
        coordinate = integers(self.num_hypotheses, coins[0])
        centre, half, _ = self._scales_at(coordinate, candidates, self.clipping.cells(candidates))
        reports = centre + half * np.array([-self._bit, self._bit] if half > 0.0 else [0.0])
        return self._reveal(reports, np.full(len(reports), coordinate))


class Hybrid(OneBit):
    """The log-likelihood of one random hypothesis, with less noise than Laplace's (Wang et al. 2019).

    With probability ``1 - e^(-eps/2)`` (0 below eps = 0.61) the report is a point of ``[-C', C']``,
    where ``C' = (e^(eps/2) + 1) / (e^(eps/2) - 1)``, ``e^eps`` times denser on an interval of
    length C' - 1 around t than elsewhere; otherwise it is the bit of :class:`OneBit`. Either way
    its mean is t.

    Example:
        K = 3, eps = 1: the piecewise mechanism is used with probability 0.393, C' = 4.083, and a
        value t = 0 makes the interval [-1.54, 1.54] denser. Its worst-case variance is 4.29 (one
        bit: 4.68).

    Privacy: which mechanism is used does not depend on the value, and both are eps-private.

    When to use it: in place of ``laplace-single``, at eps up to 100. When not: messages must be
    finite (take ``one-bit``), or the learner can read any message (comparisons tell more).
    """

    _num_coins = 3  # which mechanism, inside or outside, and where; the one bit shares the last

    @property
    def _level(self) -> float:
        """The piecewise mechanism's eps, at most 20: beyond, floats cannot resolve its dense interval."""
        return min(self.epsilon, 20.0)

    @property
    def _share(self) -> float:
        """Probability of the piecewise mechanism."""
        return -math.expm1(-self._level / 2.0) if self._level > 0.61 else 0.0

    @property
    def _reach(self) -> float:
        """Largest report C' of the piecewise mechanism."""
        return 1.0 / math.tanh(self._level / 4.0)

    def _interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval on which the piecewise mechanism is denser."""
        low = (self._reach + 1.0) / 2.0 * values - (self._reach - 1.0) / 2.0
        return low, low + self._reach - 1.0

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        low, high = self._interval(values)
        inside = coins[..., 1] < 1.0 / (1.0 + math.exp(-self._level / 2.0))
        where = coins[..., 2]
        outside = where * (self._reach + 1.0) - self._reach  # the rest of [-C', C'], closed up
        outside = outside + np.where(outside >= low, high - low, 0.0)
        point = np.where(inside, low + where * (high - low), outside)
        return np.where(
            coins[..., 0] < self._share, point, super().randomize(values, coins[..., 2:])
        )

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        low, high = self._interval(values)
        dense = 1.0 / ((1.0 + math.exp(-self._level / 2.0)) * (self._reach - 1.0))
        inside, outside = self._share * dense, self._share * (dense * math.exp(-self._level))
        piecewise = np.where((low <= reports) & (reports <= high), inside, outside)
        bit = (1.0 - self._share) * super().report_density(reports, values)
        return np.where(self._is_bit(reports), bit, piecewise)

    def _is_bit(self, reports: FloatArray) -> BoolArray:
        """Mask of one-bit reports, which are C or -C; piecewise ones practically never are."""
        return np.isclose(np.abs(reports), self._bit, rtol=1e-9, atol=0.0)

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Agreement of one-bit reports as in OneBit; of others, 1 in the interval where they are denser."""
        low, high = self._interval(values)
        inside = ((low <= reports) & (reports <= high)).astype(np.float64)
        return np.where(self._is_bit(reports), super().report_agreement(reports, values), inside)

    messages_given_coins = (
        ClippedChannel.messages_given_coins
    )  # the reports are a continuum: an error

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both bits, and a point between any two ends of intervals: the density is constant there."""
        bits, counts = super().pieces(values)
        if not self._share:
            return bits, counts
        ends = np.unique(np.concatenate([*self._interval(values), [-self._reach, self._reach]]))
        return np.append(bits, (ends[:-1] + ends[1:]) / 2.0), np.append(counts, np.diff(ends))


def _to_unit_range(levels: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Log-likelihoods in units of half their range around its centre; 0 where there is no range."""
    return np.where(half > 0.0, (levels - centre) / np.maximum(half, NEGLIGIBLE), 0.0)


def _label_values(centre: FloatArray, half: FloatArray, density: FloatArray) -> FloatArray:
    """The value t of each label, ``(..., M)``."""
    return _values(np.log(density), centre[..., None], half[..., None])


def _values(levels: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """The values t that log-likelihoods have, which are in [-1, 1] up to rounding."""
    return np.clip(_to_unit_range(levels, centre, half), -1.0, 1.0)
