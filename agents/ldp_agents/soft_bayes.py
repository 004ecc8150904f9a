"""Soft-Bayes: competes with the best mixture of the hypotheses."""

from __future__ import annotations

import math

from ldp_agents.likelihood import LinearWeights
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import bayes_rule


class SoftBayes(LinearWeights):
    """Bayes for a truth that is a mixture: small steps towards what Bayes' rule says.

    The weights become ``(1 - rate) w_k + rate w_k L_k / sum_j w_j L_j``.

    Bayes' rule finds a hypothesis, small steps towards it the best *mixture*: the log-loss of messages,
    ``-log sum_k w_k L_k``, is convex in the weights. Above the best mixture it pays at most
    :func:`ldp_gym.theory.soft_bayes_bound`. For a truth in the convex hull of the class the best mixture is
    the truth; about one outside it nothing is promised.

    Args:
        game: the public rules.
        rate: in (0, 1); ``sqrt(log K / T)``, at most 1/2, when not given. The bound is least at
            ``sqrt(log K / T) / (e^eps - 1)``.

    References:
        Orseau, L., Lattimore, T. and Legg, S. (2017). Soft-Bayes: prod for mixtures of experts with
        log-loss. ALT.
    """

    def __init__(self, game: Game, rate: float | None = None) -> None:
        usual = min(0.5, math.sqrt(math.log(require_game(game).num_hypotheses) / game.horizon))
        self.rate = usual if rate is None else validation.fraction("rate", rate)
        super().__init__(game)

    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """The step; the weights go on summing to one."""
        return (1.0 - self.rate) * weights + self.rate * bayes_rule(weights, likelihoods)
