"""Black-box audit: a lower bound on eps from messages only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.privacy.exact import check_situation
from ldp_gym.statistics import largest_share, least_share

_CAUTION = 1e-6
"""Error rate at which the exploration compares events, so that chance is not taken for a leak."""

_DEPTH, _SMALLEST_CELL, _LEAST_SCORE = 10, 16, 12.0
"""Limits of a decision tree: largest depth, least messages on either side, least chi-square statistic."""

_CUTS, _NEAR_THE_ENDS = 64, np.array([1, 3, 10, 30, 100, 300])
"""Number of thresholds of a coordinate or projection, and ranks, from either end, of further ones."""

_MOST_ASKED, _MOST_PAIRED, _MOST_FEATURES = 128, 24, 24
"""Number of coordinates that are looked at, that are compared with each other, and of a tree's features."""

_PAIRS = 16
"""Number of label pairs whose events are compared: those whose messages differ most."""


@dataclass(frozen=True)
class EpsilonEstimate:
    """Result of a black-box audit.

    Attributes:
        epsilon: lower bound on the channel's eps, with the given confidence. It says nothing about how large
            eps really is: a small figure does not prove privacy.
        confidence: confidence of the bound.
        delta: the delta that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: number of test messages of y and of y' in the event.
        trials: number of messages drawn in all.
        explored: number of messages used to choose labels and event; they cannot test it.
        tested: number of test messages of each of the two labels.
    """

    epsilon: float
    confidence: float
    delta: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int
    explored: int
    tested: int

    @property
    def usage(self) -> str:
        """Use of the messages, in words."""
        return (
            f"{self.trials:,} messages: {self.explored:,} to choose two labels and an event, which therefore "
            f"cannot test it, and {self.tested:,} of each of the two to test it"
        )


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
    """Bound a channel's eps from below by its messages (it calls ``privatize`` only).

    A quarter of the messages, of all labels, chooses two labels; a quarter, of those two, chooses an event
    that tells them apart; half of them test it. As the event is fixed before the test, the Clopper-Pearson
    bounds on its two probabilities hold, and ``eps >= log((p_low - delta) / p'_high)`` with the given
    confidence. An event is a set of leaves of a decision tree, those with the largest likelihood ratios.

    Args:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        trials: number of messages to draw in all.
        confidence: confidence of the bound.
        delta: the delta to grant the channel.
        posterior: the public posterior, for an adaptive channel.
        seed: seed of the messages.
    """
    candidates, posterior = check_situation(channel, candidates, posterior)
    confidence = validation.fraction("confidence", confidence)
    delta = validation.probability_below_one("delta", delta)
    trials = validate_trials(trials, channel.num_labels)
    validation.fits_memory("trials", trials, 1 + math.prod(channel.message_shape), "messages")
    rng = np.random.default_rng(validation.seed("seed", seed))

    def draw(label: int, count: int) -> FloatArray:
        messages = channel.privatize(np.full(count, label), candidates, rng, posterior)
        return np.ascontiguousarray(messages, dtype=np.float64).reshape(count, -1)

    each, several, tested = trials // 4 // channel.num_labels, trials // 8, trials // 4
    first_look = _best_event([draw(label, each) for label in range(channel.num_labels)], delta)
    event = _best_event([draw(label, several) for label in first_look.labels], delta)
    one, other = (first_look.labels[i] for i in event.labels)
    hits, others = (int(event(draw(label, tested)).sum()) for label in (one, other))
    epsilon = float(_epsilon_bound(np.array(hits), np.array(others), tested, 1.0 - confidence, delta))
    explored = each * channel.num_labels + 2 * several
    return EpsilonEstimate(
        max(0.0, epsilon),
        confidence,
        delta,
        (one, other),
        str(event),
        (hits, others),
        explored + 2 * tested,
        explored,
        tested,
    )


def validate_trials(trials: int, num_labels: int) -> int:
    """Return ``trials``, checked to be enough messages for this number of labels."""
    return validation.whole("trials", trials, least=20 * num_labels)


@dataclass(frozen=True)
class _Event:
    """A set of messages: those in some leaves of a tree, which tell a pair of labels apart."""

    features: _Features
    tree: _Tree
    cells: IntArray
    labels: tuple[int, int]

    def __call__(self, messages: FloatArray) -> BoolArray:
        return np.isin(self.tree.cells(self.features.codes(messages)), self.cells)

    def __str__(self) -> str:
        path, others = self.tree.paths()[int(self.cells[0])], len(self.cells) - 1
        first = " and ".join(self.features.text(*answer) for answer in path) or "any message"
        return f"{first} (or {others} other combinations of answers)" if others else first


def _best_event(messages: list[FloatArray], delta: float) -> _Event:
    """The event and the two labels with the largest confident ratio, from messages ``(n, F)`` per label."""
    num_labels, each = len(messages), len(messages[0])
    labels, features = np.repeat(np.arange(num_labels), each), _Features(messages)
    codes = features.codes(np.concatenate(messages))
    tree = _grow(codes, labels)
    places = labels * tree.num_cells + tree.cells(codes)
    counts = np.bincount(places, minlength=num_labels * tree.num_cells).reshape(num_labels, -1)
    found = [(*_best_cells(counts, pair, each, delta), pair) for pair in _pairs(counts)]
    _, cells, pair = max(found, key=lambda one: one[0])
    return _Event(features, tree, cells, pair)


def _pairs(counts: IntArray) -> list[tuple[int, int]]:
    """The pairs of labels, both ways, whose counts ``(L, G)`` differ most."""
    distance = np.abs(counts[:, None] - counts).sum(axis=-1)
    distance[np.diag_indices(len(counts))] = -1
    order = np.argsort(distance, axis=None)[::-1][: min(_PAIRS, distance.size - len(counts))]
    return [(int(i // len(counts)), int(i % len(counts))) for i in order]


def _best_cells(counts: IntArray, pair: tuple[int, int], each: int, delta: float) -> tuple[float, IntArray]:
    """The confident log ratio of two labels, and the cells in which it is reached."""
    one, other = counts[pair[0]], counts[pair[1]]
    order = np.argsort((other + 0.5) / (one + 0.5), kind="stable")  # likelier for the first label first
    bounds = _epsilon_bound(np.cumsum(one[order]), np.cumsum(other[order]), each, _CAUTION, delta)
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1]


def _epsilon_bound(hits: IntArray, others: IntArray, trials: int, error: float, delta: float) -> FloatArray:
    """``log((p_low - delta) / p'_high)`` with Clopper-Pearson bounds, each at half the error."""
    low, high = least_share(hits, trials, error / 2.0), largest_share(others, trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


# -- Decision trees on small integers ----------------------------------------------------------------------


class _Features:
    """Coordinates of messages and a projection in bins, and signs of differences of coordinates."""

    def __init__(self, messages: list[FloatArray]) -> None:
        everything = np.concatenate(messages)
        moving = np.flatnonzero((everything != everything[:1]).any(axis=0))
        self.columns = moving[:: -(-len(moving) // _MOST_ASKED) or 1]
        self.pairs = list(combinations(self.columns[:_MOST_PAIRED].tolist(), 2))
        # The projection: the direction in which the means of two labels' messages differ most.
        spread = everything.std(axis=0) + 1e-300
        means = np.stack([some.mean(axis=0) for some in messages]) / spread
        distance = np.square(means[:, None] - means).sum(axis=-1)
        one, other = np.unravel_index(distance.argmax(), distance.shape)
        self.weights = (means[one] - means[other]) / spread
        self.cuts = [_thresholds(np.unique(column)) for column in self._reals(everything)]

    def _reals(self, messages: FloatArray) -> list[FloatArray]:
        return [*messages.T[self.columns], messages @ self.weights]

    def codes(self, messages: FloatArray) -> npt.NDArray[np.uint8]:
        """Features ``(features, n)`` of messages ``(n, F)``."""
        found = np.empty((len(self.cuts) + len(self.pairs), len(messages)), dtype=np.uint8)
        for feature, (cuts, column) in enumerate(zip(self.cuts, self._reals(messages), strict=True)):
            found[feature] = np.searchsorted(cuts, column, side="right")
        for feature, (i, j) in enumerate(self.pairs, len(self.cuts)):
            found[feature] = np.sign(messages[:, i] - messages[:, j]) + 1.0
        return found

    def text(self, feature: int, code: int, answer: bool) -> str:
        """Describe the answer to the question if a feature is at least ``code``."""
        if feature >= len(self.cuts):
            (i, j), sign = self.pairs[feature - len(self.cuts)], ">=" if code == 1 else ">"
            question = f"coordinate {i} {sign} coordinate {j}"
        elif feature == len(self.columns):
            question = f"a projection of all coordinates >= {self.cuts[feature][code - 1]:.6g}"
        else:
            question = f"coordinate {self.columns[feature]} >= {self.cuts[feature][code - 1]:.6g}"
        return question if answer else f"not ({question})"


def _thresholds(values: FloatArray) -> FloatArray:
    """A few of the sorted values, evenly and near the ends; all but the first of a few."""
    last = len(values) - 1
    even = np.linspace(0, last, _CUTS + 2)[1:-1]
    places = np.concatenate([even, _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]).astype(int)
    return values[np.unique(places.clip(min(1, last), last))]


@dataclass(frozen=True)
class _Tree:
    """A decision tree; a leaf has no feature. Messages with a code of at least ``code`` go first."""

    feature: int = 0
    code: int = 0
    branches: tuple[_Tree, ...] = ()

    @cached_property
    def num_cells(self) -> int:
        """Number of leaves."""
        return sum(branch.num_cells for branch in self.branches) if self.branches else 1

    def cells(self, codes: npt.NDArray[np.uint8]) -> IntArray:
        """Return the number of the leaf ``(n,)`` in which each message of codes ``(features, n)`` ends."""
        cells = np.zeros(codes.shape[1], dtype=np.int64)
        if self.branches:
            yes, no = self.branches
            answers = codes[self.feature] >= self.code
            cells[answers] = yes.cells(codes[:, answers])
            cells[~answers] = yes.num_cells + no.cells(codes[:, ~answers])
        return cells

    def paths(self) -> list[list[tuple[int, int, bool]]]:
        """Return the answers that lead to each leaf: feature, code, and whether it is reached."""
        if not self.branches:
            return [[]]
        both = zip((True, False), self.branches, strict=True)
        return [
            [(self.feature, self.code, answer), *path] for answer, branch in both for path in branch.paths()
        ]


def _grow(codes: npt.NDArray[np.uint8], labels: IntArray) -> _Tree:
    """The tree that asks, step by step, the question that tells most about the labels ``(n,)``."""
    size, num_labels = int(codes.max()) + 1, int(labels.max()) + 1

    def scores(feature: int, rows: IntArray) -> FloatArray:
        """Chi-squares, by code, of how far a code of at least that favours one of the labels."""
        places = codes[feature, rows] * np.int64(num_labels) + labels[rows]
        counts = np.bincount(places, minlength=size * num_labels).reshape(size, num_labels)
        yes = counts[::-1].cumsum(axis=0)[::-1]
        share = yes.sum(axis=-1) / len(rows)
        variance = len(rows) * share * (1.0 - share) * (num_labels - 1) / num_labels**2
        found = np.square(yes - share[:, None] * yes[0]).max(axis=-1) / (variance + 0.5)
        found[np.minimum(share, 1.0 - share) * len(rows) < _SMALLEST_CELL] = 0.0
        return found

    def branch(rows: IntArray, depth: int) -> _Tree:
        if depth == 0 or len(rows) < 2 * _SMALLEST_CELL:
            return _Tree()
        every = np.stack([scores(feature, rows) for feature in kept])
        best, code = np.unravel_index(every.argmax(), every.shape)
        if every[best, code] < _LEAST_SCORE:
            return _Tree()
        yes = codes[kept[best], rows] >= code
        both = branch(rows[yes], depth - 1), branch(rows[~yes], depth - 1)
        return _Tree(int(kept[best]), int(code), both)

    rows = np.arange(len(labels))
    alone = [scores(feature, rows).max() for feature in range(len(codes))]
    kept = np.argsort(alone)[::-1][:_MOST_FEATURES]  # those that tell most by themselves
    return branch(rows, _DEPTH)
