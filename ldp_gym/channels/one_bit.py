"""One random coordinate of the clipped log-likelihoods, scaled to [-1, 1], without Laplace noise.

The coordinate's public range is mapped to [-1, 1]; a mechanism for numbers in [-1, 1] turns the value t into
an unbiased x; and x is mapped back to log-likelihood units. Worst-case variances at eps = 0.1, 1 and 4:
Laplace noise 800, 8 and 0.50; one bit 400.7, 4.68 and 1.08; hybrid 400.7, 4.29 and 0.219.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from ldp_gym.arrays import FloatArray, IntArray, Messages, at, placed
from ldp_gym.channels.base import CHANNELS
from ldp_gym.channels.clipped import NEGLIGIBLE, ClippedChannel, importance_weighted
from ldp_gym.clipping import Cells


class ScaledChannel(ClippedChannel):
    """The loss of a uniformly random hypothesis J, through a mechanism for numbers in [-1, 1]; 0 elsewhere.

    The base measure of :meth:`log_density` counts coordinates, and within one is the mechanism's.
    """

    @property
    @abstractmethod
    def _num_coins(self) -> int:
        """How many uniforms the mechanism takes."""

    @abstractmethod
    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        """Unbiased reports x of values t in [-1, 1], from coins ``(..., num_coins)``."""

    @abstractmethod
    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """The density of reports x given values t, elementwise."""

    @property
    @abstractmethod
    def mean_square(self) -> float:
        """The mean square of a report, at the value at which it is largest."""

    @abstractmethod
    def extreme_reports(self, values: FloatArray) -> FloatArray:
        """Reports among which the density ratio of two of the values ``(M,)`` is largest."""

    @property
    def num_uniforms(self) -> int:
        """Two for h_t, the coordinate, and the mechanism's."""
        return 3 + self._num_coins

    def _scaling(self, candidates: FloatArray, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """The centre and half the width of each coordinate's public range, ``(..., K)``; 0 if it has none."""
        lowest, highest = self.ranges(candidates, cells)
        half = (highest - lowest) / 2.0
        return (lowest + highest) / 2.0, np.where(half > NEGLIGIBLE, half, 0.0)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        cells = self.clipping.cells(candidates)
        coordinate, level = self._one_level(labels, candidates, uniforms, cells)
        centre, half = (at(side, coordinate) for side in self._scaling(candidates, cells))
        value = _scaled(level, centre, half)
        loss = -(centre + half * self.randomize(value, uniforms[..., 3:]))
        loss = np.where(loss == 0.0, np.finfo(np.float64).tiny, loss)  # zero would read as "none yet"
        return placed(loss, coordinate, self.num_hypotheses)

    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        coordinate = (messages != 0.0).argmax(axis=-1)
        centre, half = (at(side, coordinate)[..., None] for side in self._scaling(candidates, cells))
        levels = at(self._levels(candidates, cells), coordinate, slice(None))
        reports = _scaled(-at(messages, coordinate)[..., None], centre, half)
        reached = np.isfinite(levels)
        values = _scaled(np.where(reached, levels, centre), centre, half)
        with np.errstate(divide="ignore"):
            density = np.where(half > 0.0, self.report_density(reports, values), 1.0)
            kernel = np.log(np.where(reached, density, 0.0))
        return kernel, np.full(kernel.shape[:-1], -math.log(self.num_hypotheses))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The importance-weighted estimate: public centres, and K-fold corrected what was revealed."""
        return importance_weighted(
            messages, -messages, *self.ranges(candidates, self.clipping.cells(candidates))
        )

    def loss_variance(self, candidates: FloatArray) -> FloatArray:
        _, half = self._scaling(candidates, self.clipping.cells(candidates))
        return self.num_hypotheses * self.mean_square * np.square(half).mean(axis=-1)

    def extrema(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """In each coordinate, the reports at which the mechanism's density ratio can be largest."""
        cells = self.clipping.cells(candidates)
        levels = self._levels(candidates, cells)[:, cells.lengths > 0.0]
        messages = []
        for j, (centre, half) in enumerate(zip(*self._scaling(candidates, cells), strict=True)):
            reports = self.extreme_reports(np.unique(_scaled(levels[j], centre, half)))
            rows = np.zeros((len(reports), self.num_hypotheses))
            rows[:, j] = -(centre + half * reports)
            messages.append(rows)
        return np.concatenate(messages)


def _scaled(levels: FloatArray, centre: FloatArray, half: FloatArray) -> FloatArray:
    """Log-likelihoods in units of half their range around its centre; 0 where there is no range."""
    return np.where(half > 0.0, (levels - centre) / np.maximum(half, NEGLIGIBLE), 0.0)


@CHANNELS.register("one-bit")
class OneBit(ScaledChannel):
    """A value t in [-1, 1] is rounded to +C or -C, so that its mean is t (Duchi et al. 2018). Pure.

    ``C = (e^eps + 1) / (e^eps - 1)``, and +C has probability ``(1 + t / C) / 2``.

    Privacy: that probability lies between ``1 / (e^eps + 1)`` and ``e^eps / (e^eps + 1)``. Use it instead of
    ``laplace-single`` at eps up to about 2: half of its variance at small eps.
    """

    _num_coins = 1

    @property
    def _bit(self) -> float:
        """C."""
        return 1.0 / math.tanh(self.epsilon / 2.0)

    @property
    def mean_square(self) -> float:
        """``C^2``, whatever the value."""
        return self._bit**2

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        up = coins[..., 0] < (1.0 + np.clip(values, -1.0, 1.0) / self._bit) / 2.0
        return np.where(up, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        return (1.0 + np.sign(reports) * np.clip(values, -1.0, 1.0) / self._bit) / 2.0

    def extreme_reports(self, values: FloatArray) -> FloatArray:
        return np.array([-self._bit, self._bit])


@CHANNELS.register("hybrid")
class Hybrid(OneBit):
    """One bit mixed with the piecewise mechanism (Wang et al. 2019), better than both. Pure.

    With probability ``1 - e^(-eps/2)`` (0 below eps = 0.61) the report is a point of ``[-C', C']``, where
    ``C' = (e^(eps/2) + 1) / (e^(eps/2) - 1)``, ``e^eps`` times denser on an interval of length C' - 1 around
    t than elsewhere; otherwise it is one bit.

    Privacy: which of the two is used does not depend on the value, and both are eps-private. Use it instead
    of ``laplace-single`` at any eps.
    """

    _num_coins = 3  # which mechanism, inside or outside, and where; the one bit shares the last

    @property
    def _level(self) -> float:
        """The piecewise mechanism's eps: beyond 20 its dense interval would run out of floats."""
        return min(self.epsilon, 20.0)

    @property
    def _share(self) -> float:
        """How often the piecewise mechanism is used."""
        return -math.expm1(-self._level / 2.0) if self._level > 0.61 else 0.0

    @property
    def _reach(self) -> float:
        """C'."""
        return 1.0 / math.tanh(self._level / 4.0)

    @property
    def mean_square(self) -> float:
        """That of t = 1: the piecewise mechanism's grows with t (Wang et al. 2019), and a bit's does not."""
        below = math.expm1(self._level / 2.0)
        piecewise = 1.0 + 1.0 / below + (below + 4.0) / (3.0 * below**2)
        return self._share * piecewise + (1.0 - self._share) * super().mean_square

    def _interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where the piecewise mechanism is denser."""
        values = np.clip(values, -1.0, 1.0)
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
        atom = np.isclose(np.abs(reports), self._bit, rtol=1e-9, atol=0.0)
        bit = super().report_density(reports, values)
        return np.where(atom, (1.0 - self._share) * bit, self._share * piecewise)

    def extreme_reports(self, values: FloatArray) -> FloatArray:
        """Both bits, and a point between any two ends of intervals: the density is constant there."""
        ends = np.unique(np.concatenate([*self._interval(values), [-self._reach, self._reach]]))
        between = (ends[:-1] + ends[1:]) / 2.0 if self._share else ends[:0]
        return np.concatenate([super().extreme_reports(values), between])
