"""Intervals and tests of means: the one method of the package, a bootstrap-t.

Risks are skewed: a few unlucky episodes pay several times the mean. Student's interval is then too short on
their side, and holds the expectation of 16 episodes in 86% of cases instead of 95%. The bootstrap-t estimates
from the sample itself how far a studentized mean strays: it draws samples from the sample, and takes the
quantiles of ``(mean* - mean) / error*`` in place of Student's. Three things are added for few values:

- A tail that the sample has not seen is still missing, so the nominal level is stricter
  (:func:`nominal_level`).
- A sample with a large outlier gets a very long interval, though its mean is too large already. So no
  quantile is more than 1.25 times Student's of the same level.
- A sample that is skewed to one side gets a short end on the other, though the values that it lacks may lie
  there: paired differences have outliers on both sides. So no quantile is less than Student's of the
  requested level, and the interval holds Student's.

``make coverage`` measures the coverage, and docs/measurements.md has the table.

A sample without a rare disaster knows nothing of it, and no method can: see :class:`Interval`.

Everything is deterministic: samples of n values are always resampled in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray

RESAMPLES = 2000

_FEW = 6
"""Number of values below which Student's law replaces the resamples: too few of those differ."""

_LONGEST = 1.25
"""Largest quantile, in units of Student's."""

_KEPT = 1_000_000
"""Largest size of resamples that are kept for the next sample of n values: 8 MB."""

_NO_SPREAD = 1e-9
"""Relative spread below which values count as one value over and over."""


_NEARLY_CONSTANT = 1e-3
"""Length of an interval, relative to its ends, below which the sample counts as nearly constant."""


class Interval(tuple[float, float]):
    """The two ends of an interval, ``low, high = interval``, and what the sample cannot know.

    Where the sample is constant or nearly so, an event that none of its n values shows may be rare, not
    absent: with 95% confidence it has a probability of at most ``3 / n`` (the rule of three). No interval has
    length 0: a constant sample says nothing about its expectation, and its ends are infinite.

    Attributes:
        unseen: ``3 / n`` where the sample is constant or nearly so; 0 elsewhere.
    """

    unseen: float

    def __new__(cls, low: float, high: float, unseen: float = 0.0) -> Interval:
        """The ends, as a pair."""
        interval = super().__new__(cls, (low, high))
        interval.unseen = unseen
        return interval

    def __getnewargs__(self) -> tuple[float, float, float]:
        """The arguments of a copy."""
        return *self, self.unseen

    def warning(self, max_loss: float) -> str:
        """A sentence about rare failures, each of at most ``max_loss``; empty where the sample varies.

        Example:
            >>> mean_interval(np.full(60, 2.0), 0.95).warning(100.0)
            'rare failures may be unseen: up to 5.0% of the episodes, at most 100 each, would add up to 5'
        """
        if self.unseen == 0.0:
            return ""
        share = min(self.unseen, 1.0)
        return (
            f"rare failures may be unseen: up to {share:.1%} of the episodes, at most {max_loss:g} each, "
            f"would add up to {share * max_loss:.3g}"
        )


def nominal_level(level: float, count: int) -> float:
    """The level at which quantiles are taken, so that intervals of ``count`` values err at about ``level``.

    Example:
        >>> round(nominal_level(0.05, 16), 4), round(nominal_level(0.05, 100), 4)
        (0.0075, 0.029)
    """
    return float(level * _strictness(count))


def _strictness(count: int) -> float:
    return 1.0 - min(0.85, 4.2 / float(np.sqrt(count)))


def mean_interval(samples: FloatArray, confidence: float) -> Interval:
    """The interval of an expectation, from samples ``(n,)``; infinite for one sample or a constant one.

    Example:
        >>> low, high = mean_interval(np.arange(100.0) ** 2, 0.95)
        >>> round(low), round(high)
        (2640, 4004)
    """
    return largest_mean_interval(np.asarray(samples)[None], confidence)


def largest_mean_interval(samples: FloatArray, confidence: float) -> Interval:
    """The interval of the largest of K expectations, from samples ``(K, n)``.

    It lies too high only if one of K lower ends does, so these hold together: their quantile is that of the
    largest pivot. It lies too low only if the upper end of the largest expectation does: one suffices. All K
    samples have a say in what a pivot's quantile is.
    """
    if not _usable(samples):
        return Interval(-np.inf, np.inf)
    means, errors, pivots = _studentize(samples)
    tail = nominal_level(1.0 - confidence, samples.shape[-1]) / 2.0
    freedom, rows = samples.shape[-1] - 1, len(samples)
    above = min(
        _quantile(np.fmax.reduce(pivots, axis=0), 1.0 - tail), _LONGEST * _student(tail / rows, freedom)
    )
    below = min(-_quantile(pivots, tail), _LONGEST * _student(tail, freedom))
    least = _student((1.0 - confidence) / 2.0, freedom)
    low = float((means - max(above, least) * errors).max())
    high = float((means + max(below, least) * errors).max())
    if high - low > _NEARLY_CONSTANT * max(abs(low), abs(high)):
        return Interval(low, high)
    unseen = 3.0 / samples.shape[-1]
    if high - low <= _NO_SPREAD * max(abs(low), abs(high)):
        return Interval(-np.inf, np.inf, unseen)
    return Interval(low, high, unseen)


def p_above(samples: FloatArray, value: float) -> float:
    """The two-sided p-value of an expectation of at most ``value``.

    It is the least ``1 - confidence`` at which the interval of samples ``(n,)`` lies above ``value``. For
    samples ``(K, n)`` it is about the largest expectation.

    Example:
        >>> p_above(np.arange(100.0), 40.0) < 0.01 < 0.1 < p_above(np.arange(100.0), 49.0)
        True
    """
    samples = np.atleast_2d(samples)
    if not _usable(samples):
        return 1.0
    means, errors, pivots = _studentize(samples)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = (means - value) / errors
    distance = np.fmax.reduce(distances, initial=-np.inf)  # a constant sample at the value says nothing
    share = min(
        _share_beyond(np.fmax.reduce(pivots, axis=0), distance),
        len(samples) * _tail(distance / _LONGEST, samples.shape[-1] - 1),
    )
    share = max(share / _strictness(samples.shape[-1]), _tail(distance, samples.shape[-1] - 1))
    return float(min(1.0, 2.0 * share))


def p_below(samples: FloatArray, value: float) -> float:
    """The same for an expectation of at least ``value``; the largest one for samples ``(K, n)``."""
    return max(p_above(-row, -value) for row in np.atleast_2d(samples))


def _share_beyond(pivots: FloatArray, distance: float) -> float:
    """The share of pivots ``(R,)`` beyond a distance, counting the sample's own."""
    return float((1 + np.count_nonzero(pivots >= distance)) / (1 + np.count_nonzero(~np.isnan(pivots))))


def _quantile(pivots: FloatArray, share: float) -> float:
    """The quantile of pivots, counting the sample's own: inverse of :func:`_share_beyond`."""
    return float(np.nanquantile(pivots, share, method="weibull"))


def _student(tail: Any, freedom: int) -> Any:
    """Student's t quantile with probability ``tail`` above it."""
    from scipy.special import stdtrit  # imported here: it takes a while, and playing does not need it

    return -stdtrit(freedom, tail)


def _tail(distance: float, freedom: int) -> float:
    """The probability that Student's t exceeds a distance."""
    from scipy.special import stdtr  # as above

    return float(stdtr(freedom, -distance))


def _usable(samples: FloatArray) -> bool:
    return samples.shape[-1] >= 2 and bool(np.isfinite(samples).all())


def _studentize(samples: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means ``(K,)`` and errors ``(K,)`` of samples ``(K, n)``, and the pivots ``(K, R)`` of resamples."""
    count = samples.shape[-1]
    means = samples.mean(axis=-1)
    centred = samples - means[:, None]
    errors = centred.std(axis=-1, ddof=1) / np.sqrt(count)
    if count < _FEW:
        law = -_student((np.arange(RESAMPLES) + 1.0) / (RESAMPLES + 1.0), count - 1)
        rows = np.broadcast_to(law, (len(samples), RESAMPLES))
        return means, errors, np.random.default_rng(count).permuted(rows, axis=1)  # K independent ones
    parts = [_pivots(centred, errors, counts) for counts in _resamples(count)]
    return means, errors, np.concatenate(parts, axis=-1)


def _pivots(centred: FloatArray, errors: FloatArray, counts: FloatArray) -> FloatArray:
    """``(mean* - mean) / error*`` of samples ``(K, n)`` around 0; ``counts`` is how often each is drawn."""
    count = centred.shape[-1]
    means = centred @ counts / count
    variances = np.square(centred) @ counts / count - np.square(means)
    spread = np.sqrt(np.maximum(variances, 0.0) / (count - 1))
    pivots = np.full(means.shape, np.nan)
    np.divide(means, spread, out=pivots, where=spread > _NO_SPREAD * errors[:, None])
    pivots[errors == 0.0] = 0.0
    return pivots


def _resamples(count: int) -> Iterator[FloatArray]:
    """Counts of each of n values in each resample, ``(n, R)``, in parts that fit into memory."""
    if count * RESAMPLES <= _KEPT:
        yield _kept_resamples(count)
    else:
        rng = np.random.default_rng(count)
        at_once = max(1, _KEPT // count)
        for start in range(0, RESAMPLES, at_once):
            yield _draw_resamples(rng, count, min(at_once, RESAMPLES - start))


@lru_cache(maxsize=16)
def _kept_resamples(count: int) -> FloatArray:
    return _draw_resamples(np.random.default_rng(count), count, RESAMPLES)


def _draw_resamples(rng: np.random.Generator, count: int, resamples: int) -> FloatArray:
    places = rng.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * count).reshape(resamples, count)
    return counts.T.astype(np.float64)


def share_interval(hits: int, count: int, confidence: float) -> tuple[float, float]:
    """The exact interval of a probability, from its hits in ``count`` samples (Clopper and Pearson).

    Example:
        >>> low, high = share_interval(10, 10, 0.95)
        >>> round(low, 3), high
        (0.692, 1.0)
    """
    error = (1.0 - confidence) / 2.0
    return float(least_share(hits, count, error)), float(largest_share(hits, count, error))


def least_share(hits: IntArray | int, count: int, error: float) -> FloatArray:
    """The lower end of :func:`share_interval`: the probability is below it with chance ``error`` at most."""
    from scipy.stats import beta  # imported here, as above

    hits = np.asarray(hits)
    return np.where(hits > 0, beta.ppf(error, np.maximum(hits, 1), count - hits + 1), 0.0)


def largest_share(hits: IntArray | int, count: int, error: float) -> FloatArray:
    """The upper end of :func:`share_interval`: the probability is above it with chance ``error`` at most."""
    from scipy.stats import beta

    hits = np.asarray(hits)
    return np.where(hits < count, beta.isf(error, hits + 1, np.maximum(count - hits, 1)), 1.0)
