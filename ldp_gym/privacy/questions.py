"""Questions about a message, and trees of them: how an audit looks for what messages give away.

A tree is grown on messages whose labels are known, and then sorts any message into one of its cells. What is
made of the cells is the business of whoever grew it: :mod:`~ldp_gym.privacy.bets` bets on the labels in
them, :mod:`~ldp_gym.privacy.black_box` makes an event of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.privacy.bits import Codes, changing, coordinate, fold, varying

_CUTS = 32
"""At how many values a coordinate is compared with a threshold, and at a few more near both ends."""

_NEAR_THE_ENDS = np.array([1, 3, 10, 30, 100, 300])

_FEW_VALUES = 16
"""So many different values of a coordinate are asked for one by one."""

_MOST_COORDINATES = 128
"""Of more coordinates so many are asked about, evenly spread."""

_MOST_PAIRED = 24
"""Of so many coordinates all pairs are compared."""

_KEPT = 6
"""How many questions of a kind go from the first look into the tree."""

_KEPT_RARE = 3
"""How many more because they tell much of a few messages."""

_SMALLEST_CELL = 16
"""Fewer messages say nothing about the law of their labels."""

_LEAST_SCORE = 12.0
"""A chi-square below which an answer is no reason to go on."""


@dataclass(frozen=True)
class Question:
    """A question about messages ``(n, F)`` with a yes or no for each."""

    text: str
    answer: Callable[[FloatArray], BoolArray]


@dataclass(frozen=True)
class Labelled:
    """Messages with what is known and what is expected of their labels.

    Attributes:
        messages: ``(n, F)``.
        counts: how often each was sent, ``(n,)``.
        surplus: how often each label was sent with it, less how often it was expected, ``(n, L)``.
        expected: how likely each label was expected, ``(n, L)``.
    """

    messages: FloatArray
    counts: FloatArray
    surplus: FloatArray
    expected: FloatArray

    @cached_property
    def variance(self) -> FloatArray:
        """Of the surplus, ``(n, L)``."""
        return self.counts[:, None] * self.expected * (1.0 - self.expected)

    def scores(self, answers: BoolArray, rows: IntArray) -> FloatArray:
        """How much better than before each answer ``(Q, rows)`` tells some label: a chi-square, ``(Q,)``."""
        # Single precision: scores only guide the search.
        yes = answers.astype(np.float32)
        surplus, variance, counts = (
            numbers[rows].astype(np.float32) for numbers in (self.surplus, self.variance, self.counts)
        )
        spread, count = yes @ variance, yes @ counts
        share = spread / np.maximum(variance.sum(axis=0), 1e-30)
        excess = yes @ surplus - share * surplus.sum(axis=0)
        scores: FloatArray = (excess**2 / (spread * (1.0 - share) + 0.5)).max(axis=-1)
        scores[np.minimum(count, counts.sum() - count) < _SMALLEST_CELL] = 0.0
        return scores

    def ratios(self, answers: BoolArray) -> FloatArray:
        """By which factor, at least, a yes ``(Q, n)`` speaks for one label rather than another, ``(Q,)``.

        At about three standard deviations. So a rare leak is seen beside what all messages tell.
        """
        yes = answers.astype(np.float32)
        expected = yes @ (self.counts[:, None] * self.expected).astype(np.float32)
        sent = np.maximum(yes @ self.surplus.astype(np.float32) + expected, 0.0)
        doubt, unit = 3.0 * np.sqrt(sent), expected + 1e-9
        ratios: FloatArray = ((sent - doubt) / unit).max(axis=-1) / ((sent + doubt + 6.0) / unit).min(axis=-1)
        return ratios


@dataclass(frozen=True)
class Tree:
    """Questions asked one after another: the next depends on the last answer. A leaf has no question."""

    question: Question | None = None
    branches: tuple[Tree, Tree] | None = None

    @cached_property
    def num_cells(self) -> int:
        """How many leaves it has."""
        return sum(branch.num_cells for branch in self.branches) if self.branches else 1

    def cells(self, messages: FloatArray) -> IntArray:
        """The number of the leaf ``(n,)`` at which each message ``(n, F)`` ends, those of a yes first."""
        if self.question is None or self.branches is None:
            return np.zeros(len(messages), dtype=np.int64)
        yes, no = self.branches
        answers, cells = self.question.answer(messages), np.empty(len(messages), dtype=np.int64)
        cells[answers] = yes.cells(messages[answers])
        cells[~answers] = yes.num_cells + no.cells(messages[~answers])
        return cells

    def paths(self) -> list[str]:
        """What is known of a message in each cell, in words."""
        if self.question is None or self.branches is None:
            return [""]
        yes, no = (branch.paths() for branch in self.branches)
        text = self.question.text
        return [_joined(text, path) for path in yes] + [_joined(f"not ({text})", path) for path in no]


def _joined(answer: str, path: str) -> str:
    return f"{answer} and {path}" if path else answer


def promising(labelled: Labelled) -> list[Question]:
    """Of each kind of question the few that tell most by themselves: of all messages, and of some."""
    kept, everything = [], np.arange(len(labelled.messages))
    for kind in filter(None, _kinds(labelled.messages)):
        answers = np.stack([question.answer(labelled.messages) for question in kind])
        scores = labelled.scores(answers, everything)
        best = np.argsort(scores)[::-1][:_KEPT]
        rare = np.argsort(labelled.ratios(answers))[::-1][:_KEPT_RARE]
        kept += [kind[i] for i in dict.fromkeys([*best.tolist(), *rare.tolist()]) if scores[i] > 0.0]
    return kept


def grow(labelled: Labelled, questions: Sequence[Question], depth: int) -> Tree:
    """The tree whose answers tell most about labels, question by question.

    Args:
        labelled: what it learns from.
        questions: what it may ask.
        depth: how many questions it asks of a message at most.
    """
    if not questions:
        return Tree()
    answers = np.stack([question.answer(labelled.messages) for question in questions])

    def branch(rows: IntArray, left: int) -> Tree:
        if left == 0 or labelled.counts[rows].sum() < 2 * _SMALLEST_CELL:
            return Tree()
        scores = labelled.scores(answers[:, rows], rows)
        best = int(scores.argmax())
        if scores[best] < _LEAST_SCORE:
            return Tree()
        yes = answers[best, rows]
        return Tree(questions[best], (branch(rows[yes], left - 1), branch(rows[~yes], left - 1)))

    return branch(np.arange(len(labelled.messages)), depth)


# -- What can be asked --------------------------------------------------------------------------------


def _kinds(messages: FloatArray) -> Iterator[list[Question]]:
    """Questions about each coordinate, about each with those before it, and about all coordinates at once."""
    columns = varying(messages)
    columns = columns[:: -(-len(columns) // _MOST_COORDINATES)] if columns else []
    for j in columns:
        bits = _bits(messages, f"coordinate {j}", partial(coordinate, j=j))
        yield [*bits, *_thresholds(messages, j)]
    for i, j in enumerate(columns[:_MOST_PAIRED]):
        if i:
            yield [question for k in columns[:i] for question in _comparisons(k, j)]
    if len(columns) > 1:
        yield _bits(messages, "an odd number of coordinates", fold)


def _bits(messages: FloatArray, name: str, read: Callable[[FloatArray], Codes]) -> list[Question]:
    """Questions about the bits of what is read from messages, those that change."""

    def bit(k: int) -> Question:
        return Question(f"bit {k} of {name} is set", lambda m: (read(m) >> np.uint64(k)) & np.uint64(1) != 0)

    return [bit(k) for k in changing(read(messages))]


def _thresholds(messages: FloatArray, j: int) -> list[Question]:
    values = np.unique(messages[:, j])
    values = values[np.isfinite(values)]
    last = len(values) - 1
    if last < 1:
        return []
    places = np.concatenate(
        [np.linspace(0, last, _CUTS + 2)[1:-1], _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]
    )
    cuts = values[np.unique(places.astype(int).clip(1, last))]

    def above(cut: float) -> Question:
        return Question(f"coordinate {j} >= {cut:.6g}", lambda m: m[:, j] >= cut)

    def equal(value: float) -> Question:
        return Question(f"coordinate {j} = {value:.6g}", lambda m: m[:, j] == value)

    return [above(cut) for cut in cuts] + [equal(value) for value in values if last < _FEW_VALUES]


def _comparisons(k: int, j: int) -> list[Question]:
    return [
        Question(f"coordinates {k} and {j} are equal", lambda m: m[:, k] == m[:, j]),
        Question(f"coordinate {k} > coordinate {j}", lambda m: m[:, k] > m[:, j]),
    ]
