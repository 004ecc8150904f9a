"""EXP3 on proper loss estimates, with a rate that adapts to their noise."""

from __future__ import annotations

import math

import numpy as np

from ldp_agents.base import SmoothedLearner
from ldp_gym import Channel, Game
from ldp_gym.core.arrays import FloatArray, Messages, softmax
from ldp_gym.core.errors import IncompatibleChannelError

_SMALLEST_DEVIATION = 1e-12
"""Relative standard deviation below which estimates count as equal: they differ by rounding only."""


class CentredEXP3(SmoothedLearner):
    """EXP3 on loss estimates without the paper's offset, for every channel.

    The offset drowns the signal. These are exponential weights on the channel's ``loss_estimates``.
    The rate ``sqrt(2 log K / V_t)`` needs no horizon: V_t is the sum of the variances, over the
    hypotheses, of the estimates so far.
    """

    @property
    def _prior(self) -> FloatArray:
        """Summed estimates ``(K,)``, and as a last entry V_t: all zero before the first message."""
        return np.zeros(self.game.num_hypotheses + 1)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Loss estimates of each message, and their variance over the hypotheses: ``(..., K + 1)``."""
        estimates = self._estimates(messages, candidates)
        variance = estimates.var(axis=-1)

        # Where all estimates are equal but for rounding, any of them shows their size.
        squared_size = 1.0 + np.square(estimates[..., 0])
        rounding = _SMALLEST_DEVIATION**2 * squared_size
        variance = np.where(variance > rounding, variance, 0.0)
        return np.concatenate([estimates, variance[..., None]], axis=-1)

    def _estimates(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Loss estimates ``(..., K)`` of the messages ``(..., *message_shape)``."""
        return self.game.channel.loss_estimates(messages, candidates, self.posterior)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        """Exponential weights from summed estimates and their summed variance, K + 1 along an axis."""
        num_hypotheses = self.game.num_hypotheses
        losses, total_variance = np.split(totals, [num_hypotheses], axis=axis)

        # While the total variance is 0 the messages have not told hypotheses apart: the rate is 0.
        deviation = np.sqrt(np.where(total_variance > 0.0, total_variance, np.inf))
        rate = math.sqrt(2.0 * math.log(num_hypotheses)) / deviation
        return softmax(-rate * losses, axis=axis)


class Unbiased(CentredEXP3):
    """EXP3 on unbiased losses of labels: estimates that are valid even if no hypothesis is right.

    As ``centred-exp3``, on unbiased estimates of the clipped log-loss of labels
    (:meth:`ldp_gym.Channel.unbiased_losses`), which are noisier, and which not every channel has.

    Raises:
        IncompatibleChannelError: if the channel has no formula for them.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        if type(game.channel).unbiased_losses is Channel.unbiased_losses:
            raise IncompatibleChannelError(
                f"{game.channel!r} has no formula for unbiased losses of labels; "
                f"'randomized-response', 'subset-selection' and 'one-bit' have one, and "
                f"'centred-exp3' reads every channel"
            )

    def _estimates(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Unbiased loss estimates ``(..., K)`` of the messages ``(..., *message_shape)``."""
        return self.game.channel.unbiased_losses(messages, candidates, self.posterior)
