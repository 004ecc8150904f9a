"""The exact posterior on a channel's own likelihood."""

from __future__ import annotations

from ldp_agents.base import ExponentialWeights
from ldp_gym.learners import play_stepwise
from ldp_gym.numerics.arrays import FloatArray, Messages, softmax


class Bayes(ExponentialWeights):
    """Predicts the posterior mean under a uniform prior, from the exact likelihood of every message.

    It reads any channel. Under a uniform truth, and contexts that depend on it only through the public
    transcript, no learner on the same channel has a smaller expected risk.
    """

    rate = 1.0

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """``-log sum_y f_k[y] q(z | y)``; an adaptive channel acts on the posterior that is ours too."""
        public = softmax(-self._total) if self.game.channel.adaptive else None
        return -self.game.channel.log_likelihood(messages, candidates, public)

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds; on an adaptive channel without the log-likelihoods, in steps."""
        if log_likelihoods is None:
            if self.game.channel.adaptive:
                return play_stepwise(self, candidates, messages)
            log_likelihoods = self.game.channel.log_likelihood(messages, candidates)
        return self._play(candidates, -log_likelihoods)
