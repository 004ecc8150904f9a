"""Black-box audit: a lower bound on eps from messages only, of a channel or of any other mechanism.

**Events.** A message is written as numbers, and described by features: these numbers, a projection, the
fraction and the lowest bit of floats, and which label was seen to send the same message, or the same pair of
numbers, most often. A decision tree of scikit-learn divides the messages by these features; an event is a
set of its leaves. So it finds messages that a label never sends, a wrong scale or rounding, an order that
gives the label away, seeds that repeat and floats that one label cannot reach.

**Statistics.** Labels and event are chosen on one half of the messages and tested on the other, so the event
is fixed before the test: the two Clopper-Pearson bounds, each at half of the error, hold together
(Bonferroni), and ``eps >= log((p_low - delta) / p'_high)`` with the given confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.privacy.densities import check_situation
from ldp_gym.privacy.mechanism import Mechanism
from ldp_gym.statistics import largest_share, least_share

_FIRST_CAUTION, _CAUTION = 0.1, 1e-4
"""Error rates at which pairs of labels, and events of a pair, are compared, lest chance looks like a leak."""

_DEPTH, _SMALLEST_LEAF = 10, 8
"""Limits of a decision tree: its depth, and the messages of a leaf."""

_CUTS, _NEAR_THE_ENDS, _MOST_VALUES = 64, np.array([1, 3, 10, 30, 100, 300]), 400
"""Number of thresholds of a feature, ranks, from either end, of further ones, and the number of values that
are all told apart."""

_MESSAGES_PER_CELL = 4
"""Least average number of messages of the cells of a pair of features."""

_PER_E, _EVEN = 4, 60
"""Codes of the odds of two labels: steps for each factor of e, and the code of even odds."""

_MOST_ASKED, _MOST_PAIRED, _MOST_FLOATS, _MOST_FEATURES = 512, 24, 16, 24
"""Largest numbers of columns that are searched, paired, and read bit by bit, and of a tree's features."""

_PAIRS = 16
"""Number of label pairs whose events are compared, namely those whose messages differ most."""

_MOST_TRIALS = 1e10
"""Largest value of :attr:`EpsilonEstimate.trials_needed` that is reported."""


@dataclass(frozen=True)
class EpsilonEstimate:
    """Result of a black-box audit.

    Attributes:
        epsilon: lower bound on the mechanism's eps, with the given confidence. It says nothing about how
            large eps really is: a small figure does not prove privacy.
        claimed: the eps that the mechanism claims, or None.
        confidence: confidence of the bound.
        delta: the delta that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: number of test messages of y and of y' in the event.
        trials: number of messages drawn in all.
        tested: number of test messages of each of the two labels.
    """

    epsilon: float
    claimed: float | None
    confidence: float
    delta: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int
    tested: int

    @property
    def holds(self) -> bool | None:
        """False if the trials prove that the claim is broken; None without a claim."""
        return None if self.claimed is None else self.epsilon <= self.claimed

    @property
    def trials_needed(self) -> int | None:
        """Number of trials that would break the claim, were the shares of the event those seen here.

        None if the claim is broken already, if there is none, or if 10^10 trials would not break it.
        """
        if self.claimed is None or not self.holds:
            return None
        (one, other), tested = np.array(self.counts) / self.tested, self.tested
        while tested * self.trials / self.tested <= _MOST_TRIALS:
            shares = one * tested, other * tested
            if _epsilon_bound(*shares, tested, 1.0 - self.confidence, self.delta) > self.claimed:
                return math.ceil(self.trials * tested / self.tested)
            tested = math.ceil(1.1 * tested)
        return None

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        found = f"eps >= {self.epsilon:.4g} with {100 * self.confidence:.8g}% confidence"
        if self.claimed is None:
            return f"{found}; no eps was claimed"
        if not self.holds:
            return f"the claim of eps = {self.claimed:g} is broken: {found}"
        needed = self.trials_needed
        more = (
            ""
            if needed is None
            else f"; at the shares seen here {needed:,} trials would be such a proof"
        )
        return f"no proof that the claim of eps = {self.claimed:g} is broken ({found}){more}"

    def __str__(self) -> str:
        one, other = self.labels
        return (
            f"{self.verdict}. Event: {self.event}. It has {self.counts[0]:,} of {self.tested:,} messages of "
            f"label {one} and {self.counts[1]:,} of as many of label {other}; {self.trials:,} were drawn."
        )


def estimate_epsilon(
    mechanism: Channel | Callable[[Any], Any],
    candidates: FloatArray | None = None,
    trials: int = 100_000,
    confidence: float = 0.99,
    *,
    num_labels: int | None = None,
    claimed: float | None = None,
    delta: float = 0.0,
    vectorized: bool = False,
    floats: bool | None = None,
    time_limit: float = 600.0,
    posterior: FloatArray | None = None,
    seed: int = 0,
) -> EpsilonEstimate:
    """Bound the eps of a mechanism from below by its messages.

    A quarter of the messages, of all labels, chooses two labels; a quarter, of those two, chooses an event
    that tells them apart; half of them test it. Messages are taken to be independent given their labels: what
    one message tells about another is not seen, nor what a mechanism prints or stores, nor its run time.

    Args:
        mechanism: a function from a label in ``0..M-1`` to a message (a number, a string, bytes, a set, or a
            tuple, list or array), or a Channel.
        candidates: the class at one context, ``(K, M)``, for a Channel.
        trials: number of messages to draw in all.
        confidence: confidence of the bound.
        num_labels: M, for a function.
        claimed: the eps that the mechanism claims; by default a Channel's own.
        delta: the delta to grant the mechanism.
        vectorized: whether the function maps an array of labels ``(n,)`` to n messages.
        floats: whether to look at the lowest bits of floats, which noise that is right in real arithmetic may
            give away; by default for functions, not for Channels, whose promise is about real arithmetic.
        time_limit: seconds that a function may take for all messages.
        posterior: the public posterior, for an adaptive Channel.
        seed: seed of a Channel's messages and of the order of labels. A function has its own randomness.

    Raises:
        MechanismFailedError: if a function raises, hangs, or returns messages of several kinds.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def respond(label):  # the label with probability 3 / 4: eps = log 3
        ...     return label if rng.random() < 0.75 else 1 - label
        >>> found = estimate_epsilon(respond, num_labels=2, claimed=0.55, trials=20_000)
        >>> found.holds, found.labels, 0.9 < found.epsilon < 1.1
        (False, (0, 1), True)
    """
    confidence = validation.fraction("confidence", confidence)
    delta = validation.probability_below_one("delta", delta)
    rng = np.random.default_rng(validation.seed("seed", seed))
    floats = (
        not isinstance(mechanism, Channel) if floats is None else validation.flag("floats", floats)
    )
    call: Callable[[Any], Any] = mechanism  # type: ignore[assignment]
    if isinstance(mechanism, Channel):
        if num_labels is not None or vectorized:
            raise ValueError("num_labels and vectorized are for functions: a Channel knows its own")
        table, public = check_situation(mechanism, candidates, posterior)
        claimed, num_labels = (
            mechanism.epsilon if claimed is None else claimed,
            mechanism.num_labels,
        )
        call, vectorized = lambda labels: mechanism.privatize(labels, table, rng, public), True
        width = 1 + math.prod(mechanism.message_shape)
    else:
        if not callable(mechanism) or isinstance(mechanism, type):
            what = "a function from a label to a message, or a Channel (made, not its class)"
            raise TypeError(f"mechanism must be {what}, got {validation.describe(mechanism)}")
        if candidates is not None or posterior is not None:
            raise ValueError("candidates and posterior are for Channels: pass num_labels=")
        num_labels, width = validation.whole("num_labels (M)", num_labels, least=2), 2
    if claimed is not None and claimed != math.inf:
        claimed = validation.nonnegative("claimed", claimed)
    trials, vectorized = (
        validate_trials(trials, num_labels),
        validation.flag("vectorized", vectorized),
    )
    validation.fits_memory("trials", trials, width, "messages")
    source = Mechanism(call, vectorized, validation.positive("time_limit", time_limit))

    def messages_of(labels: list[int], count: int) -> list[FloatArray]:
        """Messages of each label, drawn in random order: a mechanism may have a memory."""
        order = rng.permutation(np.repeat(labels, count))
        messages = source.numbers(order)
        return [messages[order == label] for label in labels]

    each, several, tested = trials // 4 // num_labels, trials // 8, trials // 4
    first_look = _best_event(
        messages_of(list(range(num_labels)), each), delta, _FIRST_CAUTION, floats
    )
    event = _best_event(messages_of(list(first_look.labels), several), delta, _CAUTION, floats)
    one, other = (first_look.labels[i] for i in event.labels)
    order = rng.permutation(np.repeat([one, other], tested))
    inside = event(source.numbers(order))
    hits, others = (int(np.count_nonzero(inside & (order == label))) for label in (one, other))
    epsilon = float(_epsilon_bound(hits, others, tested, 1.0 - confidence, delta))
    assert source.layout is not None, "messages have been drawn"
    words = event.words(source.layout.names, first_look.labels)
    if hits:
        words += f", such as {validation.shorten(source.messages[int(np.argmax(inside))])}"
    drawn = each * num_labels + 2 * several + 2 * tested
    result = max(0.0, epsilon), claimed, confidence, delta, (one, other), words, (hits, others)
    return EpsilonEstimate(*result, drawn, tested)


def validate_trials(trials: int, num_labels: int) -> int:
    """Return ``trials``, checked to be enough messages for this number of labels."""
    return validation.whole("trials", trials, least=20 * num_labels)


# -- Events ------------------------------------------------------------------------------------------------


def _epsilon_bound(hits: Any, others: Any, trials: int, error: float, delta: float) -> FloatArray:
    """``log((p_low - delta) / p'_high)`` with Clopper-Pearson bounds, each at half the error."""
    low, high = least_share(hits, trials, error / 2.0), largest_share(others, trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


@dataclass(frozen=True)
class _Event:
    """A set of messages: those in some leaves of a tree, which tell a pair of labels apart."""

    features: _Features
    tree: Any
    leaves: IntArray
    labels: tuple[int, int]

    def __call__(self, messages: FloatArray) -> BoolArray:
        return np.isin(self.tree.apply(self.features.codes(messages)), self.leaves)

    def words(self, names: list[str], labels: tuple[int, int]) -> str:
        """The way to the leaf that tells most, in words, with the names of columns and of the two labels."""
        inner, node = self.tree.tree_, int(self.leaves[0])
        answers: dict[tuple[int, bool], str] = {}
        while node:
            above = int(
                np.flatnonzero((inner.children_left == node) | (inner.children_right == node))[0]
            )
            feature, right = int(inner.feature[above]), bool(inner.children_right[above] == node)
            text, value = self.features.text(feature, int(inner.threshold[above]), names, labels)
            answers.setdefault((feature, right), f"{text} {'>=' if right else '<'} {value:.9g}")
            node = above
        first, others = " and ".join(answers.values()) or "any message", len(self.leaves) - 1
        return f"{first} (or {others} other combinations of answers)" if others else first


def _best_event(messages: list[FloatArray], delta: float, caution: float, floats: bool) -> _Event:
    """The event and the two labels with the largest confident ratio, from messages ``(n, F)`` per label.

    A quarter of them shows what the features are, and the rest grows the tree and counts in its leaves.
    """
    with extra("privacy", "the black-box audit"):
        from sklearn.tree import DecisionTreeClassifier

    first = len(messages[0]) // 4
    features = _Features([some[:first] for some in messages], floats)
    each = len(messages[0]) - first
    labels = np.repeat(np.arange(len(messages)), each)
    codes = features.choose(np.concatenate([some[first:] for some in messages]), labels)
    tree = DecisionTreeClassifier(
        max_depth=_DEPTH,
        min_samples_leaf=_SMALLEST_LEAF,
        min_impurity_decrease=(2.0 + 8.0 / len(messages)) / len(codes),  # chance gains less
        random_state=0,
    ).fit(codes, labels)
    places = labels * tree.tree_.node_count + tree.apply(codes)
    counts = np.bincount(places, minlength=len(messages) * tree.tree_.node_count).reshape(
        len(messages), -1
    )
    found = [(*_best_leaves(counts, pair, each, delta, caution), pair) for pair in _pairs(counts)]
    _, leaves, pair = max(found, key=lambda one: one[0])
    return _Event(features, tree, leaves, pair)


def _pairs(counts: IntArray) -> list[tuple[int, int]]:
    """The pairs of labels, both ways, whose counts ``(L, G)`` differ most."""
    distance = np.stack([np.abs(counts - row).sum(axis=-1) for row in counts])
    distance[np.diag_indices(len(counts))] = -1
    order = np.argsort(distance, axis=None)[::-1][: min(_PAIRS, distance.size - len(counts))]
    return [(int(i // len(counts)), int(i % len(counts))) for i in order]


def _best_leaves(
    counts: IntArray, pair: tuple[int, int], each: int, delta: float, caution: float
) -> tuple[float, IntArray]:
    """The confident log ratio of two labels, and the leaves in which it is reached."""
    one, other = counts[pair[0]], counts[pair[1]]
    order = np.argsort(
        (other + 0.5) / (one + 0.5), kind="stable"
    )  # likelier for the first label first
    order = order[one[order] + other[order] > 0]
    bounds = _epsilon_bound(np.cumsum(one[order]), np.cumsum(other[order]), each, caution, delta)
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1]


# -- Features ----------------------------------------------------------------------------------------------


class _Features:
    """Features of messages ``(n, F)`` of each label: bins of numbers, then senders of pairs and messages."""

    def __init__(self, messages: list[FloatArray], floats: bool) -> None:
        everything, num_labels = np.concatenate(messages), len(messages)
        moving = np.flatnonzero((everything != everything[:1]).any(axis=0))
        self._columns = moving[:: -(-len(moving) // _MOST_ASKED) or 1]
        some = everything[:, self._columns]
        with np.errstate(all="ignore"):
            self._floats = self._columns[(some != np.rint(some)).any(axis=0)][
                : _MOST_FLOATS * floats
            ]
            # The projection: the direction in which the means of two labels' messages differ most, if many.
            spread = everything.std(axis=0) + 1e-300
            means = np.stack([each.mean(axis=0) for each in messages]) / spread
            distance = np.stack([np.square(means - mean).sum(axis=-1) for mean in means])
            one, other = np.unravel_index(distance.argmax(), distance.shape)
            weights = (means[one] - means[other]) / spread * (len(moving) > 1)
        self._weights = np.nan_to_num(weights, posinf=0.0, neginf=0.0)
        self._cuts = [_thresholds(np.unique(column)) for column in self._reals(everything)]
        self._sizes = [len(cuts) + 1 for cuts in self._cuts]
        keys, counts = np.unique(_keys(everything), return_counts=True)
        self._keys = keys[
            (counts > 1) | (np.arange(len(keys)) == 0)
        ]  # messages that came again; never none
        most, paired = (
            len(everything) // _MESSAGES_PER_CELL,
            range(min(len(self._columns), _MOST_PAIRED)),
        )
        self._pairs = [
            (i, j) for i, j in combinations(paired, 2) if self._sizes[i] * self._sizes[j] <= most
        ]
        bins, labels = self._bins(everything), np.repeat(np.arange(num_labels), len(messages[0]))
        sizes = [*(self._sizes[i] * self._sizes[j] for i, j in self._pairs), len(self._keys) + 1]
        self._senders = [
            _senders(self._cells(place, bins, everything) * num_labels + labels, size, num_labels)
            for place, size in enumerate(sizes)
        ]
        self._kept = np.arange(len(self._cuts) + len(self._senders))

    def _reals(self, messages: FloatArray) -> list[FloatArray]:
        """Columns of real numbers ``(n,)``."""
        with np.errstate(all="ignore"):
            of_floats = messages[:, self._floats].T
            fractions, bits = of_floats - np.floor(of_floats), _lowest_bit(of_floats)
            return [*messages.T[self._columns], messages @ self._weights, *fractions, *bits]

    def _bins(self, messages: FloatArray) -> Callable[[int], IntArray]:
        """The bins ``(n,)`` of a column of real numbers, by its place."""
        reals = self._reals(messages)
        return cache(lambda place: np.searchsorted(self._cuts[place], reals[place], side="right"))

    def _cells(self, place: int, bins: Callable[[int], IntArray], messages: FloatArray) -> IntArray:
        """Cells ``(n,)`` of a pair of columns, or of whole messages."""
        if place < len(self._pairs):
            one, other = self._pairs[place]
            return bins(one) * self._sizes[other] + bins(other)
        rows = _keys(messages)
        known = np.searchsorted(self._keys, rows).clip(max=len(self._keys) - 1)
        return np.where(self._keys[known] == rows, known + 1, 0)

    def codes(self, messages: FloatArray) -> npt.NDArray[np.uint16]:
        """Codes ``(n, kept)`` of the features that were kept."""
        found, bins = (
            np.empty((len(messages), len(self._kept)), dtype=np.uint16),
            self._bins(messages),
        )
        for column, feature in zip(found.T, self._kept.tolist(), strict=True):
            place = feature - len(self._cuts)
            column[:] = (
                bins(feature)
                if place < 0
                else self._senders[place][self._cells(place, bins, messages)]
            )
        return found

    def choose(self, messages: FloatArray, labels: IntArray) -> npt.NDArray[np.uint16]:
        """Keep the features that tell most by themselves; return their codes ``(n, kept)``."""
        codes, num_labels, plain = self.codes(messages), int(labels.max()) + 1, len(self._cuts)
        told = np.empty(len(self._kept))
        for feature, column in enumerate(codes.T):
            size = int(column.max()) + 1
            counts = np.bincount(
                column * np.int64(num_labels) + labels, minlength=size * num_labels
            )
            above = counts.reshape(size, num_labels)[::-1].cumsum(axis=0)[::-1]
            share = above.sum(axis=-1) / len(labels)
            variance = len(labels) * share * (1.0 - share) * (num_labels - 1) / num_labels**2
            excess = np.square(above - share[:, None] * above[0]).max(axis=-1)
            told[feature] = (
                excess / (variance + 0.5)
            ).max()  # the largest chi-square of a threshold
        gains = told.copy()  # of pairs and messages: beyond what their columns tell
        for feature, (one, other) in enumerate(self._pairs, start=plain):
            gains[feature] -= told[one] + told[other]
        gains[-1] -= told[:-1].max(initial=0.0)
        self._kept = np.argsort(-gains, kind="stable")[:_MOST_FEATURES]
        return codes[:, self._kept]

    def text(
        self, feature: int, code: int, names: list[str], labels: tuple[int, int]
    ) -> tuple[str, float]:
        """Words for a kept feature, of two labels, and the number above which its codes exceed ``code``."""
        place = int(self._kept[feature])
        columns, floats = ([names[i] for i in some] for some in (self._columns, self._floats))
        if place < len(self._cuts):
            kinds = [
                *columns,
                "a projection of all numbers",
                *(f"the fraction of {name}" for name in floats),
            ]
            kinds += [f"the exponent of the lowest bit of {name}" for name in floats]
            return kinds[place], float(self._cuts[place][code])
        pair = [*self._pairs, ()][place - len(self._cuts)]
        what = " with ".join(columns[i] for i in pair) or "this very message"
        seen = f"{what} came from label {labels[1]} for each time from label {labels[0]}"
        return f"how often {seen}", math.exp((code + 0.5 - _EVEN) / _PER_E)


def _senders(cells: IntArray, size: int, num_labels: int) -> IntArray:
    """Senders of the messages of each cell: log odds of two labels, as codes, or the likeliest of many."""
    sent = np.bincount(cells, minlength=size * num_labels).reshape(size, num_labels)
    if num_labels > 2:
        return np.where(sent.any(axis=-1), sent.argmax(axis=-1) + 1, 0)
    odds = np.log((sent[:, 1] + 0.5) / (sent[:, 0] + 0.5))
    return np.rint(_PER_E * odds).clip(-_EVEN, _EVEN).astype(np.int64) + _EVEN


def _keys(messages: FloatArray) -> npt.NDArray[np.void]:
    """Messages ``(n, F)``, bit by bit, as things that can be compared ``(n,)``."""
    rows = np.ascontiguousarray(messages)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)


def _lowest_bit(numbers: FloatArray) -> FloatArray:
    """Exponent of the lowest bit that is set in a float: which grid it lies on."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.abs(np.nan_to_num(mantissa, posinf=0.0, neginf=0.0) * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole).clip(1).astype(np.float64))
    return np.where(whole > 0, exponent - 53.0 + lowest, 1100.0)


def _thresholds(values: FloatArray) -> FloatArray:
    """A few of the sorted values, evenly and near the ends; all but the first of a few."""
    last = len(values) - 1
    if last <= _MOST_VALUES:
        return values[1:]
    even = np.linspace(0, last, _CUTS + 2)[1:-1]
    places = np.concatenate([even, _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]).astype(int)
    return values[np.unique(places.clip(1, last))]
