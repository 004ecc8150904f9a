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

_LEAST_PIECEWISE_EPSILON = 0.61
"""Privacy level up to which one bit has less noise than the piecewise mechanism."""


class _Interval(NamedTuple):
    """Intervals of reports.

    Attributes:
        low: their lower ends, ``(...)``.
        high: their upper ends, ``(...)``.
    """

    low: FloatArray
    high: FloatArray

    def holds(self, reports: FloatArray) -> BoolArray:
        """Return a mask of the reports that lie in their intervals, ends included."""
        is_inside: BoolArray = (self.low <= reports) & (reports <= self.high)
        return is_inside


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
        """Return the scaled log-likelihood t in [-1, 1] of each label, ``(..., M)``."""
        return _scaled(np.log(self.density), self.centre[..., None], self.half[..., None])

    def at_coordinate(self, coordinate: IntArray) -> _Scales:
        """Return the ranges of coordinates ``(...)`` out of those of all K coordinates."""
        return _Scales(
            self.centre[coordinate],
            self.half[coordinate],
            self.density[coordinate],
        )


class _Reading(NamedTuple):
    """Reports of messages, and the value that each label would have reported.

    Attributes:
        reports: the reports x, ``(..., 1)``.
        values: the scaled log-likelihood t in [-1, 1] of each label, ``(..., M)``.
        half: half of the range of the revealed coordinate, ``(..., 1)``; 0 if it is negligible.
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
        """Draw reports x, which are C or -C, of values t in [-1, 1]; the mean of x is t.

        Args:
            values: t, ``(...)``.
            coins: uniforms, ``(..., 1)``.
        """
        probability_of_plus = (1.0 + values / self._bit) / 2.0
        return np.where(coins[..., 0] < probability_of_plus, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return the probability ``(1 + sign(x) t / C) / 2`` of reports x given values t."""
        return (1.0 + np.sign(reports) * values / self._bit) / 2.0

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return how far values t in [-1, 1] agree with the signs of reports x, from 0 to 1."""
        return (1.0 + np.sign(reports) * values) / 2.0

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Divide the possible reports into sets of which all values ``(n,)`` have one density each.

        For one bit these are the two points -C and C. Returns a report from each set, and the sizes
        of the sets in the base measure.
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
        """Draw messages ``(..., K)`` that reveal a randomized report of one log-likelihood."""
        mechanism_coins = uniforms[..., 3:]
        cells = self.clipping.cells(candidates)
        drawn = self._draw_coordinate(labels, candidates, uniforms, cells)
        scales = self._scales_at(drawn.coordinate, candidates, cells)
        values = _scaled(drawn.log_likelihood, scales.centre, scales.half)
        reports = self.randomize(values, mechanism_coins)
        return self._reveal(scales.centre + scales.half * reports, drawn.coordinate)

    def _reveal(self, log_likelihoods: FloatArray, coordinates: IntArray) -> Messages:
        """Return messages ``(..., K)`` that reveal a log-likelihood ``(...)`` each.

        A message has minus the log-likelihood at its coordinate, and 0 elsewhere.
        """
        return one_hot(mark_revealed(-log_likelihoods), coordinates, self.num_hypotheses)

    @per_table
    def _scales(self, candidates: FloatArray, cells: Cells) -> _Scales:
        """Return centre and half-width of the log-likelihoods' range, for all K hypotheses."""
        return self._scales_of(candidates, cells.lengths[..., None, :], cells.total[..., None])

    def _scales_at(self, coordinate: IntArray, candidates: FloatArray, cells: Cells) -> _Scales:
        """Return centre and half-width of the log-likelihoods' range, for one hypothesis per message.

        Args:
            coordinate: index of the hypothesis that each message reveals, ``(...)``.
            candidates: ``(..., K, M)``, or one table ``(K, M)`` for all messages.
            cells: lengths of the labels' cells at these candidates.
        """
        if _many_share_a_table(candidates, coordinate):
            # The scales of all K hypotheses are kept for the table: looking them up is cheaper.
            return self._scales(candidates, cells).at_coordinate(coordinate)
        masses = at(candidates, coordinate, slice(None))
        return self._scales_of(masses, cells.lengths, cells.total)

    def _scales_of(self, masses: FloatArray, lengths: FloatArray, total: FloatArray) -> _Scales:
        """Return centre and half-width of the range of log-likelihoods over labels that h_t reaches.

        Args:
            masses: probabilities ``f_j[y]`` of the labels, ``(..., M)``.
            lengths: lengths of the labels' cells, ``(..., M)``; 0 if h_t never reaches a label.
            total: total length of the cells, ``(..., 1)``.
        """
        density = self.clipping.density(masses, lengths, total)
        ranges = range_of(density, lengths)
        centre = (ranges.lowest + ranges.highest) / 2.0
        half = (ranges.highest - ranges.lowest) / 2.0
        return _Scales(centre, np.where(half > NEGLIGIBLE, half, 0.0), density)

    def _read(self, messages: Messages, candidates: FloatArray, cells: Cells) -> _Reading:
        """Read the report of each message, and the value that each label would have reported.

        Both belong to the hypothesis that the message reveals.
        """
        coordinate = revealed_coordinate(messages)
        if _many_share_a_table(candidates, coordinate):
            # Logarithms are taken once per hypothesis and label, and then looked up by round.
            scales_of_all = self._scales(candidates, cells)
            scales = scales_of_all.at_coordinate(coordinate)
            values = scales_of_all.label_values()[coordinate]
        else:
            scales = self._scales_at(coordinate, candidates, cells)
            values = scales.label_values()

        log_likelihoods = -at(messages, coordinate)  # a message has losses
        reports = _to_unit_range(log_likelihoods, scales.centre, scales.half)
        return _Reading(reports[..., None], values, scales.half[..., None])

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return how far labels agree with the report, ``(..., M)``; 1/2 where it says nothing.

        A report says nothing if its hypothesis gives all labels about the same density, or about a
        label that h_t never reaches.
        """
        cells = self.clipping.cells(candidates)
        reading = self._read(messages, candidates, cells)
        is_informative = (reading.half > 0.0) & (cells.lengths > 0.0)
        agreement = self.report_agreement(reading.reports, reading.values)
        return np.where(is_informative, agreement, 0.5)

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""
        reading = self._read(messages, candidates, cells)
        density = self.report_density(reading.reports, reading.values)
        np.copyto(density, 1.0, where=reading.half <= 0.0)  # without a range there is one report
        if has_zero(cells.lengths):
            np.copyto(density, 0.0, where=cells.lengths <= 0.0)
        with np.errstate(divide="ignore"):
            terms = np.log(density, out=density)
        log_norm = np.full(terms.shape[:-1], -math.log(self.num_hypotheses))
        return LogKernel(terms, log_norm)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return unbiased losses ``(..., K)``: minus the log-likelihoods, on average.

        For the revealed hypothesis, K times the deviation from the middle of its public range is
        counted (:func:`importance_weighted_losses`); for the others, the middle of their range.
        """
        ranges = self.ranges(candidates, self.clipping.cells(candidates))
        log_likelihoods = -messages
        return importance_weighted_losses(messages, log_likelihoods, ranges)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List a message for each coordinate and each set of reports of constant density."""
        cells = self.clipping.cells(candidates)
        scales = self._scales(candidates, cells)
        values = scales.label_values()[:, cells.lengths > 0.0]
        messages = []
        weights = []
        for j in range(self.num_hypotheses):
            if scales.half[j] > 0.0:
                reports, sizes = self.pieces(np.unique(values[j]))
            else:
                # Without a range there is only one report.
                reports = np.zeros(1)
                sizes = np.ones(1)
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
        """Return both messages about the coordinate that the coin draws, ``(2, K)``.

        There is only one, ``(1, K)``, if the coordinate has no range.
        """
        coordinate = integers(self.num_hypotheses, coins[0])
        scales = self._scales_at(coordinate, candidates, self.clipping.cells(candidates))
        if scales.half > 0.0:
            reports = [-self._bit, self._bit]
        else:
            reports = [0.0]
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
    def _piecewise_epsilon(self) -> float:
        """Privacy level of the piecewise mechanism: eps, at most 20.

        Floats could not resolve its dense interval at larger ones.
        """
        return min(self.epsilon, 20.0)

    @property
    def _piecewise_probability(self) -> float:
        """Probability of using the piecewise mechanism; below eps = 0.61 one bit has less noise."""
        if self._piecewise_epsilon <= _LEAST_PIECEWISE_EPSILON:
            return 0.0
        return -math.expm1(-self._piecewise_epsilon / 2.0)

    @property
    def _largest_report(self) -> float:
        """Largest report of the piecewise mechanism: C' = (e^(eps/2) + 1) / (e^(eps/2) - 1)."""
        return 1.0 / math.tanh(self._piecewise_epsilon / 4.0)

    def _dense_interval(self, values: FloatArray) -> _Interval:
        """Return the interval, of length C' - 1, in which reports of values t are denser.

        C' is the largest report of the piecewise mechanism.
        """
        largest = self._largest_report
        low = (largest + 1.0) / 2.0 * values - (largest - 1.0) / 2.0
        return _Interval(low, low + largest - 1.0)

    @property
    def _probability_inside(self) -> float:
        """Probability that a report of the piecewise mechanism lies in its dense interval."""
        return 1.0 / (1.0 + math.exp(-self._piecewise_epsilon / 2.0))

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        """Draw reports x of values t in [-1, 1]; the mean of x is t.

        Args:
            values: t, ``(...)``.
            coins: uniforms, ``(..., 3)``.
        """
        mechanism_coin = coins[..., 0]
        inside_coin = coins[..., 1]
        point_coin = coins[..., 2]

        dense = self._dense_interval(values)
        length = dense.high - dense.low
        inside = dense.low + point_coin * length

        # A uniform point outside the dense interval: of [-C', 1], which has the length of the rest,
        # what lies above the interval's lower end is shifted beyond its upper end.
        largest = self._largest_report
        outside = point_coin * (largest + 1.0) - largest
        outside = outside + np.where(outside >= dense.low, length, 0.0)
        piecewise = np.where(inside_coin < self._probability_inside, inside, outside)

        one_bit = super().randomize(values, coins[..., 2:])
        return np.where(mechanism_coin < self._piecewise_probability, piecewise, one_bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return the density of reports x given values t, elementwise.

        A report of C or -C comes from one bit, and has a probability; any other comes from the
        piecewise mechanism, and has a Lebesgue density.
        """
        epsilon = self._piecewise_epsilon
        density_inside = 1.0 / ((1.0 + math.exp(-epsilon / 2.0)) * (self._largest_report - 1.0))
        density_outside = density_inside * math.exp(-epsilon)
        probability = self._piecewise_probability
        piecewise = np.where(
            self._dense_interval(values).holds(reports),
            probability * density_inside,
            probability * density_outside,
        )
        one_bit = (1.0 - probability) * super().report_density(reports, values)
        return np.where(self._is_bit(reports), one_bit, piecewise)

    def _is_bit(self, reports: FloatArray) -> BoolArray:
        """Return a mask of reports that are C or -C; piecewise ones practically never are."""
        return np.isclose(np.abs(reports), self._bit, rtol=1e-9, atol=0.0)

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Return how far values t agree with reports x, from 0 to 1, elementwise.

        A report of one bit agrees with the values near its sign. A report of the piecewise
        mechanism agrees with the values in whose dense interval it lies.
        """
        is_inside = self._dense_interval(values).holds(reports).astype(np.float64)
        agreement_of_bits = super().report_agreement(reports, values)
        return np.where(self._is_bit(reports), agreement_of_bits, is_inside)

    # An error: the reports are a continuum.
    messages_given_coins = ClippedChannel.messages_given_coins

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Divide the possible reports into sets of which all values ``(n,)`` have one density each.

        These are the two bits, and the intervals between neighbouring ends of dense intervals.
        Returns a report from each set, and the sizes of the sets in the base measure.
        """
        bits, sizes = super().pieces(values)
        if self._piecewise_probability == 0.0:
            return bits, sizes
        dense = self._dense_interval(values)
        largest = self._largest_report
        ends = np.unique(np.concatenate([dense.low, dense.high, [-largest, largest]]))
        middles = (ends[:-1] + ends[1:]) / 2.0
        return np.append(bits, middles), np.append(sizes, np.diff(ends))


def _many_share_a_table(candidates: FloatArray, coordinate: IntArray) -> bool:
    """Tell if more rounds than hypotheses share one table ``(K, M)``.

    It is then faster to work out the numbers of all hypotheses, and to look them up by round.
    """
    return candidates.ndim == 2 and coordinate.size > len(candidates)


def _to_unit_range(log_likelihoods: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Scale log-likelihoods so that their range becomes [-1, 1]; 0 where there is no range."""
    scaled = (log_likelihoods - centre) / np.maximum(half, NEGLIGIBLE)
    return np.where(half > 0.0, scaled, 0.0)


def _scaled(log_likelihoods: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Return log-likelihoods scaled to [-1, 1], and clipped, because rounding may exceed that."""
    return np.clip(_to_unit_range(log_likelihoods, centre, half), -1.0, 1.0)
