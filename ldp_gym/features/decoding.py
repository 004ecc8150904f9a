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
from ldp_gym.numerics.arrays import FloatArray, Messages

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
        matched: what the values say for each hypothesis, ``(..., K)``.
        bounded: the same of values clipped to ``+-CLIP``.
        energy: how much they could say for it, ``(..., K)``: the mean of ``matched`` if it is the truth.
    """

    values: FloatArray
    shown: FloatArray
    matched: FloatArray
    bounded: FloatArray
    energy: FloatArray


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

    In units of the noise's standard deviation. With ``m_kj`` its mean under hypothesis k, which is
    ``E_k[log pbar_j[h_t(y)]]`` less the mean of that over k, the matched statistic is ``sum_j z_j m_kj``.
    Its mean under k is the energy ``sum_j m_kj^2`` of the coordinates shown, and for weak signals
    ``matched - energy / 2`` is the log-likelihood that Gaussian noise of that size would have.
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
        # The law of h_t(y) under each hypothesis, and the mean of each coordinate under it, (..., k, j).
        clipped = clipping.smooth_candidates(candidates)
        means = clipped @ np.swapaxes(np.log(density), -1, -2)
        centre = means.mean(axis=-2)
        noise = channel.noise(candidates, cells)
        deviation = self._deviation * noise.scale
        shifts = (means - centre[..., None, :]) / deviation[..., None, :]
        revealed = channel.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        is_shown = messages != 0.0
        values = np.where(is_shown, (revealed - centre) / deviation, 0.0)
        shown = is_shown.astype(np.float64)
        return Decoded(
            values,
            shown,
            _project(values, shifts),
            _project(np.clip(values, -CLIP, CLIP), shifts),
            _project(shown, np.square(shifts)),
        )


def _project(values: FloatArray, shifts: FloatArray) -> FloatArray:
    """``sum_j z_j m_kj`` of every hypothesis, ``(..., K)``."""
    return values @ shifts.T if shifts.ndim == 2 else np.einsum("...j,...kj->...k", values, shifts)


class ScoreDecoder(Decoder):
    """Any other message: each hypothesis' score, its likelihood over that of the uniform mixture, less one.

    A bit, a set or a reported label has no noise to take off. The score is the first term of its
    log-likelihood ratio, bounded by ``e^eps - 1``, and its square is the second.
    """

    def decode(self, messages: Messages, candidates: FloatArray) -> Decoded:
        log_likelihood = self.channel.log_likelihood(messages, candidates)
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
        values = likelihood / likelihood.mean(axis=-1, keepdims=True) - 1.0
        return Decoded(values, np.ones(values.shape), values, np.clip(values, -CLIP, CLIP), np.square(values))


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
    return ScoreDecoder(channel)


@decoder_of.register
def _(channel: NoisyChannel) -> Decoder:
    return NoisyDecoder(channel)
