"""Floating-point audit: which labels can have produced exactly this message (Mironov 2012).

On a machine, noise is a function of a uniform out of 2^53 values, and the label shifts those values: some
floats can be reached from one label only. The audit shows this on :class:`~ldp_gym.channels.LaplaceSingle`.
For a message and a label it finds, by bisection, where the noise crosses the message, and looks whether one
of the floats there hits it. Finite messages have no such gaps: they are judged by their probabilities, of
which one below the step of a uniform is never drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import revealed_coordinate
from ldp_gym.channels.noisy import LaplaceSingle
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.privacy.densities import check_situation

_UNIFORM_STEPS = 2**53
"""Number of values that a uniform random number can take."""

_AROUND = 4
"""Number of uniforms checked on either side of a crossing, as rounding is not quite monotone."""

_LAPLACE_UNIFORMS = 4
"""Number of uniforms of a message of ``laplace-single``."""

_COORDINATE_UNIFORM = 2
"""Index of the uniform of ``laplace-single`` that draws the coordinate to reveal."""

_NOISE_UNIFORM = 3
"""Index of the uniform of ``laplace-single`` that draws the noise of that coordinate."""

_COIN_DRAWS = 50
"""Number of draws of the public coins at which finite messages are checked."""


class Reachability(NamedTuple):
    """Result of a floating-point audit.

    Attributes:
        verdict: ``"holds"``: every label can send every message; ``"broken"``: some messages exclude a label;
            ``"not judged"``: the audit cannot tell.
        reason: the reason, in words.
        share: share of messages that can come from one label only; None if unknown.
        correct: share of those that did come from that label.
    """

    verdict: Literal["holds", "broken", "not judged"]
    reason: str
    share: float | None = None
    correct: float | None = None

    @property
    def holds(self) -> bool:
        """True if the verdict is ``"holds"``."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def reachable(
    channel: Channel,
    candidates: FloatArray,
    posterior: FloatArray | None = None,
    *,
    messages: int = 200,
    seed: int = 0,
) -> Reachability:
    """Look for messages that exclude a label in floating-point arithmetic, at candidates ``(K, M)``.

    It judges channels with finite messages, and ``laplace-single``.

    Args:
        channel: the channel.
        candidates: the class at one context.
        posterior: the public posterior ``(K,)``, for an adaptive channel.
        messages: number of messages of ``laplace-single`` to judge it by.
        seed: seed of the messages and of public coins.

    Example:
        >>> from ldp_gym.channels import LaplaceSingle, Split
        >>> table = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
        >>> reachable(LaplaceSingle(2, 3, 100), table).verdict, reachable(Split(2, 3, 100), table).verdict
        ('broken', 'holds')
    """
    candidates, posterior = check_situation(channel, candidates, posterior)
    num_messages = validation.whole("messages", messages, least=1)
    validation.fits_memory("messages", num_messages, channel.num_labels, "densities")
    rng = np.random.default_rng(validation.seed("seed", seed))
    num_draws = 1
    if channel.num_public_coins > 0:
        num_draws = _COIN_DRAWS
    coins = rng.random((num_draws, channel.num_public_coins))
    try:
        listed = [channel.messages_given_coins(draw, candidates, posterior) for draw in coins]
    except TypeError:  # not finite
        if isinstance(channel, LaplaceSingle):
            return _judge_laplace(channel, candidates, num_messages, rng)
        reason = "its messages are real numbers; which floats occur may tell the label, as on laplace-single"
        return Reachability("not judged", reason)
    return _judge_finite(channel, listed, candidates, posterior)


def _judge_finite(
    channel: Channel, listed: list[Messages], candidates: FloatArray, posterior: FloatArray | None
) -> Reachability:
    """Compare the probabilities of messages with the step of a uniform: a smaller one is never drawn.

    Args:
        channel: the channel.
        listed: its possible messages, ``(n, *message_shape)``, at each of some draws of the public coins.
        candidates: the class at one context, ``(K, M)``.
        posterior: the public posterior ``(K,)`` of an adaptive channel.
    """
    shares = []
    every_label_sends_all = True
    for messages in listed:
        with np.errstate(all="ignore"):
            log_density = channel.log_density(messages, candidates, posterior)
            law = np.exp(log_density - log_density.max())
            law /= law.sum(axis=0)
        if np.isnan(law).any():
            return Reachability("not judged", "the density of its messages is not a number")

        is_sent = law > 1.0 / _UNIFORM_STEPS  # (messages, labels)
        num_senders = is_sent.sum(axis=1)
        by_all_labels = is_sent[num_senders > 0].all()
        every_label_sends_all &= bool(by_all_labels)
        shares.append(law[num_senders == 1].sum(axis=0).mean())

    if every_label_sends_all:
        reason = "its messages are finitely many, and every label can send each"
        return Reachability("holds", reason, 0.0)
    share = float(np.mean(shares))
    reason = f"some labels never send some of its messages; {share:.2%} of messages give their label away"
    correct = None
    if share > 0.0:
        correct = 1.0
    return Reachability("broken", reason, share, correct)


def _judge_laplace(
    channel: LaplaceSingle, candidates: FloatArray, count: int, rng: np.random.Generator
) -> Reachability:
    """Draw messages, and look which labels can have sent each of them.

    Noise only: the channel's hash h_t, which exchanges a label once in T, is taken to keep it.
    """
    labels = np.arange(count) % channel.num_labels
    uniforms = open_uniforms([rng], (count, _LAPLACE_UNIFORMS))[0]
    messages = channel.encode(labels, candidates, uniforms)
    is_reached = _reached_by_noise(channel, candidates, messages)  # (messages, labels)
    if is_reached.all():
        reason = f"each of {count} messages can come from every label"
        return Reachability("not judged", reason, 0.0)

    by_one_label = is_reached.sum(axis=1) == 1
    share = float(by_one_label.mean())
    share_excluding = float((~is_reached.all(axis=1)).mean())
    reason = f"{share_excluding:.1%} of {count} messages cannot come from some label"
    correct = None
    if by_one_label.any():
        correct = float(is_reached[by_one_label, labels[by_one_label]].mean())
        reason += (
            f"; {share:.1%} can come from one label only, the true one for {correct:.1%} of those"
        )
    return Reachability("broken", f"{reason} (unless h_t exchanges it, once in T)", share, correct)


def _reached_by_noise(
    channel: LaplaceSingle, candidates: FloatArray, messages: Messages
) -> BoolArray:
    """Tell which labels reach which messages with some noise out of 2^53, ``(messages, labels)``.

    A loss falls as its noise rises, so bisection finds where the noise crosses the message.
    """
    labels = np.tile(np.arange(channel.num_labels), (len(messages), 1))
    coordinates = revealed_coordinate(messages)[:, None]
    wanted = np.take_along_axis(messages, coordinates, axis=-1)  # (messages, 1)
    losses = _NoisyLosses(channel, candidates, labels, coordinates)

    low = np.ones(labels.shape, dtype=np.int64)
    high = np.full(labels.shape, _UNIFORM_STEPS - 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_above = losses.at(middle) >= wanted
        low = np.where(is_above, middle, low)
        high = np.where(is_above, high, middle)

    is_reached = np.zeros(labels.shape, dtype=np.bool_)
    for step in range(-_AROUND, _AROUND + 2):
        is_reached |= losses.at(low + step) == wanted
    return is_reached


@dataclass(frozen=True)
class _NoisyLosses:
    """The losses that ``laplace-single`` reveals of labels, as a function of the noise's uniform.

    Attributes:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        labels: labels, ``(messages, labels)``.
        coordinates: the revealed coordinate of each message, ``(messages, 1)``.
    """

    channel: LaplaceSingle
    candidates: FloatArray
    labels: IntArray
    coordinates: IntArray

    def at(self, steps: IntArray) -> FloatArray:
        """Revealed losses, ``(messages, labels)``, where the noise's uniform is this many steps of 2^-53."""
        largest = 1.0 - 1.0 / _UNIFORM_STEPS  # with it h_t keeps every label
        uniforms = np.full((*self.labels.shape, _LAPLACE_UNIFORMS), largest)
        uniforms[..., _COORDINATE_UNIFORM] = (self.coordinates + 0.5) / self.channel.num_hypotheses
        uniforms[..., _NOISE_UNIFORM] = np.clip(steps, 1, _UNIFORM_STEPS - 1) / _UNIFORM_STEPS
        messages = self.channel.encode(self.labels, self.candidates, uniforms)
        revealed = np.take_along_axis(messages, self.coordinates[..., None], axis=-1)
        return revealed[..., 0]
