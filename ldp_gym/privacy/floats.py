"""What floats give away: which labels can have produced exactly this message (Mironov 2012).

A channel with real-valued messages is private in real arithmetic. On a machine its noise is a function of a
uniform out of 2^53, and takes finitely many values. Where the label shifts or stretches them, some floats can
be reached from one label and from no other, and such a message gives its label away.

The audit looks for the noise of a channel: those uniforms of which a small change moves the message a little.
For each of some messages, each label, and some draws of the other uniforms (the *frame*), it looks by
bisection for the place where the noise crosses the message. Where it crosses, real arithmetic says that the
label can send it. Whether a float does is then a matter of looking at the floats around the crossing.

Finite messages have no such gaps. They are judged by their probabilities: one below the resolution of a
uniform is never drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.core.errors import ChannelFailedError
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.privacy.exact import check_situation
from ldp_gym.privacy.replay import ReplayGenerator

_STEPS = 2**53
"""How many values a uniform has."""

_NUDGE = 2.0**-20
"""A change of a uniform that moves a message with noise, and seldom one without."""

_MOVED = 0.05
"""Of how many messages an entry must move for a uniform to be its noise."""

_GRID = 33
"""At how many places a crossing is first looked for."""

_AROUND = 4
"""So many floats on either side of a crossing are looked at: rounding is not quite monotone."""

_CLOSE = 1e-6
"""Neighbouring uniforms whose messages differ by more do not cross it, they jump over it."""

_FRAMES = 6
"""In so many frames a crossing is looked for."""

_LEFT = 0.2
"""Of how many messages nothing need be known."""

_TOSSES = 3
"""So often each coin is tossed again."""

_PILOT = 64
"""So many messages show whether guesses can be right."""

_POOL = 64
"""Frames are taken from a pool of so many per hypothesis."""

_WORK = 6_000
"""How many messages times labels are looked at, when the caller does not say."""

_FINEST = 2.0**45
"""Messages in whole steps of one over this are on a grid: each step has many values of a uniform."""

_COIN_DRAWS = 50
"""At how many draws of the public coins finite messages are looked at."""


@dataclass(frozen=True)
class Reachability:
    """Which labels can have produced which messages, exactly.

    Attributes:
        verdict: ``"holds"``: no message gives a label away, and that is more than an impression;
            ``"broken"``: some do; ``"not judged"``: the audit cannot tell.
        reason: why, in words.
        share: the share of messages that can come from one label alone; None where it is not known.
        correct: for which share of those it was the label that they came from.
        judged: how many messages were looked at, and could be judged.
        messages: those.
        labels: which labels can have produced each of them, ``(judged, M)``.
    """

    verdict: Literal["holds", "broken", "not judged"]
    reason: str
    share: float | None = None
    correct: float | None = None
    judged: int = 0
    messages: Messages | None = None
    labels: BoolArray | None = None

    @property
    def holds(self) -> bool:
        """Whether the channel has been acquitted."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def reachable(
    channel: Channel,
    candidates: FloatArray,
    posterior: FloatArray | None = None,
    *,
    messages: int | None = None,
    seed: int = 0,
) -> Reachability:
    """Look for messages that floats give away, at candidates ``(K, M)``.

    It convicts by example. It acquits finite messages, and real ones that lie on a grid and of which none was
    found to exclude a label; it says "not judged" of all others.

    Args:
        channel: the channel.
        candidates: the class at a context.
        posterior: the public posterior ``(K,)``, if the channel is adaptive.
        messages: how many messages to look at, if they are real numbers.
        seed: of all that is drawn.

    Example:
        >>> from ldp_gym.channels import LaplaceSingle, Split
        >>> table = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
        >>> reachable(LaplaceSingle(2, 3, 100), table).verdict, reachable(Split(2, 3, 100), table).verdict
        ('broken', 'holds')
    """
    candidates, posterior = check_situation(channel, candidates, posterior)
    if messages is not None:
        messages = validation.whole("messages", messages, least=1)
        validation.fits_memory("messages", messages, channel.num_labels, "densities")
    rng = np.random.default_rng(validation.seed("seed", seed))
    try:
        with np.errstate(all="ignore"):
            listed = _given_coins(channel, candidates, posterior, rng)
            if listed is not None:
                return _judge_finite(channel, listed, candidates, posterior)
            count = messages or max(40, _WORK // channel.num_labels)
            return _Search(channel, candidates, posterior, rng).judge(count)
    except ChannelFailedError as error:
        return Reachability("not judged", str(error))


# -- Finite messages --------------------------------------------------------------------------------------


def _given_coins(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None, rng: np.random.Generator
) -> list[Messages] | None:
    """The messages that are left at some draws of the public coins; None if they are not finitely many."""
    coins = rng.random((_COIN_DRAWS if channel.num_public_coins else 1, channel.num_public_coins))
    try:
        return [channel.messages_given_coins(draw, candidates, posterior) for draw in coins]
    except TypeError:
        return None


def _judge_finite(
    channel: Channel, listed: list[Messages], candidates: FloatArray, posterior: FloatArray | None
) -> Reachability:
    """A message is given away if all labels but one have less than the resolution of a uniform for it."""
    lost, seen, excluded = 0.0, 0, False
    for messages in listed:
        log_density = channel.log_density(messages, candidates, posterior)
        law = np.exp(log_density - log_density.max())
        law /= law.sum(axis=0)
        if np.isnan(law).any():
            return Reachability("not judged", "the density of its messages is not a number")
        can = law > channel.resolution
        sent = can.any(axis=1)  # of the others nobody hears
        excluded = excluded or not can[sent].all()
        lost += float((law * (can.sum(axis=1) == 1)[:, None]).sum(axis=0).mean())
        seen += len(messages)
    share = lost / len(listed)
    if not excluded:
        reason = "its messages are finitely many, and every label can send each of them"
        return Reachability("holds", reason, 0.0, None, seen)
    reason = f"some labels never send some of its messages; {share:.2%} of messages give their label away"
    return Reachability("broken", reason, share, 1.0 if share else None, seen)


# -- Real messages ----------------------------------------------------------------------------------------


class _Search:
    """The search for crossings, for one channel at one context."""

    def __init__(
        self, channel: Channel, candidates: FloatArray, posterior: FloatArray | None, rng: np.random.Generator
    ) -> None:
        self._channel, self._candidates, self._posterior, self._rng = channel, candidates, posterior, rng
        self._num_uniforms = channel.num_uniforms
        self._encodes = type(channel).privatize is Channel.privatize
        if not self._encodes:
            recorder = ReplayGenerator(None, rng)
            channel.privatize(np.zeros(2, dtype=np.int64), candidates, recorder, posterior)
            self._num_uniforms = recorder.taken

    def _draw(self, labels: IntArray, uniforms: FloatArray) -> FloatArray:
        """Messages ``(n, entries)`` of labels ``(n,)`` by ``encode``, or by a ``privatize`` of one's own."""
        if self._encodes:
            messages = self._channel.encode(labels, self._candidates, uniforms, self._posterior)
        else:
            replay = ReplayGenerator(uniforms, self._rng)
            messages = self._channel.privatize(labels, self._candidates, replay, self._posterior)
        return np.asarray(messages, dtype=np.float64).reshape(len(labels), -1)

    def judge(self, count: int) -> Reachability:
        labels = np.arange(count) % self._channel.num_labels
        uniforms = self._uniforms(count)
        messages = self._draw(labels, uniforms)
        if not np.array_equal(messages, self._draw(labels, uniforms)):
            return Reachability("not judged", "its messages do not follow from the uniforms it is given")
        self._noise = self._find_noise(labels, uniforms, messages)
        if not self._noise:
            reason = "its messages have no noise that could be followed, and it does not list them"
            return Reachability("not judged", reason)
        crossed, reached = self._look(messages, uniforms)
        judged = crossed.all(axis=1) & reached.any(axis=1)
        if judged.sum() < 0.5 * count:
            reason = f"the noise could be followed to {int(judged.sum())} of {count} messages alone"
            return Reachability("not judged", reason, judged=int(judged.sum()))
        return self._verdict(messages[judged], labels[judged], reached[judged])

    def _verdict(self, messages: FloatArray, labels: IntArray, reached: BoolArray) -> Reachability:
        alone, count = reached.sum(axis=1) == 1, len(messages)
        share = float(alone.mean())
        correct = float(reached[alone, labels[alone]].mean()) if alone.any() else None
        found = share, correct, count, messages.reshape(count, *self._channel.message_shape), reached
        if alone.any():
            reason = f"{share:.1%} of {count} messages can come from one label alone; it is the true one"
            return Reachability("broken", f"{reason} for {correct:.1%} of those", *found)
        if not reached.all():
            excluded = float((~reached.all(axis=1)).mean())
            reason = f"{excluded:.1%} of {count} messages cannot come from some label"
            return Reachability("broken", reason, *found)
        if np.array_equal(messages * _FINEST, np.round(messages * _FINEST)):
            reason = f"its messages lie on a grid, and each of {count} can come from every label"
            return Reachability("holds", reason, *found)
        reason = f"each of {count} messages can come from every label, which need not be so for all"
        return Reachability("not judged", reason, *found)

    def _uniforms(self, count: int) -> FloatArray:
        return open_uniforms([self._rng], (count, self._num_uniforms))[0]

    def _find_noise(self, labels: IntArray, uniforms: FloatArray, messages: FloatArray) -> dict[int, int]:
        """The uniforms that are noise, and for each of them an entry of the message that it moves."""
        noise: dict[int, int] = {}
        moved = np.zeros((self._num_uniforms, messages.shape[1]))
        for place in range(self._num_uniforms):
            nudged = uniforms.copy()
            nudged[:, place] += np.where(nudged[:, place] < 0.5, _NUDGE, -_NUDGE)
            change = np.abs(self._draw(labels, nudged) - messages)
            scale = np.maximum(np.abs(messages), 1.0)
            moved[place] = ((change > 0.0) & (change < 0.01 * scale)).mean(axis=0)
        taken = np.zeros(messages.shape[1], dtype=bool)
        for place in np.argsort(-moved.max(axis=1), kind="stable").tolist():
            free = np.where(taken, 0.0, moved[place])
            if free.max() >= _MOVED:
                noise[place] = int(free.argmax())
                taken |= moved[place] >= _MOVED
        # One uniform that reveals a random entry moves each of them now and then; so it drives the shown one.
        self._shown = len(noise) == 1 and bool((np.count_nonzero(messages, axis=1) == 1).all())
        return noise

    def _look(self, messages: FloatArray, uniforms: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Whether each label crosses each message in some frame, and whether a float hits it: ``(n, M)``.

        A crossing counts in a frame in which a float of some label hits the message: otherwise it may be the
        frame that is wrong, such as a public order that the last bit of the message shows.
        """
        crossed, reached = (np.zeros((len(messages), self._channel.num_labels), dtype=bool) for _ in range(2))

        def look(rows: IntArray, frames: FloatArray) -> None:
            labels = np.arange(crossed.shape[1])
            each, every = np.repeat(rows, len(labels)), np.tile(labels, len(rows))
            crosses, hits = (
                found.reshape(-1, len(labels))
                for found in self._cross(messages[each], every, np.repeat(frames, len(labels), axis=0))
            )
            crossed[rows] |= crosses & hits.any(axis=1, keepdims=True)
            reached[rows] |= hits

        for frames in self._guessed_frames(messages):
            rows = np.flatnonzero(~reached.all(axis=1) & ~np.isnan(frames[:, 0]))
            look(rows, frames[rows])
        for frames in self._own_frames(uniforms):
            rows = np.flatnonzero(~(crossed.all(axis=1) & reached.any(axis=1)))
            if len(rows) <= _LEFT * len(messages):
                break
            look(rows, frames[rows])
        return crossed, reached

    def _guessed_frames(self, messages: FloatArray) -> Iterator[FloatArray]:
        """Frames ``(n, U)`` of anybody, as an attacker has to guess them; NaN where there are no more."""
        pool = self._uniforms(_POOL * self._channel.num_hypotheses)
        zeros = self._draw(np.zeros(len(pool), dtype=np.int64), pool) == 0.0
        guesses = np.full((_FRAMES, len(messages), self._num_uniforms), np.nan)
        for i, message in enumerate(messages):
            fitting = np.flatnonzero((zeros == (message == 0.0)).all(axis=1))
            some = self._rng.permutation(fitting)[:_FRAMES]
            guesses[: len(some), i] = pool[some]
        some = np.flatnonzero(~np.isnan(guesses[0, :, 0]))[:_PILOT]
        crosses, _ = self._cross(messages[some], np.zeros(len(some), dtype=np.int64), guesses[0, some])
        if crosses.sum() > 0.1 * len(some):  # else public coins are so many that no guess is right
            yield from guesses

    def _own_frames(self, uniforms: FloatArray) -> Iterator[FloatArray]:
        """The users' own frames, with one coin tossed again: the last first, as public coins come first."""
        for place in reversed(range(self._num_uniforms)):
            for _ in range(0 if place in self._noise else _TOSSES):
                own = uniforms.copy()
                own[:, place] = self._uniforms(len(own))[:, 0]
                yield own

    def _cross(
        self, messages: FloatArray, labels: IntArray, frames: FloatArray
    ) -> tuple[BoolArray, BoolArray]:
        """Follow the noise to the messages, in one frame each; all noise uniforms at the same time."""
        if not len(messages):
            return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
        entries = np.repeat(np.array([list(self._noise.values())]), len(messages), axis=0)
        if self._shown:
            entries[:, 0] = (messages != 0.0).argmax(axis=1)
        wanted = np.take_along_axis(messages, entries, axis=1)
        uniforms, hit = frames.copy(), np.zeros(len(messages), dtype=bool)

        def evaluate(numbers: IntArray) -> tuple[FloatArray, FloatArray]:
            """The messages where the noise uniforms have these numbers, and their noisy entries."""
            uniforms[:, list(self._noise)] = np.clip(numbers, 1, _STEPS - 1) / _STEPS
            drawn = self._draw(labels, uniforms)
            np.logical_or(hit, (drawn == messages).all(axis=1), out=hit)
            return drawn, np.take_along_axis(drawn, entries, axis=1)

        low, high, rising = _bracket(lambda numbers: evaluate(numbers)[1], wanted)
        for _ in range(int(np.log2(_STEPS // (_GRID - 1))) + 1):
            middle = (low + high) // 2
            below = (evaluate(middle)[1] <= wanted) == rising
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        (drawn, at_low), (_, at_high) = evaluate(low), evaluate(high)
        close = np.abs(at_high - at_low) <= _CLOSE * np.maximum(np.abs(wanted), 1.0)
        elsewhere = np.abs(drawn - messages) <= _CLOSE * np.maximum(np.abs(messages), 1.0)
        crosses = hit | ((_between(at_low, wanted, at_high) & close).all(axis=1) & elsewhere.all(axis=1))
        parts = np.zeros(wanted.shape, dtype=bool)
        for step in range(-_AROUND, _AROUND + 2):
            parts |= evaluate(low + step)[1] == wanted
        # Entries with noise of their own are hit one by one; one uniform must hit all entries at once.
        return crosses, hit if len(self._noise) == 1 else hit | parts.all(axis=1)


def _bracket(
    evaluate: Callable[[IntArray], FloatArray], wanted: FloatArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Neighbours on a coarse grid between which the noise passes what is wanted, the closest such pair.

    And whether it rises there.
    """
    grid = np.linspace(1, _STEPS - 1, _GRID).astype(np.int64)
    low, high = np.full(wanted.shape, grid[0]), np.full(wanted.shape, grid[-1])
    rising, narrowest = np.ones(wanted.shape, dtype=bool), np.full(wanted.shape, np.inf)
    last = evaluate(low)
    for before, number in pairwise(grid):
        values = evaluate(np.full(wanted.shape, number))
        width = np.abs(values - last)
        better = _between(values, wanted, last) & (width < narrowest)
        low, high = np.where(better, before, low), np.where(better, number, high)
        rising, narrowest = np.where(better, values >= last, rising), np.where(better, width, narrowest)
        last = values
    return low, high, rising


def _between(one: FloatArray, wanted: FloatArray, other: FloatArray) -> BoolArray:
    return (np.minimum(one, other) <= wanted) & (wanted <= np.maximum(one, other))
