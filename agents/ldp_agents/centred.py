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
    """EXP3 on loss estimates without the paper's offset, which drowns the signal; it reads every channel.

    Exponential weights on the channel's ``loss_estimates``. The rate ``sqrt(2 log K / V_t)`` needs no
    horizon: V_t sums up the squared spread of the estimates so far.
    """

    @property
    def _prior(self) -> FloatArray:
        return np.zeros(self.game.num_hypotheses + 1)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The channel's loss estimates, with their spread as a last entry."""
        estimates = self._estimates(messages, candidates)
        spread = estimates.var(axis=-1)
        spread = np.where(
            spread > _LEAST_SPREAD**2 * (1.0 + np.square(estimates[..., 0])), spread, 0.0
        )
        return np.concatenate([estimates, spread[..., None]], axis=-1)

    def _estimates(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        return self.game.channel.loss_estimates(messages, candidates, self.posterior)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        losses, spread = np.split(totals, [self.game.num_hypotheses], axis=axis)
        spread = np.sqrt(np.where(spread > 0.0, spread, np.inf))
        rate = math.sqrt(2.0 * math.log(self.game.num_hypotheses)) / spread
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
                f"{game.channel!r} has no formula for unbiased losses of labels; 'randomized-response', "
                f"'subset-selection' and 'one-bit' have one, and 'centred-exp3' reads every channel"
            )

    def _estimates(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        return self.game.channel.unbiased_losses(messages, candidates, self.posterior)
