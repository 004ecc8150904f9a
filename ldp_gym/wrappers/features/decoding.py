"""What a message says: its public offset and scale taken off.

Both are functions of the public candidates, so anyone can take them off. What is left is a number for each
hypothesis, in units of the noise, that a policy can sum up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import NoisyChannel
from ldp_gym.core.arrays import FloatArray, Messages, expectations


class Decoded(NamedTuple):
    """Messages without their public part.

    Attributes:
        values: ``(..., K)``, 0 where nothing was revealed.
        shown: 1 where something was, ``(..., K)``.
    """

    values: FloatArray
    shown: FloatArray


def decode(channel: Channel, messages: Messages, candidates: FloatArray) -> Decoded:
    """What messages ``(..., *message_shape)`` say at candidates ``(..., K, M)``.

    Of noisy log-likelihoods, how far each lies above its mean: that of ``log pbar_j[h_t(y)]`` over the
    uniform mixture of the hypotheses, in units of the noise's standard deviation. Of any other message, how
    far each hypothesis' labels agree with it, less the mean of that: a bit, a set or a reported label has no
    noise to take off.

    Args:
        channel: it must not be adaptive: what its messages mean would depend on the public posterior.
        messages: the messages.
        candidates: those of their rounds.
    """
    if isinstance(channel, NoisyChannel):
        return _decode_noisy(channel, messages, candidates)
    values = expectations(candidates, channel.agreement(messages, candidates))
    return Decoded(values - values.mean(axis=-1, keepdims=True), np.ones(values.shape))


def _decode_noisy(channel: NoisyChannel, messages: Messages, candidates: FloatArray) -> Decoded:
    clipping = channel.clipping
    cells = clipping.cells(candidates)
    density = clipping.density(candidates, cells.lengths[..., None, :], cells.total[..., None])
    mixed = clipping.smooth_candidates(candidates).mean(axis=-2)  # the law of h_t(y) under the mixture
    centre = np.einsum("...jm,...m->...j", np.log(density), mixed)
    noise = channel.noise(candidates, cells)
    revealed = channel.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
    shown = (messages != 0.0).astype(np.float64)
    deviation = np.sqrt(channel.law.variance)
    return Decoded(shown * (revealed - centre) / (deviation * noise.scale), shown)
