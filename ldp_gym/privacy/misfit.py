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
from typing import NamedTuple

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

_MASS_OF_KEPT_LABEL = 0.05
"""Probability that one label gets in every row of a table, so that no row is 0."""

_LEAST_AVERAGE_COUNT = 20
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
        numbers_per_message = max(
            len(labels), channel.num_uniforms, math.prod(channel.message_shape)
        )
        samples = max(LEAST_SAMPLES, min(_MOST_SAMPLES, _MOST_NUMBERS // numbers_per_message))
    if situations is None:
        situations = [
            _draw_situation(channel, concentration, kept, rng)
            for concentration, kept in _CHECKED_TABLES
        ]
    samples_per_table = samples // len(situations)
    can_be_counted = _can_be_counted(channel, len(labels), samples_per_table)

    log_gains: dict[str, float] = defaultdict(float)
    for situation in situations:
        label_indices = rng.integers(len(labels), size=samples_per_table)
        candidates, posterior = situation
        messages = channel.privatize(labels[label_indices], candidates, rng, posterior)
        try:
            messages = channel.check_messages(messages)
        except ValueError as error:
            return f"messages in {channel.message_space}: {error}"
        sent = _SentMessages(messages, label_indices, labels)

        log_density = _log_density_of_labels(channel, sent, situation)
        misfit = _misfit_of_density(channel, sent, log_density, situation)
        if misfit is not None:
            return misfit

        declared = None
        if can_be_counted:
            declared = _declared_law(channel, labels, situation)
        if declared is None:
            for name, log_gain in _log_gains(label_indices, messages, log_density):
                log_gains[name] += log_gain
            continue
        misfit = _goodness_of_fit(
            declared.messages, declared.law, messages, label_indices, labels, len(situations)
        )
        if misfit is not None:
            return misfit
    return _judge_classifiers(log_gains, samples)


class _SentMessages(NamedTuple):
    """Messages of a channel, and which labels sent them.

    Attributes:
        messages: the messages, ``(n, *message_shape)``.
        label_indices: index in ``labels`` of the label that sent each message, ``(n,)``.
        labels: the labels that send messages.
    """

    messages: Messages
    label_indices: IntArray
    labels: IntArray


class _DeclaredLaw(NamedTuple):
    """All messages of a channel, and their declared probabilities.

    Attributes:
        messages: the messages, ``(N, *message_shape)``.
        law: their probabilities for the labels that send messages, ``(N, labels)``.
    """

    messages: Messages
    law: FloatArray


def _can_be_counted(channel: Channel, num_labels: int, samples: int) -> bool:
    """Tell if messages are so few that each is expected often enough from each label."""
    all_messages = list_space(channel.message_space)
    if all_messages is None:
        return False
    return _LEAST_AVERAGE_COUNT * len(all_messages) * num_labels <= samples


def _log_density_of_labels(
    channel: Channel, sent: _SentMessages, situation: Situation
) -> FloatArray:
    """Declared log densities of messages, ``(n, labels)``, for the labels that send messages."""
    parts = []
    for _, log_density in log_densities(channel, sent.messages, *situation):
        parts.append(log_density[:, sent.labels])
    return np.concatenate(parts)


def _misfit_of_density(
    channel: Channel, sent: _SentMessages, log_density: FloatArray, situation: Situation
) -> str | None:
    """Describe a message that has no density, or a density ratio beyond the declared worst case."""
    misfit = _impossible_message(sent, log_density)
    if misfit is not None:
        return misfit
    worst = _declared_worst_case(channel, *situation)
    return beyond_worst_case(channel, worst, sent.messages, log_density)


def _declared_law(channel: Channel, labels: IntArray, situation: Situation) -> _DeclaredLaw | None:
    """The probabilities that the channel declares for all of its messages; None if some are not listed."""
    candidates, posterior = situation
    listed = channel.list_messages(candidates, posterior)
    if not listed.complete:
        return None
    log_density = channel.log_density(listed.messages, candidates, posterior)
    law = np.exp(log_density + listed.log_weights[:, None])
    return _DeclaredLaw(listed.messages, law[:, labels])


def _draw_situation(
    channel: Channel, concentration: float, kept: float, rng: np.random.Generator
) -> Situation:
    """Draw a table of candidates, some of whose entries are 0, and a public posterior.

    Args:
        channel: the channel.
        concentration: Dirichlet parameter of the rows of the table.
        kept: share of the entries that are not set to 0.
        rng: generator of all draws.
    """
    num_labels = channel.num_labels
    table = rng.dirichlet(np.full(num_labels, concentration), size=channel.num_hypotheses)
    table *= rng.random(table.shape) < kept
    table[:, rng.integers(num_labels)] += _MASS_OF_KEPT_LABEL
    table /= table.sum(axis=-1, keepdims=True)
    posterior = None
    if channel.adaptive:
        posterior = rng.dirichlet(np.ones(len(table)))
    return table, posterior


def _impossible_message(sent: _SentMessages, log_density: FloatArray) -> str | None:
    """Describe a message whose declared density is 0 for its own label, or is not a number."""
    own = log_density[np.arange(len(log_density)), sent.label_indices]
    is_finite = (log_density < np.inf).all(axis=-1)  # False for NaN
    is_impossible = (own == -np.inf) | ~is_finite
    if not is_impossible.any():
        return None
    first = int(np.argmax(is_impossible))
    label = sent.labels[sent.label_indices[first]]
    return (
        f"a positive density of every message: {sent.messages[first]!r}, sent by label "
        f"{label}, has {log_density[first]}"
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
    """Describe the classifier that beats the density, if the mean product is large enough.

    Args:
        log_gains: logarithm of each classifier's product of r / belief, by its name.
        samples: number of messages.
    """
    if not log_gains:
        return None
    log_sum = float(np.logaddexp.reduce(list(log_gains.values())))
    log_mean = log_sum - math.log(len(log_gains))
    if log_mean < -math.log(ERROR_RATE):
        return None
    best = max(log_gains, key=lambda name: log_gains[name])
    log10_odds = log_mean / math.log(10.0)
    return (
        f"messages that follow log_density: {best} beats the density at guessing labels "
        f"(odds of 10^{log10_odds:.0f} to 1, from {samples} messages)"
    )


def _goodness_of_fit(
    listed: Messages,
    declared: FloatArray,
    messages: Messages,
    label_indices: IntArray,
    labels: IntArray,
    num_tables: int = len(_CHECKED_TABLES),
) -> str | None:
    """Describe a message that a label sends more or less often than declared; None if there is none.

    Args:
        listed: all messages of the channel, ``(N, *message_shape)``; a message may be listed repeatedly.
        declared: their declared probabilities, ``(N, labels)``.
        messages: the messages that were sent, ``(n, *message_shape)``.
        label_indices: index in ``labels`` of the label that sent each of them, ``(n,)``.
        labels: the labels that sent messages.
        num_tables: number of tables of candidates that share the error.
    """
    rows = np.concatenate([listed, messages]).reshape(len(listed) + len(messages), -1)
    distinct, index_of_row = np.unique(rows, axis=0, return_inverse=True)
    of_listed, of_sent = np.split(index_of_row.reshape(-1), [len(listed)])

    law = np.zeros((len(distinct), len(labels)))
    np.add.at(law, of_listed, declared)
    sent_and_label = of_sent * len(labels) + label_indices
    counts = np.bincount(sent_and_label, minlength=law.size).reshape(law.shape)
    if not np.allclose(law.sum(axis=0), 1.0):
        return f"a density that sums to one over the messages, got {law.sum(axis=0)}"

    trials = counts.sum(axis=0)
    num_interval_ends = 2 * num_tables * law.size
    error = ERROR_RATE / num_interval_ends
    least = least_share(counts, trials, error)
    most = largest_share(counts, trials, error)
    outside = np.argwhere((law < least - _SLACK) | (law > most + _SLACK))
    if len(outside) == 0:
        return None
    message, label_index = outside[0]
    return (
        f"messages that follow log_density: label {labels[label_index]} sent {distinct[message]} "
        f"{counts[message, label_index]} times out of {trials[label_index]}; the declared probability is "
        f"{law[message, label_index]:.6g}"
    )


def _log_gains(
    label_indices: IntArray, messages: Messages, log_density: FloatArray
) -> Iterator[tuple[str, float]]:
    """Yield classifiers by name, with the sum of ``log(r / belief)`` at the labels of the second half.

    r is the probability that a classifier gives to the true label, and the belief is the one that follows
    from the declared density.

    Args:
        label_indices: the labels that sent the messages, ``(n,)``, as columns of ``log_density``.
        messages: the messages, ``(n, *message_shape)``.
        log_density: their declared log densities, ``(n, labels)``.
    """
    relative = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    beliefs = relative / relative.sum(axis=-1, keepdims=True)
    half = len(beliefs) // 2
    beliefs_of_tested = beliefs[half:]
    true_labels = label_indices[half:]

    for power in _POWERS:
        scores = relative[half:] ** power
        log_gain = _log_gain(scores, beliefs_of_tested, true_labels)
        yield f"the density to the power of {power:g}", log_gain

    rows = messages.reshape(len(beliefs), -1)
    for name, bins in _histograms(rows, beliefs):
        num_bins = int(bins.max()) + 1
        corrections = _learned_corrections(
            bins[:half], num_bins, label_indices[:half], beliefs[:half]
        )
        scores = beliefs_of_tested * corrections[bins[half:]]
        yield name, _log_gain(scores, beliefs_of_tested, true_labels)


def _log_gain(scores: FloatArray, beliefs: FloatArray, true_labels: IntArray) -> float:
    """Sum over messages of ``log(r / belief)``, r the true label's share of the scores ``(n, labels)``."""
    messages = np.arange(len(scores))
    guesses = scores[messages, true_labels] / scores.sum(axis=-1)
    return float(np.log(guesses / beliefs[messages, true_labels]).sum())


def _learned_corrections(
    bins: IntArray, num_bins: int, label_indices: IntArray, beliefs: FloatArray
) -> FloatArray:
    """Factors ``(bins, labels)`` by which labels are likelier, given a bin of the message, than declared.

    They are 1 where the count of a label is within four standard deviations of its expectation.

    Args:
        bins: bins of the messages that are learned from, ``(n,)``.
        num_bins: number of bins.
        label_indices: the labels that sent them, ``(n,)``.
        beliefs: declared probabilities of all labels given the messages, ``(n, labels)``.
    """
    shape = (num_bins, beliefs.shape[1])
    counts = np.zeros(shape)
    expected = np.zeros(shape)
    np.add.at(counts, (bins, label_indices), 1.0)
    np.add.at(expected, bins, beliefs)
    standard_deviations = np.sqrt(expected + 1.0)
    is_clear = np.abs(counts - expected) >= _STANDARD_DEVIATIONS * standard_deviations
    # One is added on either side: a label that was never sent with this bin is not ruled out.
    return np.where(is_clear, (counts + 1.0) / (expected + 1.0), 1.0)


def _histograms(messages: FloatArray, beliefs: FloatArray) -> Iterator[tuple[str, IntArray]]:
    """Yield bins ``(n,)`` of messages ``(n, F)`` by name: by the likeliest label, and by each coordinate.

    The likeliest label is the one with the largest declared belief ``(n, labels)``.
    """
    yield "a count of labels by the likeliest one", beliefs.argmax(axis=-1)

    num_coordinates = messages.shape[1]
    step = math.ceil(num_coordinates / _MOST_COORDINATES)
    for j in range(0, num_coordinates, step):
        values = messages[:, j]
        bins = np.searchsorted(_bin_edges(np.unique(values)), values, side="right")
        yield f"a histogram of coordinate {j}", bins


def _bin_edges(values: FloatArray) -> FloatArray:
    """Edges of bins from distinct, rising values: at even ranks, and at some ranks near either end."""
    num_values = len(values)
    evenly = np.linspace(0, num_values, _BINS + 1)
    ranks = np.concatenate([evenly, _RANKS, num_values - _RANKS])
    ranks = np.unique(ranks.astype(np.int64))
    is_inside = (ranks > 0) & (ranks < num_values)
    return values[ranks[is_inside]]
