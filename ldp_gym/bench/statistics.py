"""Means with intervals, paired differences, slopes and scores. All intervals are of 95%."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_gym.numerics.arrays import FloatArray
from ldp_gym.numerics.intervals import largest_mean_interval, mean_interval

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
    """The mean of samples ``(n,)`` with its interval: risk is an expectation. One sample has none.

    Example:
        >>> estimate = mean(np.arange(100.0))
        >>> estimate.value, estimate.contains(49.5)
        (49.5, True)
        >>> mean(np.array([3.0, 3.0, 3.0]))
        Estimate(value=3.0, low=3.0, high=3.0)
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


def score(uniform: FloatArray, risk: FloatArray, bayes: FloatArray) -> float | None:
    """``(uniform - risk) / (uniform - Bayes)`` on the same tapes.

    1 is Bayes, 0 has learned nothing. None where the denominator is within its error.
    """
    gain = difference(uniform, bayes)
    if gain.contains(0.0) or not np.isfinite(gain.low):
        return None
    return float((np.mean(uniform) - np.mean(risk)) / gain.value)


def slope(positions: Sequence[float], samples: Sequence[FloatArray]) -> Estimate:
    """The slope of log mean against log position, by least squares with its interval (the delta method).

    Where all positions have as many samples, sample i of each is taken to be of the same seed, as in a suite:
    what counts is how the episodes' own contributions to the slope vary, so that whatever the positions have
    in common drops out. Else the means' errors add up, and Student's law has Welch's degrees of freedom.

    Example:
        >>> found = slope([1, 10], [np.array([2.0, 2.2]), np.array([20.0, 22.0])])
        >>> round(found.value, 6), found.contains(1.0)
        (1.0, True)
    """
    from scipy.stats import t  # imported here: it takes a while, and playing does not need it

    x = np.log(np.asarray(positions, dtype=np.float64))
    means = np.array([np.mean(values) for values in samples])
    if not (means > 0.0).all():
        return Estimate(np.nan, -np.inf, np.inf)  # no mean, no logarithm
    centred = x - x.mean()
    leverage = centred / (centred @ centred)
    value = float(leverage @ np.log(means))
    counts = np.array([len(values) for values in samples])
    if counts.min() < 2:
        return Estimate(value, -np.inf, np.inf)
    if np.ptp(counts) == 0:
        contributions = (leverage / means) @ np.stack(samples)
        error = float(np.std(contributions, ddof=1) / np.sqrt(counts[0]))
        freedom = float(counts[0] - 1)
    else:
        spread = [np.var(values, ddof=1) / len(values) for values in samples]
        variances = (leverage / means) ** 2 * spread
        error = float(np.sqrt(variances.sum()))
        freedom = float(variances.sum() ** 2 / (variances**2 / (counts - 1)).sum()) if error else np.inf
    half = float(t.ppf(0.5 + CONFIDENCE / 2.0, freedom)) * error
    return Estimate(value, value - half, value + half)
