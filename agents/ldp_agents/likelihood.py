"""Base classes of learners that read only the likelihoods of messages."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ldp_agents.base import MixtureLearner
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.engine.posterior import finite, log_ratios

_WEIGHT_FLOOR = 1e-300
"""Least weight of a hypothesis, so that a later message can bring it back."""


class LikelihoodLearner(MixtureLearner):
    """Learns only from the likelihoods of the messages.

    The law of a message is linear in the law of the label: a mixture of hypotheses with weights w gives a
    message the likelihood ``sum_k w_k L_k``. So a learner of this kind needs nothing but the ``L_k``, and
    reads every channel.
    """

    @abstractmethod
    def learn(self, likelihoods: FloatArray) -> None:
        """Learn from the likelihoods ``(..., K)`` of a round's messages, the largest of them 1."""

    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        self.learn(np.exp(log_ratios(self.log_likelihoods(message, candidates))))

    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        likelihoods = np.exp(log_ratios(self.log_likelihoods(messages, candidates)))
        weights = np.empty(likelihoods.shape)
        for t in range(likelihoods.shape[1]):
            weights[:, t] = self.weights
            self.learn(likelihoods[:, t])
        return weights


class LinearWeights(LikelihoodLearner):
    """A learner whose state is the weights themselves, at first equal."""

    @property
    def weights(self) -> FloatArray:
        return self._state.copy()

    @property
    def _prior(self) -> FloatArray:
        return uniform_distribution(self.game.num_hypotheses)

    def learn(self, likelihoods: FloatArray) -> None:
        """Apply :meth:`advance`, floor, normalise."""
        weights = np.maximum(self.advance(self._state, likelihoods), _WEIGHT_FLOOR)
        weights /= np.add.reduce(weights, axis=-1, keepdims=True)
        self._state = weights

    @abstractmethod
    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """The weights ``(..., K)`` after messages of these likelihoods, up to a factor."""


def finite_logs(likelihoods: FloatArray) -> FloatArray:
    """Logs of likelihoods, finite also where a message is ruled out."""
    with np.errstate(divide="ignore"):
        return finite(np.log(likelihoods))
