"""EXP3 on proper loss estimates, with a rate that adapts to their noise."""

from __future__ import annotations

import math

import numpy as np

from ldp_agents.base import SmoothedLearner
from ldp_gym import Channel, Game
from ldp_gym.core.arrays import FloatArray, Messages, softmax
from ldp_gym.core.errors import IncompatibleChannelError

_LEAST_SPREAD = 1e-12
"""Spread below which estimates count as equal: a rate of one over it would amplify rounding."""


class CentredEXP3(SmoothedLearner):
    """EXP3 on loss estimates without the paper's offset, for every channel.

    The offset drowns the signal. These are exponential weights on the channel's ``loss_estimates``.
    The rate ``sqrt(2 log K / V_t)`` needs no
    horizon: V_t sums up the squared spread of the estimates so far.
    """

    @property
    def _prior(self) -> FloatArray:
        """Summed estimates ``(K,)``, and as a last entry V_t: all zero before the first message."""
        return np.zeros(self.game.num_hypotheses + 1)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The channel's loss estimates, with their spread as a last entry."""
        estimates = self._estimates(messages, candidates)
        variance = estimates.var(axis=-1)
        rounding = _LEAST_SPREAD**2 * (1.0 + np.square(estimates[..., 0]))
        variance = np.where(variance > rounding, variance, 0.0)
        return np.concatenate([estimates, variance[..., None]], axis=-1)

    def _estimates(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Loss estimates ``(..., K)`` of the messages ``(..., *message_shape)``."""
        return self.game.channel.loss_estimates(messages, candidates, self.posterior)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        num_hypotheses = self.game.num_hypotheses
        losses, squared_spread = np.split(totals, [num_hypotheses], axis=axis)

        # Before the first message that says anything the rate is 0.
        spread = np.sqrt(np.where(squared_spread > 0.0, squared_spread, np.inf))
        rate = math.sqrt(2.0 * math.log(num_hypotheses)) / spread
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
        return self.game.channel.unbiased_losses(messages, candidates, self.posterior)
