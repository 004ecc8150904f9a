"""A lower bound on eps from messages alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.intervals import largest_share, least_share
from ldp_gym.privacy.bits import varying
from ldp_gym.privacy.exact import check_situation
from ldp_gym.privacy.questions import Labelled, Question, Tree, grow, promising

_CAUTION = 1e-6
"""The error rate at which the exploration compares events: small, so that chance is not taken for a leak."""

_DEPTH = 10
"""How many questions an event asks of a message at most."""

_CUTS = 32
"""At how many thresholds a projection is asked for."""

_PAIRS = 16
"""So many pairs of labels are looked at closely: those whose messages fall into the most different cells."""


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
        trials: how many messages were drawn in all.
        explored: how many of them went into the choice of labels and event: they cannot test it.
        tested: how many test messages each of the two labels had.
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
        """What became of the messages, in words."""
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
    """A lower bound on a channel's eps from its messages alone (it needs ``privatize``).

    A quarter of the messages, of all labels, goes into finding two labels, a quarter, of those two, into
    finding an event that tells them apart, and half into testing it. As the event is fixed before the test,
    the Clopper-Pearson bounds on its two probabilities hold, and ``eps >= log((p_low - delta) / p'_high)``
    with the given confidence.

    An event is a set of cells of a tree of questions: those in which the first label is likelier than the
    second by more than some ratio (Neyman and Pearson).

    Args:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        trials: how many messages to draw in all.
        confidence: of the bound.
        delta: the delta to grant the channel.
        posterior: the public posterior, for an adaptive channel.
        seed: of the messages.
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
    """``trials`` as a number of messages that suffices for so many labels."""
    return validation.whole("trials", trials, least=20 * num_labels)


@dataclass(frozen=True)
class _Event:
    """A set of messages: those that end in some cells of a tree.

    Attributes:
        tree: the questions.
        cells: the cells that count.
        labels: the pair of labels that it tells apart.
    """

    tree: Tree
    cells: IntArray
    labels: tuple[int, int]

    def __call__(self, messages: FloatArray) -> BoolArray:
        return np.isin(self.tree.cells(messages), self.cells)

    def __str__(self) -> str:
        paths = self.tree.paths()
        first, others = paths[int(self.cells[0])] or "any message", len(self.cells) - 1
        return f"{first} (or {others} other combinations of answers)" if others else first


def _best_event(messages: list[FloatArray], delta: float) -> _Event:
    """The event and the two labels with the largest confident ratio, from messages ``(n, F)`` per label."""
    num_labels, each = len(messages), len(messages[0])
    labels, everything = np.repeat(np.arange(num_labels), each), np.concatenate(messages)
    flat = 1.0 / num_labels
    surplus = (labels[:, None] == np.arange(num_labels)) - flat
    labelled = Labelled(everything, np.ones(len(everything)), surplus, np.full(surplus.shape, flat))
    tree = grow(labelled, [*_projections(messages), *promising(labelled)], _DEPTH)
    places = labels * tree.num_cells + tree.cells(everything)
    counts = np.bincount(places, minlength=num_labels * tree.num_cells).reshape(num_labels, -1)
    found = [(*_best_cells(counts, pair, each, delta), pair) for pair in _pairs(counts)]
    _, cells, pair = max(found, key=lambda one: one[0])
    return _Event(tree, cells, pair)


def _projections(messages: list[FloatArray]) -> Iterator[Question]:
    """Questions about the direction in which the means of two labels' messages differ most."""
    everything = np.concatenate(messages)
    if len(varying(everything)) < 2:
        return
    spread = everything.std(axis=0) + 1e-300
    means = np.stack([some.mean(axis=0) for some in messages]) / spread
    distance = np.square(means[:, None] - means).sum(axis=-1)
    one, other = np.unravel_index(distance.argmax(), distance.shape)
    weights = (means[one] - means[other]) / spread

    def above(cut: float) -> Question:
        return Question(f"a projection is at least {cut:.6g}", lambda some: some @ weights >= cut)

    cuts = np.quantile(everything @ weights, np.linspace(0.0, 1.0, _CUTS + 2)[1:-1])
    yield from (above(float(cut)) for cut in np.unique(cuts))


def _pairs(counts: IntArray) -> list[tuple[int, int]]:
    """The pairs of labels, both ways, whose counts ``(L, G)`` differ most."""
    distance = np.abs(counts[:, None] - counts).sum(axis=-1)
    distance[np.diag_indices(len(counts))] = -1
    order = np.argsort(distance, axis=None)[::-1][: min(_PAIRS, distance.size - len(counts))]
    return [(int(i // len(counts)), int(i % len(counts))) for i in order]


def _best_cells(counts: IntArray, pair: tuple[int, int], each: int, delta: float) -> tuple[float, IntArray]:
    """The confident ratio of two labels, and the cells in which it is reached."""
    one, other = counts[pair[0]], counts[pair[1]]
    order = np.argsort((other + 0.5) / (one + 0.5), kind="stable")  # first what is likelier for the one
    bounds = _epsilon_bound(np.cumsum(one[order]), np.cumsum(other[order]), each, _CAUTION, delta)
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1]


def _epsilon_bound(hits: IntArray, others: IntArray, trials: int, error: float, delta: float) -> FloatArray:
    """``log((p_low - delta) / p'_high)`` with Clopper-Pearson bounds, each at half the error."""
    low, high = least_share(hits, trials, error / 2.0), largest_share(others, trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
