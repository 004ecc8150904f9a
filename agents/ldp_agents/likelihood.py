"""Learners that read only the likelihoods of messages, also for truths outside the class."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from ldp_agents.base import MixtureLearner
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, softmax, uniform_distribution
from ldp_gym.engine.game import require_game
from ldp_gym.engine.posterior import bayes_rule, finite, log_ratios, spread_evenly

_WEIGHT_FLOOR = 1e-300
"""Least weight of a hypothesis, so that a later message can bring it back."""

_PAIR_SHARES = tuple(n / 6 for n in range(1, 6))
"""Weights of a pair's first hypothesis in its five mixtures."""

_MOST_HYPOTHESES = 128
"""Largest number of hypotheses that ``pairs`` takes."""

_MOST_WITH_PAIRS = 32
"""Largest number of hypotheses for which ``robust`` expects mixtures of two."""

MEMBER = 0.5
"""Prior probability of ``robust`` that the truth is a member."""

PAIR = 0.08
"""Prior probability of ``robust`` that the truth is a mixture of two members."""

SWITCHING = 0.05
"""Prior probability of ``robust`` that the truth is a member that switches."""

MIXTURE = 0.37
"""Prior probability of ``robust`` that the truth is a mixture of many members."""

PRIOR = (MEMBER + PAIR, SWITCHING, MIXTURE)
"""Prior weights of the three experts of ``robust``."""


class LikelihoodLearner(MixtureLearner):
    """Learner that reads only the likelihoods of the messages.

    The law of a message is linear in the law of the label: a mixture of hypotheses with weights w
    gives a message the likelihood ``sum_k w_k L_k``. So a learner of this kind needs nothing but
    the ``L_k``, and reads every channel.
    """

    @abstractmethod
    def learn(self, likelihoods: FloatArray) -> None:
        """Learn from the likelihoods ``(..., K)`` of a round's messages, the largest of them 1."""

    def relative_likelihoods(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Likelihoods ``(..., K)`` of the messages, divided by the largest."""
        log_likelihoods = self.log_likelihoods(messages, candidates)
        return np.exp(log_ratios(log_likelihoods))

    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the likelihoods of a round's messages."""
        self.learn(self.relative_likelihoods(message, candidates))

    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        """Learn from n rounds ``(B, n, ...)``; return the weights ``(B, n, K)`` before each."""
        likelihoods = self.relative_likelihoods(messages, candidates)
        weights = np.empty(likelihoods.shape)
        num_rounds = likelihoods.shape[1]
        for t in range(num_rounds):
            weights[:, t] = self.weights
            self.learn(likelihoods[:, t])
        return weights


class LinearWeights(LikelihoodLearner):
    """Learner whose state is the weights themselves, at first equal."""

    @property
    def weights(self) -> FloatArray:
        return self._state.copy()

    @property
    def _prior(self) -> FloatArray:
        return uniform_distribution(self.game.num_hypotheses)

    def learn(self, likelihoods: FloatArray) -> None:
        """Advance the weights by a round, keep them above a floor, and normalise them."""
        advanced = self.advance(self._state, likelihoods)
        weights = np.maximum(advanced, _WEIGHT_FLOOR)
        self._state = weights / np.add.reduce(weights, axis=-1, keepdims=True)

    @abstractmethod
    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """The weights ``(..., K)`` after messages of these likelihoods, up to a factor."""


def finite_logs(likelihoods: FloatArray) -> FloatArray:
    """Logarithms of likelihoods, -1e6 where a message is ruled out.

    >>> finite_logs(np.array([1.0, 0.0])).tolist()
    [0.0, -1000000.0]
    """
    with np.errstate(divide="ignore"):  # the logarithm of 0
        logs = np.log(likelihoods)
    return finite(logs)


class FixedShare(LinearWeights):
    """Bayes for a truth that may switch: every round spreads a share of the weight evenly.

    This is the exact posterior for a truth that in every round, with that probability, is drawn
    again from the class. In the log-loss of messages it pays at most
    :func:`ldp_gym.theory.fixed_share_bound` above the best sequence of hypotheses.

    Args:
        game: the public rules.
        share: in (0, 1); ``1 / T``, one switch per episode, when not given.

    References:
        Herbster, M. and Warmuth, M. K. (1998). Tracking the best expert. Machine Learning 32.
    """

    def __init__(self, game: Game, share: float | None = None) -> None:
        if share is None:
            self.share = 1.0 / require_game(game).horizon
        else:
            self.share = validation.fraction("share", share)
        super().__init__(game)

    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """New weights ``(1 - share) w_k L_k / sum_j w_j L_j + share / K``."""
        posterior = bayes_rule(weights, likelihoods)
        return spread_evenly(posterior, self.share)


class SoftBayes(LinearWeights):
    """Bayes for a truth that is a mixture: small steps towards the posterior.

    The weights become ``(1 - rate) w_k + rate w_k L_k / sum_j w_j L_j``.

    Bayes' rule finds a hypothesis, small steps towards it the best *mixture*: the log-loss of
    messages, ``-log sum_k w_k L_k``, is convex in the weights. Above the best mixture it pays at
    most :func:`ldp_gym.theory.soft_bayes_bound`. For a truth in the convex hull of the class the
    best mixture is the truth; about one outside it nothing is promised.

    Args:
        game: the public rules.
        rate: in (0, 1); ``sqrt(log K / T)``, at most 1/2, when not given. The bound is least at
            ``sqrt(log K / T) / (e^eps - 1)``.

    References:
        Orseau, L., Lattimore, T. and Legg, S. (2017). Soft-Bayes: prod for mixtures of experts with
        log-loss. ALT.
    """

    def __init__(self, game: Game, rate: float | None = None) -> None:
        require_game(game)
        if rate is None:
            self.rate = min(0.5, math.sqrt(math.log(game.num_hypotheses) / game.horizon))
        else:
            self.rate = validation.fraction("rate", rate)
        super().__init__(game)

    def advance(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """One small step towards the posterior; the weights still sum to one."""
        posterior = bayes_rule(weights, likelihoods)
        return (1.0 - self.rate) * weights + self.rate * posterior


class Pairs(LikelihoodLearner):
    """Bayes for a truth that is a member, or a mixture of two: five mixtures of every pair.

    Memory and time per round grow with ``K^3``.

    Args:
        game: the public rules, of at most 128 hypotheses.
        members: the prior probability, in (0, 1], that the truth is a member. At 1 there are no
            pairs.
    """

    def __init__(self, game: Game, members: float = 0.5) -> None:
        members = validation.positive("members", members, most=1.0)
        num_hypotheses = require_game(game).num_hypotheses

        pairs = np.empty((0, num_hypotheses))
        if members < 1.0:
            pairs = mixtures_of_two(num_hypotheses)
        self._mixtures = np.concatenate([np.eye(num_hypotheses), pairs])  # (N, K)

        log_prior = np.empty(len(self._mixtures))
        log_prior[:num_hypotheses] = np.log(members / num_hypotheses)
        if len(pairs):
            log_prior[num_hypotheses:] = np.log((1.0 - members) / len(pairs))
        self._log_prior = log_prior
        super().__init__(game)

    @property
    def weights(self) -> FloatArray:
        """The mean of the mixtures under their posterior, ``(..., K)``."""
        return softmax(self._state) @ self._mixtures

    @property
    def _prior(self) -> FloatArray:
        return self._log_prior

    def learn(self, likelihoods: FloatArray) -> None:
        """Apply Bayes' rule to the mixtures; likelihoods ``(..., K)`` mix as the hypotheses do."""
        likelihoods_of_mixtures = likelihoods @ self._mixtures.T
        self._state = self._state + log_ratios(finite_logs(likelihoods_of_mixtures))


def mixtures_of_two(num_hypotheses: int) -> FloatArray:
    """Weights ``(N, K)`` of five mixtures of every pair of K hypotheses, ``N = 5 K (K - 1) / 2``."""
    if num_hypotheses > _MOST_HYPOTHESES:
        raise ValueError(
            f"'pairs' keeps {len(_PAIR_SHARES)} mixtures of every pair of hypotheses, and takes at "
            f"most {_MOST_HYPOTHESES} hypotheses, got {num_hypotheses}; 'robust' and 'soft-bayes' "
            f"take more"
        )
    first, second = np.triu_indices(num_hypotheses, 1)
    num_pairs = len(first)
    pairs = np.arange(num_pairs)
    shares = np.array(_PAIR_SHARES)

    mixtures = np.zeros((num_pairs, len(shares), num_hypotheses))
    mixtures[pairs, :, first] = shares
    mixtures[pairs, :, second] = 1.0 - shares
    return mixtures.reshape(-1, num_hypotheses)


class Robust(LikelihoodLearner):
    """Bayes' rule over three experts, for three kinds of truths.

    - :class:`Pairs` expects a member, or a mixture of two;
    - :class:`FixedShare` expects members that switch;
    - :class:`SoftBayes` expects a mixture of many.

    In the log-loss of messages it pays at most ``log(1 / prior)`` more than any of its experts.

    Args:
        game: the public rules. With more than 32 hypotheses the first expert expects only members.
    """

    def __init__(self, game: Game) -> None:
        members = 1.0
        if require_game(game).num_hypotheses <= _MOST_WITH_PAIRS:
            members = MEMBER / (MEMBER + PAIR)
        self._experts = (Pairs(game, members=members), FixedShare(game), SoftBayes(game))
        super().__init__(game)

    @property
    def weights(self) -> FloatArray:
        """The experts' weights of the hypotheses ``(..., K)``, averaged by the trust in the experts."""
        return np.einsum("...e,...ek->...k", self.trust, self._expert_weights())

    @property
    def trust(self) -> FloatArray:
        """Weights ``(..., 3)`` of the experts, summing to one."""
        return softmax(self._state)

    @property
    def _prior(self) -> FloatArray:
        return np.log(PRIOR)

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games, for all experts."""
        super().reset(batch_shape)
        for expert in self._experts:
            expert.reset(batch_shape)

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects, for all experts."""
        super().restart(mask)
        for expert in self._experts:
            expert.restart(mask)

    def learn(self, likelihoods: FloatArray) -> None:
        """Apply Bayes' rule to the experts, then let each of them learn from likelihoods ``(..., K)``."""
        likelihoods_by_expert = np.einsum("...ek,...k->...e", self._expert_weights(), likelihoods)
        self._state = self._state + log_ratios(finite_logs(likelihoods_by_expert))
        for expert in self._experts:
            expert.learn(likelihoods)

    def _expert_weights(self) -> FloatArray:
        """Weights ``(..., 3, K)`` that each expert gives the hypotheses."""
        return np.stack([expert.weights for expert in self._experts], axis=-2)
