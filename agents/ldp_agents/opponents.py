"""Opponents for both seats of ``ldp_gym.parallel_env``: rules of LDPNature-v0 and of LDPAsk-v0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_agents.adversaries import CostliestToLearn, PoolPolicy, PoolRows
from ldp_agents.designers import QuestionPolicy
from ldp_gym.channels.bit import label_sides
from ldp_gym.core.arrays import FloatArray, expectations
from ldp_gym.core.divergences import mixture_loss, negentropy
from ldp_gym.engine.game import game_of
from ldp_gym.envs.ask import greedy_contrast


class PairState(NamedTuple):
    """Public facts of a round of Nature against the designer, in B games."""

    weights: FloatArray  # posterior, (B, K)
    progress: FloatArray  # t / T, (B,)
    candidates: FloatArray  # of the contexts of the pool, (B, P, K, M)


def read_pair_state(
    observations: Mapping[str, npt.NDArray[Any]], num_hypotheses: int, pool_size: int
) -> PairState:
    """Read the round of one game from the designer's observation."""
    numbers = np.asarray(observations["designer"], dtype=np.float64)
    first = 2 * num_hypotheses + 1
    tables = numbers[first:].reshape(1, pool_size, num_hypotheses, -1)
    return PairState(
        weights=numbers[None, :num_hypotheses],
        progress=numbers[None, first - 1],
        candidates=tables / tables.sum(axis=-1, keepdims=True),
    )


def answer_information(
    weights: FloatArray, candidates: FloatArray, contrasts: FloatArray, epsilon: float
) -> FloatArray:
    """Information about the truth, in nats, of the private answers to questions.

    Args:
        weights: posteriors ``(..., K)``.
        candidates: ``(..., K, M)``.
        contrasts: the questions, ``(..., K)``.
        epsilon: privacy of an answer.

    Example:
        >>> weights, contrast = np.array([0.5, 0.5]), np.array([1.0, -1.0])
        >>> float(answer_information(weights, np.eye(2), contrast, epsilon=1.0).round(4))
        0.1109
    """
    flip = 1.0 / (1.0 + np.exp(epsilon))
    yes = flip + (1.0 - 2.0 * flip) * expectations(candidates, label_sides(contrasts, candidates))
    answers = np.stack([yes, 1.0 - yes], axis=-1)  # (..., K, 2)
    return mixture_loss(weights, answers, negentropy(answers))


def pool_rows(state: PairState, rule: PoolPolicy, epsilon: float) -> PoolRows:
    """Observations of LDPNature-v0 in these games.

    The information at a context is that of the greedy question; it is worked out only for rules of
    :class:`~ldp_agents.adversaries.CostliestToLearn`, which read it, and is 0 for others.
    """
    weights = np.repeat(state.weights[:, None], state.candidates.shape[1], axis=1)
    losses = mixture_loss(weights, state.candidates, negentropy(state.candidates))
    information = np.zeros(losses.shape)
    if isinstance(rule, CostliestToLearn):
        contrasts = greedy_contrast(weights, state.candidates)
        information = answer_information(weights, state.candidates, contrasts, epsilon)
    return PoolRows(state.weights, state.progress, np.maximum(losses, 0.0), information)


class NatureOpponent:
    """Nature of ``ldp_gym.parallel_env`` that plays a rule of LDPNature-v0.

    Args:
        env: the environment.
        rule: a rule made for it, such as ``LargestLoss(env)``.

    Example:
        >>> import ldp_gym
        >>> from ldp_agents.adversaries import LargestLoss
        >>> env = ldp_gym.parallel_env(horizon=5)
        >>> observations, _ = env.reset(seed=0)
        >>> nature = NatureOpponent(env, LargestLoss(env))
        >>> int(nature(observations)) == int(observations["nature"][-8:].argmax())
        True
    """

    def __init__(self, env: Any, rule: PoolPolicy) -> None:
        self._game = game_of(env)
        self._pool_size = len(env.pool)
        self._rule = rule

    def __call__(self, observations: Mapping[str, npt.NDArray[Any]]) -> int:
        """Index of the context, for the observations of a round by agent."""
        state = read_pair_state(observations, self._game.num_hypotheses, self._pool_size)
        rows = pool_rows(state, self._rule, self._game.channel.epsilon)
        return int(self._rule.pick(rows)[0])


class DesignerOpponent:
    """Designer of ``ldp_gym.parallel_env`` that plays a rule of LDPAsk-v0 at each context.

    Args:
        env: the environment.
        rule: a rule made for it, such as ``GreedyQuestions(env)``.

    Example:
        >>> import ldp_gym
        >>> from ldp_agents.designers import GreedyQuestions
        >>> env = ldp_gym.parallel_env(horizon=5)
        >>> observations, _ = env.reset(seed=0)
        >>> DesignerOpponent(env, GreedyQuestions(env))(observations).shape
        (8, 8)
    """

    def __init__(self, env: Any, rule: QuestionPolicy) -> None:
        self._game = game_of(env)
        self._pool_size = len(env.pool)
        self._rule = rule

    def __call__(self, observations: Mapping[str, npt.NDArray[Any]]) -> FloatArray:
        """Contrasts ``(P, K)``, for the observations of a round by agent."""
        state = read_pair_state(observations, self._game.num_hypotheses, self._pool_size)
        weights = np.repeat(state.weights, self._pool_size, axis=0)
        contrasts = self._rule.ask(weights, state.candidates[0])
        # Only the signs of the sums count.
        largest = np.abs(contrasts).max(axis=1, keepdims=True)
        return contrasts / np.maximum(largest, 1.0)
