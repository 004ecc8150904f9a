"""One random coordinate of the clipped log-likelihoods, scaled to [-1, 1] and randomized."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.clipped import (
    NEGLIGIBLE,
    ClippedChannel,
    LogKernel,
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


class _Scales(NamedTuple):
    """Public ranges of log-likelihoods, by which they are scaled to [-1, 1].

    Attributes:
        centre: the middle of a range, ``(...)``.
        half: half of its width, ``(...)``; 0 if it is negligible.
        density: ``pbar`` of all labels, ``(..., M)``.
    """

    centre: FloatArray
    half: FloatArray
    density: FloatArray

    def label_values(self) -> FloatArray:
        """Return the value t in [-1, 1] of each label, ``(..., M)``."""
        return _values(np.log(self.density), self.centre[..., None], self.half[..., None])


class _Reading(NamedTuple):
    """Content of messages: what each of them reveals.

    Attributes:
        reports: the reports x, ``(..., 1)``.
        values: the value t of each label, ``(..., M)``.
        half: half of the range of the revealed coordinate, ``(..., 1)``.
    """

    reports: FloatArray
    values: FloatArray
    half: FloatArray


class OneBit(ClippedChannel):
    """The log-likelihood of one random hypothesis, rounded to one random bit (Duchi et al. 2018).

    A random coordinate of the clipped log-likelihoods is scaled by its public range to t in [-1,
    1], and reported as +C with probability ``(1 + t / C) / 2``, else as -C,
    ``C = (e^eps + 1) / (e^eps - 1)``: its mean is t. The report is mapped back to log-likelihood
    units.

    Example:
        K = 3, eps = 1: C = 2.164. The probability of +C from the top (t = 1) and the middle of the
        range:

        >>> reports = np.array([1.0, 1.0])
        >>> values = np.array([1.0, 0.0])
        >>> OneBit(3, 3, 100).report_density(reports, values).round(3).tolist()
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
        """Check that epsilon is a positive number whose square is a float."""
        return validation.squarable("epsilon", epsilon)  # a report, about 2 / eps, is squared

    num_public_coins = 1  # it draws the revealed coordinate
    _num_coins = 1

    @property
    def _bit(self) -> float:
        """Size C of a one-bit report: ``1 / tanh(eps / 2)``."""
        return 1.0 / math.tanh(self.epsilon / 2.0)

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        """Draw unbiased reports x of values t in [-1, 1].

        From coins ``(..., 1)``, or ``(..., 3)`` on :class:`Hybrid`.
        """
        probability_of_plus = (1.0 + values / self._bit) / 2.0
        return np.where(coins[..., 0] < probability_of_plus, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return the density of reports x given values t, elementwise."""
        return (1.0 + np.sign(reports) * values / self._bit) / 2.0

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return how far values t agree with reports x: 1 at the end of the bit, 0 at the other."""
        return (1.0 + np.sign(reports) * values) / 2.0

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut the reports into pieces on which the densities given values ``(M,)`` are constant.

        Returns one report of each piece, and the pieces' sizes in the base measure.
        """
        return np.array([-self._bit, self._bit]), np.ones(2)

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages that reveal one coordinate."""
        return reveals_one(messages)

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: two for h_t, one for the coordinate, and the mechanism's coins."""
        return 3 + self._num_coins

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Reveal a randomized report of a random coordinate of the log-likelihoods."""
        mechanism_coins = uniforms[..., 3:]
        cells = self.clipping.cells(candidates)
        coordinate, level = self._one_level(labels, candidates, uniforms, cells)
        scales = self._scales_at(coordinate, candidates, cells)
        values = _values(level, scales.centre, scales.half)
        reports = self.randomize(values, mechanism_coins)
        return self._reveal(scales.centre + scales.half * reports, coordinate)

    def _reveal(self, log_likelihoods: FloatArray, coordinates: IntArray) -> Messages:
        """Return messages that reveal log-likelihoods ``(...)`` of coordinates ``(...)``."""
        return one_hot(mark_revealed(-log_likelihoods), coordinates, self.num_hypotheses)

    @per_table
    def _scales(self, candidates: FloatArray, cells: Cells) -> _Scales:
        """Return the ranges of all coordinates."""
        return self._scales_of(candidates, cells.lengths[..., None, :], cells.total[..., None])

    def _scales_at(self, coordinate: IntArray, candidates: FloatArray, cells: Cells) -> _Scales:
        """Return the ranges of the given coordinates ``(...)``."""
        if _shares_table(candidates, coordinate):
            scales = self._scales(candidates, cells)
            return _Scales(
                scales.centre[coordinate], scales.half[coordinate], scales.density[coordinate]
            )
        masses = at(candidates, coordinate, slice(None))
        return self._scales_of(masses, cells.lengths, cells.total)

    def _scales_of(self, masses: FloatArray, lengths: FloatArray, total: FloatArray) -> _Scales:
        """Return the ranges of log-likelihoods of labels with masses ``f_j[y]``, ``(..., M)``."""
        density = self.clipping.density(masses, lengths, total)
        lowest, highest = range_of(density, lengths)
        centre = (lowest + highest) / 2.0
        half = (highest - lowest) / 2.0
        return _Scales(centre, np.where(half > NEGLIGIBLE, half, 0.0), density)

    def _read(self, messages: Messages, candidates: FloatArray, cells: Cells) -> _Reading:
        """Read the reports of messages, and the values of the labels in their coordinates."""
        coordinate = revealed_coordinate(messages)
        if _shares_table(candidates, coordinate):
            scales = self._scales(candidates, cells)
            centre = scales.centre[coordinate]
            half = scales.half[coordinate]
            values = scales.label_values()[coordinate]
        else:
            scales = self._scales_at(coordinate, candidates, cells)
            centre = scales.centre
            half = scales.half
            values = scales.label_values()
        reports = _to_unit_range(-at(messages, coordinate), centre, half)
        return _Reading(reports[..., None], values, half[..., None])

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return how far labels ``h_t(y)`` agree with the report; 1/2 if it says nothing."""
        cells = self.clipping.cells(candidates)
        reading = self._read(messages, candidates, cells)
        is_informative = (reading.half > 0.0) & (cells.lengths > 0.0)
        agreement = self.report_agreement(reading.reports, reading.values)
        return np.where(is_informative, agreement, 0.5)

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""
        reading = self._read(messages, candidates, cells)
        density = self.report_density(reading.reports, reading.values)
        np.copyto(density, 1.0, where=reading.half <= 0.0)  # there is only one report
        if has_zero(cells.lengths):
            np.copyto(density, 0.0, where=cells.lengths <= 0.0)
        with np.errstate(divide="ignore"):
            terms = np.log(density, out=density)
        log_norm = np.full(terms.shape[:-1], -math.log(self.num_hypotheses))
        return LogKernel(terms, log_norm)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return importance-weighted losses: public centres, plus K times the deviation."""
        ranges = self.ranges(candidates, self.clipping.cells(candidates))
        return importance_weighted_losses(messages, -messages, ranges)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List a message for each coordinate and each piece on which the density is constant."""
        cells = self.clipping.cells(candidates)
        scales = self._scales(candidates, cells)
        values = scales.label_values()[:, cells.lengths > 0.0]
        messages = []
        weights = []
        for j in range(self.num_hypotheses):
            if scales.half[j] > 0.0:
                reports, sizes = self.pieces(np.unique(values[j]))
            else:
                reports, sizes = np.zeros(1), np.ones(1)  # without a range there is one report
            log_likelihoods = scales.centre[j] + scales.half[j] * reports
            messages.append(self._reveal(log_likelihoods, np.full(len(reports), j)))
            weights.append(sizes)
        return complete_list(np.concatenate(messages), np.log(np.concatenate(weights)))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return all messages of :meth:`list_messages`."""
        return self.list_messages(candidates, posterior).messages

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return both bits of the coordinate, or its only report if it has no range."""
        coordinate = integers(self.num_hypotheses, coins[0])
        scales = self._scales_at(coordinate, candidates, self.clipping.cells(candidates))
        reports = [-self._bit, self._bit] if scales.half > 0.0 else [0.0]
        log_likelihoods = scales.centre + scales.half * np.array(reports)
        return self._reveal(log_likelihoods, np.full(len(reports), coordinate))


class Hybrid(OneBit):
    """The log-likelihood of one random hypothesis, with less noise (Wang et al. 2019).

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
        """The piecewise mechanism's eps: at most 20, so that floats resolve its dense interval."""
        return min(self.epsilon, 20.0)

    @property
    def _share(self) -> float:
        """Probability of the piecewise mechanism; below eps = 0.61 one bit has less noise."""
        if self._level <= 0.61:
            return 0.0
        return -math.expm1(-self._level / 2.0)

    @property
    def _reach(self) -> float:
        """Largest report C' of the piecewise mechanism."""
        return 1.0 / math.tanh(self._level / 4.0)

    def _interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval on which the piecewise mechanism is denser."""
        low = (self._reach + 1.0) / 2.0 * values - (self._reach - 1.0) / 2.0
        return low, low + self._reach - 1.0

    @property
    def _probability_inside(self) -> float:
        """Probability that a report of the piecewise mechanism lies in its dense interval."""
        return 1.0 / (1.0 + math.exp(-self._level / 2.0))

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        """Draw unbiased reports x of values t in [-1, 1], from coins ``(..., 3)``."""
        mechanism_coin = coins[..., 0]
        inside_coin = coins[..., 1]
        place_coin = coins[..., 2]

        low, high = self._interval(values)
        inside = low + place_coin * (high - low)
        # A point of the rest of [-C', C'], with the gap removed; and then with the gap.
        outside = place_coin * (self._reach + 1.0) - self._reach
        outside = outside + np.where(outside >= low, high - low, 0.0)
        piecewise = np.where(inside_coin < self._probability_inside, inside, outside)

        one_bit = super().randomize(values, coins[..., 2:])
        return np.where(mechanism_coin < self._share, piecewise, one_bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return the density of reports x given values t, elementwise."""
        low, high = self._interval(values)
        dense = 1.0 / ((1.0 + math.exp(-self._level / 2.0)) * (self._reach - 1.0))
        inside = self._share * dense
        outside = self._share * (dense * math.exp(-self._level))
        piecewise = np.where((low <= reports) & (reports <= high), inside, outside)
        one_bit = (1.0 - self._share) * super().report_density(reports, values)
        return np.where(self._is_bit(reports), one_bit, piecewise)

    def _is_bit(self, reports: FloatArray) -> BoolArray:
        """Return a mask of reports that are C or -C; piecewise ones practically never are."""
        return np.isclose(np.abs(reports), self._bit, rtol=1e-9, atol=0.0)

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return how far values agree with reports.

        For one bit as in :class:`OneBit`; else 1 if the report lies in the value's dense interval.
        """
        low, high = self._interval(values)
        is_inside = ((low <= reports) & (reports <= high)).astype(np.float64)
        agreement_of_bits = super().report_agreement(reports, values)
        return np.where(self._is_bit(reports), agreement_of_bits, is_inside)

    # An error: the reports are a continuum.
    messages_given_coins = ClippedChannel.messages_given_coins

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut the reports into pieces on which the densities given values are constant."""
        bits, sizes = super().pieces(values)
        if self._share == 0.0:
            return bits, sizes
        # Between two neighbouring ends of dense intervals all densities are constant.
        low, high = self._interval(values)
        ends = np.unique(np.concatenate([low, high, [-self._reach, self._reach]]))
        middles = (ends[:-1] + ends[1:]) / 2.0
        return np.append(bits, middles), np.append(sizes, np.diff(ends))


def _shares_table(candidates: FloatArray, coordinate: IntArray) -> bool:
    """Tell if so many rounds share one table that working it out as a whole is faster."""
    return candidates.ndim == 2 and coordinate.size > len(candidates)


def _to_unit_range(levels: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Scale log-likelihoods so that their range becomes [-1, 1]; 0 where there is no range."""
    return np.where(half > 0.0, (levels - centre) / np.maximum(half, NEGLIGIBLE), 0.0)


def _values(levels: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Return the values t of log-likelihoods, clipped to [-1, 1], which rounding may exceed."""
    return np.clip(_to_unit_range(levels, centre, half), -1.0, 1.0)
