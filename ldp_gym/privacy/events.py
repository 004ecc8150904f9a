"""Events that tell two labels apart: sets of messages, chosen from a sample by a decision tree."""

from __future__ import annotations

import math
import sys
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
    """A set of messages, those in some leaves of a decision tree.

    Attributes:
        features: the features of a message that the tree looks at.
        tree: the tree.
        leaves: numbers of the leaves, the most telling first.
        labels: the two labels that the event tells apart, by their place among those of the sample.
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
        ranges = self._ranges_on_path(int(self.leaves[0]), names, labels)
        conditions = [values.condition(labels) for values in ranges]
        words = " and ".join(conditions) or "any message"
        if len(self.leaves) > 1:
            words += f" (or one of {len(self.leaves) - 1} other such conditions)"
        return words

    def _ranges_on_path(self, leaf: int, names: list[str], labels: tuple[int, int]) -> list[_Range]:
        """Ranges of features that lead from the root of the tree to a leaf, one for each feature."""
        ranges: dict[tuple[str, str], _Range] = {}
        nodes = self.tree.tree_
        node = leaf
        while node != 0:  # the root
            is_parent = (nodes.children_left == node) | (nodes.children_right == node)
            parent = int(np.flatnonzero(is_parent)[0])
            threshold = self.features.threshold(
                int(nodes.feature[parent]), int(nodes.threshold[parent]), names, labels
            )
            feature = (threshold.feature, threshold.kind)
            values = ranges.setdefault(feature, _Range(*feature))
            if nodes.children_right[parent] == node:
                values.low = max(values.low, threshold.value)
            else:
                values.high = min(values.high, threshold.value)
            node = parent
        return list(ranges.values())


@dataclass
class _Range:
    """Values of one feature that lead to a leaf: from ``low`` on, and below ``high``.

    Attributes:
        feature: the feature, in words.
        kind: ``"number"``, or ``"odds"`` of the second label against the first to send a message.
        low: smallest value.
        high: values are below it.
    """

    feature: str
    kind: str
    low: float = -math.inf
    high: float = math.inf

    def condition(self, labels: tuple[int, int]) -> str:
        """The range as a condition in words, with the names of the two labels."""
        if self.kind == "odds":
            return self._condition_on_odds(labels)
        return self._condition_on_number()

    def _condition_on_number(self) -> str:
        """Condition on a number, such as ``coordinate 0 < 1.5``."""
        if self.feature.startswith("character"):
            low = _character(self.low)
            high = _character(self.high)
        else:
            low = f"{self.low:.9g}"
            high = f"{self.high:.9g}"
        if self.high == math.inf:
            return f"{self.feature} >= {low}"
        if self.low == -math.inf:
            return f"{self.feature} < {high}"
        return f"{low} <= {self.feature} < {high}"

    def _condition_on_odds(self, labels: tuple[int, int]) -> str:
        """Condition on the label that sent such messages more often, in an earlier sample."""
        first, second = labels
        conditions = []
        if self.low > -math.inf:
            conditions.append(_at_least_as_often(self.feature, second, first, self.low))
        if self.high < math.inf:
            # Odds of the second label below `high` are odds of the first above 1 / high.
            conditions.append(_at_least_as_often(self.feature, first, second, 1.0 / self.high))
        return " and ".join(conditions)


def _at_least_as_often(message: str, label: int, other: int, factor: float) -> str:
    """Condition that a message, in words, came from one label some factor as often as from another."""
    return (
        f"{message} came at least {factor:.3g} times as often from label {label} as from label "
        f"{other} before"
    )


def _character(code: float) -> str:
    """A character in quotes, by its code; a number that is not the code of one stays a number."""
    if not 0 <= code < sys.maxunicode + 1:
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

    # A split that decreases the impurity by less than this may be due to chance.
    least_decrease = (2.0 + 8.0 / num_labels) / len(codes)
    tree = DecisionTreeClassifier(
        max_depth=_DEPTH,
        min_samples_leaf=_SMALLEST_LEAF,
        min_impurity_decrease=least_decrease,
        random_state=0,
    ).fit(codes, labels)

    num_nodes = tree.tree_.node_count
    label_and_leaf = labels * num_nodes + tree.apply(codes)
    counts = np.bincount(label_and_leaf, minlength=num_labels * num_nodes)
    counts = counts.reshape(num_labels, num_nodes)
    choices = []
    for pair in _most_different_pairs(counts):
        choices.append(_best_leaves(counts, pair, num_counted, objective, error))
    best = max(choices, key=lambda choice: choice.score)
    return Event(features, tree, best.leaves, best.labels)


def _most_different_pairs(counts: IntArray) -> list[tuple[int, int]]:
    """The pairs of labels, both ways, whose counts ``(labels, leaves)`` differ most."""
    num_labels = len(counts)
    distances = np.stack([np.abs(counts - of_label).sum(axis=-1) for of_label in counts])
    distances[np.diag_indices(num_labels)] = -1  # a label and itself come last, and are left out
    num_pairs = min(_MOST_PAIRS, distances.size - num_labels)
    largest_first = np.argsort(distances, axis=None)[::-1][:num_pairs]
    return [(int(i // num_labels), int(i % num_labels)) for i in largest_first]


def _best_leaves(
    counts: IntArray, pair: tuple[int, int], num_messages: int, objective: Objective, error: float
) -> _Leaves:
    """Find the set of leaves with the best objective for two labels.

    The best set takes the leaves with the largest odds of the first label, so only the first n leaves in the
    order of these odds are compared, for each n.

    Args:
        counts: number of messages of each label in each leaf, ``(labels, leaves)``.
        pair: the two labels.
        num_messages: number of messages of each label.
        objective: score of an event.
        error: error rate of the objective's bounds.
    """
    first, second = pair
    of_first = counts[first]
    of_second = counts[second]
    # Half a message is added to each count, so that a leaf without messages of a label has odds too.
    order = np.argsort((of_second + 0.5) / (of_first + 0.5), kind="stable")
    is_reached = of_first[order] + of_second[order] > 0
    order = order[is_reached]

    hits = np.cumsum(of_first[order])
    others = np.cumsum(of_second[order])
    scores = objective(hits, others, num_messages, error)
    best = int(scores.argmax())
    return _Leaves(float(scores[best]), order[: best + 1], pair)
