"""Algorithm 1: the weighted majority algorithm on privatized log-likelihoods."""

from __future__ import annotations

import math

from ldp_agents.base import LiteralLearner
from ldp_gym import Game
from ldp_gym.core import validation


class WMA(LiteralLearner):
    """The paper's weighted majority algorithm (Algorithm 1), to the letter but for one slip in its box.

    The box prints the rate ``sqrt(2 K log K / T)``; Lemma 4 and its proof need
    ``sqrt(2 log K / T)``, and with the box's rate the lemma's bound is exceeded.

    Args:
        game: the public rules.
        rate: ``"lemma"``, or ``"box"`` for the rate that the box prints.
    """

    def __init__(self, game: Game, rate: str = "lemma") -> None:
        rate = validation.choice("rate", rate, ("lemma", "box"))
        super().__init__(game)
        factor = game.num_hypotheses if rate == "box" else 1
        self.rate = math.sqrt(2.0 * factor * math.log(game.num_hypotheses) / game.horizon)
