"""Confidence intervals of means: the one method of the package."""

from __future__ import annotations

import numpy as np

from ldp_gym.numerics.arrays import FloatArray


def mean_interval(samples: FloatArray, confidence: float) -> tuple[float, float]:
    """Student's interval of an expectation, from samples ``(n,)``. One sample says nothing about it.

    Example:
        >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]), 0.95)
        >>> round(low, 3), round(high, 3)
        (-0.484, 4.484)
    """
    return largest_mean_interval(np.asarray(samples)[None], confidence)


def largest_mean_interval(samples: FloatArray, confidence: float) -> tuple[float, float]:
    """The interval of the largest of K expectations, from samples ``(K, n)``.

    All K have intervals at ``1 - (1 - confidence) / K``, so that it covers the largest whichever it is.
    """
    num_means, count = samples.shape
    if count < 2 or not np.isfinite(samples).all():
        return -np.inf, np.inf
    from scipy.stats import t  # imported here: it takes a while, and playing does not need it

    means, errors = samples.mean(axis=-1), samples.std(axis=-1, ddof=1) / np.sqrt(count)
    halves = errors * t.ppf(1.0 - (1.0 - confidence) / (2 * num_means), count - 1)
    return float((means - halves).max()), float((means + halves).max())


def share_interval(hits: int, count: int, confidence: float) -> tuple[float, float]:
    """The exact interval of a probability, from how many of ``count`` samples it hit (Clopper and Pearson).

    Example:
        >>> low, high = share_interval(10, 10, 0.95)
        >>> round(low, 3), high
        (0.692, 1.0)
    """
    from scipy.stats import beta  # imported here, as above

    error = (1.0 - confidence) / 2.0
    low = float(beta.ppf(error, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1.0 - error, hits + 1, count - hits)) if hits < count else 1.0
    return low, high
