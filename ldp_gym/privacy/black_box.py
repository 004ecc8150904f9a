"""Black-box audit: a lower bound on eps from messages only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.intervals import largest_share, least_share
from ldp_gym.privacy.exact import check_situation

_CAUTION = 1e-6
"""Error rate at which the exploration compares events, so that chance is not taken for a leak."""

_DEPTH, _SMALLEST_CELL, _LEAST_SCORE = 10, 16, 12.0
"""Limits of a decision tree: largest depth, least messages on either side, least chi-square statistic."""

_CUTS, _NEAR_THE_ENDS = 64, np.array([1, 3, 10, 30, 100, 300])
"""Number of thresholds of a coordinate or projection, and ranks, from either end, of further ones."""

_FEW_VALUES = 64
"""A coordinate with at most this many values is also asked for each of them."""

_MOST_ASKED, _MOST_PAIRED = 128, 24
"""Number of coordinates that are asked about, and of those that are compared with each other."""

_KEPT_QUESTIONS, _KEPT_RARE = 6, 3
"""Questions of a kind that a tree may ask: those that tell most of all messages, and of a few messages."""

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

    tree: _Tree
    cells: IntArray
    labels: tuple[int, int]

    def __call__(self, messages: FloatArray) -> BoolArray:
        return np.isin(self.tree.cells(messages), self.cells)

    def __str__(self) -> str:
        first, others = self.tree.paths()[int(self.cells[0])] or "any message", len(self.cells) - 1
        return f"{first} (or {others} other combinations of answers)" if others else first


def _best_event(messages: list[FloatArray], delta: float) -> _Event:
    """The event and the two labels with the largest confident ratio, from messages ``(n, F)`` per label."""
    num_labels, each = len(messages), len(messages[0])
    labels, everything = np.repeat(np.arange(num_labels), each), np.concatenate(messages)
    tree = _grow(everything, labels, _promising(messages, everything, labels))
    places = labels * tree.num_cells + tree.cells(everything)
    counts = np.bincount(places, minlength=num_labels * tree.num_cells).reshape(num_labels, -1)
    found = [(*_best_cells(counts, pair, each, delta), pair) for pair in _pairs(counts)]
    _, cells, pair = max(found, key=lambda one: one[0])
    return _Event(tree, cells, pair)


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


# -- Decision trees ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Question:
    """A question about messages ``(n, F)`` with a yes or no for each."""

    text: str
    answer: Callable[[FloatArray], BoolArray]


@dataclass(frozen=True)
class _Tree:
    """A decision tree; a leaf has no question. Messages that answer yes go into the first branch."""

    question: _Question | None = None
    branches: tuple[_Tree, ...] = ()

    @cached_property
    def num_cells(self) -> int:
        """Number of leaves."""
        return sum(branch.num_cells for branch in self.branches) if self.branches else 1

    def cells(self, messages: FloatArray) -> IntArray:
        """Return the number of the leaf ``(n,)`` in which each message ``(n, F)`` ends."""
        cells = np.zeros(len(messages), dtype=np.int64)
        if self.question is not None:
            yes, no = self.branches
            answers = self.question.answer(messages)
            cells[answers] = yes.cells(messages[answers])
            cells[~answers] = yes.num_cells + no.cells(messages[~answers])
        return cells

    def paths(self) -> list[str]:
        """Return the answers that lead to each leaf, in words."""
        if self.question is None:
            return [""]
        texts = self.question.text, f"not ({self.question.text})"
        return [
            f"{text} and {path}" if path else text
            for text, branch in zip(texts, self.branches, strict=True)
            for path in branch.paths()
        ]


def _grow(messages: FloatArray, labels: IntArray, questions: Sequence[_Question]) -> _Tree:
    """The tree that asks, step by step, the question that tells most about the labels ``(n,)``."""
    if not questions:
        return _Tree()
    answers = np.stack([question.answer(messages) for question in questions])
    ones = np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]

    def branch(rows: IntArray, depth: int) -> _Tree:
        if depth == 0 or len(rows) < 2 * _SMALLEST_CELL:
            return _Tree()
        scores = _scores(answers[:, rows], ones[rows])
        best = int(scores.argmax())
        if scores[best] < _LEAST_SCORE:
            return _Tree()
        yes = answers[best, rows]
        return _Tree(questions[best], (branch(rows[yes], depth - 1), branch(rows[~yes], depth - 1)))

    return branch(np.arange(len(messages)), _DEPTH)


def _scores(answers: BoolArray, ones: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Chi-squares ``(Q,)`` of how far a yes ``(Q, n)`` favours one of the labels, one-hot ``(n, L)``."""
    yes = answers.astype(np.float32)  # single precision: scores only guide the search
    count, size, num_labels = yes.sum(axis=1), len(ones), ones.shape[1]
    excess = yes @ ones - count[:, None] / size * ones.sum(axis=0)
    variance = count * (1.0 - count / size) * (num_labels - 1) / num_labels**2
    scores = (excess**2).max(axis=-1) / (variance + 0.5)
    scores[np.minimum(count, size - count) < _SMALLEST_CELL] = 0.0
    return scores


def _promising(messages: list[FloatArray], everything: FloatArray, labels: IntArray) -> list[_Question]:
    """The few questions of each kind that tell most alone: about all messages, or rare ones."""
    kept, ones = [], np.eye(len(messages), dtype=np.float32)[labels]
    for kind in filter(None, _kinds(messages, everything)):
        answers = np.stack([question.answer(everything) for question in kind])
        scores, sent = _scores(answers, ones), answers.astype(np.float32) @ ones
        # The ratio of two labels' counts, each three standard deviations off: a rare leak has a large one.
        doubt = 3.0 * np.sqrt(sent)
        ratios = (sent - doubt).max(axis=-1) / (sent + doubt + 6.0).min(axis=-1)
        best, rare = np.argsort(scores)[::-1][:_KEPT_QUESTIONS], np.argsort(ratios)[::-1][:_KEPT_RARE]
        kept += [kind[i] for i in dict.fromkeys([*best.tolist(), *rare.tolist()]) if scores[i] > 0.0]
    return kept


def _kinds(messages: list[FloatArray], everything: FloatArray) -> Iterator[list[_Question]]:
    """Questions about each coordinate, about each with those before it, and about a projection."""
    columns = np.flatnonzero((everything != everything[:1]).any(axis=0)).tolist()
    columns = columns[:: -(-len(columns) // _MOST_ASKED) or 1]
    for j in columns:
        yield _coordinate_questions(everything[:, j], j)
    for i, j in enumerate(columns[:_MOST_PAIRED]):
        yield [question for k in columns[:i] for question in _comparisons(k, j)]
    if len(columns) > 1:
        yield _projections(messages, everything)


def _coordinate_questions(column: FloatArray, j: int) -> list[_Question]:
    values = np.unique(column)
    last = len(values) - 1
    places = np.concatenate(
        [np.linspace(0, last, _CUTS + 2)[1:-1], _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]
    )
    cuts = values[np.unique(places.astype(int).clip(1, last))]

    def above(cut: float) -> _Question:
        return _Question(f"coordinate {j} >= {cut:.6g}", lambda m: m[:, j] >= cut)

    def equal(value: float) -> _Question:
        return _Question(f"coordinate {j} = {value:.6g}", lambda m: m[:, j] == value)

    return [above(cut) for cut in cuts] + [equal(value) for value in values if last < _FEW_VALUES]


def _comparisons(k: int, j: int) -> list[_Question]:
    return [
        _Question(f"coordinates {k} and {j} are equal", lambda m: m[:, k] == m[:, j]),
        _Question(f"coordinate {k} > coordinate {j}", lambda m: m[:, k] > m[:, j]),
    ]


def _projections(messages: list[FloatArray], everything: FloatArray) -> list[_Question]:
    """Thresholds in the direction in which the means of two labels' messages differ most."""
    spread = everything.std(axis=0) + 1e-300
    means = np.stack([some.mean(axis=0) for some in messages]) / spread
    distance = np.square(means[:, None] - means).sum(axis=-1)
    one, other = np.unravel_index(distance.argmax(), distance.shape)
    weights = (means[one] - means[other]) / spread

    def above(cut: float) -> _Question:
        return _Question(f"a projection is at least {cut:.6g}", lambda m: m @ weights >= cut)

    cuts = np.quantile(everything @ weights, np.linspace(0.0, 1.0, _CUTS + 2)[1:-1])
    return [above(float(cut)) for cut in np.unique(cuts)]
