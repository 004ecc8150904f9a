"""The exact posterior on a channel's own likelihood."""

from __future__ import annotations

from ldp_agents.base import ExponentialWeights
from ldp_gym.numerics.arrays import FloatArray, Messages


class Bayes(ExponentialWeights):
    """Predicts the posterior mean under a uniform prior, from the exact likelihood of every message.

    It reads any channel. Under a uniform truth, and contexts that depend on it only through the public
    transcript, no learner on the same channel has a smaller expected risk.
    """

    rate = 1.0

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """``-log sum_y f_k[y] q(z | y)``."""
        return -self.game.channel.log_likelihood(messages, candidates, self.posterior)

    def _losses(
        self, messages: Messages, candidates: FloatArray, log_likelihoods: FloatArray | None
    ) -> FloatArray:
        return self.losses(messages, candidates) if log_likelihoods is None else -log_likelihoods
