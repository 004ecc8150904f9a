"""What a message says: its public offset and scale taken off.

Both are functions of the public candidates, so anyone can take them off. What is left is a number for each
hypothesis, in units of the noise, that a policy can sum up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.channels.noisy import NoisyChannel
from ldp_gym.numerics.arrays import FloatArray, Messages, expectations

CLIP = 0.7
"""Where a decoded message is clipped, in standard deviations of its noise.

Under Laplace noise the likelihood ratio of two close levels is bounded: what lies beyond one noise scale,
0.71 standard deviations, says no more than that.
"""


class Decoded(NamedTuple):
    """Messages without their public part.

    Attributes:
        values: ``(..., K)``, 0 where nothing was revealed.
        shown: 1 where something was, ``(..., K)``.
    """

    values: FloatArray
    shown: FloatArray


class Decoder(ABC):
    """Decodes the messages of a channel.

    Args:
        channel: it must not be adaptive: what its messages mean would depend on the public posterior.
    """

    share: float = 1.0
    """How often one coordinate is revealed."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    @abstractmethod
    def decode(self, messages: Messages, candidates: FloatArray) -> Decoded:
        """What messages ``(..., *message_shape)`` say at candidates ``(..., K, M)``."""


class NoisyDecoder(Decoder):
    """Noisy log-likelihoods: a value z_j is how far coordinate j lies above its mean under the mixture.

    In units of the noise's standard deviation. The mean is that of ``log pbar_j[h_t(y)]`` over the uniform
    mixture of the hypotheses.
    """

    def __init__(self, channel: NoisyChannel) -> None:
        super().__init__(channel)
        self._noisy = channel
        self._deviation = float(np.sqrt(channel.law.variance))
        self.share = 1.0 / channel.num_hypotheses if isinstance(channel, LaplaceSingle) else 1.0

    def decode(self, messages: Messages, candidates: FloatArray) -> Decoded:
        channel, clipping = self._noisy, self._noisy.clipping
        cells = clipping.cells(candidates)
        density = clipping.density(candidates, cells.lengths[..., None, :], cells.total[..., None])
        mixed = clipping.smooth_candidates(candidates).mean(axis=-2)  # the law of h_t(y) under the mixture
        centre = np.einsum("...jm,...m->...j", np.log(density), mixed)
        noise = channel.noise(candidates, cells)
        revealed = channel.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        shown = (messages != 0.0).astype(np.float64)
        return Decoded(shown * (revealed - centre) / (self._deviation * noise.scale), shown)


class AgreementDecoder(Decoder):
    """Any other message: how far each hypothesis' labels agree with it, less the mean of that.

    A bit, a set or a reported label has no noise to take off.
    """

    def decode(self, messages: Messages, candidates: FloatArray) -> Decoded:
        values = expectations(candidates, self.channel.agreement(messages, candidates))
        return Decoded(values - values.mean(axis=-1, keepdims=True), np.ones(values.shape))


@singledispatch
def decoder_of(channel: Channel) -> Decoder:
    """The decoder of a channel's messages.

    Raises:
        ValueError: if the channel is adaptive.
    """
    if channel.adaptive:
        raise ValueError(
            f"what a message of {channel!r} means depends on the public posterior: it cannot be decoded from "
            f"the candidates alone. Use a channel that is not adaptive, or the learner 'bayes'"
        )
    return AgreementDecoder(channel)


@decoder_of.register
def _(channel: NoisyChannel) -> Decoder:
    return NoisyDecoder(channel)
