"""Bayes for a truth that may switch from one hypothesis to another."""

from __future__ import annotations

from ldp_agents.likelihood import LinearWeights
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import bayes_rule, spread_evenly


class FixedShare(LinearWeights):
    """Bayes for a truth that may switch: every round spreads a share of the weight evenly.

    This is the exact posterior for a truth that in every round, with that probability, is drawn again from
    the class. In the log-loss of messages it pays at most :func:`ldp_gym.theory.fixed_share_bound` above the
    best sequence of hypotheses.

    Args:
        game: the public rules.
        share: in (0, 1); ``1 / T``, one switch per episode, when not given.

    References:
        Herbster, M. and Warmuth, M. K. (1998). Tracking the best expert. Machine Learning 32.
    """

    def __init__(self, game: Game, share: float | None = None) -> None:
        usual = 1.0 / require_game(game).horizon
        self.share = usual if share is None else validation.fraction("share", share)
        super().__init__(game)

    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """``(1 - share) w_k L_k / sum_j w_j L_j + share / K``."""
        return spread_evenly(bayes_rule(weights, likelihoods), self.share)
