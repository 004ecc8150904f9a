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

_MESSAGES_PER_PAIR_OF_BINS = 4
"""Least average number of messages for each pair of bins of a pair of columns."""

_MANTISSA_BITS = 53
"""Number of significant bits of a float."""

_LOWEST_BIT_OF_ZERO = 1100.0
"""Stands for the exponent of the lowest bit of zero: above that of any other float."""

_LEAST_SPREAD = 1e-300
"""Added to standard deviations, so that a constant column can be divided by its own."""

_STEPS_PER_E = 4
"""Steps of the codes of odds for each factor of e."""

_EVEN_ODDS = 60
"""Code of even odds; codes lie between 0 and twice this."""


class Threshold(NamedTuple):
    """A feature in words, and the value at which it is cut in two.

    Attributes:
        feature: the feature, in words.
        value: messages at or above this value lie on the right.
        kind: ``"number"``, or ``"odds"`` of the two labels that send a message.
    """

    feature: str
    value: float
    kind: Literal["number", "odds"]


class Features:
    """Features learned from messages ``(n, F)`` of each of several labels.

    They are numbered. First come the numbers: columns of the messages, a projection, and fractions and lowest
    bits of some columns; thresholds divide each into bins. Then come the combinations: pairs of columns, and
    last the whole message. The value of a combination is the label that sent it most often when the features
    were learned (of two labels, the odds of the second).

    Args:
        messages: messages of each label, as many of one as of another.
        floats: whether to look at the fractions and the lowest bits of floats.
    """

    def __init__(self, messages: list[FloatArray], floats: bool) -> None:
        all_messages = np.concatenate(messages)
        self._choose_columns(all_messages, floats)
        self._choose_projection(messages)
        numbers = self._numbers(all_messages)
        self._thresholds = [_thresholds(np.unique(number)) for number in numbers]
        self._num_bins = [len(thresholds) + 1 for thresholds in self._thresholds]
        self._choose_pairs(len(all_messages))
        self._repeated = _repeated_messages(all_messages)
        self._learn_senders(messages)
        # Until `choose` keeps the best features, all are kept.
        self._kept = np.arange(len(self._thresholds) + len(self._senders))

    def _choose_columns(self, messages: FloatArray, floats: bool) -> None:
        """Choose the columns to search, evenly among those that vary, and those to read bit by bit."""
        varies = (messages != messages[:1]).any(axis=0)
        varying = np.flatnonzero(varies)
        step = math.ceil(len(varying) / _MOST_SEARCHED) or 1
        self._columns = varying[::step]
        self._float_columns = self._columns[:0]
        if floats:
            is_fraction = has_fractions(messages[:, self._columns])
            self._float_columns = self._columns[is_fraction][:_MOST_FLOATS]

    def _choose_projection(self, messages: list[FloatArray]) -> None:
        """Choose the direction in which the mean messages of two labels differ most."""
        all_messages = np.concatenate(messages)
        varies = (all_messages != all_messages[:1]).any(axis=0)
        with np.errstate(all="ignore"):
            spread = all_messages.std(axis=0) + _LEAST_SPREAD
            means = np.stack([of_label.mean(axis=0) for of_label in messages]) / spread
            distances = np.stack([np.square(means - mean).sum(axis=-1) for mean in means])
            one, other = np.unravel_index(distances.argmax(), distances.shape)
            weights = (means[one] - means[other]) / spread
        if np.count_nonzero(varies) <= 1:
            # A single column that varies is a feature already.
            weights = np.zeros_like(weights)
        self._projection = np.nan_to_num(weights, posinf=0.0, neginf=0.0)

    def _choose_pairs(self, num_messages: int) -> None:
        """Choose pairs of columns with few pairs of bins for the number of messages."""
        most_pairs_of_bins = num_messages // _MESSAGES_PER_PAIR_OF_BINS
        self._pairs = []
        for i, j in combinations(range(min(len(self._columns), _MOST_PAIRED)), 2):
            if self._num_bins[i] * self._num_bins[j] <= most_pairs_of_bins:
                self._pairs.append((i, j))

    def _learn_senders(self, messages: list[FloatArray]) -> None:
        """Learn, for each combination, which label sends each of its values most often."""
        num_labels = len(messages)
        all_messages = np.concatenate(messages)
        labels = np.repeat(np.arange(num_labels), len(messages[0]))
        bins = self._bins(all_messages)
        sizes = [self._num_bins[i] * self._num_bins[j] for i, j in self._pairs]
        sizes.append(len(self._repeated) + 1)

        self._senders = []
        for combination, size in enumerate(sizes):
            values = self._combined(combination, bins, all_messages)
            values_and_labels = values * num_labels + labels
            counts = np.bincount(values_and_labels, minlength=size * num_labels)
            self._senders.append(_senders(counts.reshape(size, num_labels)))

    def _numbers(self, messages: FloatArray) -> list[FloatArray]:
        """Numbers ``(n,)`` of every feature that is a number, in order."""
        with np.errstate(all="ignore"):
            columns = messages.T[self._columns]
            projection = messages @ self._projection
            floats = messages[:, self._float_columns].T
            fractions = floats - np.floor(floats)
            lowest_bits = _lowest_bit(floats)
        return [*columns, projection, *fractions, *lowest_bits]

    def _bins(self, messages: FloatArray) -> Callable[[int], IntArray]:
        """Function from a feature that is a number to the bins ``(n,)`` of the messages, computed once."""
        numbers = self._numbers(messages)

        @cache
        def bins_of(feature: int) -> IntArray:
            """Bins ``(n,)`` of one number: how many thresholds it has reached."""
            return np.searchsorted(self._thresholds[feature], numbers[feature], side="right")

        return bins_of

    def _combined(
        self, combination: int, bins: Callable[[int], IntArray], messages: FloatArray
    ) -> IntArray:
        """Values ``(n,)`` of a combination, from 0 on: a pair of bins, or after the pairs a whole message.

        The value of a whole message is its place among the repeated ones, from 1 on; 0 for all others.
        """
        if combination < len(self._pairs):
            one, other = self._pairs[combination]
            return bins(one) * self._num_bins[other] + bins(other)
        keys = _as_keys(messages)
        nearest = np.searchsorted(self._repeated, keys).clip(max=len(self._repeated) - 1)
        is_repeated = self._repeated[nearest] == keys
        return np.where(is_repeated, nearest + 1, 0)

    def codes(self, messages: FloatArray) -> npt.NDArray[np.uint16]:
        """Codes ``(n, kept)`` of the features that are kept."""
        codes = np.empty((len(messages), len(self._kept)), dtype=np.uint16)
        bins = self._bins(messages)
        num_numbers = len(self._thresholds)
        for column, feature in zip(codes.T, self._kept.tolist(), strict=True):
            if feature < num_numbers:
                column[:] = bins(feature)
            else:
                combination = feature - num_numbers
                values = self._combined(combination, bins, messages)
                column[:] = self._senders[combination][values]
        return codes

    def choose(self, messages: FloatArray, labels: IntArray) -> npt.NDArray[np.uint16]:
        """Keep the features that tell most by themselves; return their codes ``(n, kept)``."""
        codes = self.codes(messages)
        num_labels = int(labels.max()) + 1
        scores = np.array([_largest_chi_square(column, labels, num_labels) for column in codes.T])

        # What a pair or a whole message tells counts only beyond what its columns tell.
        gains = scores.copy()
        first_pair = len(self._thresholds)
        for feature, (one, other) in enumerate(self._pairs, start=first_pair):
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
        kept_feature = int(self._kept[feature])
        num_numbers = len(self._thresholds)
        if kept_feature < num_numbers:
            value = float(self._thresholds[kept_feature][code])
            return Threshold(self._number_names(names)[kept_feature], value, "number")

        combination = kept_feature - num_numbers
        name = "this very message"
        if combination < len(self._pairs):
            one, other = self._pairs[combination]
            first_name = names[self._columns[one]]
            second_name = names[self._columns[other]]
            name = f"this pair of values, {first_name} and {second_name},"
        # Half way between this code and the next, turned back into odds.
        odds = math.exp((code + 0.5 - _EVEN_ODDS) / _STEPS_PER_E)
        return Threshold(name, odds, "odds")

    def _number_names(self, names: list[str]) -> list[str]:
        """Names of the features that are numbers, in the order of ``_numbers``, from the columns' names."""
        column_names = [names[i] for i in self._columns]
        float_names = [names[i] for i in self._float_columns]
        fraction_names = [f"the fraction of {name}" for name in float_names]
        bit_names = [f"the exponent of the lowest bit of {name}" for name in float_names]
        return [*column_names, "a projection of all numbers", *fraction_names, *bit_names]


def has_fractions(messages: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell of the columns of messages ``(n, F)`` which have numbers that are not whole."""
    with np.errstate(all="ignore"):
        return (messages != np.rint(messages)).any(axis=0)


def _largest_chi_square(codes: IntArray, labels: IntArray, num_labels: int) -> float:
    """Largest chi-square statistic of a label's count above a threshold, over labels and thresholds.

    Args:
        codes: codes of one feature, ``(n,)``; a message is above a threshold if its code is at least that.
        labels: labels of the messages, ``(n,)``, each of them equally often.
        num_labels: number of labels.
    """
    num_messages = len(labels)
    num_codes = int(codes.max()) + 1
    codes_and_labels = codes * np.int64(num_labels) + labels
    counts = np.bincount(codes_and_labels, minlength=num_codes * num_labels)
    counts = counts.reshape(num_codes, num_labels)
    above = counts[::-1].cumsum(axis=0)[::-1]  # (codes, labels): messages at or above each code

    share_above = above.sum(axis=-1) / num_messages
    messages_by_label = above[0]
    expected = share_above[:, None] * messages_by_label
    variance = num_messages * share_above * (1.0 - share_above) * (num_labels - 1) / num_labels**2
    largest_excess = np.square(above - expected).max(axis=-1)
    # The half keeps the statistic finite and small where few messages are above or below.
    return float((largest_excess / (variance + 0.5)).max())


def _repeated_messages(messages: FloatArray) -> npt.NDArray[np.void]:
    """Messages that came more than once, as sorted keys; the first key too, so that there is one."""
    keys, counts = np.unique(_as_keys(messages), return_counts=True)
    is_kept = counts > 1
    is_kept[0] = True
    return keys[is_kept]


def _senders(counts: IntArray) -> IntArray:
    """Codes ``(values,)`` of the likeliest sender of each value, from counts ``(values, labels)``.

    Of two labels the code is the log odds of the second, in steps; of more, it is one more than the likeliest
    label, or 0 for a value that no label sent.
    """
    num_labels = counts.shape[1]
    if num_labels > 2:
        was_sent = counts.any(axis=-1)
        return np.where(was_sent, counts.argmax(axis=-1) + 1, 0)
    log_odds = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    steps = np.rint(_STEPS_PER_E * log_odds)
    return steps.clip(-_EVEN_ODDS, _EVEN_ODDS).astype(np.int64) + _EVEN_ODDS


def _as_keys(messages: FloatArray) -> npt.NDArray[np.void]:
    """Messages ``(n, F)`` as keys ``(n,)``, their bits, which can be compared and sorted."""
    rows = np.ascontiguousarray(messages)
    bytes_of_row = rows.itemsize * rows.shape[1]
    return rows.view(np.dtype((np.void, bytes_of_row))).reshape(-1)


def _lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest bit that is set in a float: the grid on which it lies; 1100 for zero."""
    mantissa, exponent = np.frexp(numbers)
    mantissa = np.nan_to_num(mantissa, posinf=0.0, neginf=0.0)
    whole = np.abs(mantissa * 2.0**_MANTISSA_BITS).astype(np.int64)
    lowest_set_bit = whole & -whole
    # The clip is for zero, which has no bit that is set.
    place = np.log2(lowest_set_bit.clip(1).astype(np.float64))
    return np.where(whole > 0, exponent - _MANTISSA_BITS + place, _LOWEST_BIT_OF_ZERO)


def _thresholds(values: FloatArray) -> FloatArray:
    """Choose the thresholds of a column from its distinct values, which rise.

    All but the smallest are thresholds if they are few. Of many, these are: 64 at even ranks, and some near
    either end.
    """
    largest_rank = len(values) - 1
    if largest_rank <= _MOST_VALUES:
        return values[1:]
    even = np.linspace(0, largest_rank, _CUTS + 2)[1:-1]
    near_smallest = _NEAR_THE_ENDS
    near_largest = len(values) - _NEAR_THE_ENDS
    ranks = np.concatenate([even, near_smallest, near_largest]).astype(int)
    ranks = np.unique(ranks.clip(1, largest_rank))
    return values[ranks]
