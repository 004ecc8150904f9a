"""Relations of messages to labels, and label evidence: what a learned agent reads of a transcript.

Two message formats cover all channels. Either a message names, holds, covers or favours some labels: its
relation to a label is the *agreement*, from 0 to 1. Or it reveals a log-likelihood with noise: its relation
to a label is the *distance* of the label's level from it, in scales of the noise. Neither says how far a
message can be trusted: an agent learns that, as a weight ``q(r)`` of a relation r. The *label evidence* of
hypothesis k is ``log sum_y f_k[y] exp(q(r_y))``. With the channel's own log density as the weight it would be
the log-likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import GAUSS, ClippedChannel, NoisyChannel
from ldp_gym.core.arrays import FloatArray, Messages, expectations

KINDS = ("agreement", "laplace", "gauss")
"""Kinds of relations: agreements, and distances under two kinds of noise."""

_NODES = {"agreement": 65, "laplace": 129, "gauss": 129}
"""Number of points at which a weight is known, by kind of relation; between them it is linear."""

_REACH = 16.0
"""Largest distance, in scales of the noise; larger ones are cut to it."""


class Relation:
    """Relation of a channel's messages to labels: its ``kind``, and the ``nodes`` of a weight."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.kind, reach = "agreement", 1.0
        if isinstance(channel, NoisyChannel):
            self.kind, reach = "gauss" if channel.law is GAUSS else "laplace", _REACH
        self.nodes: FloatArray = np.linspace(0.0, reach, _NODES[self.kind])

    def read(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        """The relations ``(..., M)`` of messages to labels, one array for each number that is revealed."""
        if isinstance(self.channel, NoisyChannel):
            cells = self.channel.clipping.cells(candidates)
            for distances in self.channel.distances(messages, candidates, cells):
                yield np.minimum(np.abs(distances), _REACH)
        else:
            yield self.channel.agreement(messages, candidates, posterior)

    def laws(self, candidates: FloatArray) -> FloatArray:
        """Each hypothesis' law of the label that a message is about, ``(..., K, M)``.

        This is the user's own label, or ``h_t(y)`` where the channel clips (Section 4, eq. (5)).
        """
        if isinstance(self.channel, ClippedChannel):
            return self.channel.clipping.smooth_candidates(candidates)
        return candidates


class LabelEvidence:
    """Label evidence of every hypothesis under one weight.

    Args:
        channel: the channel whose messages are read.
        weights: the weight at the nodes of the channel's relation, ``(nodes,)``.
    """

    def __init__(self, channel: Channel, weights: FloatArray) -> None:
        self.relation = Relation(channel)
        self._weights = weights

    def __call__(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The evidence ``(..., K)`` of messages at candidates ``(..., K, M)``."""
        total: FloatArray = np.zeros(())
        for relation in self.relation.read(messages, candidates, posterior):
            total = total + np.interp(relation, self.relation.nodes, self._weights)
        peak = total.max(axis=-1, keepdims=True)
        return np.log(expectations(self.relation.laws(candidates), np.exp(total - peak))) + peak
