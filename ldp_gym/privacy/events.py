"""Events that tell two labels apart: sets of messages, chosen from a sample by a decision tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.privacy.message_features import Features

Objective = Callable[[IntArray, IntArray, int, float], FloatArray]
"""Score of events from the number of messages in them of the first label, and of the second; the number of
messages of each label; and the error rate of the bounds on their probabilities."""

_DEPTH = 10
"""Largest depth of a decision tree."""

_SMALLEST_LEAF = 8
"""Least number of messages of a leaf."""

_MOST_PAIRS = 16
"""Number of label pairs whose events are compared, namely those whose messages differ most."""


class _Leaves(NamedTuple):
    """Leaves of a tree that tell a pair of labels apart, the most telling first, and their score."""

    score: float
    leaves: IntArray
    labels: tuple[int, int]


@dataclass(frozen=True)
class Event:
    """A set of messages, those in some leaves of a tree.

    Attributes:
        features: what the tree looks at.
        tree: the tree.
        leaves: numbers of the leaves, the most telling first.
        labels: the two labels, by their place among those of the sample.
    """

    features: Features
    tree: Any
    leaves: IntArray
    labels: tuple[int, int]

    def __call__(self, messages: FloatArray) -> BoolArray:
        """Tell which of the messages ``(n, F)`` lie in the event."""
        return np.isin(self.tree.apply(self.features.codes(messages)), self.leaves)

    def words(self, names: list[str], labels: tuple[int, int]) -> str:
        """Describe the most telling leaf, with the names of columns and of the two labels."""
        ranges: dict[tuple[str, str], _Range] = {}
        inner = self.tree.tree_
        node = int(self.leaves[0])
        while node != 0:
            is_parent = (inner.children_left == node) | (inner.children_right == node)
            parent = int(np.flatnonzero(is_parent)[0])
            threshold = self.features.threshold(
                int(inner.feature[parent]), int(inner.threshold[parent]), names, labels
            )
            limits = ranges.setdefault((threshold.text, threshold.kind), _Range())
            if inner.children_right[parent] == node:
                limits.low = max(limits.low, threshold.value)
            else:
                limits.high = min(limits.high, threshold.value)
            node = parent

        conditions = []
        for (text, kind), limits in ranges.items():
            if kind == "odds":
                conditions.append(limits.of_odds(text, labels))
            else:
                conditions.append(limits.of_number(text))
        words = " and ".join(conditions) or "any message"
        if len(self.leaves) > 1:
            words += f" (or one of {len(self.leaves) - 1} other such conditions)"
        return words


@dataclass
class _Range:
    """Limits of a feature on the way to a leaf: from ``low`` on, and below ``high``."""

    low: float = -math.inf
    high: float = math.inf

    def of_number(self, text: str) -> str:
        """Condition on a number, such as a column of the message."""
        if text.startswith("character"):
            low, high = _character(self.low), _character(self.high)
        else:
            low, high = f"{self.low:.9g}", f"{self.high:.9g}"
        if self.high == math.inf:
            return f"{text} >= {low}"
        if self.low == -math.inf:
            return f"{text} < {high}"
        return f"{low} <= {text} < {high}"

    def of_odds(self, text: str, labels: tuple[int, int]) -> str:
        """Condition on how often the second label sent a message, for each time that the first did."""
        first, second = labels
        conditions = []
        if self.low > -math.inf:
            conditions.append(_odds(text, second, first, self.low))
        if self.high < math.inf:
            conditions.append(_odds(text, first, second, 1.0 / self.high))
        return " and ".join(conditions)


def _odds(text: str, sender: int, other: int, odds: float) -> str:
    """Condition that one label sent a message often, in the sample from which features were learned."""
    return f"{text} came at least {odds:.3g} times as often from label {sender} as from label {other} before"


def _character(code: float) -> str:
    """A character in quotes, by its code."""
    if not 0 <= code < 0x110000:
        return f"{code:g}"
    return repr(chr(int(code)))


def best_event(
    messages: list[FloatArray], objective: Objective, error: float, floats: bool
) -> Event:
    """Find the event and the two labels with the best objective, from messages ``(n, F)`` of each label.

    A quarter of the messages shows what the features are; the rest grows the tree and counts in its leaves.

    Args:
        messages: messages of each label, as many of one as of another.
        objective: score of an event.
        error: error rate of the objective's bounds, so that chance does not look like a leak.
        floats: whether to look at the fractions and the lowest bits of floats.
    """
    with extra("privacy", "the black-box audit"):
        from sklearn.tree import DecisionTreeClassifier

    num_labels = len(messages)
    num_first = len(messages[0]) // 4
    num_counted = len(messages[0]) - num_first
    features = Features([of_label[:num_first] for of_label in messages], floats)
    labels = np.repeat(np.arange(num_labels), num_counted)
    counted = np.concatenate([of_label[num_first:] for of_label in messages])
    codes = features.choose(counted, labels)
    tree = DecisionTreeClassifier(
        max_depth=_DEPTH,
        min_samples_leaf=_SMALLEST_LEAF,
        min_impurity_decrease=(2.0 + 8.0 / num_labels) / len(codes),  # chance gains less
        random_state=0,
    ).fit(codes, labels)

    num_nodes = tree.tree_.node_count
    cells = labels * num_nodes + tree.apply(codes)
    counts = np.bincount(cells, minlength=num_labels * num_nodes).reshape(num_labels, num_nodes)
    candidates = [
        _best_leaves(counts, pair, num_counted, objective, error)
        for pair in _most_different_pairs(counts)
    ]
    best = max(candidates, key=lambda leaves: leaves.score)
    return Event(features, tree, best.leaves, best.labels)


def _most_different_pairs(counts: IntArray) -> list[tuple[int, int]]:
    """The pairs of labels, both ways, whose counts ``(labels, leaves)`` differ most."""
    num_labels = len(counts)
    distances = np.stack([np.abs(counts - row).sum(axis=-1) for row in counts])
    distances[np.diag_indices(num_labels)] = -1
    num_pairs = min(_MOST_PAIRS, distances.size - num_labels)
    order = np.argsort(distances, axis=None)[::-1][:num_pairs]
    return [(int(i // num_labels), int(i % num_labels)) for i in order]


def _best_leaves(
    counts: IntArray, pair: tuple[int, int], num_messages: int, objective: Objective, error: float
) -> _Leaves:
    """Find the leaves with the best objective for two labels, in the order of the labels' odds."""
    first, second = counts[pair[0]], counts[pair[1]]
    order = np.argsort((second + 0.5) / (first + 0.5), kind="stable")
    order = order[first[order] + second[order] > 0]
    hits, others = np.cumsum(first[order]), np.cumsum(second[order])
    scores = objective(hits, others, num_messages, error)
    best = int(scores.argmax())
    return _Leaves(float(scores[best]), order[: best + 1], pair)
