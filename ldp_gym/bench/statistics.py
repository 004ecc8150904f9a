"""Means with intervals, paired differences and slopes; every interval has 95% confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.intervals import Interval, largest_mean_interval, mean_interval

CONFIDENCE = 0.95
"""Confidence of every interval of the benchmark."""

ALIKE = "episodes alike: rare failures may be unseen"
"""Text in place of an interval where the episodes are nearly alike: they say nothing about rare events."""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, whose ends are infinite if it is not known.

    ``unseen`` is :attr:`ldp_gym.core.intervals.Interval.unseen`: 3/n where n episodes are nearly alike.

    Example:
        >>> print(Estimate(12.345, 11.0, 14.0))
        12.3 [11.0, 14.0]
        >>> print(Estimate(2.08179, 2.08179, 2.08180, unseen=3 / 32))
        2.082 (episodes alike: rare failures may be unseen, in up to 9.4% of them)
    """

    value: float
    low: float = -np.inf
    high: float = np.inf
    unseen: float = 0.0

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __truediv__(self, scale: float) -> Estimate:
        return Estimate(self.value / scale, self.low / scale, self.high / scale, self.unseen)

    @property
    def half(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2.0

    @property
    def short(self) -> str:
        """The value without its interval."""
        return self._format(self.value)

    @property
    def interval(self) -> str:
        """The interval in brackets, :data:`ALIKE` where the episodes are nearly alike, or nothing."""
        if self.unseen > 0.0:
            return f"{ALIKE}, in up to {min(self.unseen, 1.0):.1%} of them"
        if not np.isfinite([self.low, self.high]).all():
            return ""
        low, high = self._format(self.low), self._format(self.high)
        return ALIKE if low == high else f"[{low}, {high}]"

    def _format(self, number: float) -> str:
        digits = 0 if abs(self.value) >= 1000 else 1 if abs(self.value) >= 10 else 3
        return f"{number:z,.{digits}f}"

    def __str__(self) -> str:
        interval = f"({self.interval})" if self.interval.startswith(ALIKE) else self.interval
        return f"{self.short} {interval}".rstrip()


def mean(samples: FloatArray) -> Estimate:
    """Mean of samples ``(n,)`` with its interval; one sample, or a constant one, has none."""
    return _estimate(float(np.mean(samples)), mean_interval(samples, CONFIDENCE))


def largest_mean(samples: FloatArray) -> Estimate:
    """Largest of K means of samples ``(K, n)``, with an interval of the largest expectation."""
    return _estimate(float(samples.mean(axis=-1).max()), largest_mean_interval(samples, CONFIDENCE))


def difference(samples: FloatArray, others: FloatArray, comparisons: int = 1) -> Estimate:
    """Mean difference of two learners on the same tapes, paired episode by episode.

    With several comparisons all intervals hold together with 95% confidence (Bonferroni).
    """
    with np.errstate(invalid="ignore"):  # two infinite risks have no difference
        pairs = np.asarray(samples) - np.asarray(others)
        return _estimate(float(pairs.mean()), mean_interval(pairs, 1.0 - (1.0 - CONFIDENCE) / comparisons))


def _estimate(value: float, interval: Interval) -> Estimate:
    return Estimate(value, *interval, interval.unseen)


def slope(positions: Sequence[float], samples: Sequence[FloatArray]) -> Estimate:
    """Least-squares slope of log mean against log position, with its interval.

    Sample i of every position has the same seed; positions may have further ones. The episodes' contributions
    to the slope are averaged, so that whatever the positions have in common cancels.
    """
    contributions = slope_contributions(positions, samples)
    return mean(contributions) if np.isfinite(contributions).all() else Estimate(np.nan)


def slope_contributions(positions: Sequence[float], samples: Sequence[FloatArray]) -> FloatArray:
    """Contributions of the episodes to the slope, which is their mean (delta method); NaN if a mean is 0."""
    count = min(len(values) for values in samples)
    paired = np.stack([np.asarray(values)[:count] for values in samples])
    means = paired.mean(axis=-1)
    if not (means > 0.0).all() or not np.isfinite(means).all():
        return np.full(count, np.nan)
    x = np.log(np.asarray(positions, dtype=np.float64))
    leverage = (x - x.mean()) / np.square(x - x.mean()).sum()
    return float(leverage @ np.log(means)) + (leverage / means) @ (paired - means[:, None])
