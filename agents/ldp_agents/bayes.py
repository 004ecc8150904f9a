"""The exact posterior mean, from a channel's likelihood."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_agents.base import ExponentialWeights
from ldp_agents.likelihood import finite_logs
from ldp_gym import Game
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.engine.game import as_game
from ldp_gym.engine.posterior import finite


class Bayes(ExponentialWeights):
    """The exact posterior mean: the best there is where the truth is a member of the class.

    It reads any channel. Under a truth drawn from its prior, and contexts that depend on it only through the
    public transcript, no learner on the same channel has a smaller expected risk. For a truth outside the
    class it can be worse than never learning; a rate below 1 trusts every message less, and helps then.

    Args:
        game: the public rules.
        rate: the exponent of the likelihoods, positive: 1, Bayes' rule, when not given; less is tempered.
        prior: K weights that sum to one; uniform when not given.

    References:
        Grünwald, P. (2012). The safe Bayesian: learning the learning rate via the mixability gap. ALT.
    """

    rate = 1.0

    def __init__(self, game: Game, rate: float | None = None, prior: npt.ArrayLike | None = None) -> None:
        as_game(game)
        if rate is not None:
            self.rate = validation.positive("rate", rate)
        self._start = np.zeros(game.num_hypotheses)
        if prior is not None:
            weights = game_arrays.row("prior", prior, game.num_hypotheses, "hypothesis")
            self._start = -finite_logs(weights) / self.rate
        super().__init__(game)

    @property
    def _prior(self) -> FloatArray:
        """Initial losses: those that turn equal weights into the prior."""
        return self._start

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """``-log sum_y f_k[y] q(z | y)``."""
        return -finite(self.log_likelihoods(messages, candidates))
