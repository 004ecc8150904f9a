"""Statistical check that a channel's messages follow its declared density, at an error rate of 1e-6.

Labels are drawn uniformly and their messages are sent under several tables of candidates.

- **Few messages**: goodness of fit. How often a label sends a message is binomial with the declared
  probability, which must lie in an exact (Clopper-Pearson) interval, at an error rate of 1e-6 divided by the
  number of ends of intervals (Bonferroni).
- **Other messages**: classifiers. If the density is right, label y has the probability
  ``q(z | y) / sum_y' q(z | y')`` given message z, its *belief*. A classifier that learned from one half of
  the messages gives it another probability r. The product of r / belief over the true labels of the other
  half has mean 1, whatever was learned. So it exceeds 10^6 with probability at most 1e-6 (Markov's
  inequality), and so does the mean of such products over several classifiers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.listing import list_space
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.privacy.densities import beyond_worst_case, log_densities, worst_of_messages
from ldp_gym.statistics import largest_share, least_share

ERROR_RATE = 1e-6
"""Probability with which a correct channel is reported."""

LEAST_SAMPLES = 1000
"""Smallest number of messages for the check."""

_MOST_LABELS = 64
"""Largest number of labels that send messages."""

_MOST_SAMPLES = 300_000
"""Default limit on the number of messages."""

_MOST_NUMBERS = 8_000_000
"""Default limit on messages times labels, or times numbers of a message."""

_CHECKED_TABLES = (0.3, 1.0), (5.0, 1.0), (0.3, 0.5)
"""Tables of candidates: the Dirichlet parameter of their rows, and the share of entries that are not 0."""

_PER_CELL = 20
"""Least average count of a message and label for goodness of fit."""

_BINS = 32
"""Number of bins of a histogram of a coordinate."""

_RANKS = np.array([1, 3, 10, 30])
"""Ranks, from either end of a coordinate's values, at which histograms have further edges."""

_MOST_COORDINATES = 32
"""Largest number of coordinates that get a histogram."""

_POWERS = (0.5, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Powers of the declared density, for channels that tell more or less than they declare."""

_STANDARD_DEVIATIONS = 4.0
"""A histogram's bin is corrected where its count is this many standard deviations off."""

_SLACK = 1e-9
"""Tolerance of probabilities."""

Situation = tuple[FloatArray, FloatArray | None]
"""A table of candidates ``(K, M)``, and the public posterior ``(K,)`` of an adaptive channel."""


def find_misfit(
    channel: Channel,
    samples: int | None = None,
    seed: int = 0,
    situations: Sequence[Situation] | None = None,
) -> str | None:
    """Describe how a channel's messages depart from its declared density; None if they do not.

    Args:
        channel: the channel.
        samples: number of messages in all; by default as many as take a second or two.
        seed: seed of every random draw.
        situations: tables of candidates at which to look; by default random ones.
    """
    rng = np.random.default_rng(seed)
    num_labels = channel.num_labels
    labels = np.sort(rng.choice(num_labels, min(num_labels, _MOST_LABELS), replace=False))
    if samples is None:
        numbers = max(len(labels), channel.num_uniforms, math.prod(channel.message_shape))
        samples = max(LEAST_SAMPLES, min(_MOST_SAMPLES, _MOST_NUMBERS // numbers))
    if situations is None:
        situations = [
            _draw_situation(channel, concentration, kept, rng)
            for concentration, kept in _CHECKED_TABLES
        ]
    all_messages = list_space(channel.message_space)
    is_few = all_messages is not None and (
        _PER_CELL * len(all_messages) * len(labels) <= samples // len(situations)
    )

    log_gains: dict[str, float] = defaultdict(float)
    for candidates, posterior in situations:
        places = rng.integers(len(labels), size=samples // len(situations))
        messages = channel.privatize(labels[places], candidates, rng, posterior)
        try:
            messages = channel.check_messages(messages)
        except ValueError as error:
            return f"messages in {channel.message_space}: {error}"
        parts = [
            log_density[:, labels]
            for _, log_density in log_densities(channel, messages, candidates, posterior)
        ]
        log_density = np.concatenate(parts)
        misfit = _impossible_message(messages, places, labels, log_density)
        if misfit is None:
            worst = _declared_worst_case(channel, candidates, posterior)
            misfit = beyond_worst_case(channel, worst, messages, log_density)
        if misfit is not None:
            return misfit

        listed = channel.list_messages(candidates, posterior) if is_few else None
        if listed is not None and listed.complete:
            log_law = channel.log_density(listed.messages, candidates, posterior)
            declared = np.exp(log_law + listed.log_weights[:, None])[:, labels]
            misfit = _goodness_of_fit(
                listed.messages, declared, messages, places, labels, len(situations)
            )
            if misfit is not None:
                return misfit
        else:
            for name, log_gain in _log_gains(places, messages, log_density):
                log_gains[name] += log_gain
    return _judge_classifiers(log_gains, samples)


def _draw_situation(
    channel: Channel, concentration: float, kept: float, rng: np.random.Generator
) -> Situation:
    """Draw a table of candidates, some of whose entries are 0, and a public posterior."""
    num_labels = channel.num_labels
    table = rng.dirichlet(np.full(num_labels, concentration), size=channel.num_hypotheses)
    table *= rng.random(table.shape) < kept
    table[:, rng.integers(num_labels)] += 0.05  # no row is 0
    table /= table.sum(axis=-1, keepdims=True)
    posterior = rng.dirichlet(np.ones(len(table))) if channel.adaptive else None
    return table, posterior


def _impossible_message(
    messages: Messages, places: IntArray, labels: IntArray, log_density: FloatArray
) -> str | None:
    """Describe a message whose declared density is 0 for its own label, or is not a number."""
    own = log_density[np.arange(len(places)), places]
    impossible = (own == -np.inf) | ~(log_density < np.inf).all(axis=-1)
    if not impossible.any():
        return None
    first = int(np.argmax(impossible))
    return (
        f"a positive density of every message: {messages[first]!r}, sent by label "
        f"{labels[places[first]]}, has {log_density[first]}"
    )


def _declared_worst_case(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> float:
    """Largest density ratio of the channel's ``worst_case_messages``; infinite if it names none."""
    try:
        messages = channel.worst_case_messages(candidates, posterior)
    except TypeError:
        return math.inf
    return worst_of_messages(channel, messages, candidates, posterior).epsilon


def _judge_classifiers(log_gains: dict[str, float], samples: int) -> str | None:
    """Describe the classifier that beats the density, if the mean product is large enough."""
    if not log_gains:
        return None
    log_mean = float(np.logaddexp.reduce(list(log_gains.values()))) - math.log(len(log_gains))
    if log_mean < -math.log(ERROR_RATE):
        return None
    best = max(log_gains, key=lambda name: log_gains[name])
    return (
        f"messages that follow log_density: {best} beats the density at guessing labels "
        f"(odds of 10^{log_mean / math.log(10.0):.0f} to 1, from {samples} messages)"
    )


def _goodness_of_fit(
    listed: Messages,
    declared: FloatArray,
    messages: Messages,
    places: IntArray,
    labels: IntArray,
    num_tables: int = len(_CHECKED_TABLES),
) -> str | None:
    """Describe a message that a label sends more or less often than declared, ``(N, labels)``."""
    rows = np.concatenate([listed, messages]).reshape(len(listed) + len(messages), -1)
    distinct, cells = np.unique(rows, axis=0, return_inverse=True)
    of_listed, of_sent = np.split(cells.reshape(-1), [len(listed)])

    law = np.zeros((len(distinct), len(labels)))
    np.add.at(law, of_listed, declared)
    counts = np.bincount(of_sent * len(labels) + places, minlength=law.size).reshape(law.shape)
    if not np.allclose(law.sum(axis=0), 1.0):
        return f"a density that sums to one over the messages, got {law.sum(axis=0)}"

    trials = counts.sum(axis=0)
    error = ERROR_RATE / (2 * num_tables * law.size)
    least = least_share(counts, trials, error)
    most = largest_share(counts, trials, error)
    outside = np.argwhere((law < least - _SLACK) | (law > most + _SLACK))
    if len(outside) == 0:
        return None
    cell, place = outside[0]
    return (
        f"messages that follow log_density: label {labels[place]} sent {distinct[cell]} "
        f"{counts[cell, place]} times out of {trials[place]}; the declared probability is "
        f"{law[cell, place]:.6g}"
    )


def _log_gains(
    places: IntArray, messages: Messages, log_density: FloatArray
) -> Iterator[tuple[str, float]]:
    """Yield classifiers by name, with the sum of ``log(r / belief)`` at the labels of the second half."""
    relative = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    beliefs = relative / relative.sum(axis=-1, keepdims=True)
    half = len(beliefs) // 2
    true_labels = np.arange(half, len(beliefs)) - half, places[half:]

    def log_gain(scores: FloatArray) -> float:
        guesses = scores[true_labels] / scores.sum(axis=-1)
        return float(np.log(guesses / beliefs[half:][true_labels]).sum())

    for power in _POWERS:
        yield f"the density to the power of {power:g}", log_gain(relative[half:] ** power)

    for name, cells in _histograms(messages.reshape(len(beliefs), -1), beliefs):
        shape = int(cells.max()) + 1, beliefs.shape[1]
        seen = np.zeros(shape)
        expected = np.zeros(shape)
        np.add.at(seen, (cells[:half], places[:half]), 1.0)
        np.add.at(expected, cells[:half], beliefs[:half])
        is_clear = np.abs(seen - expected) >= _STANDARD_DEVIATIONS * np.sqrt(expected + 1.0)
        correction = np.where(is_clear, (seen + 1.0) / (expected + 1.0), 1.0)
        yield name, log_gain(beliefs[half:] * correction[cells[half:]])


def _histograms(messages: Messages, beliefs: FloatArray) -> Iterator[tuple[str, IntArray]]:
    """Yield bins of the messages by name: by the likeliest label as declared, and by each coordinate."""
    yield "a count of labels by the likeliest one", beliefs.argmax(axis=-1)

    num_coordinates = messages.shape[1]
    step = math.ceil(num_coordinates / _MOST_COORDINATES)
    for j in range(0, num_coordinates, step):
        values = np.unique(messages[:, j])
        evenly = np.linspace(0, len(values), _BINS + 1)
        ranks = np.concatenate([evenly, _RANKS, len(values) - _RANKS])
        ranks = np.unique(ranks.astype(np.int64))
        edges = values[ranks[(ranks > 0) & (ranks < len(values))]]
        yield f"a histogram of coordinate {j}", np.searchsorted(edges, messages[:, j], side="right")
