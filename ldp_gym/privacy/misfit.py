"""Statistical check that a channel's messages follow its declared density, at an error rate of 1e-6.

Labels are drawn uniformly and their messages are sent under several tables of candidates.

- **Few messages**: goodness of fit. How often a label sends a message is binomial with the declared
  probability, which must lie in an exact (Clopper-Pearson) interval, at an error rate of 1e-6 divided by the
  number of intervals (Bonferroni).
- **Other messages**: classifiers. If the density is right, label y has the probability
  ``q(z | y) / sum_y' q(z | y')`` given message z, its *belief*. A classifier that learned from one half of
  the messages gives it another probability r. The product of r / belief over the true labels of the other
  half has mean 1, whatever was learned. So it exceeds 10^6 with probability at most 1e-6 (Markov's
  inequality), and so does the mean of such products over several classifiers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.listing import MessageList, list_space
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.intervals import largest_share, least_share
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.privacy.exact import exact_epsilon, log_densities, log_ratios

ERROR_RATE = 1e-6
"""Probability with which a correct channel is reported."""

LEAST_SAMPLES = 1000
"""Smallest number of messages that the check accepts."""

_MOST_LABELS = 64
"""With more labels than this, check a random subset of this size."""

_MOST_SAMPLES, _MOST_NUMBERS, _MOST_BELIEFS = 300_000, 20_000_000, 4_000_000
"""Default effort: limits on messages, on their numbers, and on messages times labels of the classifiers."""

_PER_CELL, _LEAST_EXPECTED = 20, 5.0
"""Goodness of fit: least average count per message; expected count below which messages pool."""

_BINS, _MOST_COORDINATES = 32, 32
"""Bins of a coordinate's histogram, and number of coordinates that have one."""

_RANKS = np.array([1, 3, 10, 30])
"""Ranks, from either end, of further bin edges: extreme values may tell a label."""

_LEARNERS = ((1.0, 4.0), (100.0, 0.0), (1000.0, 0.0))
"""Rules to learn from a histogram: pseudo-counts of the declared label frequencies, and the number of
standard deviations by which a count must differ from the declared one to be believed (for rare leaks)."""

_POWERS = (0.5, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Powers of the declared density, for channels that tell more or less than they declare."""

_SLACK = 1e-9
"""Tolerance of probabilities and of log densities, relative."""


class _Sample(NamedTuple):
    """Messages of random labels under one table of candidates, and their log density given each label."""

    candidates: FloatArray
    posterior: FloatArray | None
    places: IntArray
    messages: Messages
    log_density: FloatArray


def find_misfit(channel: Channel, samples: int | None = None, seed: int = 0) -> str | None:
    """Describe how a channel's messages depart from its declared density; None if they do not.

    Args:
        channel: the channel.
        samples: number of messages to draw; by default as many as take a second or two.
        seed: seed of every random draw.
    """
    rng, labels = np.random.default_rng(seed), np.arange(channel.num_labels)
    if len(labels) > _MOST_LABELS:
        labels = np.sort(rng.choice(labels, _MOST_LABELS, replace=False))
    every = list_space(channel.message_space)
    cells = math.inf if every is None else _PER_CELL * len(every) * len(labels)
    if samples is None:
        each = max(channel.num_uniforms, math.prod(channel.message_shape), channel.num_labels)
        samples = max(LEAST_SAMPLES, min(_MOST_SAMPLES, _MOST_NUMBERS // each))
        if cells > samples:
            samples = max(LEAST_SAMPLES, min(samples, _MOST_BELIEFS // len(labels)))
    situations, drawn = _situations(channel, rng), []
    for candidates, posterior in situations:
        places = rng.integers(len(labels), size=samples // len(situations))
        uniforms = open_uniforms([rng], (len(places), channel.num_uniforms))[0]
        messages = channel.encode(labels[places], candidates, uniforms, posterior)
        try:
            messages = channel.check_messages(messages)
        except ValueError:
            outside = next((one for one in messages if one not in channel.message_space), messages[0])
            return f"messages in {channel.message_space}, got {outside!r}"
        parts = log_densities(channel, messages, candidates, posterior)
        log_density = np.concatenate([part[:, labels] for _, part in parts])
        drawn.append(_Sample(candidates, posterior, places, messages, log_density))
        if misfit := _wrong_density(channel, drawn[-1], labels):
            return misfit
    if cells <= samples:
        lists = [channel.list_messages(sample.candidates, sample.posterior) for sample in drawn]
        if all(listed.complete for listed in lists):
            return _goodness_of_fit(channel, drawn, lists, labels)
    return _classify(drawn)


def _situations(channel: Channel, rng: np.random.Generator) -> list[tuple[FloatArray, FloatArray | None]]:
    """Tables that are sparse, flat, and partly zero, each with a public posterior."""
    size, num_labels = channel.num_hypotheses, channel.num_labels
    holes = rng.dirichlet(np.full(num_labels, 0.3), size=size) * (rng.random((size, num_labels)) < 0.5)
    holes[:, rng.integers(num_labels)] += 0.05
    tables = [
        rng.dirichlet(np.full(num_labels, 0.3), size=size),
        rng.dirichlet(np.full(num_labels, 5.0), size=size),
        holes / holes.sum(axis=-1, keepdims=True),
    ]
    posteriors = [rng.dirichlet(np.ones(size)), uniform_distribution(size), rng.dirichlet(np.full(size, 0.2))]
    return [(table, p if channel.adaptive else None) for table, p in zip(tables, posteriors, strict=True)]


def _wrong_density(channel: Channel, sample: _Sample, labels: IntArray) -> str | None:
    """Describe a message that was sent with density 0, or with a ratio beyond the worst case."""
    log_density = sample.log_density
    sent = log_density[np.arange(len(sample.places)), sample.places]
    wrong = np.flatnonzero((sent == -np.inf) | ~(log_density < np.inf).all(axis=-1))
    if len(wrong):
        return (
            f"a positive density of every message that was sent: log_density of "
            f"{sample.messages[wrong[0]]!r}, sent for label {labels[sample.places[wrong[0]]]}, is "
            f"{log_density[wrong[0]]}"
        )
    try:
        worst = exact_epsilon(channel, sample.candidates, sample.posterior).epsilon
    except TypeError:  # it names no worst case: there is no exact audit
        return None
    ratios = log_ratios(log_density)
    found = int(ratios.argmax())
    if not channel.pure or ratios[found] <= worst + _SLACK * (1.0 + worst):
        return None
    return (
        f"worst_case_messages among which the density ratio is largest: it is {ratios[found]:.6g} at "
        f"{sample.messages[found]!r}, which was sent, and at most {worst:.6g} among them"
    )


def _goodness_of_fit(
    channel: Channel, drawn: list[_Sample], lists: list[MessageList], labels: IntArray
) -> str | None:
    # Two ends of an interval for each label and message, and for the rare ones together.
    tests = 2 * len(labels) * sum(len(listed.messages) + 1 for listed in lists)
    for sample, listed in zip(drawn, lists, strict=True):
        rows = np.concatenate([listed.messages, sample.messages]).reshape(-1, *channel.message_shape or (1,))
        messages, cells = np.unique(rows, axis=0, return_inverse=True)
        cells, first = cells.reshape(-1), len(listed.messages)
        log_density = channel.log_density(listed.messages, sample.candidates, sample.posterior)[:, labels]
        law = np.zeros((len(messages), len(labels)))
        np.add.at(law, cells[:first], np.exp(log_density + listed.log_weights[:, None]))
        if not np.allclose(law.sum(axis=0), 1.0):
            return f"a density that sums to one over the messages, got {law.sum(axis=0)}"
        counts = np.zeros(law.shape, dtype=np.int64)
        np.add.at(counts, (cells[first:], sample.places), 1)
        trials = counts.sum(axis=0)
        rare = law * trials < _LEAST_EXPECTED
        law, counts = (
            np.vstack([np.where(rare, 0, a), np.where(rare, a, 0).sum(axis=0)]) for a in (law, counts)
        )
        least, most = (share(counts, trials, ERROR_RATE / tests) for share in (least_share, largest_share))
        wrong = np.argwhere((law < least - _SLACK) | (law > most + _SLACK))
        if len(wrong):
            cell, label = wrong[0]
            what = f"message {messages[cell]}" if cell < len(messages) else "a rare message"
            return (
                f"messages that follow log_density: label {labels[label]} sent {what} "
                f"{counts[cell, label]} times out of {trials[label]}; the declared probability is "
                f"{law[cell, label]:.6g}"
            )
    return None


def _classify(drawn: list[_Sample]) -> str | None:
    gains: dict[str, float] = {}
    for sample in drawn:
        for name, gain in _log_gains(sample):
            gains[name] = gains.get(name, 0.0) + gain
    odds = float(np.logaddexp.reduce(list(gains.values()))) - math.log(len(gains))
    if odds < -math.log(ERROR_RATE):
        return None
    best, count = max(gains, key=lambda name: gains[name]), sum(len(sample.messages) for sample in drawn)
    return (
        f"messages that follow log_density: {best} beats the density at guessing labels (odds of "
        f"10^{odds / math.log(10.0):.0f} to 1, from {count} messages)"
    )


def _log_gains(sample: _Sample) -> Iterator[tuple[str, float]]:
    """Classifiers by name, with the sum of ``log(r / belief)`` at the labels of the second half."""
    relative = sample.log_density - sample.log_density.max(axis=-1, keepdims=True)
    total = np.exp(relative).sum(axis=-1)
    beliefs = np.exp(relative) / total[:, None]
    half, num_labels = len(beliefs) // 2, beliefs.shape[-1]
    labels, rows = sample.places, np.arange(len(beliefs) - half)
    own = relative[half:][rows, labels[half:]]
    for power in _POWERS:
        norm = np.exp(power * relative[half:]).sum(axis=-1) / total[half:]
        yield f"the density to the power of {power:g}", float(((power - 1.0) * own - np.log(norm)).sum())
    for name, cells in _histograms(sample.messages.reshape(len(beliefs), -1), beliefs):
        size = int(cells.max()) + 1
        places = cells[:half] * num_labels + labels[:half]
        seen = np.bincount(places, minlength=size * num_labels).reshape(size, num_labels)
        expected = np.zeros((size, num_labels))
        np.add.at(expected, cells[:half], beliefs[:half])
        for pseudo, least in _LEARNERS:
            believed = np.abs(seen - expected) >= least * np.sqrt(expected + 1.0)
            weights = np.where(believed, (seen + pseudo) / (expected + pseudo), 1.0)[cells[half:]]
            norm = np.einsum("nl,nl->n", beliefs[half:], weights)
            gain = np.log(weights[rows, labels[half:]] / norm).sum()
            yield f"{name} with {pseudo:g} pseudo-counts", float(gain)


def _histograms(messages: Messages, beliefs: FloatArray) -> Iterator[tuple[str, IntArray]]:
    """Bins of the messages by name: by the likeliest label as declared, and by each coordinate."""
    yield "a count of labels by the likeliest one", beliefs.argmax(axis=-1)
    step = -(-messages.shape[1] // _MOST_COORDINATES)
    for j in range(0, messages.shape[1], step):
        values = np.unique(messages[:, j])
        inner = np.linspace(0, len(values), _BINS + 1), _RANKS, len(values) - _RANKS
        places = np.unique(np.concatenate(inner).astype(np.int64))
        edges = values[places[(places > 0) & (places < len(values))]]
        yield f"a histogram of coordinate {j}", np.searchsorted(edges, messages[:, j], side="right")
