"""Base classes of learners that read only the likelihoods of messages."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ldp_agents.base import MixtureLearner
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.engine.posterior import evidence

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
        self.learn(relative_likelihoods(self.log_likelihoods(message, candidates)))

    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        likelihoods = relative_likelihoods(self.log_likelihoods(messages, candidates))
        weights = np.empty(likelihoods.shape)
        for t in range(likelihoods.shape[1]):
            weights[:, t] = self.weights
            self.learn(likelihoods[:, t])
        return weights


class LinearWeights(LikelihoodLearner):
    """A learner whose state is the weights themselves, at first equal."""

    @property
    def weights(self) -> FloatArray:
        """The weights ``(..., K)`` of the hypotheses, summing to one."""
        return self._state.copy()

    @property
    def _prior(self) -> FloatArray:
        return uniform_distribution(self.game.num_hypotheses)

    def learn(self, likelihoods: FloatArray) -> None:
        """Take the weights that follow, summing to one."""
        weights = np.maximum(self.advance(self._state, likelihoods), _WEIGHT_FLOOR)
        weights /= np.add.reduce(weights, axis=-1, keepdims=True)
        self._state = weights

    @abstractmethod
    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """The weights ``(..., K)`` after messages of these likelihoods, up to a factor."""


def bayes_rule(log_weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """The log weights ``(..., N)`` after messages of these likelihoods, the largest of them 0."""
    after = log_weights + log_evidence(likelihoods)
    return after - after.max(axis=-1, keepdims=True)


def log_evidence(likelihoods: FloatArray) -> FloatArray:
    """The log of likelihoods, finite also where a message is ruled out."""
    with np.errstate(divide="ignore"):
        return evidence(np.log(likelihoods))


def relative_likelihoods(log_likelihoods: FloatArray) -> FloatArray:
    """Likelihoods ``(..., K)``, the largest 1; all 1 for a message that every hypothesis rules out."""
    relative = evidence(log_likelihoods)
    return np.exp(relative - np.maximum.reduce(relative, axis=-1, keepdims=True))
