"""Means with intervals, paired differences and slopes. All intervals are of 95%."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.intervals import largest_mean_interval, mean_interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Example:
        >>> print(Estimate(12.345, 11.0, 14.0))
        12.3 [11.0, 14.0]
        >>> Estimate(0.1, -0.2, 0.3).contains(0.0)
        True
    """

    value: float
    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether the interval does."""
        return self.low <= value <= self.high

    @property
    def half(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2.0

    def __str__(self) -> str:
        digits = 0 if abs(self.value) >= 1000 else 1 if abs(self.value) >= 10 else 3
        if not np.isfinite(self.low):
            return f"{self.value:,.{digits}f}"
        return f"{self.value:,.{digits}f} [{self.low:,.{digits}f}, {self.high:,.{digits}f}]"


def mean(samples: FloatArray) -> Estimate:
    """The mean of samples ``(n,)`` with its interval: one sample, or a constant one, has none.

    Example:
        >>> estimate = mean(np.arange(100.0))
        >>> estimate.value, estimate.contains(49.5)
        (49.5, True)
        >>> mean(np.array([3.0, 3.0, 3.0]))
        Estimate(value=3.0, low=-inf, high=inf)
    """
    return Estimate(float(np.mean(samples)), *mean_interval(samples, CONFIDENCE))


def largest_mean(samples: FloatArray) -> Estimate:
    """The largest of K means, of samples ``(K, n)``, with its interval.

    It covers the largest expectation whichever it is. The value itself is the largest mean, which is a little
    too large on average.

    Example:
        >>> largest_mean(np.array([[1.0, 3.0], [5.0, 5.0]])).value
        5.0
    """
    return Estimate(float(samples.mean(axis=-1).max()), *largest_mean_interval(samples, CONFIDENCE))


def difference(samples: FloatArray, others: FloatArray) -> Estimate:
    """The mean difference of two learners on the same tapes, paired episode by episode."""
    if len(samples) != len(others):
        raise ValueError(f"pairs need as many episodes on both sides, got {len(samples)} and {len(others)}")
    return mean(np.asarray(samples) - np.asarray(others))


def slope(positions: Sequence[float], samples: Sequence[FloatArray]) -> Estimate:
    """The slope of log mean against log position, by least squares, with its interval.

    Sample i of every position is taken to be of the same seed, as in a suite (the first ones, where some
    positions have more): what counts is how the episodes' own contributions to the slope vary, so that
    whatever the positions have in common drops out.

    Example:
        >>> found = slope([1, 10], [np.array([2.0, 2.2]), np.array([20.5, 21.5])])
        >>> round(found.value, 6), found.contains(1.0)
        (1.0, True)
    """
    value, contributions = slope_contributions(positions, samples)
    if not np.isfinite(value):
        return Estimate(value, -np.inf, np.inf)
    return Estimate(value, *mean_interval(contributions, CONFIDENCE))


def slope_contributions(
    positions: Sequence[float], samples: Sequence[FloatArray]
) -> tuple[float, FloatArray]:
    """The slope, and the episodes' contributions, of which it is the mean (the delta method)."""
    count = min(len(values) for values in samples)
    paired = np.stack([np.asarray(values)[:count] for values in samples])
    means = paired.mean(axis=-1)
    if not (means > 0.0).all():
        return np.nan, np.full(count, np.nan)  # no mean, no logarithm
    x = np.log(np.asarray(positions, dtype=np.float64))
    leverage = (x - x.mean()) / np.square(x - x.mean()).sum()
    value = float(leverage @ np.log(means))
    return value, value + (leverage / means) @ (paired - means[:, None])
