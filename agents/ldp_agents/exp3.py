"""Algorithm 2: EXP3 on one privatized log-likelihood per round."""

from __future__ import annotations

import math

from ldp_agents.base import LiteralLearner
from ldp_gym import Game


class EXP3(LiteralLearner):
    """The paper's modified EXP3 (Algorithm 2), to the letter.

    Its rate is ``eta = sqrt(2 K log K / T)``.

    The offset c' makes every loss that its own channel, ``laplace-single``, reveals close to 1/2 whatever the
    label, so that *which* coordinate was revealed drowns the signal. On channels without an offset, such as
    ``one-bit``, it learns.

    Args:
        game: the public rules.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        num_hypotheses = game.num_hypotheses
        self.rate = math.sqrt(2.0 * num_hypotheses * math.log(num_hypotheses) / game.horizon)
