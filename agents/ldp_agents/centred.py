"""EXP3 on proper loss estimates, with a rate that adapts to their noise."""

from __future__ import annotations

import math

import numpy as np

from ldp_agents.base import SmoothedLearner
from ldp_gym import Channel, Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, softmax
from ldp_gym.core.errors import IncompatibleChannelError

_LEAST_SPREAD = 1e-12
"""Spread below which estimates count as equal: a rate of one over it would amplify rounding."""


class CentredEXP3(SmoothedLearner):
    """EXP3 without the constant that drowns the paper's losses; it reads every channel.

    Exponential weights on the channel's ``loss_estimates``. The rate ``sqrt(2 log K / V_t)`` needs no
    horizon: V_t sums up the squared spread of the estimates so far.

    Args:
        game: the public rules.
        losses: ``"message"``: the channel's loss estimates, of which the truth has the least where it is a
            member; ``"label"``: unbiased estimates of the clipped log-loss of labels
            (:meth:`ldp_gym.Channel.unbiased_losses`), whose least sum finds the best hypothesis even where
            none is right. They are noisier, and need a channel that tells all labels apart.
    """

    def __init__(self, game: Game, losses: str = "message") -> None:
        self._of_labels = validation.choice("losses", losses, ("message", "label")) == "label"
        super().__init__(game)

    @property
    def _prior(self) -> FloatArray:
        return np.zeros(self.game.num_hypotheses + 1)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The channel's estimates, and their spread as one number more."""
        channel = self.game.channel
        estimate = channel.unbiased_losses if self._of_labels else channel.loss_estimates
        estimates = estimate(messages, candidates, self.posterior)
        spread = estimates.var(axis=-1)
        least = _LEAST_SPREAD**2 * (1.0 + np.square(estimates[..., 0]))
        spread = np.where(spread > least, spread, 0.0)
        return np.concatenate([estimates, spread[..., None]], axis=-1)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        losses, spread = np.split(totals, [self.game.num_hypotheses], axis=axis)
        rate = math.sqrt(2.0 * math.log(self.game.num_hypotheses)) / np.sqrt(
            np.where(spread > 0.0, spread, np.inf)
        )
        return softmax(-rate * losses, axis=axis)


class Unbiased(CentredEXP3):
    """EXP3 on unbiased losses of labels: it finds the least log-loss even where no hypothesis is right.

    ``centred-exp3`` with ``losses="label"``, on channels that have a formula for these losses.

    Args:
        game: the public rules.

    Raises:
        IncompatibleChannelError: if the channel has no formula: to invert a matrix per user takes too long.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game, losses="label")
        if type(game.channel).unbiased_losses is Channel.unbiased_losses:
            raise IncompatibleChannelError(
                f"{game.channel!r} has no formula for unbiased losses of labels; 'randomized-response', "
                f"'subset-selection' and 'one-bit' have one, and 'centred-exp3' reads every channel"
            )
