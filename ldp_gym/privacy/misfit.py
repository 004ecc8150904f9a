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
from collections.abc import Iterator

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.listing import list_space
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.privacy.exact import beyond_worst_case, log_densities, worst_case
from ldp_gym.statistics import largest_share, least_share

ERROR_RATE, LEAST_SAMPLES = 1e-6, 1000
"""Probability with which a correct channel is reported, and smallest number of messages for the check."""

_MOST_LABELS, _MOST_SAMPLES, _MOST_NUMBERS = 64, 300_000, 8_000_000
"""Default limits on labels, on messages, and on messages times labels or numbers of a message."""

_CHECKED_TABLES = (0.3, 1.0), (5.0, 1.0), (0.3, 0.5)
"""Tables of candidates: the Dirichlet parameter of their rows, and the share of entries that are not 0."""

_PER_CELL = 20
"""Least average count of a message and label for goodness of fit."""

_BINS, _RANKS, _MOST_COORDINATES = 32, np.array([1, 3, 10, 30]), 32
"""Histograms: number of bins, ranks from either end of further edges, largest number of coordinates."""

_POWERS = (0.5, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Powers of the declared density, for channels that tell more or less than they declare."""

_SLACK = 1e-9
"""Tolerance of probabilities."""


def find_misfit(channel: Channel, samples: int | None = None, seed: int = 0) -> str | None:
    """Describe how a channel's messages depart from its declared density; None if they do not."""
    rng, num_labels = np.random.default_rng(seed), channel.num_labels
    labels = np.sort(rng.choice(num_labels, min(num_labels, _MOST_LABELS), replace=False))
    if samples is None:
        numbers = max(len(labels), channel.num_uniforms, math.prod(channel.message_shape))
        samples = max(LEAST_SAMPLES, min(_MOST_SAMPLES, _MOST_NUMBERS // numbers))
    every = list_space(channel.message_space)
    few = every is not None and _PER_CELL * len(every) * len(labels) <= samples
    gains: dict[str, float] = defaultdict(float)
    for concentration, kept in _CHECKED_TABLES:
        table = rng.dirichlet(np.full(num_labels, concentration), size=channel.num_hypotheses)
        table *= rng.random(table.shape) < kept
        table[:, rng.integers(num_labels)] += 0.05  # no row is 0
        table /= table.sum(axis=-1, keepdims=True)
        public = table, rng.dirichlet(np.ones(len(table))) if channel.adaptive else None
        places = rng.integers(len(labels), size=samples // len(_CHECKED_TABLES))
        messages = channel.privatize(labels[places], public[0], rng, public[1])
        try:
            messages = channel.check_messages(messages)
        except ValueError as error:
            return f"messages in {channel.message_space}: {error}"
        parts = log_densities(channel, messages, *public)
        log_density = np.concatenate([part[:, labels] for _, part in parts])
        sent = log_density[np.arange(len(places)), places]
        for i in np.flatnonzero((sent == -np.inf) | ~(log_density < np.inf).all(axis=-1)):
            label, found = labels[places[i]], log_density[i]
            return f"a positive density of every message: {messages[i]!r}, sent by label {label}, has {found}"
        try:
            worst = worst_case(channel, *public).epsilon
        except TypeError:  # it names no worst case: there is no exact audit
            worst = math.inf
        wrong = beyond_worst_case(channel, worst, messages, log_density)
        listed = channel.list_messages(*public) if few else None
        if listed is not None and listed.complete:
            declared = np.exp(
                channel.log_density(listed.messages, *public) + listed.log_weights[:, None]
            )
            wrong = wrong or _goodness_of_fit(
                listed.messages, declared[:, labels], messages, places, labels
            )
        else:
            for name, gain in _log_gains(places, messages, log_density):
                gains[name] += gain
        if wrong:
            return wrong
    odds = (
        float(np.logaddexp.reduce(list(gains.values()))) - math.log(len(gains))
        if gains
        else -math.inf
    )
    if odds < -math.log(ERROR_RATE):
        return None
    return (
        f"messages that follow log_density: {max(gains, key=lambda name: gains[name])} beats the density at "
        f"guessing labels (odds of 10^{odds / math.log(10.0):.0f} to 1, from {samples} messages)"
    )


def _goodness_of_fit(
    listed: Messages, declared: FloatArray, messages: Messages, places: IntArray, labels: IntArray
) -> str | None:
    """Describe a message that a label sends more or less often than declared, ``(N, labels)``."""
    rows = np.concatenate([listed, messages]).reshape(len(listed) + len(messages), -1)
    known, cells = np.unique(rows, axis=0, return_inverse=True)
    of_listed, of_sent = np.split(cells.reshape(-1), [len(listed)])
    law = np.zeros((len(known), len(labels)))
    np.add.at(law, of_listed, declared)
    counts = np.bincount(of_sent * len(labels) + places, minlength=law.size).reshape(law.shape)
    if not np.allclose(law.sum(axis=0), 1.0):
        return f"a density that sums to one over the messages, got {law.sum(axis=0)}"
    trials, error = counts.sum(axis=0), ERROR_RATE / (2 * len(_CHECKED_TABLES) * law.size)
    least, most = least_share(counts, trials, error), largest_share(counts, trials, error)
    for cell, i in np.argwhere((law < least - _SLACK) | (law > most + _SLACK)):
        return (
            f"messages that follow log_density: label {labels[i]} sent {known[cell]} {counts[cell, i]} "
            f"times out of {trials[i]}; the declared probability is {law[cell, i]:.6g}"
        )
    return None


def _log_gains(
    places: IntArray, messages: Messages, log_density: FloatArray
) -> Iterator[tuple[str, float]]:
    """Classifiers by name, with the sum of ``log(r / belief)`` at the labels of the second half."""
    relative = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    beliefs, half = relative / relative.sum(axis=-1, keepdims=True), len(relative) // 2
    told = np.arange(half, len(beliefs)) - half, places[half:]

    def log_gain(scores: FloatArray) -> float:
        return float(np.log(scores[told] / scores.sum(axis=-1) / beliefs[half:][told]).sum())

    for power in _POWERS:
        yield f"the density to the power of {power:g}", log_gain(relative[half:] ** power)
    for name, cells in _histograms(messages.reshape(len(beliefs), -1), beliefs):
        seen, expected = np.zeros((2, int(cells.max()) + 1, beliefs.shape[1]))
        np.add.at(seen, (cells[:half], places[:half]), 1.0)
        np.add.at(expected, cells[:half], beliefs[:half])
        clear = np.abs(seen - expected) >= 4.0 * np.sqrt(expected + 1.0)  # four standard deviations
        learned = np.where(clear, (seen + 1.0) / (expected + 1.0), 1.0)
        yield name, log_gain(beliefs[half:] * learned[cells[half:]])


def _histograms(messages: Messages, beliefs: FloatArray) -> Iterator[tuple[str, IntArray]]:
    """Bins of the messages by name: by the likeliest label as declared, and by each coordinate."""
    yield "a count of labels by the likeliest one", beliefs.argmax(axis=-1)
    for j in range(0, messages.shape[1], -(-messages.shape[1] // _MOST_COORDINATES)):
        values = np.unique(messages[:, j])
        inner = np.linspace(0, len(values), _BINS + 1), _RANKS, len(values) - _RANKS
        places = np.unique(np.concatenate(inner).astype(np.int64))
        edges = values[places[(places > 0) & (places < len(values))]]
        yield f"a histogram of coordinate {j}", np.searchsorted(edges, messages[:, j], side="right")
