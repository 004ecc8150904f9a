"""What a message is about: a number that relates it to every label, written per message format.

Two formats cover all channels. Either the message names, holds, covers or favours some labels: its relation
to a label is the *agreement*, from 0 to 1. Or it reveals a log-likelihood with noise: its relation to a label
is the *distance* of the label's level from it, in scales of the noise. Neither says how far a message is to
be trusted; that is what an agent learns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import GAUSS, ClippedChannel, NoisyChannel
from ldp_gym.core.arrays import FloatArray, Messages

KINDS = ("agreement", "laplace", "gauss")
"""The kinds of relations: agreement, and distances in two kinds of noise."""

REACH = 16.0
"""Beyond so many scales of the noise a distance is as good as this one."""


class Relation(ABC):
    """How the messages of a channel relate to labels.

    Args:
        channel: the channel.

    Attributes:
        kind: one of :data:`KINDS`.
        low, high: between which its numbers lie.
    """

    kind: str
    low: ClassVar[float]
    high: ClassVar[float]

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    @abstractmethod
    def read(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        """The relations ``(..., M)`` of messages to labels, one after another if a message says more.

        Args:
            messages: ``(..., *message_shape)``.
            candidates: ``(..., K, M)``.
            posterior: the public posterior ``(..., K)`` before each message, if the channel is adaptive.
        """

    def laws(self, candidates: FloatArray) -> FloatArray:
        """Each hypothesis' law of the label that a message is about, ``(..., K, M)``.

        The user's own; where the channel clips, that of ``h_t(y)``, Section 4, eq. (5).
        """
        if isinstance(self.channel, ClippedChannel):
            return self.channel.clipping.smooth_candidates(candidates)
        return candidates


class Agreement(Relation):
    """How far labels agree with messages, as the channel says."""

    kind, low, high = "agreement", 0.0, 1.0

    def read(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        yield self.channel.agreement(messages, candidates, posterior)


class Distance(Relation):
    """How far from a noisy log-likelihood the levels of labels lie, for each that a message reveals."""

    channel: NoisyChannel
    low, high = 0.0, REACH

    def __init__(self, channel: NoisyChannel) -> None:
        super().__init__(channel)
        self.kind = "gauss" if channel.law is GAUSS else "laplace"

    def read(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        cells = self.channel.clipping.cells(candidates)
        for distances in self.channel.distances(messages, candidates, cells):
            yield np.minimum(np.abs(distances), self.high)


def relation_of(channel: Channel) -> Relation:
    """How the messages of a channel relate to labels."""
    return Distance(channel) if isinstance(channel, NoisyChannel) else Agreement(channel)
