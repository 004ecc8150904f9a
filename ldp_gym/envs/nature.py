"""LDPNature-v0: the agent picks the contexts, from a pool, and Bayes learns from private messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.engine.playback import Playback
from ldp_gym.engine.referee import Info, Referee
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.rules import (
    CHANNEL_RULES,
    CLASS_RULES,
    TRUTH_RULES,
    Rules,
    rule,
    takes,
)
from ldp_gym.engine.scenario import EpisodeStart, Scenario, first_generator
from ldp_gym.engine.seats import Moves, Seat
from ldp_gym.envs.ask import LEAST_LOG_WEIGHT, observe_posterior
from ldp_gym.envs.features import FloatRow
from ldp_gym.envs.named_games import NATURE_FIXED_REFERENCES, NATURE_REFERENCES, ScoreScale
from ldp_gym.envs.pool import Choices, Pool, PoolRules
from ldp_gym.envs.references import kept_by_rules
from ldp_gym.envs.single import SingleEnv
from ldp_gym.envs.vector import LockStepEnv, SeveralGames
from ldp_gym.natures.adversary import first_of_best, learning_costs
from ldp_gym.statistics import unit_of_score
from ldp_gym.theory.information import MessageInformation

LEAST_LOG_VALUE = -20.0
"""Lower bound on the logarithm of an expected loss or information in an observation."""

_MESSAGES_OF_A_CONTEXT = 64
"""Number of messages from which the information of one is estimated, for the size in memory."""

_SCORE_SEED = TEST.stop * 7 // 8
"""Seed of the first episode on which the references of scores are estimated."""

_SCORE_ROUNDS = 2**15
"""Number of rounds that each reference is estimated on: about a second."""

_ROUNDS_OF_A_CLASS = 256
"""Number of rounds that take as long as to draw a class and to work out the messages about it."""

_FEWEST_REFERENCES = 16
"""Least number of episodes behind a score."""

_MOST_REFERENCES = 1024
"""Largest number of episodes behind a score."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NatureArguments(PoolRules):
    """Arguments of LDPNature-v0: the agent is Nature, and the learner is Bayes."""

    env_id = "LDPNature-v0"
    takes = (
        *CLASS_RULES,
        *CHANNEL_RULES,
        "horizon",
        *TRUTH_RULES,
        "redraw_hypotheses",
        "losses",
        "reveal",
    )

    channel: Any = rule(
        "split", 'the channel by which users privatize: a name, ``"module:Object"``, or a Channel.'
    )
    horizon: int = rule(1000, "T, the number of contexts that are picked.")


@dataclass(frozen=True, kw_only=True, eq=False)
class NatureVectorArguments(SeveralGames, NatureArguments):
    """Arguments of LDPNature-v0 for B games."""


def observe_pool(
    weights: FloatArray,
    progress: FloatArray | float,
    losses: FloatArray,
    information: FloatArray,
) -> FloatRow:
    """Rows ``(..., 2 K + 1 + 2 P)`` of what Nature observes.

    Args:
        weights: posteriors ``(..., K)``: the row begins as in :func:`ldp_gym.envs.ask.observe_posterior`.
        progress: t / T.
        losses: expected losses of a round at the contexts of the pool, ``(..., P)``.
        information: expected information of a message there, ``(..., P)``.
    """
    belief = observe_posterior(weights, progress)
    values = np.concatenate([losses, information], axis=-1)
    logs = np.log(np.maximum(values, math.exp(LEAST_LOG_VALUE)))
    return np.concatenate([belief, logs], axis=-1, dtype=np.float32)


class PoolView(Observation):
    """The posterior, t / T, and the logarithms of expected loss and information at each context."""

    def __init__(self, role: ContextPicker) -> None:
        self._role = role
        num_hypotheses = role.playback.scenario.game.num_hypotheses
        ones = np.ones(num_hypotheses)
        values = np.ones(2 * role.pool.size)
        # Neither an expected loss nor an information is above log K.
        largest_log = max(0.0, math.log(math.log(num_hypotheses)))
        low = np.concatenate([0.0 * ones, LEAST_LOG_WEIGHT * ones, [0.0], LEAST_LOG_VALUE * values])
        high = np.concatenate([ones, 0.0 * ones, [1.0], (largest_log + 1e-6) * values])
        self.space = gym.spaces.Box(
            low.astype(np.float32), high.astype(np.float32), dtype=np.float32
        )

    def observe(self, game: int | EllipsisType = ...) -> FloatRow:
        """Return rows of the posterior, t / T, and each context's expected loss and information."""
        playback = self._role.playback
        assert playback.weights is not None, "from Nature's seat the posterior is always kept"
        progress = playback.rounds[:, 0] / playback.scenario.horizon
        losses, information = self._role.pool.losses, self._role.information
        return observe_pool(playback.weights, progress, losses, information)[game]


class ContextPicker(Role):
    """Nature's seat: contexts of the pool, paid by the loss that Bayes expects there."""

    seats = frozenset({Seat.NATURE})

    def __init__(self, playback: Playback, rules: NatureArguments) -> None:
        super().__init__(playback, rules)
        scenario, num_games = playback.scenario, playback.num_games
        self.pool = Pool(scenario, num_games, rules)
        own = num_games if scenario.redraws else 1
        width = self.pool.size * scenario.game.num_hypotheses * _MESSAGES_OF_A_CONTEXT
        validation.fits_memory("num_envs", own, width, "likelihoods")
        self._message_information = MessageInformation(scenario.channel, self.pool.candidates)
        self.information = np.zeros((num_games, self.pool.size))
        self.observation = PoolView(self)
        self._picked = np.zeros(num_games, dtype=np.int64)
        self._risks = np.zeros(num_games)
        self._returns = np.zeros(num_games)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self.pool.begin(games, starts)
        if self.playback.scenario.redraws:
            self._message_information.replace(games, self.pool.candidates[games])
        self._risks[games] = 0.0
        self._returns[games] = 0.0

    def ready(self) -> None:
        """Work out what Bayes expects of each context."""
        weights = self.playback.weights
        assert weights is not None, "Bayes predicts"
        self.pool.update(weights)
        self.information = self._message_information(weights)

    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        return Choices(self.pool.size, batch_shape)

    def moves(self, actions: IntArray) -> Moves:
        self._picked = actions
        return self.pool.pick(actions)

    def rewards(self, losses: FloatArray) -> FloatArray:
        """The expected loss ``J_x(w)`` of the round."""
        self._risks += losses
        rewards = self.pool.losses_at(self._picked)
        self._returns += rewards
        return rewards

    def end_info(self) -> Info:
        """Risks and scores ``(B,)``; no scores unless the adversary beats random contexts."""
        info = {"risk": self._risks.copy()}
        if self._references is not None:
            info["score"] = (self._returns - self._references.zero) / self._references.unit
        return info

    @cached_property
    def _references(self) -> ScoreScale | None:
        return estimate_nature_references(self.playback.scenario, self.rules)

    def adversary(self) -> IntArray:
        """The contexts ``(B,)`` that :class:`~ldp_gym.natures.adversary.Adversary` picks."""
        weights = self.playback.weights
        assert weights is not None, "Bayes predicts"
        rounds_left = self.playback.scenario.horizon - self.playback.rounds
        costs = learning_costs(self.pool.losses, self.information, weights, rounds_left)
        return first_of_best(costs)


_SHIPPED: dict[str, ScoreScale | None] = {
    NatureArguments().to_json(): NATURE_REFERENCES,
    NatureArguments(redraw_hypotheses=False).to_json(): NATURE_FIXED_REFERENCES,
}


@kept_by_rules(_SHIPPED)
def estimate_nature_references(scenario: Scenario, rules: Rules) -> ScoreScale | None:
    """Estimate the references of scores; None if the adversary is not shown to beat random contexts."""
    rounds = scenario.horizon
    if scenario.redraws:
        rounds += _ROUNDS_OF_A_CLASS
    affordable = _SCORE_ROUNDS // rounds
    episodes = int(np.clip(affordable, _FEWEST_REFERENCES, _MOST_REFERENCES))
    return measure_nature_references(scenario, rules, episodes)


def measure_nature_references(scenario: Scenario, rules: Rules, episodes: int) -> ScoreScale | None:
    """The references of scores, measured on a number of episodes."""
    returns = {}
    for rule_of_thumb in ("random", "adversary"):
        referee = Referee(scenario, episodes, ContextPicker, rules)
        role = referee.role
        assert isinstance(role, ContextPicker)
        generators = [first_generator(_SCORE_SEED + i) for i in range(episodes)]
        referee.begin(np.arange(episodes), generators)
        rng = np.random.default_rng(0)
        totals = np.zeros(episodes)
        for _ in range(scenario.horizon):
            if rule_of_thumb == "random":
                choices = rng.integers(role.pool.size, size=episodes)
            else:
                choices = role.adversary()
            rewards, _ = referee.judge(choices)
            totals += rewards
        returns[rule_of_thumb] = totals
    unit = unit_of_score(returns["adversary"] - returns["random"])
    if unit is None:
        return None
    return ScoreScale(float(returns["random"].mean()), unit)


class LDPNatureEnv(SingleEnv):
    """The agent is Nature: it picks the contexts on which a private learner pays most in the long run.

    ## Description

    K functions ``f_1, ..., f_K`` from contexts to distributions over M labels are public; the truth is one of
    them, drawn uniformly, unless ``truth=`` says otherwise. In each of T rounds the agent picks a context x
    from a pool of P; the learner, Bayes, predicts the posterior mean ``f_w(x) = sum_k w_k f_k(x)``; a user
    with a label from the truth sends a private message, and Bayes' rule updates w. A context that costs much
    now may teach the learner much as well: later rounds count.

    By default the class and the pool are redrawn in every episode. ``LDPNature-fixed-v0`` keeps both.

    ## Observation Space

    One float32 row of 2 K + 1 + 2 P numbers: the posterior weights, their logarithms (-10 or more), t / T,
    and for each context of the pool the logarithms (-20 or more) of the expected loss and of the expected
    information of a message there. The pool itself is ``env.unwrapped.pool``, ``(P, d)``.

    ## Action Space

    The index of a context, ``Discrete(P)``.

    ## Rewards

    The expected loss of the round in nats, ``J_x(w) = sum_k w_k KL(f_k(x), f_w(x))``. It depends on neither
    the truth nor a coin. Under a uniform truth the expected sum is Bayes' risk on these contexts.

    ``info["kl"]`` and ``info["tv"]`` are the losses of the round. When an episode ends, ``info["risk"]`` is
    its total KL, and ``info["score"]`` is 0 at the mean return of random contexts, and 1 at that of the
    nature ``adversary``, a heuristic; a policy may exceed 1. The means are estimated once for the rules, when
    the first episode ends; there is no score where they do not show that ``adversary`` is better.

    ## Arguments

    The class, channel, horizon, truth and pool: see :class:`NatureArguments`, or ``help()``.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = gym.make("LDPNature-v0")
        >>> env.observation_space.shape, env.action_space
        ((81,), Discrete(32))
        >>> _ = env.reset(seed=0)
        >>> env.unwrapped.pool.shape
        (32, 4)
        >>> env.step(3)[1] > 0.0
        True
    """

    metadata: dict[str, Any] = {"render_modes": []}
    role = ContextPicker

    @takes(NatureArguments)
    def __init__(self, arguments: NatureArguments) -> None:
        self._make(arguments)

    @property
    def pool(self) -> FloatArray:
        """The contexts of this episode to pick from, ``(P, d)``."""
        return _pool_of(self._referee).reshape(-1, self.scenario.hypotheses.context_dim).copy()


class LDPNatureVectorEnv(LockStepEnv):
    """B games of :class:`LDPNatureEnv` at once, with its arguments and those of a vector environment."""

    metadata: dict[str, Any] = {**LockStepEnv.metadata, "render_modes": []}
    role = ContextPicker

    @takes(NatureVectorArguments)
    def __init__(self, arguments: NatureVectorArguments) -> None:
        self._make(arguments)

    @property
    def pool(self) -> FloatArray:
        """The contexts to pick from, ``(P, d)``, or ``(B, P, d)`` if they are redrawn in every episode."""
        return _pool_of(self._referee).copy()


def _pool_of(referee: Referee) -> FloatArray:
    role = referee.role
    assert isinstance(role, ContextPicker), "Nature's seat"
    return role.pool.contexts
