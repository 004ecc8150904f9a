"""Estimates with intervals, p-values and verdicts: every formula that decides what the data show.

**Means.** The one method of the package is a bootstrap-t. Risks are skewed: a few unlucky episodes pay
several times the mean. Student's interval is then too short on their side, and covers the expectation of 16
episodes in 86% of cases instead of 95%. The bootstrap-t estimates from the sample itself how far a
studentized mean strays: it draws samples from the sample, and takes the quantiles of
``(mean* - mean) / error*`` in place of Student's. Three things are added for few values:

- A tail that the sample has not seen is still missing, so the nominal level is stricter
  (:func:`nominal_level`).
- A sample with a large outlier gets a very long interval, though its mean is too large already. So no
  quantile is more than 1.25 times Student's of the same level.
- A sample that is skewed to one side gets a short end on the other, though the values that it lacks may lie
  there: paired differences have outliers on both sides. So no quantile is less than Student's of the
  requested level, and the interval contains Student's.

``benchmarks/studies/interval_coverage.py`` measures the coverage. All samples of n values are
resampled in the same way.

**Verdicts.** The data show a claim when they exclude its opposite, and contradict it when they exclude the
claim; often they do neither. A claim that its *control* does not break is vacuous: an upper bound that a
learner that never learns does not exceed either, or a lower bound that holds without privacy too. Of many
false claims some would be shown by chance: Holm's (1979) p-values hold the chance of any such mistake in a
family below 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray

CONFIDENCE = 0.95
"""Confidence of intervals and of families of verdicts, unless another is given."""

RESAMPLES = 2000
"""Number of bootstrap samples."""

_FEW = 6
"""Number of values below which Student's law replaces resamples."""

_LARGEST_QUANTILE_RATIO = 1.25
"""Largest ratio of a quantile to Student's of the same level."""

_CACHED_FLOATS = 1_000_000
"""Largest size of resamples that are kept for the next sample of n values: 8 MB."""

_NO_SPREAD = 1e-9
"""Relative standard error, or relative length of an interval, below which a sample counts as constant."""

_NEARLY_CONSTANT = 1e-3
"""Relative length of an interval below which a sample counts as nearly constant."""

ALIKE = "episodes alike: rare failures may be unseen"
"""Text in place of an interval where episodes are nearly alike, as they say nothing about rare events."""


# -- Estimates ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval, whose ends are infinite if it is not known.

    Where a sample is constant or nearly so, an event that none of its n values shows may be rare, not absent:
    with 95% confidence it has a probability of at most ``3 / n`` (the rule of three).

    Attributes:
        value: the number.
        low: lower end of the interval.
        high: upper end of the interval.
        unseen: ``3 / n`` where the sample is constant or nearly so; 0 elsewhere.

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

    @property
    def known(self) -> bool:
        """True if both ends of the interval are finite."""
        return bool(np.isfinite([self.low, self.high]).all())

    @property
    def half(self) -> float:
        """Half of the length of the interval, infinite if an end is not known."""
        return (self.high - self.low) / 2.0

    def contains(self, value: float) -> bool:
        """Tell if a value lies in the interval."""
        return self.low <= value <= self.high

    def __truediv__(self, scale: float) -> Estimate:
        return Estimate(self.value / scale, self.low / scale, self.high / scale, self.unseen)

    @property
    def short(self) -> str:
        """The value without its interval, as text."""
        return self._format(self.value)

    @property
    def interval(self) -> str:
        """The interval in brackets; :data:`ALIKE` if the episodes are nearly alike; else an empty text."""
        if self.unseen > 0.0:
            share = min(self.unseen, 1.0)
            return f"{ALIKE}, in up to {share:.1%} of them"
        if not self.known:
            return ""

        low = self._format(self.low)
        high = self._format(self.high)
        if low == high:  # too short for the digits that are shown
            return ALIKE
        return f"[{low}, {high}]"

    def warning(self, max_loss: float) -> str:
        """Sentence about rare failures that a nearly constant sample may hide; empty if the sample varies.

        Args:
            max_loss: largest loss of one episode.
        """
        if self.unseen == 0.0:  # the sample varies
            return ""
        share = min(self.unseen, 1.0)  # 3 / n exceeds 1 for n < 3
        return (
            f"rare failures may be unseen: up to {share:.1%} of the episodes, at most {max_loss:g} each, "
            f"would add up to {share * max_loss:.3g}"
        )

    def _format(self, number: float) -> str:
        """Number with as many decimals as suit the size of the estimate: 0, 1 or 3."""
        size = abs(self.value)
        if size >= 1000:
            digits = 0
        elif size >= 10:
            digits = 1
        else:
            digits = 3
        return f"{number:z,.{digits}f}"  # z: no minus sign before a zero

    def __str__(self) -> str:
        interval = self.interval
        if interval.startswith(ALIKE):
            interval = f"({interval})"
        return f"{self.short} {interval}".rstrip()


def mean(samples: FloatArray, confidence: float = CONFIDENCE, least: float = -np.inf) -> Estimate:
    """Mean of samples ``(n,)``, with an interval of their expectation.

    A single value and a constant sample have no interval.

    Args:
        samples: ``(n,)``.
        confidence: confidence of the interval.
        least: known lower bound on the expectation; the interval does not go below it.

    Example:
        >>> print(mean(np.arange(100.0) ** 2))
        3,284 [2,640, 4,004]
    """
    one_row = np.asarray(samples)[None]
    return largest_mean(one_row, confidence, least)


def largest_mean(
    samples: FloatArray, confidence: float = CONFIDENCE, least: float = -np.inf
) -> Estimate:
    """Largest of K means of samples ``(K, n)``, with an interval of the largest expectation.

    The interval lies too high only if one of K lower ends does, so these hold together: their quantile is
    that of the largest pivot. It lies too low only if the upper end of the largest expectation does: one
    suffices. All K samples contribute to a pivot's quantile.

    Args:
        samples: ``(K, n)``.
        confidence: confidence of the interval.
        least: known lower bound on the expectations; the interval does not go below it.
    """
    value = float(samples.mean(axis=-1).max())
    if not _usable(samples):
        return Estimate(value)

    num_samples, count = samples.shape
    means, errors, pivots = _studentize(samples)
    tail = nominal_level(1.0 - confidence, count) / 2.0

    # Quantiles of the pivots, between Student's and 1.25 times Student's of the nominal level.
    smallest_quantile = _student((1.0 - confidence) / 2.0, count - 1)
    largest_above = _LARGEST_QUANTILE_RATIO * _student(tail / num_samples, count - 1)
    largest_below = _LARGEST_QUANTILE_RATIO * _student(tail, count - 1)
    largest_pivots = np.fmax.reduce(pivots, axis=0)  # fmax: a NaN is no pivot
    quantile_above = min(_quantile(largest_pivots, 1.0 - tail), largest_above)
    quantile_below = min(-_quantile(pivots, tail), largest_below)

    # A mean far above its expectation has a large pivot, so the upper quantile sets the lower end.
    low = float((means - max(quantile_above, smallest_quantile) * errors).max())
    high = float((means + max(quantile_below, smallest_quantile) * errors).max())

    # A nearly constant sample says nothing about rare events, a constant one has no interval either.
    length = high - low
    size = max(abs(low), abs(high))
    unseen = 0.0
    if length <= _NEARLY_CONSTANT * size:
        unseen = 3.0 / count
    if length <= _NO_SPREAD * size:
        low = -np.inf
        high = np.inf
    return Estimate(value, max(low, least), high, unseen)


def largest_quantile(
    samples: FloatArray, share: float, confidence: float = CONFIDENCE, least: float = -np.inf
) -> Estimate:
    """Largest of K quantiles of samples ``(K, n)``, with an interval of the largest true quantile.

    The ends are order statistics, whatever the laws: the number of values up to the quantile is
    binomial. As in :func:`largest_mean`, the interval lies too high only if one of K lower ends does,
    and too low only if the upper end at the largest quantile does. An end that no order statistic
    gives at this confidence is ``least`` or infinite.

    Args:
        samples: ``(K, n)``.
        share: probability, in (0, 1), of a value up to the quantile.
        confidence: confidence of the interval.
        least: known lower bound on the samples.

    Example:
        >>> print(largest_quantile(np.arange(1.0, 101.0)[None], 0.5))
        50.0 [40.0, 61.0]
    """
    from scipy.special import bdtr  # a slow import that playing does not need

    ordered = np.sort(samples, axis=-1)
    count = ordered.shape[-1]
    index = max(int(np.ceil(share * count)) - 1, 0)
    value = float(ordered[:, index].max())

    # P(at most j of n values lie up to the quantile) is at least this, for j = 0..n.
    at_most = bdtr(np.arange(count + 1), count, share)
    error = (1.0 - confidence) / 2.0
    rank_below = np.count_nonzero(at_most <= error / len(samples))
    rank_above = np.count_nonzero(at_most < 1.0 - error) + 1

    # Ranks count from 1. Rank 0 or n + 1: no value lies far enough out.
    low = least
    if rank_below >= 1:
        low = max(least, float(ordered[:, rank_below - 1].max()))
    high = np.inf
    if rank_above <= count:
        high = float(ordered[:, rank_above - 1].max())
    return Estimate(value, low, high)


def difference(samples: FloatArray, others: FloatArray, comparisons: int = 1) -> Estimate:
    """Mean difference of two learners on the same tapes, paired episode by episode.

    With several comparisons all intervals hold together with 95% confidence (Bonferroni). If the difference
    is the same in every episode, as between two learners that ignore the messages, both ends are that number.

    Args:
        samples: total losses of one learner, ``(n,)``.
        others: total losses of the other in the same episodes, ``(n,)``.
        comparisons: number of intervals that are to hold together.
    """
    differences = paired(samples, others)
    confidence = 1.0 - (1.0 - CONFIDENCE) / comparisons
    with np.errstate(invalid="ignore"):  # a learner's risk may be infinite
        estimate = mean(differences, confidence)
        is_constant = len(differences) > 1 and np.ptp(differences) == 0.0
    if is_constant:
        return replace(estimate, low=estimate.value, high=estimate.value)
    return estimate


def paired(samples: FloatArray, others: FloatArray | float) -> FloatArray:
    """Differences of samples ``(..., n)`` and others; 0 where they agree to nine digits, up to rounding."""
    with np.errstate(invalid="ignore"):  # two infinite risks have no difference
        differences = np.subtract(samples, others)
        rounding = _NO_SPREAD * np.minimum(np.abs(samples), np.abs(others))
        return np.where(np.abs(differences) <= rounding, 0.0, differences)


def slope(positions: Sequence[float], samples: Sequence[FloatArray]) -> Estimate:
    """Least-squares slope of log mean against log position, with its interval.

    Sample i of every position has the same seed; positions may have further ones. The episodes' contributions
    to the slope are averaged, so that whatever the positions have in common cancels. The slope is NaN if a
    mean is 0 or infinite.

    Args:
        positions: x values, such as numbers of rounds.
        samples: values of the episodes at each position, ``(n,)`` or more.
    """
    contributions = slope_contributions(positions, samples)
    if not np.isfinite(contributions).all():
        return Estimate(np.nan)
    return mean(contributions)


def slope_contributions(positions: Sequence[float], samples: Sequence[FloatArray]) -> FloatArray:
    """Contributions ``(n,)`` of the episodes to a slope of log mean against log position.

    The slope is their mean (delta method). All are NaN if a mean is 0 or infinite.

    Args:
        positions: x values, such as numbers of rounds.
        samples: values of the episodes at each position, ``(n,)`` or more.
    """
    count = min(len(values) for values in samples)
    episodes = np.stack([np.asarray(values)[:count] for values in samples])
    means = episodes.mean(axis=-1)
    if not (means > 0.0).all() or not np.isfinite(means).all():
        return np.full(count, np.nan)

    # The least-squares slope of y against x is leverage @ y.
    x = np.log(np.asarray(positions, dtype=np.float64))
    deviations = x - x.mean()
    leverage = deviations / np.square(deviations).sum()
    fitted_slope = float(leverage @ np.log(means))

    # d log(mean) = d mean / mean
    return fitted_slope + (leverage / means) @ (episodes - means[:, None])


def score_totals(uniform: FloatArray, totals: FloatArray, bayes: FloatArray) -> float | None:
    """Score ``(uniform - risk) / (uniform - Bayes)`` of a learner; an infinite risk scores -inf.

    None if the data do not show, at 95%, that Bayes beats the uniform mixture.

    Args:
        uniform: total KL of the uniform mixture in each episode, ``(n,)``.
        totals: total KL of the learner in the same episodes, ``(n,)``.
        bayes: total KL of Bayes in the same episodes, ``(n,)``.
    """
    unit = _unit_if_finite(uniform, bayes)
    if unit is None:
        return None
    return float((uniform.mean() - totals.mean()) / unit)


def unit_of_score(gains: FloatArray) -> float | None:
    """Denominator of a score: the mean of Bayes' gains ``uniform - Bayes`` in some episodes ``(n,)``.

    None if the data do not show, at 95%, that Bayes beats the uniform mixture.
    """
    if p_above(gains, 0.0) > 1.0 - CONFIDENCE:
        return None
    return float(gains.mean())


def _unit_if_finite(uniform: FloatArray, bayes: FloatArray) -> float | None:
    """Denominator of a score, from total KL ``(n,)``; None if there is none or a total is infinite."""
    if not np.isfinite([uniform, bayes]).all():
        return None
    return unit_of_score(uniform - bayes)


def score_estimate(uniform: FloatArray, totals: FloatArray, bayes: FloatArray) -> Estimate | None:
    """Score ``(uniform - risk) / (uniform - Bayes)`` of a learner, with its interval.

    The episodes' contributions to the ratio are averaged (delta method). None if the data do not show, at
    95%, that Bayes beats the uniform mixture.

    Args:
        uniform: total KL of the uniform mixture in each episode, ``(n,)``.
        totals: total KL of the learner in the same episodes, ``(n,)``.
        bayes: total KL of Bayes in the same episodes, ``(n,)``.

    Example:
        >>> bayes = np.arange(100.0)
        >>> estimate = score_estimate(bayes + 10.0, bayes + 2.0, bayes)
        >>> estimate.value, estimate.low, estimate.high
        (0.8, 0.8, 0.8)
    """
    value = score_totals(uniform, totals, bayes)
    if value is None:
        return None
    gains = uniform - totals
    units = uniform - bayes
    if not np.isfinite(gains).all():
        return Estimate(value)

    contributions = value + (gains - value * units) / units.mean()
    if np.ptp(contributions) <= _NO_SPREAD * abs(value):  # the same score in every episode
        return Estimate(value, value, value)
    return replace(mean(contributions), value=value)


def score_of_runs(uniform: FloatArray, totals: FloatArray, bayes: FloatArray) -> Estimate | None:
    """Interquartile mean of the scores of training runs, with its hierarchical bootstrap interval.

    Training runs and test episodes are both drawn again. The runs play the same episodes, so a
    resample draws one set of episodes for all of them (Owen 2007, The pigeonhole bootstrap). The
    interval holds the middle 95% of the resamples. Of three runs or fewer the mean is taken. None if the
    data do not show, at 95%, that Bayes beats the uniform mixture.

    Args:
        uniform: total KL of the uniform mixture in each episode, ``(n,)``.
        totals: total KL of each run in each episode, ``(runs, n)``.
        bayes: total KL of Bayes in each episode, ``(n,)``.
    """
    from scipy.stats import trim_mean  # a slow import that playing does not need

    unit = _unit_if_finite(uniform, bayes)
    if unit is None:
        return None
    scores = (uniform.mean() - totals.mean(axis=1)) / unit
    quarter = 0.25  # cut from each end by the interquartile mean
    value = float(trim_mean(scores, quarter))
    if not np.isfinite(totals).all():
        return Estimate(value)

    num_runs, num_episodes = totals.shape
    rng = np.random.default_rng(num_episodes)
    episode_counts = _draw_resamples(rng, num_episodes, RESAMPLES)  # (n, resamples)
    gains = (uniform - totals) @ episode_counts  # (runs, resamples)
    units = (uniform - bayes) @ episode_counts  # (resamples,)
    drawn_runs = rng.integers(num_runs, size=(num_runs, RESAMPLES))
    resampled_scores = np.take_along_axis(gains / units, drawn_runs, axis=0)
    means = trim_mean(resampled_scores, quarter, axis=0)

    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Estimate(value, float(low), float(high))


# -- P-values -----------------------------------------------------------------------------------------------


def nominal_level(level: float, count: int) -> float:
    """Level at which quantiles are taken, so that intervals of ``count`` values err at about ``level``.

    It is stricter for few values, which have not seen the tail. For a level of 0.05 it is 0.0075 with 16
    values and 0.029 with 100. Both constants were fitted to the measured coverage.
    """
    reduction = min(0.85, 4.2 / np.sqrt(count))
    return float(level * (1.0 - reduction))


def p_above(samples: FloatArray, value: float) -> float:
    """p-value of "expectation <= value"; of the largest expectation for samples ``(K, n)``.

    It is two-sided: the least ``1 - confidence`` at which the bootstrap-t interval lies above ``value``.
    A constant sample counts as exact: it belongs to a learner whose loss no message changes. Fewer than two
    values, or an infinite one, refute nothing: the p-value is 1.
    """
    samples = np.atleast_2d(paired(samples, value))
    if not _usable(samples):
        return 1.0

    num_samples, count = samples.shape
    means, errors, pivots = _studentize(samples)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = means / errors
    # A constant sample at the value says nothing: its distance is NaN.
    distance = np.fmax.reduce(distances, initial=-np.inf)

    # The share of pivots beyond the distance counts the sample's own: hence the ones.
    largest_pivots = np.fmax.reduce(pivots, axis=0)
    num_beyond = 1 + np.count_nonzero(largest_pivots >= distance)
    num_pivots = 1 + np.count_nonzero(~np.isnan(largest_pivots))
    share_of_pivots = num_beyond / num_pivots

    # A quantile is at most 1.25 times Student's (of K samples, by Bonferroni), and at least Student's.
    longest_tail = num_samples * _tail(distance / _LARGEST_QUANTILE_RATIO, count - 1)
    bootstrap_p = min(share_of_pivots, longest_tail) / nominal_level(1.0, count)
    one_sided = max(bootstrap_p, _tail(distance, count - 1))
    return float(min(1.0, 2.0 * one_sided))


def p_below(samples: FloatArray, value: float) -> float:
    """p-value of "expectation >= value"; of the largest expectation for samples ``(K, n)``.

    All K must lie below to refute it, so it is the largest of the K p-values. It is 1 if the samples are
    nearly constant: a rare failure, which none of them shows, may raise the expectation.
    """
    rows = np.atleast_2d(samples)
    estimate = largest_mean(rows)
    nearly_constant = estimate.known and estimate.unseen > 0.0
    if nearly_constant:
        return 1.0
    return max(p_above(-row, -value) for row in rows)


def _quantile(pivots: FloatArray, share: float) -> float:
    """Quantile of the pivots of resamples, by Weibull's rule, rank / (n + 1)."""
    return float(np.nanquantile(pivots, share, method="weibull"))


def _student(tail: Any, freedom: int) -> Any:
    """Value that Student's t with ``freedom`` degrees of freedom exceeds with probability ``tail``."""
    from scipy.special import stdtrit  # a slow import that playing does not need

    return -stdtrit(freedom, tail)


def _tail(distance: float, freedom: int) -> float:
    """Probability that Student's t with ``freedom`` degrees of freedom exceeds a distance."""
    from scipy.special import stdtr  # a slow import that playing does not need

    return float(stdtr(freedom, -distance))


def _usable(samples: FloatArray) -> bool:
    """True if samples ``(..., n)`` have an interval: at least two values, all finite."""
    return samples.shape[-1] >= 2 and bool(np.isfinite(samples).all())


def _studentize(samples: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means ``(K,)`` and standard errors ``(K,)`` of samples ``(K, n)``, and pivots ``(K, R)`` of resamples.

    A pivot is ``(mean* - mean) / error*``, where the star marks a resample. Below six values resamples say
    too little, and the pivots are quantiles of Student's t in random order.
    """
    num_samples, count = samples.shape
    means = samples.mean(axis=-1)
    centred = samples - means[:, None]
    errors = centred.std(axis=-1, ddof=1) / np.sqrt(count)

    if count < _FEW:
        tails = (np.arange(RESAMPLES) + 1.0) / (RESAMPLES + 1.0)
        quantiles = -_student(tails, count - 1)
        rows = np.broadcast_to(quantiles, (num_samples, RESAMPLES))
        # Another order in each row: the K samples are independent.
        pivots = np.random.default_rng(count).permuted(rows, axis=1)
    else:
        parts = [_pivots(centred, errors, draws) for draws in _resamples(count)]
        pivots = np.concatenate(parts, axis=-1)
    return means, errors, pivots


def _pivots(centred: FloatArray, errors: FloatArray, draws: FloatArray) -> FloatArray:
    """Pivots ``mean* / error*`` ``(K, R)`` of resamples of centred samples ``(K, n)``.

    NaN for a resample that is constant, as ``error*`` is 0; 0 for all resamples of a constant sample.

    Args:
        centred: samples with their mean subtracted, ``(K, n)``.
        errors: their standard errors, ``(K,)``.
        draws: number of times that each value is drawn into each resample, ``(n, R)``.
    """
    count = centred.shape[-1]
    means = centred @ draws / count
    variances = np.square(centred) @ draws / count - np.square(means)
    resampled_errors = np.sqrt(np.maximum(variances, 0.0) / (count - 1))  # rounding may go below 0

    pivots = np.full(means.shape, np.nan)
    varies = resampled_errors > _NO_SPREAD * errors[:, None]
    np.divide(means, resampled_errors, out=pivots, where=varies)
    pivots[errors == 0.0] = 0.0
    return pivots


def _resamples(count: int) -> Iterator[FloatArray]:
    """Number of times that each of n values is drawn into each resample, ``(n, R)``, in parts.

    A part fits into memory. All samples of n values are resampled in the same way: the seed is n.
    """
    if count * RESAMPLES <= _CACHED_FLOATS:
        yield _cached_resamples(count)
        return

    rng = np.random.default_rng(count)
    part_size = max(1, _CACHED_FLOATS // count)
    for start in range(0, RESAMPLES, part_size):
        yield _draw_resamples(rng, count, min(part_size, RESAMPLES - start))


@lru_cache(maxsize=16)
def _cached_resamples(count: int) -> FloatArray:
    """Number of times that each of n values is drawn into each resample, ``(n, R)``; cached."""
    return _draw_resamples(np.random.default_rng(count), count, RESAMPLES)


def _draw_resamples(rng: np.random.Generator, count: int, resamples: int) -> FloatArray:
    """Draw n of n values with replacement, R times; return how often each was drawn, ``(n, R)``."""
    drawn = rng.integers(count, size=(resamples, count))
    # One histogram for all resamples: resample r has the bins r n to (r + 1) n - 1.
    bins = drawn + count * np.arange(resamples)[:, None]
    counts = np.bincount(bins.ravel(), minlength=resamples * count)
    return counts.reshape(resamples, count).T.astype(np.float64)


# -- Shares -------------------------------------------------------------------------------------------------


def least_share(hits: IntArray | int, count: int, error: float) -> FloatArray:
    """Lower bound on a probability, from hits in ``count`` samples: wrong with chance ``error`` at most.

    It is the exact bound of Clopper and Pearson. Without a hit it is 0.
    """
    from scipy.stats import beta  # a slow import that playing does not need

    hits = np.asarray(hits)
    at_least_one = np.maximum(hits, 1)  # beta has no parameter 0
    bounds = beta.ppf(error, at_least_one, count - hits + 1)
    return np.where(hits > 0, bounds, 0.0)


def largest_share(hits: IntArray | int, count: int, error: float) -> FloatArray:
    """Upper bound on a probability, from hits in ``count`` samples: wrong with chance ``error`` at most.

    It is the exact bound of Clopper and Pearson. If every sample is a hit it is 1.
    """
    from scipy.stats import beta  # a slow import that playing does not need

    hits = np.asarray(hits)
    misses = np.maximum(count - hits, 1)  # beta has no parameter 0
    bounds = beta.isf(error, hits + 1, misses)
    return np.where(hits < count, bounds, 1.0)


# -- Means without assumptions ------------------------------------------------------------------------------

_STAKES = np.geomspace(1e-3, 0.9, 12)
"""Shares of the capital that are staked, one for each of the bets behind :func:`least_mean`."""

_BISECTIONS = 16
"""Number of halvings of an interval in :func:`least_mean`: its error is 1.5e-5 of the mean."""


def least_mean(samples: FloatArray, error: float) -> float:
    """Lower bound on the mean of nonnegative samples ``(n,)``: wrong with chance ``error`` at most.

    It holds for every n and every law, however rare its large values are. If the mean is at most m,
    a bet of the share c has the expected capital ``E prod_i (1 + c (x_i / m - 1)) <= 1``, and so has
    the average over several shares c. So it exceeds ``1 / error`` with probability ``error`` at most
    (Markov's inequality), and every m at which it does is refuted (Waudby-Smith and Ramdas 2024).

    Example:
        >>> rare = np.repeat([0.0, 1.0], [9_900, 100])
        >>> 0.005 < least_mean(rare, error=1e-6) < 0.01
        True
    """
    positive = samples[samples > 0.0]
    if positive.size == 0:
        return 0.0
    num_zeros = samples.size - positive.size

    # The refuted means are an interval from 0: bisect for its end.
    refuted = 0.0
    plausible = float(samples.mean())
    for _ in range(_BISECTIONS):
        middle = (refuted + plausible) / 2.0
        if _is_mean_refuted(middle, positive, num_zeros, error):
            refuted = middle
        else:
            plausible = middle
    return refuted


def _is_mean_refuted(mean: float, positive: FloatArray, num_zeros: int, error: float) -> bool:
    """Tell if bets refute that samples have at most this mean: wrong with chance ``error`` at most.

    A bet of the share c multiplies its capital by ``1 + c (x / mean - 1)`` at each sample x. The mean is
    refuted if the average capital of all bets, which begin with 1, exceeds ``1 / error``.

    Args:
        mean: the mean to be refuted.
        positive: the samples above 0, ``(n,)``.
        num_zeros: number of the other samples, which are 0.
        error: largest chance that a mean which is true is refuted.
    """
    log_lost = num_zeros * np.log1p(-_STAKES)
    gains = positive / mean - 1.0
    log_capitals = log_lost + np.log1p(_STAKES[:, None] * gains).sum(axis=-1)
    log_threshold = -math.log(error) + math.log(_STAKES.size)  # of the sum instead of the average
    return bool(np.logaddexp.reduce(log_capitals) > log_threshold)


def largest_mean_below(samples: FloatArray, most: float, error: float) -> float:
    """Upper bound on the mean of samples ``(n,)`` in ``[0, most]``: wrong with chance ``error`` at most."""
    return most - least_mean(most - samples, error)


# -- Verdicts -----------------------------------------------------------------------------------------------


class Verdict(Enum):
    """Relation of the data to a claim, as it is written."""

    SHOWN = "shown"
    NOT_CONTRADICTED = "not contradicted"
    VACUOUS = "vacuous here"
    CONTRADICTED = "contradicted"

    @property
    def mark(self) -> str:
        """Sign in front of a finding; a vacuous claim has the dot of findings that claim nothing."""
        marks = {
            Verdict.SHOWN: "✓",
            Verdict.NOT_CONTRADICTED: "~",
            Verdict.VACUOUS: "· (vacuous here)",
            Verdict.CONTRADICTED: "✗",
        }
        return marks[self]


@dataclass(frozen=True)
class PValues:
    """Two p-values about a claim.

    Attributes:
        p_for: p-value of the claim's opposite: small where the data show the claim.
        p_against: p-value of the claim: small where the data show the opposite.
        vacuous: True if the control of the claim does not break it.
    """

    p_for: float
    p_against: float
    vacuous: bool = False


def above(samples: FloatArray, value: float, control: FloatArray | float | None = None) -> PValues:
    """Test the claim that an expectation is above a value.

    Args:
        samples: ``(n,)``; of shape ``(K, n)`` they test the largest of K expectations.
        value: the value.
        control: expectation or samples of a control that must break the claim: the claim is vacuous unless
            they contradict it at 5%. For lower bounds the control plays without privacy.
    """
    samples = validation.numbers("samples", samples)
    if samples.ndim not in (1, 2) or np.isnan(samples).any():
        raise ValueError(f"samples must be numbers of shape (n,) or (K, n), got {samples}")
    value = validation.real("value", value)
    p_values = PValues(p_for=p_above(samples, value), p_against=p_below(samples, value))
    if control is None:
        return p_values
    return replace(p_values, vacuous=not _broken(above, value, control))


def below(samples: FloatArray, value: float, control: FloatArray | float | None = None) -> PValues:
    """Test the claim that an expectation is below a value.

    Args:
        samples: ``(n,)``; of shape ``(K, n)`` they test the largest of K expectations.
        value: the value.
        control: expectation or samples of a control that must break the claim: the claim is vacuous unless
            they contradict it at 5%. For upper bounds the control is a learner that never learns.
    """
    opposite = above(samples, value)
    p_values = PValues(p_for=opposite.p_against, p_against=opposite.p_for)
    if control is None:
        return p_values
    return replace(p_values, vacuous=not _broken(below, value, control))


def _broken(claim: Callable[..., PValues], value: float, control: FloatArray | float) -> bool:
    """Tell if a control contradicts a claim about a value at 5%.

    Args:
        claim: test of the claim, :func:`above` or :func:`below`.
        value: the value that the claim is about.
        control: samples of the control, or its expectation.
    """
    if np.ndim(control) == 0:
        samples = np.full(2, control)  # a constant sample, which counts as exact
    else:
        samples = np.asarray(control)
    return claim(samples, value).p_against <= 1.0 - CONFIDENCE


def certain(holds: bool) -> PValues:
    """P-values of a claim about computed numbers, which chance does not affect."""
    if holds:
        return PValues(p_for=0.0, p_against=1.0)
    return PValues(p_for=1.0, p_against=0.0)


def conjunction(claims: Iterable[PValues]) -> PValues:
    """P-values of the claim that several claims hold together.

    ``p_for`` is the largest of the claims that are not vacuous. ``p_against`` is the smallest of all claims,
    times their number (Bonferroni). The conjunction is vacuous if all its claims are.
    """
    claims = list(claims)
    if not claims:  # nothing was tested
        return PValues(p_for=1.0, p_against=1.0)
    smallest = min(claim.p_against for claim in claims)
    p_against = min(1.0, len(claims) * smallest)

    not_vacuous = [claim.p_for for claim in claims if not claim.vacuous]
    p_for = max(not_vacuous, default=1.0)
    return PValues(p_for, p_against, vacuous=len(not_vacuous) == 0)


def verdicts(family: Sequence[PValues]) -> list[Verdict]:
    """Verdicts on the claims of a family: the chance that any is mistaken is at most 5% (Holm).

    Example:
        >>> clear, less_clear, unclear = (PValues(p, 1.0) for p in (0.01, 0.04, 0.3))
        >>> [verdict.value for verdict in verdicts([clear, less_clear])]
        ['shown', 'shown']
        >>> [verdict.value for verdict in verdicts([clear, less_clear, unclear])]
        ['shown', 'not contradicted', 'not contradicted']
    """
    level = 1.0 - CONFIDENCE
    shown = holm([claim.p_for for claim in family]) <= level
    contradicted = holm([claim.p_against for claim in family]) <= level
    result = []
    for claim, is_shown, is_contradicted in zip(family, shown, contradicted, strict=True):
        if is_contradicted:
            verdict = Verdict.CONTRADICTED
        elif claim.vacuous:
            verdict = Verdict.VACUOUS
        elif is_shown:
            verdict = Verdict.SHOWN
        else:
            verdict = Verdict.NOT_CONTRADICTED
        result.append(verdict)
    return result


def holm(p_values: Sequence[float]) -> FloatArray:
    """Holm's adjusted p-values: the chance that any true hypothesis has one of a or less is at most a.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none is less than one before it.
    """
    num_values = len(p_values)
    order = np.argsort(p_values)
    factors = num_values - np.arange(num_values)
    multiplied = np.asarray(p_values)[order] * factors
    increasing = np.maximum.accumulate(multiplied)

    adjusted = np.empty(num_values)
    adjusted[order] = np.minimum(1.0, increasing)
    return adjusted
