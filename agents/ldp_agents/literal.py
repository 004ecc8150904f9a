"""The paper's learners, Algorithm 1 (WMA) and Algorithm 2 (EXP3), and one that never learns."""

from __future__ import annotations

import math

import numpy as np

from ldp_agents.base import ExponentialWeights, SmoothedLearner
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import IncompatibleChannelError


class LiteralLearner(SmoothedLearner):
    """Base of the paper's learners: the message, noisy log-likelihoods, is the loss as it is.

    Raises:
        IncompatibleChannelError: if its messages are not noisy log-likelihoods.
    """

    track = "uninformed"

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        if not game.channel.reveals_losses:
            raise IncompatibleChannelError(
                f"{type(self).__name__} reads a noisy log-likelihood of each hypothesis, which is "
                f"not what {game.channel!r} sends; 'centred-exp3' and 'bayes' read every channel"
            )

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Losses of the hypotheses: the message itself."""
        return messages


class WMA(LiteralLearner):
    """The paper's weighted majority algorithm (Algorithm 1), but for one misprint in its box.

    The box prints the rate ``sqrt(2 K log K / T)``; Lemma 4 and its proof need
    ``sqrt(2 log K / T)``, and with the box's rate the lemma's bound is exceeded.

    Args:
        game: the public rules.
        rate: ``"lemma"``, or ``"box"`` for the rate that the box prints.
    """

    def __init__(self, game: Game, rate: str = "lemma") -> None:
        rate = validation.choice("rate", rate, ("lemma", "box"))
        super().__init__(game)
        num_hypotheses = game.num_hypotheses
        factor = 1
        if rate == "box":
            factor = num_hypotheses
        self.rate = math.sqrt(2.0 * factor * math.log(num_hypotheses) / game.horizon)


class EXP3(LiteralLearner):
    """The paper's modified EXP3 (Algorithm 2), to the letter.

    Its rate is ``eta = sqrt(2 K log K / T)``.

    The offset c' makes every loss that its own channel, ``laplace-single``, reveals close to 1/2
    whatever the label, so that *which* coordinate was revealed drowns the signal. On channels
    without an offset, such as ``one-bit``, it learns.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        num_hypotheses = game.num_hypotheses
        self.rate = math.sqrt(2.0 * num_hypotheses * math.log(num_hypotheses) / game.horizon)


class Uniform(ExponentialWeights):
    """Never learns: the uniform mixture of the candidates."""

    rate = 0.0
    track = "uninformed"

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Zeros ``(..., K)``."""
        num_leading_axes = messages.ndim - len(self.game.channel.message_shape)
        leading_shape = messages.shape[:num_leading_axes]
        return np.zeros((*leading_shape, self.game.num_hypotheses))
