"""Does a channel send what its density declares? Evidence from its messages, in many public situations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.listing import list_space
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, softmax, uniform_distribution
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.privacy.bets import (
    BLOCKS,
    CellBets,
    Sample,
    Wealth,
    bet,
    bet_on_delta,
    bet_on_repeats,
    mean_wealth,
    select,
)
from ldp_gym.privacy.bits import fingerprints
from ldp_gym.privacy.conduct import find_misconduct, why_no_numbers
from ldp_gym.privacy.exact import exact_delta, exact_epsilon, log_densities, log_ratios

ALPHA = 1e-6
"""The probability with which an honest channel is taken for a liar."""

_MOST = 4_000_000
"""So many messages are drawn where they repeat: only different ones take time."""

_MOST_UNLIKE = 150_000
"""So many where they do not."""

_LEAST = 2_000

_NUMBERS = 1_000_000
"""So many messages times labels that are looked at, where messages do not repeat."""

_UNIFORMS = 10_000_000
"""So many private coins, where messages repeat."""

_DENSITIES = 50_000_000
"""So many densities of single messages given single labels, or private coins, where they do not."""

_PILOT = 4096
"""So many messages show whether they repeat."""

_MOST_LABELS = 256
"""Of more labels so many are looked at, drawn at random: other seeds look at others."""

_MOST_LABELS_UNLIKE = 64

_CELLS = 4_000_000
"""How many numbers are asked of a channel at a time."""

_OWN_CANDIDATES = 60_000
"""So many messages have candidates of their own, or a tenth of all."""

_FEW_TABLES = 3
"""So many different ones, if the channel takes its time over each."""

_FEW = 240
"""So many messages are sent one at a time, as in a game, and as many by a few users at once."""

_ROUNDING = 1e-9
"""How far off a difference of two log densities may be."""


@dataclass(frozen=True)
class Evidence:
    """What speaks against a channel.

    Attributes:
        log_odds: the logarithm of the bettors' mean wealth. That of an honest channel exceeds x with
            probability at most ``e^-x``.
        clue: what the richest bettor looked at.
        messages: how many messages were drawn.
    """

    log_odds: float
    clue: str
    messages: int


def find_lie(channel: Channel, samples: int | None = None, seed: int = 0) -> str | None:
    """What a channel's density says wrongly of its messages, in words; None if nothing was found.

    An honest channel is taken for a liar with probability at most 1e-6 (:data:`ALPHA`).

    Args:
        channel: the channel.
        samples: how many messages to draw; by default as many as take a second or two, up to 4 10^6.
        seed: of all that is drawn.
    """
    lie = find_misconduct(channel, seed)
    if lie:
        return lie
    inquiry = Inquiry(channel, samples, seed)
    lie = inquiry.impossible_message() or inquiry.hidden_ratio()
    if lie:
        return lie
    evidence = inquiry.evidence()
    if evidence.log_odds < -math.log(ALPHA):
        return None
    return (
        f"messages that follow log_density: whoever looks at {evidence.clue} tells labels better than the "
        f"density allows (odds of 10^{evidence.log_odds / math.log(10.0):.0f} to 1, from {evidence.messages} "
        f"messages)"
    )


@dataclass(frozen=True)
class Situation:
    """What is public when a message is sent: candidates ``(..., K, M)``, and the posterior ``(..., K)``."""

    candidates: FloatArray
    posterior: FloatArray | None


@dataclass(frozen=True)
class _Rows:
    """Different messages of one situation, their log densities ``(R, L)``, and their counts by label."""

    situation: int
    messages: Messages
    log_density: FloatArray
    counts: FloatArray


class Inquiry:
    """Messages of random labels in many situations, beside what the channel declares of them.

    The situations: candidates that are sparse, flat, peaked, partly zero and nearly certain, with various
    public posteriors; candidates from flat to certain that differ from message to message, and their
    posteriors with them; and messages that are sent one at a time, or by a few users at once.

    Args:
        channel: the channel.
        samples: how many messages to draw; by default as many as take a second or two, up to 4 10^6.
        seed: of all that is drawn.
    """

    def __init__(self, channel: Channel, samples: int | None = None, seed: int = 0) -> None:
        self.channel, self._rng = channel, np.random.default_rng(seed)
        self._calls = 0
        self._types: dict[str, set[np.dtype[Any]]] = {"encode": set(), "privatize": set()}
        self.situations = list(_situations(channel, self._rng))
        self._tables = _of_any_sharpness(self._rng, (_FEW_TABLES, channel.num_hypotheses, channel.num_labels))
        self.labels = np.arange(channel.num_labels)
        repeat = self._do_messages_repeat()
        most = _MOST_LABELS if repeat else _MOST_LABELS_UNLIKE
        if channel.num_labels > most:
            self.labels = np.sort(self._rng.choice(channel.num_labels, most, replace=False))
        affordable = self._affordable(repeat) if samples is None else samples
        self.num_messages = validation.whole("samples", affordable, least=1000)
        self._blocks = [self._draw_block(share) for share in BLOCKS]

    # -- Drawing ----------------------------------------------------------------------------------

    def _do_messages_repeat(self) -> bool:
        """Whether hardly any message of the second half of a pilot is new."""
        count = min(_PILOT, self._together)
        codes = fingerprints(_flat(self._send(self._draw_labels(count), self.situations[0])))
        new = len(np.unique(codes)) - len(np.unique(codes[: count // 2]))
        return new < count / 8

    def _affordable(self, repeat: bool) -> int:
        if repeat:
            return max(_LEAST, min(_MOST, _UNIFORMS // self.channel.num_uniforms))
        each = max(self.channel.num_labels, self.channel.num_uniforms)
        return max(_LEAST, min(_MOST_UNLIKE, _NUMBERS // len(self.labels), _DENSITIES // each))

    @property
    def _together(self) -> int:
        """How many messages to draw at a time."""
        return max(1, _CELLS // (self.channel.num_uniforms + math.prod(self.channel.message_shape)))

    def _draw_block(self, share: float) -> list[_Rows]:
        """A block of messages, this share of all: those of each situation, and of the special ones."""
        each = math.ceil(self.num_messages * share / len(self.situations))
        cells = self.channel.num_hypotheses * self.channel.num_labels
        own = math.ceil(min(_OWN_CANDIDATES, self.num_messages // 10, _CELLS // cells) * share)
        few = math.ceil(_FEW * share)
        return [
            *(self._counted(number, each) for number in range(len(self.situations))),
            self._with_own_candidates(len(self.situations), min(own, each)),
            self._in_batches(len(self.situations) + 1, min(few, each), ((), (1, 1))),
            self._in_batches(len(self.situations) + 2, min(few, each), ((4, 1), (1, 4))),
        ]

    def _send(self, labels: IntArray, situation: Situation) -> Messages:
        """Messages of users in a row and, as in a game, of several in several rounds, in turn."""
        self._calls += 1
        if self._calls % 2 or labels.ndim != 1 or len(labels) % 2:
            return self._privatize(labels, situation.candidates, situation.posterior)
        candidates, posterior = situation.candidates, situation.posterior
        if candidates.ndim == 3:
            candidates = candidates.reshape(2, -1, *candidates.shape[1:])
        if posterior is not None and posterior.ndim == 2:
            posterior = posterior.reshape(2, -1, posterior.shape[-1])
        messages = self._privatize(labels.reshape(2, -1), candidates, posterior)
        return messages.reshape(len(labels), *messages.shape[2:])

    def _privatize(self, labels: IntArray, candidates: FloatArray, posterior: FloatArray | None) -> Messages:
        """Messages by ``encode``, and by a ``privatize`` of the channel's own in turn."""
        names = self.labels[labels]
        if self._calls // 2 % 2 and type(self.channel).privatize is not Channel.privatize:
            by, messages = "privatize", self.channel.privatize(names, candidates, self._rng, posterior)
        else:
            uniforms = open_uniforms([self._rng], (*names.shape, self.channel.num_uniforms))[0]
            by, messages = "encode", self.channel.encode(names, candidates, uniforms, posterior)
        self._types[by].add(np.asarray(messages).dtype)
        return np.asarray(messages)

    def _draw_labels(self, count: int) -> IntArray:
        return self._rng.integers(len(self.labels), size=count)

    def _counted(self, number: int, count: int) -> _Rows:
        """Messages in one situation, equal ones counted together."""
        situation = self.situations[number]
        parts: list[tuple[Messages, FloatArray]] = []
        for start in range(0, count, self._together):
            labels = self._draw_labels(min(self._together, count - start))
            parts.append(_count(self._send(labels, situation), labels, len(self.labels)))
        messages, counts = _merge(parts)
        return _Rows(number, messages, self._log_density(messages, situation), counts)

    def _with_own_candidates(self, number: int, count: int) -> _Rows:
        num_hypotheses, labels = self.channel.num_hypotheses, self._draw_labels(count)
        if self.channel.most_tables is None:
            candidates = _of_any_sharpness(self._rng, (count, num_hypotheses, self.channel.num_labels))
        else:
            candidates = self._tables[self._rng.integers(len(self._tables), size=count)]
        posterior = (
            _of_any_sharpness(self._rng, (count, 1, num_hypotheses))[:, 0] if self.channel.adaptive else None
        )
        messages = self._send(labels, Situation(candidates, posterior))
        log_density = self.channel.log_density(messages, candidates, posterior)[:, self.labels]
        return _Rows(number, messages, log_density, np.eye(len(self.labels))[labels])

    def _in_batches(self, number: int, count: int, shapes: Sequence[tuple[int, ...]]) -> _Rows:
        """Messages that are sent in batches of these shapes, in turn."""
        situation, size = self.situations[0], math.prod(shapes[0])
        labels = self._draw_labels(math.ceil(count / size) * size)
        parts = [
            self._send(some.reshape(shape), situation).reshape(size, *self.channel.message_shape)
            for some, shape in zip(labels.reshape(-1, size), cycle(shapes), strict=False)
        ]
        messages = np.concatenate(parts)
        log_density = self._log_density(messages, situation)
        return _Rows(number, messages, log_density, np.eye(len(self.labels))[labels])

    def _log_density(self, messages: Messages, situation: Situation) -> FloatArray:
        """What the channel declares of messages given the labels that are looked at, ``(R, L)``."""
        parts = log_densities(self.channel, messages, situation.candidates, situation.posterior)
        return np.concatenate([log_density[:, self.labels] for _, log_density in parts])

    # -- What is found ----------------------------------------------------------------------------

    @cached_property
    def sample(self) -> Sample:
        """The messages, as bettors see them."""
        rows = list(chain.from_iterable(self._blocks))
        lengths = [sum(len(part.messages) for part in block) for block in self._blocks]
        return Sample(
            np.concatenate([_flat(part.messages) for part in rows]),
            np.concatenate([np.full(len(part.messages), part.situation) for part in rows]),
            np.concatenate([part.counts for part in rows]),
            softmax(np.concatenate([part.log_density for part in rows])),
            tuple(np.cumsum(lengths).tolist()),
        )

    def impossible_message(self) -> str | None:
        """Says which message was sent though its density is zero, or is no number of the one type."""
        for by, types in self._types.items():
            if len(types) > 1:
                return f"messages of one type from {by}(), got {' and '.join(sorted(map(str, types)))}"
        for rows in chain.from_iterable(self._blocks):
            lie = why_no_numbers(rows.messages)
            if lie:
                return lie
            try:
                self.channel.check_messages(rows.messages)
            except ValueError:
                return f"messages in {self.channel.message_space}"
            for wrong in (np.isnan(rows.log_density), (rows.counts > 0.0) & (rows.log_density == -np.inf)):
                if wrong.any():
                    row, label = (int(i) for i in np.argwhere(wrong)[0])
                    return (
                        f"a positive density of every message that was sent: log_density of "
                        f"{rows.messages[row]!r} given label {self.labels[label]} is "
                        f"{rows.log_density[row, label]}"
                    )
        return None

    def hidden_ratio(self) -> str | None:
        """Says which message tells more than the worst case that the channel names for an exact audit."""
        if not self.channel.pure:
            return None
        affordable = max(1, _DENSITIES // self.channel.num_labels**2)
        for number, situation in enumerate(self.situations[:affordable]):
            try:
                worst = exact_epsilon(self.channel, situation.candidates, situation.posterior).epsilon
            except TypeError:  # it names none
                return None
            sent = [(rows.messages, rows.log_density) for rows in self._rows(number)]
            if self._every is not None:
                sent.append((self._every, self._log_density(self._every, situation)))
            for messages, log_density in sent:
                ratios = log_ratios(log_density)
                found = int(ratios.argmax())
                if ratios[found] > worst + _ROUNDING * (1.0 + worst):
                    return (
                        f"worst_case_messages among which the density ratio is largest: it is "
                        f"{ratios[found]:.6g} at {messages[found]!r}, which may be sent, and at most "
                        f"{worst:.6g} among them"
                    )
        return None

    def evidence(self) -> Evidence:
        """What bettors make of the messages; see :mod:`ldp_gym.privacy.bets`."""
        in_small_batches = self.sample.situations > len(self.situations)
        wealth = [
            *bet(self.sample),
            *bet(select(self.sample, in_small_batches)),
            *self._bet_on_messages(),
            *self._bet_on_repeats(),
            *self._bet_on_delta(),
        ]
        clue, _ = max(wealth, key=lambda bettor: bettor[1])
        return Evidence(mean_wealth(gain for _, gain in wealth), clue, self.num_messages)

    @cached_property
    def _every(self) -> Messages | None:
        return list_few(self.channel)

    def _rows(self, number: int) -> list[_Rows]:
        """What was sent in one situation, block by block."""
        return [block[number] for block in self._blocks]

    def _bet_on_repeats(self) -> Iterator[Wealth]:
        """Bet that a message is sent more often than its density allows, where they cannot be listed."""
        if self._every is not None:
            return
        for number in range(len(self.situations)):
            blocks = [
                (
                    fingerprints(_flat(rows.messages)).view(np.int64),
                    rows.counts.sum(axis=-1),
                    np.exp(np.minimum(rows.log_density, 700.0)).mean(axis=-1),
                )
                for rows in self._rows(number)
            ]
            yield "how often one message is sent", bet_on_repeats(blocks)

    def _bet_on_delta(self) -> Iterator[Wealth]:
        """Bet that the channel's ``delta_bounds`` are too small for its own density."""
        if self.channel.pure:
            return
        epsilon = self.channel.epsilon
        for number, situation in enumerate(self.situations):
            bounds = exact_delta(self.channel, situation.candidates, epsilon, situation.posterior)
            log_density = np.concatenate([rows.log_density for rows in self._rows(number)])
            counts = np.concatenate([rows.counts for rows in self._rows(number)])
            yield from bet_on_delta(log_density, counts, epsilon, bounds.upper)

    def _bet_on_messages(self) -> Iterator[Wealth]:
        """Bet on which message is sent, where they can be listed: their law is declared too."""
        if self._every is None:
            return
        nothing, ends = np.zeros(len(BLOCKS), dtype=np.int64), tuple(range(1, len(BLOCKS) + 1))
        for number, situation in enumerate(self.situations):
            law = np.exp(self._log_density(self._every, situation)).mean(axis=-1)
            counts = np.zeros((len(BLOCKS), len(law)))
            for block, rows in zip(counts, self._rows(number), strict=True):
                np.add.at(block, rows.messages.astype(np.int64) - self._every[0], rows.counts.sum(axis=-1))
            beliefs = np.broadcast_to(law, counts.shape)
            sample = Sample(np.zeros((len(BLOCKS), 1)), nothing, counts, beliefs, ends)
            yield from (("how often messages are sent", gain) for gain in CellBets(sample, nothing).tilted())


def list_few(channel: Channel) -> Messages | None:
    """All messages, if they are few whole numbers."""
    space = channel.message_space
    few = isinstance(space, gym.spaces.Discrete) and int(space.n) * channel.num_labels <= _CELLS
    return list_space(space) if few else None


def _situations(channel: Channel, rng: np.random.Generator) -> Iterator[Situation]:
    """Candidates that are sparse, flat, peaked, partly zero and certain, each with a posterior of its own."""
    num_hypotheses, num_labels = channel.num_hypotheses, channel.num_labels
    some = rng.dirichlet(np.full(num_labels, 0.3), size=num_hypotheses)
    some *= rng.random((num_hypotheses, num_labels)) < 0.5
    some[:, rng.integers(num_labels)] += 0.05
    tables = [
        rng.dirichlet(np.full(num_labels, 0.3), size=num_hypotheses),
        rng.dirichlet(np.full(num_labels, 5.0), size=num_hypotheses),
        softmax(2.0 * rng.standard_normal((num_hypotheses, num_labels))),
        some / some.sum(axis=-1, keepdims=True),
        softmax(30.0 * rng.standard_normal((num_hypotheses, num_labels))),
    ]
    certain = np.full(num_hypotheses, 0.01 / num_hypotheses)
    certain[rng.integers(num_hypotheses)] += 0.99
    posteriors = [
        rng.dirichlet(np.ones(num_hypotheses)),
        uniform_distribution(num_hypotheses),
        rng.dirichlet(np.full(num_hypotheses, 0.2)),
        rng.dirichlet(np.ones(num_hypotheses)),
        certain,
    ]
    for table, posterior in zip(tables, posteriors, strict=True):
        yield Situation(table, posterior if channel.adaptive else None)


def _of_any_sharpness(rng: np.random.Generator, shape: tuple[int, int, int]) -> FloatArray:
    """Tables ``(n, K, M)`` of random distributions, from flat to certain; one in 8 is exactly that, each."""
    sharpness = np.exp(rng.uniform(np.log(0.1), np.log(30.0), size=(shape[0], 1, 1)))
    kind, numbers = rng.integers(8, size=(shape[0], 1, 1)), rng.standard_normal(shape)
    certain = (numbers == numbers.max(axis=-1, keepdims=True)).astype(np.float64)
    tables = np.where(kind == 0, 1.0 / shape[-1], softmax(sharpness * numbers))
    return np.where(kind == 1, certain, tables)


def _flat(messages: Messages) -> FloatArray:
    """Messages as numbers ``(n, F)``; whole ones of more digits than a float has, in two parts."""
    rows = messages.reshape(len(messages), -1)
    if rows.dtype.kind in "iu" and rows.dtype.itemsize == 8 and np.abs(rows).max(initial=0) > 2**53:
        rows = np.concatenate([rows >> 32, rows & (2**32 - 1)], axis=1)
    return np.ascontiguousarray(rows, dtype=np.float64)


def _count(messages: Messages, labels: IntArray, num_labels: int) -> tuple[Messages, FloatArray]:
    """Different messages, and how often each was sent with which label ``(R, L)``."""
    different, places = _tell_apart(messages)
    pairs = places * num_labels + labels
    counts = np.bincount(pairs, minlength=len(different) * num_labels).reshape(-1, num_labels)
    return different, counts.astype(np.float64)


def _merge(parts: list[tuple[Messages, FloatArray]]) -> tuple[Messages, FloatArray]:
    """Counts of several parts as counts of one."""
    if len(parts) == 1:
        return parts[0]
    messages, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    different, places = _tell_apart(messages)
    merged = np.zeros((len(different), counts.shape[-1]))
    np.add.at(merged, places, counts)
    return different, merged


def _tell_apart(messages: Messages) -> tuple[Messages, IntArray]:
    """The different messages, to the last bit, and which of them each is ``(n,)``."""
    _, first, places = np.unique(fingerprints(_flat(messages)), return_index=True, return_inverse=True)
    return messages[first], places
