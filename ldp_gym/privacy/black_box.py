"""Black-box audit: a lower bound on eps from messages only, of a channel or of any other mechanism.

**Events.** A message is written as numbers, and described by features: these numbers, signs of their
differences, a projection, the fraction and the lowest bit of floats, and which label was seen to send the
same message most often. A decision tree of scikit-learn divides the messages by these features; an event is a
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
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.privacy.exact import check_situation
from ldp_gym.privacy.mechanism import Mechanism
from ldp_gym.statistics import largest_share, least_share

_FIRST_CAUTION, _CAUTION = 0.1, 1e-4
"""Error rates at which pairs of labels, and events of a pair, are compared, lest chance looks like a leak."""

_DEPTH, _SMALLEST_LEAF = 10, 8
"""Limits of a decision tree: its depth, and the messages of a leaf."""

_CUTS, _NEAR_THE_ENDS = 64, np.array([1, 3, 10, 30, 100, 300])
"""Number of thresholds of a feature, and ranks, from either end, of further ones."""

_MOST_ASKED, _MOST_PAIRED, _MOST_FLOATS, _MOST_FEATURES = 512, 24, 16, 24
"""Number of columns that are looked at, that are compared with each other, whose bits are read, and of a
tree's features."""

_PAIRS = 16
"""Number of label pairs whose events are compared: those whose messages differ most."""

_MOST_TRIALS = 1e15
"""Largest number of trials that is named as needed."""


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
        explored: number of messages used to choose labels and event; they cannot test it.
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
    explored: int
    tested: int

    @property
    def holds(self) -> bool | None:
        """False if the trials prove that the claim is broken; None without a claim."""
        return None if self.claimed is None else self.epsilon <= self.claimed

    @property
    def trials_needed(self) -> int | None:
        """Number of trials that would break the claim, were the shares of the event those seen here.

        None if the claim is broken already, if there is none, or if these shares are within it.
        """
        if self.claimed is None or not self.holds:
            return None
        (one, other), tested = np.array(self.counts) / self.tested, self.tested
        while tested * self.trials / self.tested <= _MOST_TRIALS:
            error = 1.0 - self.confidence
            bound = _epsilon_bound(one * tested, other * tested, tested, error, self.delta)
            if bound > self.claimed:
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
        more = "" if needed is None else f"; at the shares seen here {needed:,} trials would be such a proof"
        return f"no proof that the claim of eps = {self.claimed:g} is broken ({found}){more}"

    @property
    def usage(self) -> str:
        """Use of the messages, in words."""
        return (
            f"{self.trials:,} messages: {self.explored:,} to choose two labels and an event, which therefore "
            f"cannot test it, and {self.tested:,} of each of the two to test it"
        )

    def __str__(self) -> str:
        one, other = self.labels
        return (
            f"{self.verdict}. Event: {self.event}. It has {self.counts[0]:,} of {self.tested:,} messages of "
            f"label {one} and {self.counts[1]:,} of as many of label {other}."
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
    one message tells about another is not seen, nor is what a mechanism prints, stores or takes time for.

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
    if isinstance(mechanism, Channel):
        if num_labels is not None or validation.flag("vectorized", vectorized):
            raise ValueError("num_labels and vectorized are for functions: a Channel knows its own")
        claimed, num_labels = mechanism.epsilon if claimed is None else claimed, mechanism.num_labels
    else:
        if not callable(mechanism) or isinstance(mechanism, type):
            what = "a function from a label to a message, or a Channel (made, not its class)"
            raise TypeError(f"mechanism must be {what}, got {validation.describe(mechanism)}")
        if candidates is not None or posterior is not None:
            raise ValueError("candidates and posterior are for Channels: pass num_labels=")
        num_labels = validation.whole("num_labels (M)", num_labels, least=2)
    floats = not isinstance(mechanism, Channel) if floats is None else validation.flag("floats", floats)
    if claimed is not None and claimed != math.inf:
        claimed = validation.nonnegative("claimed", claimed)
    trials = validate_trials(trials, num_labels)
    source: _Messages | Mechanism
    if isinstance(mechanism, Channel):
        source = _Messages(mechanism, *check_situation(mechanism, candidates, posterior), rng)
        validation.fits_memory("trials", trials, 1 + math.prod(mechanism.message_shape), "messages")
    else:
        limit = validation.positive("time_limit", time_limit)
        source = Mechanism(mechanism, validation.flag("vectorized", vectorized), limit)

    def messages_of(labels: list[int], count: int) -> list[FloatArray]:
        """Messages of each label, drawn in random order: a mechanism may have a memory."""
        order = rng.permutation(np.repeat(labels, count))
        messages = source.numbers(order)
        return [messages[order == label] for label in labels]

    each, several, tested = trials // 4 // num_labels, trials // 8, trials // 4
    first_look = _best_event(messages_of(list(range(num_labels)), each), delta, _FIRST_CAUTION, floats)
    event = _best_event(messages_of(list(first_look.labels), several), delta, _CAUTION, floats)
    one, other = (first_look.labels[i] for i in event.labels)
    order = rng.permutation(np.repeat([one, other], tested))
    inside = event(source.numbers(order))
    hits, others = (int(np.count_nonzero(inside & (order == label))) for label in (one, other))
    epsilon = float(_epsilon_bound(hits, others, tested, 1.0 - confidence, delta))
    explored = each * num_labels + 2 * several
    use = explored + 2 * tested, explored, tested
    words = event.words(source.name, first_look.labels)
    if hits:
        words += f", such as {validation.shorten(source.messages[int(np.argmax(inside))])}"
    result = max(0.0, epsilon), claimed, confidence, delta, (one, other), words, (hits, others)
    return EpsilonEstimate(*result, *use)


def validate_trials(trials: int, num_labels: int) -> int:
    """Return ``trials``, checked to be enough messages for this number of labels."""
    return validation.whole("trials", trials, least=20 * num_labels)


class _Messages:
    """Messages of a channel at candidates and a public posterior."""

    def __init__(self, channel: Channel, *situation: Any) -> None:
        self._channel, self._situation, self.messages = channel, situation, np.zeros(0)

    def numbers(self, labels: IntArray) -> FloatArray:
        """Messages ``(n, F)`` of labels ``(n,)``."""
        candidates, posterior, rng = self._situation
        self.messages = self._channel.privatize(labels, candidates, rng, posterior)
        return np.asarray(self.messages, dtype=np.float64).reshape(len(labels), -1)

    def name(self, column: int) -> str:
        """Name of a coordinate."""
        return f"coordinate {column}"


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
        return np.isin(self.tree.apply(self.features.kept_codes(messages)), self.leaves)

    def words(self, name: Callable[[int], str], labels: tuple[int, int]) -> str:
        """The way to the leaf that tells most, in words, with the names of columns and of the two labels."""
        inner, node = self.tree.tree_, int(self.leaves[0])
        ends: dict[int, tuple[int, int]] = {}  # of codes: above the first, up to the second
        while node:
            above = int(np.flatnonzero((inner.children_left == node) | (inner.children_right == node))[0])
            feature, code = int(inner.feature[above]), int(inner.threshold[above])
            low, high = ends.get(feature, (-1, -1))
            left = inner.children_left[above] == node
            ends[feature] = (low, code if high < 0 else min(high, code)) if left else (max(low, code), high)
            node = above
        answers = [
            self.features.text(feature, low, high, name, labels) for feature, (low, high) in ends.items()
        ]
        first, others = " and ".join(answers) or "any message", len(self.leaves) - 1
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
    counts = np.bincount(places, minlength=len(messages) * tree.tree_.node_count).reshape(len(messages), -1)
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
    order = np.argsort((other + 0.5) / (one + 0.5), kind="stable")  # likelier for the first label first
    order = order[one[order] + other[order] > 0]
    bounds = _epsilon_bound(np.cumsum(one[order]), np.cumsum(other[order]), each, caution, delta)
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1]


# -- Features ----------------------------------------------------------------------------------------------


class _Features:
    """Features of messages ``(n, F)`` of each label, in bins, and which of them a tree asks about."""

    def __init__(self, messages: list[FloatArray], floats: bool) -> None:
        everything = np.concatenate(messages)
        moving = np.flatnonzero((everything != everything[:1]).any(axis=0))
        self.columns = moving[:: -(-len(moving) // _MOST_ASKED) or 1]
        self.pairs = np.array(list(combinations(self.columns[:_MOST_PAIRED].tolist(), 2)), dtype=int)
        some = everything[:, self.columns]
        with np.errstate(invalid="ignore"):
            self.floats = self.columns[(some != np.rint(some)).any(axis=0)][: _MOST_FLOATS * floats]
        # The projection: the direction in which the means of two labels' messages differ most, if many.
        with np.errstate(all="ignore"):
            spread = everything.std(axis=0) + 1e-300
            means = np.stack([each.mean(axis=0) for each in messages]) / spread
            distance = np.stack([np.square(means - mean).sum(axis=-1) for mean in means])
            one, other = np.unravel_index(distance.argmax(), distance.shape)
            weights = (means[one] - means[other]) / spread * (len(moving) > 1)
        self.weights = np.nan_to_num(weights, posinf=0.0, neginf=0.0)
        self._count_senders(messages)
        self.cuts = [_thresholds(np.unique(column)) for column in self._reals(everything)]
        self.kept = np.arange(0)

    def _count_senders(self, messages: list[FloatArray]) -> None:
        """Keep who sent messages that came again: log odds of two labels, or the likeliest of many."""
        rows = np.concatenate([_keys(some) for some in messages])
        keys, places, counts = np.unique(rows, return_inverse=True, return_counts=True)
        again = (counts > 1) | (np.arange(len(keys)) == 0)  # never nothing
        sent = np.full((len(messages), len(keys)), 0.5)
        np.add.at(sent, (np.repeat(np.arange(len(messages)), len(messages[0])), places), 1.0)
        self.keys, sent = keys[again], sent[:, again]
        likeliest = sent.argmax(axis=0) + 1.0, sent.max(axis=0) / sent.sum(axis=0)
        self.senders = np.log(sent[1:] / sent[0]) if len(sent) == 2 else np.stack(likeliest)

    def _reals(self, messages: FloatArray) -> list[FloatArray]:
        """Columns of real numbers ``(n,)``."""
        with np.errstate(all="ignore"):
            projection = messages @ self.weights
            of_floats = messages[:, self.floats].T
            fractions = of_floats - np.floor(of_floats)
            rows = _keys(messages)
            known = np.searchsorted(self.keys, rows).clip(max=len(self.keys) - 1)
            found = self.keys[known] == rows
            bits = _lowest_bit(of_floats)
        return [*messages.T[self.columns], projection, *fractions, *bits, *(self.senders[:, known] * found)]

    def choose(self, messages: FloatArray, labels: IntArray) -> npt.NDArray[np.uint8]:
        """Keep the features that tell most by themselves; return their codes ``(n, kept)``."""
        self.kept = np.arange(len(self.cuts) + len(self.pairs))
        codes, num_labels = self.kept_codes(messages), int(labels.max()) + 1
        told = np.empty(len(self.kept))
        for feature, column in enumerate(codes.T):
            counts = np.bincount(column * np.int64(num_labels) + labels, minlength=256 * num_labels)
            above = counts.reshape(-1, num_labels)[::-1].cumsum(axis=0)[::-1]
            share = above.sum(axis=-1) / len(labels)
            variance = len(labels) * share * (1.0 - share) * (num_labels - 1) / num_labels**2
            excess = np.square(above - share[:, None] * above[0]).max(axis=-1)
            told[feature] = (excess / (variance + 0.5)).max()  # the largest chi-square of a threshold
        senders = slice(len(self.cuts) - len(self.senders), len(self.cuts))
        told[senders] *= ~np.isclose(told[senders], told[: senders.start].max(initial=0.0), rtol=0.01)
        order = np.argsort(-told, kind="stable")[:_MOST_FEATURES]  # of equal ones the plainer
        self.kept = self.kept[order]
        return codes[:, order]

    def kept_codes(self, messages: FloatArray) -> npt.NDArray[np.uint8]:
        """Codes ``(n, kept)`` of the features that were kept."""
        found, reals = np.empty((len(messages), len(self.kept)), dtype=np.uint8), self._reals(messages)
        for column, feature in zip(found.T, self.kept, strict=True):
            if feature < len(self.cuts):
                column[:] = np.searchsorted(self.cuts[feature], reals[feature], side="right")
            else:
                one, other = messages[:, self.pairs[feature - len(self.cuts)]].T
                column[:] = np.where(one == other, 2, one > other)  # one question tells equal ones
        return found

    def text(
        self, feature: int, low: int, high: int, name: Callable[[int], str], labels: tuple[int, int]
    ) -> str:
        """Describe codes of a kept feature above ``low`` and up to ``high``, -1 for no end."""
        place = int(self.kept[feature])
        if place >= len(self.cuts):
            one, other = (name(int(column)) for column in self.pairs[place - len(self.cuts)])
            words = {(-1, 0): "<", (-1, 1): "!=", (0, -1): ">=", (1, -1): "=", (0, 1): ">"}
            return f"{one} {words[low, high]} {other}"
        cuts = self.cuts[place]
        if place == len(self.cuts) - 1:
            ends = [f"{np.exp(cuts[low]):.4g} times or more"] * (low >= 0)
            ends += [f"less than {np.exp(cuts[high]):.4g} times"] * (high >= 0)
            often = f"as often from label {labels[1]} as from label {labels[0]}"
            return f"this very message was seen {' and '.join(ends)} {often}"
        below = f" < {cuts[high]:.9g}" if high >= 0 else ""
        above = f"{cuts[low]:.9g} <= " if low >= 0 else ""
        kinds = [name(int(column)) for column in self.columns] + ["a projection of all numbers"]
        kinds += [f"the fraction of {name(int(column))}" for column in self.floats]
        kinds += [f"the exponent of the lowest bit of {name(int(column))}" for column in self.floats]
        return f"{above}{kinds[place]}{below}"


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
    if last <= 2 * _CUTS:
        return values[1:]
    even = np.linspace(0, last, _CUTS + 2)[1:-1]
    places = np.concatenate([even, _NEAR_THE_ENDS, last + 1 - _NEAR_THE_ENDS]).astype(int)
    return values[np.unique(places.clip(1, last))]
