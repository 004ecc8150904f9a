"""Sampled audit: the eps and delta of a custom channel, from its sampler and density alone.

An author's formula for delta, or list of worst messages, may be wrong. This audit uses neither. With messages
z of label y, which ``encode`` draws, and the density q that ``log_density`` declares,

    delta(y, y') = E_{z ~ q(.|y)} max(0, 1 - exp(eps + log q(z|y') - log q(z|y)))

is the least delta at eps for the labels y against y'. (That messages follow the density is tested by
:mod:`ldp_gym.privacy.misfit`.)

**Rare messages.** A delta of 1e-5 rests on messages that are rare. So half of the uniforms are drawn from
other laws: one of them close to 0 or 1 at a time, and all of them shifted towards messages that tell y from
y' (the cross-entropy method, on the normal scores of the uniforms). Every draw is weighted by the inverse of
the density of this mixture, so the weighted mean is unbiased and no weight is above 2 (importance sampling).

**Intervals.** A first sample of all labels chooses a few pairs; fresh samples estimate their deltas. The
bounds of :func:`~ldp_gym.statistics.least_mean` hold for any law, and the error is shared out among the pairs
(Bonferroni). So the lower end exceeds the true delta with probability 1e-6 at most.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.privacy.densities import (
    MOST_DENSITIES,
    TOLERANCE,
    ExactEpsilon,
    largest_ratio,
    log_densities,
)
from ldp_gym.statistics import largest_mean_below, least_mean

ERROR_RATE = 1e-6
"""Probability with which the interval of a delta misses it."""

_MOST_LABELS = 32
"""Largest number of labels whose messages are drawn in the first sample."""

_MOST_PAIRS = 3
"""Largest number of label pairs chosen by one criterion; there are two criteria."""

_UNCHANGED_SHARE = 0.5
"""Share of messages whose uniforms are drawn as in a game: no weight exceeds its inverse."""

_LEAST_UNIFORM = 1e-12
"""Least distance from 0 or 1 of a uniform that is drawn close to them."""

_SHIFTING_ROUNDS = 8
"""Largest number of rounds of the cross-entropy method."""

_SHIFTING_DRAWS = 1000
"""Messages in each round of the cross-entropy method."""

_ELITE_SHARE = 0.1
"""Share of the messages, those with the largest density ratios, towards which uniforms are shifted."""

_LARGEST_LOG_WEIGHT = 700.0
"""Largest logarithm of a density of shifted uniforms: the exponential of a larger one overflows."""

_SMALLEST_INSIDE = 2.0**-54
"""Smallest uniform that a channel is given."""

_LARGEST_INSIDE = 1.0 - 2.0**-53
"""Largest uniform that a channel is given: the largest float below 1."""

_LARGEST_LOG_RATIO = 50.0
"""Log density ratios are cut off here when label pairs are compared by their mean."""


class SampledDelta(NamedTuple):
    """The delta of the worst label pair that was found, with its interval.

    Attributes:
        value: the estimate.
        low: lower end of the interval; above the channel's delta with probability 1e-6 at most.
        high: upper end of this pair's interval; another pair's delta may be larger.
        labels: the pair ``(y, y')``.
    """

    value: float
    low: float
    high: float
    labels: tuple[int, int]


class MessageSample(NamedTuple):
    """Result of a sampled audit.

    Attributes:
        num_messages: number of messages that were drawn.
        largest: the largest density ratio among them.
        delta: the least delta at the promised eps.
        impossible: description of a message that a label sent and that has density 0 for it, or None.
    """

    num_messages: int
    largest: ExactEpsilon
    delta: SampledDelta
    impossible: str | None


def sample_messages(
    channel: Channel,
    candidates: FloatArray,
    posterior: FloatArray | None,
    samples: int,
    seed: int = 0,
) -> MessageSample:
    """Draw messages of a channel at candidates ``(K, M)``, and compare their densities with its promise."""
    audit = _SampledAudit(channel, candidates, posterior, np.random.default_rng(seed))
    pairs = audit.choose_pairs(samples // 4)
    samples_per_pair = samples // (2 * len(pairs))
    error_per_pair = ERROR_RATE / len(pairs)
    estimates = [audit.estimate_delta(pair, samples_per_pair, error_per_pair) for pair in pairs]
    worst = max(estimates, key=lambda estimate: (estimate.low, estimate.value))
    assert audit.largest is not None, "messages have been drawn"
    return MessageSample(audit.num_messages, audit.largest, worst, audit.impossible)


class _SampledAudit:
    """Messages of a channel at one table of candidates, and the largest density ratio among them so far."""

    def __init__(
        self,
        channel: Channel,
        candidates: FloatArray,
        posterior: FloatArray | None,
        rng: np.random.Generator,
    ) -> None:
        self.channel = channel
        self.candidates = candidates
        self.posterior = posterior
        self.rng = rng
        self.num_messages = 0
        self.largest: ExactEpsilon | None = None
        self.impossible: str | None = None

    def choose_pairs(self, samples: int) -> list[tuple[int, int]]:
        """Choose label pairs whose messages differ most: by delta, and by mean log density ratio."""
        num_labels = self.channel.num_labels
        senders = np.arange(num_labels)
        if num_labels > _MOST_LABELS:
            senders = np.sort(self.rng.choice(num_labels, _MOST_LABELS, replace=False))
        # Few enough for the memory, but at least four messages of each sender.
        samples = max(min(samples, MOST_DENSITIES // num_labels), 4 * len(senders))
        sender_indices = np.arange(samples) % len(senders)
        labels = senders[sender_indices]
        uniforms, weights = _draw_uniforms(self.rng, samples, self.channel.num_uniforms)
        log_density = self._log_density(labels, uniforms)

        own = log_density[np.arange(samples), labels]
        with np.errstate(
            invalid="ignore"
        ):  # inf - inf: neither label sends it, and it tells nothing
            log_ratio = np.nan_to_num(own[:, None] - log_density, nan=0.0, posinf=np.inf)
        # Means of the excess estimate delta; those of the evidence, a cut-off KL divergence of the labels.
        excess = weights[:, None] * _excess(log_ratio, self.channel.epsilon)
        evidence = weights[:, None] * np.minimum(log_ratio, _LARGEST_LOG_RATIO)

        pairs = self._largest_pairs(excess, sender_indices, senders)
        for pair in self._largest_pairs(evidence, sender_indices, senders):
            if pair not in pairs:
                pairs.append(pair)
        return pairs

    def _largest_pairs(
        self, criterion: FloatArray, sender_indices: IntArray, senders: IntArray
    ) -> list[tuple[int, int]]:
        """Up to three pairs of a sender and another label with the largest sums of a criterion.

        Args:
            criterion: value of each message for each other label, ``(n, M)``.
            sender_indices: index of each message's label in ``senders``, ``(n,)``.
            senders: the labels that sent messages.
        """
        sums = np.zeros((len(senders), self.channel.num_labels))
        np.add.at(sums, sender_indices, criterion)
        sums[np.arange(len(senders)), senders] = -np.inf  # a label against itself
        largest = np.argsort(-sums, axis=None, kind="stable")[:_MOST_PAIRS]
        rows, others = np.unravel_index(largest, sums.shape)
        pairs = []
        for row, other in zip(rows, others, strict=True):
            sender = int(senders[row])
            # With two labels there are fewer than three pairs, and a label against itself comes last.
            if sender != int(other):
                pairs.append((sender, int(other)))
        return pairs

    def estimate_delta(self, pair: tuple[int, int], samples: int, error: float) -> SampledDelta:
        """Estimate the delta of the first label against the second, with an interval."""
        shift = self._shift_towards(pair)
        uniforms, weights = _draw_uniforms(self.rng, samples, self.channel.num_uniforms, shift)
        log_ratio = self._log_ratio(pair, uniforms)
        terms = weights * _excess(log_ratio, self.channel.epsilon)
        low = least_mean(terms, error / 2.0)
        high = largest_mean_below(terms, 1.0 / _UNCHANGED_SHARE, error / 2.0)
        return SampledDelta(float(terms.mean()), low, min(high, 1.0), pair)

    def _shift_towards(self, pair: tuple[int, int]) -> FloatArray:
        """Find the mean of normal scores that makes large density ratios frequent (cross-entropy method).

        In each round, messages are drawn at the present mean; the next one is the mean of those with the
        largest ratios, weighted as if they had been drawn at mean 0.
        """
        from scipy.special import ndtr

        shift = np.zeros(self.channel.num_uniforms)
        for _ in range(_SHIFTING_ROUNDS):
            scores = shift + self.rng.standard_normal((_SHIFTING_DRAWS, len(shift)))
            log_ratio = self._log_ratio(pair, _inside(ndtr(scores)))
            quantile = np.quantile(log_ratio, 1.0 - _ELITE_SHARE, method="lower")
            level = min(float(quantile), self.channel.epsilon)
            elite = log_ratio >= level

            log_weights = 0.5 * shift @ shift - scores[elite] @ shift
            weights = np.exp(log_weights - log_weights.max())
            shift = weights @ scores[elite] / weights.sum()
            if level >= self.channel.epsilon:
                break
        return shift

    def _log_ratio(self, pair: tuple[int, int], uniforms: FloatArray) -> FloatArray:
        """``log q(z | y) - log q(z | y')`` of messages z of label y, ``(n,)``."""
        label, other = pair
        log_density = self._log_density(np.full(len(uniforms), label), uniforms, [label, other])
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(log_density[:, 0] - log_density[:, 1], nan=0.0, posinf=np.inf)

    def _log_density(
        self, labels: IntArray, uniforms: FloatArray, columns: list[int] | None = None
    ) -> FloatArray:
        """Draw the messages of labels ``(n,)`` from uniforms ``(n, U)``, and return their log densities.

        Also counts the messages, and records the largest density ratio among them.

        Args:
            labels: the labels that send messages.
            uniforms: a row for each message.
            columns: labels whose densities are returned, ``(n, columns)``; by default all labels.
        """
        messages = self.channel.encode(labels, self.candidates, uniforms, self.posterior)
        # A rare message may miss its space, which is no matter of privacy; else it is brought to its type.
        with contextlib.suppress(ValueError):
            messages = self.channel.check_messages(messages)
        self.num_messages += len(labels)
        parts = []
        start = 0
        for part, log_density in log_densities(
            self.channel, messages, self.candidates, self.posterior
        ):
            self._record_largest(labels[start : start + len(part)], part, log_density)
            start += len(part)
            if columns is not None:
                log_density = log_density[:, columns]
            parts.append(log_density)
        return np.concatenate(parts)

    def _record_largest(
        self, labels: IntArray, messages: Messages, log_density: FloatArray
    ) -> None:
        """Keep the largest density ratio so far, and a message that its own label cannot have sent.

        Args:
            labels: labels of the messages, ``(n,)``.
            messages: the messages, ``(n, *message_shape)``.
            log_density: their declared log densities for every label, ``(n, M)``.
        """
        own = log_density[np.arange(len(labels)), labels]
        is_finite = (log_density < np.inf).all(axis=-1)  # False for NaN
        is_impossible: BoolArray = (own == -np.inf) | ~is_finite
        if is_impossible.any():
            first = int(np.argmax(is_impossible))
            self.impossible = (
                f"a positive density of every message: {messages[first]!r}, sent by label "
                f"{labels[first]}, has {log_density[first]}"
            )

        # Impossible messages are left out, unless there are no others: some ratio must be reported.
        is_compared = ~is_impossible
        if is_impossible.all():
            is_compared = is_impossible
        without_nan = np.nan_to_num(log_density[is_compared], nan=-np.inf)
        largest = largest_ratio(without_nan, messages[is_compared])
        if self.largest is None or largest.epsilon > self.largest.epsilon:
            self.largest = largest


def _excess(log_ratio: FloatArray, epsilon: float) -> FloatArray:
    """``max(0, 1 - exp(eps - log ratio))``: the part of a message's probability that eps does not cover.

    A ratio that is above eps by rounding only counts as covered.
    """
    covered = epsilon + TOLERANCE * (1.0 + epsilon)
    return -np.expm1(np.minimum(covered - log_ratio, 0.0))


def _draw_uniforms(
    rng: np.random.Generator, count: int, num_uniforms: int, shift: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Draw uniforms ``(n, U)`` from the mixture, and the weights ``(n,)`` that make means unbiased.

    Half of the rows are uniform. The others have one number close to 0 or 1; with a shift ``(U,)`` of their
    normal scores, half of the others are shifted instead.
    """
    from scipy.special import ndtr, ndtri

    uniforms = _inside(rng.random((count, num_uniforms)))
    if num_uniforms == 0:
        return uniforms, np.ones(count)
    shifted_share = 0.0
    if shift is not None:
        shifted_share = (1.0 - _UNCHANGED_SHARE) / 2.0
    edge_share = 1.0 - _UNCHANGED_SHARE - shifted_share
    component = rng.random(count)  # decides how a row is drawn

    at_edge = np.flatnonzero(component < edge_share)
    distances = _LEAST_UNIFORM ** rng.random(len(at_edge))  # log-uniform
    is_near_one = rng.random(len(at_edge)) < 0.5
    columns = rng.integers(num_uniforms, size=len(at_edge))
    uniforms[at_edge, columns] = _inside(np.where(is_near_one, 1.0 - distances, distances))

    density = np.full(count, _UNCHANGED_SHARE)
    if shift is not None:
        shifted = np.flatnonzero(component >= 1.0 - shifted_share)
        scores = shift + rng.standard_normal((len(shifted), num_uniforms))
        uniforms[shifted] = _inside(ndtr(scores))
        log_shifted_density = ndtri(uniforms) @ shift - 0.5 * shift @ shift
        shifted_density = np.exp(np.minimum(log_shifted_density, _LARGEST_LOG_WEIGHT))
        density += shifted_share * shifted_density

    near_zero = _log_uniform_density(uniforms).mean(axis=-1)
    near_one = _log_uniform_density(1.0 - uniforms).mean(axis=-1)
    density += edge_share * (near_zero + near_one) / 2.0
    return uniforms, 1.0 / density


def _log_uniform_density(uniforms: FloatArray) -> FloatArray:
    """Density of a number in [1e-12, 1] whose logarithm is uniform."""
    density = 1.0 / (np.maximum(uniforms, _LEAST_UNIFORM) * -math.log(_LEAST_UNIFORM))
    return np.where(uniforms >= _LEAST_UNIFORM, density, 0.0)


def _inside(uniforms: FloatArray) -> FloatArray:
    """Uniforms moved strictly inside (0, 1)."""
    return np.clip(uniforms, _SMALLEST_INSIDE, _LARGEST_INSIDE)
