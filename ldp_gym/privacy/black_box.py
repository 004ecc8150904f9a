"""A lower bound on eps from messages alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.privacy.exact import audited_table


@dataclass(frozen=True)
class EpsilonEstimate:
    """What a black-box audit found.

    Attributes:
        epsilon: the channel's eps is at least this, with the given confidence. It says nothing about how
            large eps really is: a small figure is no proof of privacy.
        confidence: of that statement.
        delta: the delta that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: how often it happened among the test messages of y and of y'.
        trials: how many test messages each of the two had.
    """

    epsilon: float
    confidence: float
    delta: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int


def estimate_epsilon(
    channel: Channel,
    candidates: FloatArray,
    trials: int = 1_000_000,
    confidence: float = 0.99,
    *,
    delta: float = 0.0,
    posterior: FloatArray | None = None,
    seed: int = 0,
) -> EpsilonEstimate:
    """A lower bound on a channel's eps from its messages alone (it needs ``privatize``).

    Half of the messages, of all labels, go into finding an event and a pair of labels; the other half, of
    those two labels, into testing it. As the event is fixed before the test, the Clopper-Pearson bounds on
    its two probabilities hold, and ``eps >= log((p_low - delta) / p'_high)`` with the given confidence.

    Args:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        trials: how many messages to draw in all.
        confidence: of the bound.
        delta: the delta to grant the channel.
        posterior: the public posterior, for an adaptive channel.
        seed: of the messages.
    """
    candidates = audited_table(channel, candidates)
    confidence = validation.fraction("confidence", confidence)
    delta = validation.probability_below_one("delta", delta)
    half = validation.whole("trials", trials, least=20 * channel.num_labels) // 2
    rng = np.random.default_rng(seed)

    def draw(label: int, count: int) -> FloatArray:
        messages = channel.privatize(np.full(count, label), candidates, rng, posterior)
        return np.asarray(messages, dtype=np.float64).reshape(count, -1)

    each = half // channel.num_labels
    explored = np.stack([draw(label, each) for label in range(channel.num_labels)])
    (first, second), event = _worst_event(explored, delta)
    tested = half // 2
    hits, others = (int(event(draw(label, tested)).sum()) for label in (first, second))
    epsilon = float(_epsilon_bound(np.array(hits), np.array(others), tested, 1.0 - confidence, delta))
    return EpsilonEstimate(
        max(0.0, epsilon), confidence, delta, (first, second), str(event), (hits, others), tested
    )


_CAUTION = 1e-6
"""At what error rate events are compared in the exploration: small, so that luck is not taken for a leak."""


@dataclass(frozen=True)
class _Event:
    """A set of messages: a score at, above or below a threshold; repeated values have their own."""

    weights: FloatArray
    threshold: float
    side: str
    atoms: FloatArray

    def __call__(self, messages: FloatArray) -> BoolArray:
        score = messages @ self.weights
        if self.side == "=":
            return score == self.threshold
        beyond = score >= self.threshold if self.side == ">=" else score <= self.threshold
        return beyond & ~np.isin(score, self.atoms)

    def __str__(self) -> str:
        used = np.flatnonzero(self.weights)
        where = f"coordinate {used[0]}" if len(used) == 1 else "a projection of the message"
        return f"{where} {self.side} {self.threshold:.6g}"


def _worst_event(messages: FloatArray, delta: float) -> tuple[tuple[int, int], _Event]:
    """The event and the pair of labels with the largest confident ratio, among messages ``(M, n, F)``."""
    features = messages.shape[-1]
    directions = list(np.eye(features))
    if features > 1:  # the direction in which two labels' means differ most, for vectors of noise
        means, spread = messages.mean(axis=1), messages.std(axis=(0, 1)) + 1e-300
        scaled = means / spread
        distance = np.square(scaled[:, None] - scaled).sum(axis=-1)
        one, other = np.unravel_index(distance.argmax(), distance.shape)
        directions.append((scaled[one] - scaled[other]) / spread)
    best: tuple[float, tuple[int, int], _Event] | None = None
    for weights in directions:
        score = messages @ weights
        values, counts = np.unique(score, return_counts=True)
        atoms = values[counts >= 10]
        smooth = np.sort(score[~np.isin(score, atoms)])
        cuts = smooth[np.unique(np.linspace(0, len(smooth) - 1, 99).astype(int))] if len(smooth) else smooth
        common = values[np.argsort(counts)[::-1][:500]]
        for side, thresholds in (("=", np.intersect1d(common, atoms)), (">=", cuts), ("<=", cuts)):
            for threshold in thresholds:
                event = _Event(weights, float(threshold), side, atoms)
                hits = event(messages).sum(axis=-1)
                pair = int(hits.argmax()), int(hits.argmin())
                bound = float(
                    _epsilon_bound(hits[pair[0]], hits[pair[1]], messages.shape[1], _CAUTION, delta)
                )
                if best is None or bound > best[0]:
                    best = bound, pair, event
    assert best is not None, "every message is an atom or has a threshold"
    return best[1], best[2]


def _epsilon_bound(hits: IntArray, others: IntArray, trials: int, error: float, delta: float) -> FloatArray:
    """``log((p_low - delta) / p'_high)`` with Clopper-Pearson bounds, each at half the error."""
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(error / 2.0, np.maximum(hits, 1), trials - hits + 1), 0.0)
    high = np.where(others < trials, beta.isf(error / 2.0, others + 1, np.maximum(trials - others, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
