"""Features of messages that may tell labels apart, as small whole numbers for a decision tree.

A feature is a bin of a number, of a projection, or of the fraction or the lowest bit of a float; or the label
that was seen to send the same message, or the same pair of numbers, most often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray, IntArray

_MOST_VALUES = 400
"""Largest number of different values of a column that are all told apart."""

_CUTS = 64
"""Number of evenly spaced thresholds of a column with more values."""

_NEAR_THE_ENDS = np.array([1, 3, 10, 30, 100, 300])
"""Ranks, from either end of a column with more values, of further thresholds."""

_MOST_SEARCHED = 512
"""Largest number of columns that are searched."""

_MOST_PAIRED = 24
"""Largest number of columns that are looked at in pairs."""

_MOST_FLOATS = 16
"""Largest number of columns that are read bit by bit."""

_MOST_KEPT = 24
"""Largest number of features that are handed to a tree."""

_MESSAGES_PER_CELL = 4
"""Least average number of messages of the cells of a pair of columns."""

_STEPS_PER_E = 4
"""Steps of the codes of odds for each factor of e."""

_EVEN_ODDS = 60
"""Code of even odds; codes lie between 0 and twice this."""


class Threshold(NamedTuple):
    """A feature in words, and the value at which it is cut in two.

    Attributes:
        text: the feature.
        value: messages at or above this value lie on the right.
        kind: ``"number"``, or ``"odds"`` of the two labels that send a message.
    """

    text: str
    value: float
    kind: Literal["number", "odds"]


class Features:
    """Features learned from messages ``(n, F)`` of each of several labels.

    Args:
        messages: messages of each label, as many of one as of another.
        floats: whether to look at the fractions and the lowest bits of floats.
    """

    def __init__(self, messages: list[FloatArray], floats: bool) -> None:
        everything = np.concatenate(messages)
        num_labels = len(messages)
        self._choose_columns(everything, floats)
        self._choose_projection(messages, everything)
        self._cuts = [_thresholds(np.unique(column)) for column in self._numbers(everything)]
        self._sizes = [len(cuts) + 1 for cuts in self._cuts]
        self._choose_pairs(len(everything))
        self._repeated = _repeated_messages(everything)

        bins = self._bins(everything)
        labels = np.repeat(np.arange(num_labels), len(messages[0]))
        num_cells = [self._sizes[i] * self._sizes[j] for i, j in self._pairs]
        num_cells.append(len(self._repeated) + 1)
        self._senders = []
        for place, size in enumerate(num_cells):
            cells = self._cells(place, bins, everything)
            self._senders.append(_senders(cells * num_labels + labels, size, num_labels))
        self._kept = np.arange(len(self._cuts) + len(self._senders))

    def _choose_columns(self, messages: FloatArray, floats: bool) -> None:
        """Choose the columns to search, evenly among those that vary, and those to read bit by bit."""
        varies = (messages != messages[:1]).any(axis=0)
        varying = np.flatnonzero(varies)
        step = math.ceil(len(varying) / _MOST_SEARCHED) or 1
        self._columns = varying[::step]
        self._floats = self._columns[:0]
        if floats:
            is_fraction = has_fractions(messages[:, self._columns])
            self._floats = self._columns[is_fraction][:_MOST_FLOATS]

    def _choose_projection(self, messages: list[FloatArray], everything: FloatArray) -> None:
        """Choose the direction in which the mean messages of two labels differ most."""
        with np.errstate(all="ignore"):
            spread = everything.std(axis=0) + 1e-300
            means = np.stack([of_label.mean(axis=0) for of_label in messages]) / spread
            distances = np.stack([np.square(means - mean).sum(axis=-1) for mean in means])
            one, other = np.unravel_index(distances.argmax(), distances.shape)
            weights = (means[one] - means[other]) / spread
            if np.count_nonzero((everything != everything[:1]).any(axis=0)) <= 1:
                weights = weights * 0.0  # a single column is a feature already
        self._weights = np.nan_to_num(weights, posinf=0.0, neginf=0.0)

    def _choose_pairs(self, num_messages: int) -> None:
        """Choose pairs of columns with few cells for the number of messages."""
        paired = range(min(len(self._columns), _MOST_PAIRED))
        most_cells = num_messages // _MESSAGES_PER_CELL
        self._pairs = [
            (i, j)
            for i, j in combinations(paired, 2)
            if self._sizes[i] * self._sizes[j] <= most_cells
        ]

    def _numbers(self, messages: FloatArray) -> list[FloatArray]:
        """Numbers ``(n,)`` of every feature that is a number, in order."""
        with np.errstate(all="ignore"):
            columns = messages.T[self._columns]
            projection = messages @ self._weights
            of_floats = messages[:, self._floats].T
            fractions = of_floats - np.floor(of_floats)
            lowest_bits = _lowest_bit(of_floats)
        return [*columns, projection, *fractions, *lowest_bits]

    def _bins(self, messages: FloatArray) -> Callable[[int], IntArray]:
        """Function from the place of a number to its bins ``(n,)``."""
        numbers = self._numbers(messages)

        def bins_of(place: int) -> IntArray:
            return np.searchsorted(self._cuts[place], numbers[place], side="right")

        return cache(bins_of)

    def _cells(self, place: int, bins: Callable[[int], IntArray], messages: FloatArray) -> IntArray:
        """Cells ``(n,)`` of a pair of columns; after the pairs, of whole messages."""
        if place < len(self._pairs):
            one, other = self._pairs[place]
            return bins(one) * self._sizes[other] + bins(other)
        rows = _as_keys(messages)
        nearest = np.searchsorted(self._repeated, rows).clip(max=len(self._repeated) - 1)
        is_known = self._repeated[nearest] == rows
        return np.where(is_known, nearest + 1, 0)

    def codes(self, messages: FloatArray) -> npt.NDArray[np.uint16]:
        """Codes ``(n, kept)`` of the features that are kept."""
        codes = np.empty((len(messages), len(self._kept)), dtype=np.uint16)
        bins = self._bins(messages)
        for column, feature in zip(codes.T, self._kept.tolist(), strict=True):
            place = feature - len(self._cuts)
            if place < 0:
                column[:] = bins(feature)
            else:
                column[:] = self._senders[place][self._cells(place, bins, messages)]
        return codes

    def choose(self, messages: FloatArray, labels: IntArray) -> npt.NDArray[np.uint16]:
        """Keep the features that tell most by themselves; return their codes ``(n, kept)``."""
        codes = self.codes(messages)
        num_labels = int(labels.max()) + 1
        scores = np.array([_largest_chi_square(column, labels, num_labels) for column in codes.T])

        # What a pair or a whole message tells counts only beyond what its columns tell.
        gains = scores.copy()
        for feature, (one, other) in enumerate(self._pairs, start=len(self._cuts)):
            gains[feature] -= scores[one] + scores[other]
        gains[-1] -= scores[:-1].max(initial=0.0)
        self._kept = np.argsort(-gains, kind="stable")[:_MOST_KEPT]
        return codes[:, self._kept]

    def threshold(
        self, feature: int, code: int, names: list[str], labels: tuple[int, int]
    ) -> Threshold:
        """Describe a kept feature, and the value above which its codes exceed ``code``.

        Args:
            feature: place of the feature among those that are kept.
            code: the code.
            names: names of the columns of messages.
            labels: the two labels from whose messages the features were learned.
        """
        place = int(self._kept[feature])
        if place < len(self._cuts):
            column_names = [names[i] for i in self._columns]
            float_names = [names[i] for i in self._floats]
            texts = [*column_names, "a projection of all numbers"]
            texts += [f"the fraction of {name}" for name in float_names]
            texts += [f"the exponent of the lowest bit of {name}" for name in float_names]
            return Threshold(texts[place], float(self._cuts[place][code]), "number")

        place -= len(self._cuts)
        text = "this very message"
        if place < len(self._pairs):
            pair = [names[self._columns[i]] for i in self._pairs[place]]
            text = f"this pair of values, {pair[0]} and {pair[1]},"
        odds = math.exp((code + 0.5 - _EVEN_ODDS) / _STEPS_PER_E)
        return Threshold(text, odds, "odds")


def has_fractions(messages: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell of the columns of messages ``(n, F)`` which have numbers that are not whole."""
    with np.errstate(all="ignore"):
        return (messages != np.rint(messages)).any(axis=0)


def _largest_chi_square(codes: IntArray, labels: IntArray, num_labels: int) -> float:
    """Largest chi-square statistic of labels on either side of a threshold of codes ``(n,)``."""
    size = int(codes.max()) + 1
    cells = codes * np.int64(num_labels) + labels
    counts = np.bincount(cells, minlength=size * num_labels).reshape(size, num_labels)
    above = counts[::-1].cumsum(axis=0)[::-1]  # (codes, labels): messages at or above each code
    share = above.sum(axis=-1) / len(labels)
    variance = len(labels) * share * (1.0 - share) * (num_labels - 1) / num_labels**2
    excess = np.square(above - share[:, None] * above[0]).max(axis=-1)
    return float((excess / (variance + 0.5)).max())


def _repeated_messages(messages: FloatArray) -> npt.NDArray[np.void]:
    """Messages that came more than once, sorted; at least one message."""
    keys, counts = np.unique(_as_keys(messages), return_counts=True)
    is_kept = counts > 1
    is_kept[0] = True
    return keys[is_kept]


def _senders(cells: IntArray, size: int, num_labels: int) -> IntArray:
    """Senders of the messages of each cell: log odds of two labels, as codes, or the likeliest of many."""
    counts = np.bincount(cells, minlength=size * num_labels).reshape(size, num_labels)
    if num_labels > 2:
        return np.where(counts.any(axis=-1), counts.argmax(axis=-1) + 1, 0)
    log_odds = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    steps = np.rint(_STEPS_PER_E * log_odds)
    return steps.clip(-_EVEN_ODDS, _EVEN_ODDS).astype(np.int64) + _EVEN_ODDS


def _as_keys(messages: FloatArray) -> npt.NDArray[np.void]:
    """Messages ``(n, F)`` as their bits, which can be compared and sorted ``(n,)``."""
    rows = np.ascontiguousarray(messages)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)


def _lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest bit that is set in a float: the grid on which it lies; 1100 for zero."""
    mantissa, exponent = np.frexp(numbers)
    mantissa = np.nan_to_num(mantissa, posinf=0.0, neginf=0.0)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).clip(1).astype(np.float64))
    return np.where(whole > 0, exponent - 53.0 + lowest, 1100.0)


def _thresholds(values: FloatArray) -> FloatArray:
    """Thresholds of a column: all its sorted values but the first, or, of many, some of them."""
    last = len(values) - 1
    if last <= _MOST_VALUES:
        return values[1:]
    even = np.linspace(0, last, _CUTS + 2)[1:-1]
    ranks = np.concatenate([even, _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]).astype(int)
    return values[np.unique(ranks.clip(1, last))]
