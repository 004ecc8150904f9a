"""One bit mixed with the piecewise mechanism."""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.one_bit import OneBit
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages


class Hybrid(OneBit):
    """The log-likelihood of one random hypothesis, with the least noise known (Wang et al. 2019).

    With probability ``1 - e^(-eps/2)`` (0 below eps = 0.61) the report is a point of ``[-C', C']``, where
    ``C' = (e^(eps/2) + 1) / (e^(eps/2) - 1)``, ``e^eps`` times denser on an interval of length C' - 1 around
    t than elsewhere; otherwise it is the bit of :class:`OneBit`. Either way its mean is t.

    Example:
        K = 3, eps = 1: the piecewise mechanism is used with probability 0.393, C' = 4.083, and a value t = 0
        makes the interval [-1.54, 1.54] denser. Its worst-case variance (one bit has 4.68):

        >>> round(Hybrid(3, 3, 100).mean_square - 1.0, 2)
        4.29

    Privacy: which mechanism is used does not depend on the value, and both are eps-private.

    When to use it: in place of ``laplace-single`` at any eps. When not: messages must be finite (take
    ``one-bit``), or the learner can read any message (comparisons tell more).
    """

    _num_coins = 3  # which mechanism, inside or outside, and where; the one bit shares the last

    @property
    def _level(self) -> float:
        """The piecewise mechanism's eps: beyond 20 its dense interval would run out of floats."""
        return min(self.epsilon, 20.0)

    @property
    def _share(self) -> float:
        """Probability of the piecewise mechanism."""
        return -math.expm1(-self._level / 2.0) if self._level > 0.61 else 0.0

    @property
    def _reach(self) -> float:
        """C'."""
        return 1.0 / math.tanh(self._level / 4.0)

    @property
    def mean_square(self) -> float:
        """Mean square at t = 1: the piecewise part grows with t (Wang et al. 2019), a bit's is constant."""
        below = math.expm1(self._level / 2.0)
        piecewise = 1.0 + 1.0 / below + (below + 4.0) / (3.0 * below**2)
        return self._share * piecewise + (1.0 - self._share) * super().mean_square

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
        bit = super().randomize(values, coins[..., 2:])
        return np.where(coins[..., 0] < self._share, point, bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        low, high = self._interval(values)
        dense = 1.0 / ((1.0 + math.exp(-self._level / 2.0)) * (self._reach - 1.0))
        piecewise = np.where((low <= reports) & (reports <= high), dense, dense * math.exp(-self._level))
        bit = super().report_density(reports, values)
        return np.where(self._is_bit(reports), (1.0 - self._share) * bit, self._share * piecewise)

    def _is_bit(self, reports: FloatArray) -> BoolArray:
        """Mask of reports from the one bit: a point is C with probability 0."""
        return np.isclose(np.abs(reports), self._bit, rtol=1e-9, atol=0.0)

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """Agreement as of a bit; for a point, 1 inside the interval that the value makes denser."""
        low, high = self._interval(values)
        inside = ((low <= reports) & (reports <= high)).astype(np.float64)
        return np.where(self._is_bit(reports), super().report_agreement(reports, values), inside)

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Refused: a point may be any of a continuum."""
        raise TypeError(
            "the messages of Hybrid are real numbers, not finitely many; 'one-bit' has finitely many"
        )

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both bits, and a point between any two ends of intervals: the density is constant there."""
        bits, counts = super().pieces(values)
        if not self._share:
            return bits, counts
        ends = np.unique(np.concatenate([*self._interval(values), [-self._reach, self._reach]]))
        return np.append(bits, (ends[:-1] + ends[1:]) / 2.0), np.append(counts, np.diff(ends))
