"""What learners share that keep weights of the hypotheses and learn from likelihoods alone."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ldp_agents.base import TranscriptLearner, overrides
from ldp_gym import Game
from ldp_gym.learners import play_stepwise
from ldp_gym.numerics.arrays import BoolArray, FloatArray, Messages, mixture, uniform_distribution
from ldp_gym.posterior import evidence

_LEAST_WEIGHT = 1e-300
"""What a hypothesis keeps, so that a later message can bring it back."""


class LikelihoodLearner(TranscriptLearner):
    """Predicts a weighted mixture of the candidates, and learns from the likelihood of every message.

    The law of a message is linear in the law of the label: a mixture of hypotheses with weights w gives a
    message the likelihood ``sum_k w_k L_k``. So a learner of this kind needs nothing but the ``L_k``, and
    reads every channel. It defines :attr:`weights`, :meth:`learn` and :meth:`begin`.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.reset()

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """The weights ``(..., K)`` of the hypotheses, summing to one."""

    @abstractmethod
    def begin(self, batch_shape: tuple[int, ...]) -> None:
        """Take the weights that stand before the first message."""

    @abstractmethod
    def begin_again(self, mask: BoolArray) -> None:
        """Take the weights that stand before the first message in the games of ``mask``."""

    @abstractmethod
    def learn(self, likelihoods: FloatArray) -> None:
        """Learn from the likelihoods ``(..., K)`` of a round's messages, the largest of them 1."""

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""
        super().reset(batch_shape)
        self.begin(batch_shape)

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in the games of ``mask``."""
        super().restart(mask)
        self.begin_again(mask)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The weighted mixture of the candidates."""
        return mixture(self.weights, self._check(candidates))

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages' likelihoods."""
        self.learn(
            relative_likelihoods(
                self._read(self.game.channel.check_messages(message), self._check(candidates))
            )
        )

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``."""
        own_steps = overrides(self, LikelihoodLearner, "predict", "update")
        if own_steps or (self._public is not None and log_likelihoods is None):
            return play_stepwise(self, candidates, messages)
        if log_likelihoods is None:
            log_likelihoods = self.game.channel.log_likelihood(messages, candidates)
        if self._public is not None:
            self._public.along(log_likelihoods)
        return mixture(self._learn_along(log_likelihoods), candidates)

    def _learn_along(self, log_likelihoods: FloatArray) -> FloatArray:
        """The weights before each of n rounds with these log-likelihoods, both ``(B, n, K)``."""
        likelihoods = relative_likelihoods(log_likelihoods)
        weights = np.empty(likelihoods.shape)
        for t in range(log_likelihoods.shape[1]):
            weights[:, t] = self.weights
            self.learn(likelihoods[:, t])
        return weights


class LinearWeights(LikelihoodLearner):
    """A learner whose state is the weights themselves, at first equal."""

    @property
    def weights(self) -> FloatArray:
        """The weights ``(..., K)`` of the hypotheses, summing to one."""
        return self._weights.copy()

    def begin(self, batch_shape: tuple[int, ...]) -> None:
        """Begin with equal weights."""
        self._weights = uniform_distribution(*batch_shape, self.game.num_hypotheses)

    def begin_again(self, mask: BoolArray) -> None:
        """Begin with equal weights in the games of ``mask``."""
        self._weights[mask] = 1.0 / self.game.num_hypotheses

    def learn(self, likelihoods: FloatArray) -> None:
        """Take the weights that follow, summing to one."""
        weights = np.maximum(self.advance(self._weights, likelihoods), _LEAST_WEIGHT)
        weights /= np.add.reduce(weights, axis=-1, keepdims=True)
        self._weights = weights

    @abstractmethod
    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """The weights ``(..., K)`` after messages of these likelihoods, up to a factor."""


def log_evidence(likelihoods: FloatArray) -> FloatArray:
    """The log of likelihoods, finite also where a message is ruled out."""
    with np.errstate(divide="ignore"):
        return evidence(np.log(likelihoods))


def relative_likelihoods(log_likelihoods: FloatArray) -> FloatArray:
    """Likelihoods ``(..., K)``, the largest 1; all 1 for a message that every hypothesis rules out."""
    relative = evidence(log_likelihoods)
    return np.exp(relative - np.maximum.reduce(relative, axis=-1, keepdims=True))
