"""One learner for truths of any kind: Bayes over learners that each expect one kind."""

from __future__ import annotations

import numpy as np

from ldp_agents.fixed_share import FixedShare
from ldp_agents.likelihood import LikelihoodLearner, finite_logs
from ldp_agents.pairs import MOST_BESIDE_OTHERS, Pairs
from ldp_agents.soft_bayes import SoftBayes
from ldp_gym import Game
from ldp_gym.core.arrays import BoolArray, FloatArray, softmax
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import log_ratios

MEMBER, PAIR, SWITCHING, MIXTURE = 0.5, 0.08, 0.05, 0.37
"""Prior probabilities of the kinds of truth."""

PRIOR = (MEMBER + PAIR, SWITCHING, MIXTURE)
"""Prior weights of the three experts."""


class Robust(LikelihoodLearner):
    """For a truth of any kind: Bayes over three experts, weighed by how well each predicted the messages.

    - :class:`~ldp_agents.pairs.Pairs` expects a member, or a mixture of two;
    - :class:`~ldp_agents.fixed_share.FixedShare` expects members that switch;
    - :class:`~ldp_agents.soft_bayes.SoftBayes` expects a mixture of many.

    In the log-loss of messages it pays at most ``log(1 / prior)`` more than any of its experts.

    Args:
        game: the public rules. With more than 32 hypotheses the first expert expects only members.
    """

    def __init__(self, game: Game) -> None:
        with_pairs = require_game(game).num_hypotheses <= MOST_BESIDE_OTHERS
        members = MEMBER / (MEMBER + PAIR) if with_pairs else 1.0
        self._experts = (Pairs(game, members=members), FixedShare(game), SoftBayes(game))
        super().__init__(game)

    @property
    def weights(self) -> FloatArray:
        return np.einsum("...e,...ek->...k", self.trust, self._expert_weights())

    @property
    def trust(self) -> FloatArray:
        """Weights ``(..., 3)`` of the experts, summing to one."""
        return softmax(self._state)

    @property
    def _prior(self) -> FloatArray:
        return np.log(PRIOR)

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        super().reset(batch_shape)
        for expert in self._experts:
            expert.reset(batch_shape)

    def restart(self, mask: BoolArray) -> None:
        super().restart(mask)
        for expert in self._experts:
            expert.restart(mask)

    def learn(self, likelihoods: FloatArray) -> None:
        """Bayes' rule over the experts, who learn in their own ways."""
        predicted = np.einsum("...ek,...k->...e", self._expert_weights(), likelihoods)
        self._state = self._state + log_ratios(finite_logs(predicted))
        for expert in self._experts:
            expert.learn(likelihoods)

    def _expert_weights(self) -> FloatArray:
        return np.stack([expert.weights for expert in self._experts], axis=-2)
