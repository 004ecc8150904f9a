"""LDPAsk-v0: the agent picks each user's private question, and the exact posterior predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.channels.base import AdaptiveChannel, Channel, Public
from ldp_gym.channels.bit import BitChannel, Questions, label_sides
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, expectations, mixture
from ldp_gym.core.divergences import mixture_loss, negentropy
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.engine.posterior import bayes_rule
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.rules import CLASS_RULES, TRUTH_RULES, Rules, kept_by_rules, rule, takes
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.envs.features import FloatRow, Logits
from ldp_gym.envs.single import LDPDistEnv
from ldp_gym.envs.vector import LDPDistVectorEnv, SeveralGames
from ldp_gym.statistics import unit_of_score
from ldp_gym.truths.base import Member

LEAST_LOG_WEIGHT = -10.0
"""Lower bound on a log weight in an observation."""

_STARTS, _TURNS = 16, 4
"""Number of contrasts from which :func:`greedy_contrast` starts, and of steps that improve each."""

_SCORE_SEED = TEST.stop * 3 // 4
"""Seed of the first episode on which the risks behind a score are estimated."""

_SCORE_LABELS, _SCORE_EPISODES = 2**25, (16, 1024)
"""Labels that greedy questions look at in these episodes, and their least and largest number: a second in the
default game, whose unit then has a standard error of 3%."""


class AskedBit(AdaptiveChannel, BitChannel):
    """One private bit about the contrast that a policy picks from the public posterior.

    With contrast a, the user answers "is my label in S?" for ``S = {y : sum_k a_k f_k[y] > 0}``, flipped with
    probability ``1 / (e^eps + 1)``; a label whose sum is 0 tosses a private coin. The message is the
    contrast, with negative coefficients for hypotheses that like labels of the answered side.

    Privacy: the contrast is public, and given it the ratio of an answer's probabilities is at most ``e^eps``.

    Args:
        policy: function from public posteriors ``(..., K)`` to contrasts ``(..., K)`` in [-1, 1].
    """

    num_public_coins = 0
    possible = Channel.possible  # any contrast

    def __init__(
        self, *sizes: int, policy: Callable[[FloatArray], FloatArray], **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.policy = validation.function(
            "policy", policy, "a function from posteriors to contrasts"
        )

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        contrasts = self.policy(self._public(posterior))
        return np.broadcast_to(contrasts, (*coins.shape[:-1], self.num_hypotheses))

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions:
        return self._question(np.zeros((1, 0)), candidates, posterior), np.ones(1)


class PrivateCoin(Channel):
    """The coin with which a user will answer the agent's question: density 1 on (0, 1) for every label."""

    num_uniforms = 1
    message_space = gym.spaces.Box(0.0, 1.0, (), dtype=np.float64)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        return uniforms[..., 0]

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        return np.zeros((*np.shape(messages), self.num_labels))


@dataclass(frozen=True, kw_only=True, eq=False)
class AskArguments(Rules):
    """Arguments of LDPAsk-v0. The agent is the channel; there are no contexts and no pictures."""

    env_id = "LDPAsk-v0"
    takes = (*CLASS_RULES, "epsilon", "horizon", *TRUTH_RULES, "reveal")

    hypotheses: object = rule(
        "dirichlet",
        'a class without contexts: ``"dirichlet"``, ``"disjoint"``, ``"hadamard"``, a ``(K, M)`` table '
        "(array or nested lists), or another constant HypothesisClass.",
    )
    horizon: int = rule(200, "T, the number of questions.")
    channel: str = rule("ldp_gym.envs.ask:PrivateCoin", "the coin with which a user answers.")


@dataclass(frozen=True, kw_only=True, eq=False)
class AskVectorArguments(SeveralGames, AskArguments):
    """Arguments of LDPAsk-v0 for B games."""


def observe_posterior(weights: FloatArray, progress: FloatArray | float) -> FloatRow:
    """Rows ``(..., 2 K + 1)``: posterior weights ``(..., K)``, their logarithms from -10 on, and t / T."""
    logs = np.log(np.maximum(weights, math.exp(LEAST_LOG_WEIGHT)))
    time = np.broadcast_to(progress, weights.shape[:-1])[..., None]
    return np.concatenate([weights, logs, time], axis=-1, dtype=np.float32)


def greedy_contrast(weights: FloatArray, table: FloatArray) -> FloatArray:
    """Contrasts ``(..., K)`` whose answers vary most between hypotheses of the given weights ``(..., K)``.

    Local search from 16 fixed contrasts: a step of :func:`ldp_gym.channels.half_space.turn_contrast` never
    lowers the variance of ``f_k(S)``.
    """
    size = len(table)
    starts = np.random.default_rng(0).standard_normal((_STARTS, size))
    each = np.repeat(weights.reshape(-1, size), _STARTS, axis=0)
    contrasts = np.tile(starts, (len(each) // _STARTS, 1))
    for _ in range(_TURNS):
        answers = expectations(table, label_sides(contrasts, table))
        answers -= np.einsum("nk,nk->n", each, answers)[:, None]
        contrasts = each * answers
    variances = np.einsum("nk,nk->n", contrasts, answers).reshape(-1, _STARTS)
    return contrasts[np.arange(0, len(each), _STARTS) + variances.argmax(axis=1)].reshape(
        weights.shape
    )


class Contrasts(Logits):
    """Actions that are contrasts in [-1, 1]; larger ones are accepted, as only the direction matters."""

    def distribution(self, action: npt.ArrayLike) -> FloatArray:
        """The contrasts as they are."""
        return self.checked(action, "coefficients")


class AskReferee(Referee):
    """Referee of B games in which users answer the agents' questions."""

    def __init__(self, scenario: Scenario, num_games: int, rules: Rules) -> None:
        if not scenario.hypotheses.constant:
            raise ValueError(
                f"LDPAsk-v0 needs a class without contexts, got {scenario.hypotheses!r}: use 'dirichlet', "
                f"'disjoint', 'hadamard', or a (K, M) table such as this class at one context"
            )
        super().__init__(scenario, num_games)
        self._rules = rules
        self.table = scenario.hypotheses(np.zeros(scenario.hypotheses.context_dim))
        size, sizes = len(self.table), (*self.table.shape, scenario.horizon)
        self._contrasts = np.zeros((num_games, size))
        self._channel = AskedBit(*sizes, epsilon=scenario.channel.epsilon, policy=self._asked)
        self.game = replace(scenario.game, channel=self._channel)
        self.posterior = self.game.public_posterior((num_games,))
        self._negentropies = negentropy(self.table)
        self._unit = max(
            float(self.costs(np.full(size, 1.0 / size))), 1e-9
        )  # it is 0 if all are equal
        self._risks = np.zeros(num_games)
        self.space = gym.spaces.Box(LEAST_LOG_WEIGHT, 1.0, (2 * size + 1,), dtype=np.float32)

    def _asked(self, _: object) -> FloatArray:
        """The contrasts of this round; a method, so that environments can be pickled."""
        return self._contrasts

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        self.posterior.restart(games)
        self._risks[games] = 0.0
        return super().begin(games, generators, member)

    def observe(self, game: Any = ...) -> Any:
        """Row of the public posterior, of one game or of all."""
        progress = self._playback.rounds[:, 0] / self.scenario.horizon
        return observe_posterior(self.posterior.weights, progress)[game]

    def costs(self, weights: FloatArray) -> FloatArray:
        """Expected KL ``J(w)`` of a round, ``(...)``, if the posterior is ``(..., K)``."""
        return mixture_loss(weights, self.table, self._negentropies)

    def judge(self, predictions: FloatArray) -> tuple[FloatArray, dict[str, npt.NDArray[Any]]]:
        """Compute the posterior mean's losses, then ask questions: contrasts ``(B, K)``, not predictions."""
        self._contrasts, weights = predictions, self.posterior.weights
        labels, coins = self._playback.now("labels"), self._playback.now("messages")[:, None]
        rounds_left = self.scenario.horizon - 1 - self._playback.rounds[:, 0]
        sent = self._channel.encode(labels, self.table, coins, weights)
        both = self._channel.messages_given_coins(coins[:, :0], self.table, weights)
        log_likelihoods = self._channel.log_likelihood(both, self.table, weights)  # (B, 2, K)
        rewards = rounds_left * self._expected_drops(weights, np.exp(log_likelihoods)) / self._unit
        second = (sent != both[:, 0]).any(axis=-1)
        self.posterior.advance(
            np.where(second[:, None], log_likelihoods[:, 1], log_likelihoods[:, 0])
        )
        _, info = super().judge(mixture(weights, self.table))
        self._risks += info["kl"]
        return rewards, info

    def _expected_drops(self, weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
        """``J(w) - E[J(w') | question]``, ``(B,)``, from likelihoods ``(B, 2, K)`` of the two answers."""
        chances = np.einsum("bk,bak->ba", weights, likelihoods)
        after = self.costs(bayes_rule(weights[:, None], likelihoods))
        return np.maximum(self.costs(weights) - np.einsum("ba,ba->b", chances, after), 0.0)

    def episode_info(self) -> dict[str, npt.NDArray[Any]]:
        """Risks and scores ``(B,)``; no scores unless greedy questions beat random ones."""
        info = {"risk": self._risks.copy()}
        if self._references is not None:
            random, unit = self._references
            info["score"] = (random - self._risks) / unit
        return info

    @cached_property
    def _references(self) -> tuple[float, float] | None:
        return estimate_references(self.scenario, self._rules)


@kept_by_rules
def estimate_references(scenario: Scenario, rules: Rules) -> tuple[float, float] | None:
    """Mean risk of random contrasts, and how much less greedy ones pay; None if that is not shown to be > 0.

    If the truth is drawn from the class, the KL of a round has the mean J(w), which varies less.
    """
    drawn = type(scenario.truth) is Member and scenario.truth.member is None
    labels = scenario.horizon * _STARTS * scenario.hypotheses.num_labels
    if labels > _SCORE_LABELS:  # half a minute, or more
        return None
    episodes = int(np.clip(_SCORE_LABELS // labels, *_SCORE_EPISODES))
    rng, risks = np.random.default_rng(0), np.zeros((2, episodes))
    for greedy, totals in enumerate(risks):
        referee = AskReferee(scenario, episodes, rules)
        referee.begin(
            np.arange(episodes), [first_generator(_SCORE_SEED + i) for i in range(episodes)]
        )
        for _ in range(scenario.horizon):
            weights = referee.posterior.weights
            random = rng.uniform(-1.0, 1.0, weights.shape)
            _, info = referee.judge(greedy_contrast(weights, referee.table) if greedy else random)
            totals += referee.costs(weights) if drawn else info["kl"]
    unit = unit_of_score(risks[0] - risks[1]) if np.isfinite(risks).all() else None
    return None if unit is None else (float(risks[0].mean()), unit)


class LDPAskEnv(LDPDistEnv):
    """The agent is the mechanism: it picks each user's private question, and the exact posterior predicts.

    ## Description

    K distributions ``f_k`` over M labels are public; the truth p* is one of them, drawn uniformly, unless
    ``truth=`` says otherwise. In each of T rounds the posterior mean ``f_w = sum_k w_k f_k`` is charged
    ``KL(p*, f_w)``. Then the agent picks a contrast a, a user with a label from p* answers whether it is in
    ``S = {y : sum_k a_k f_k[y] > 0}`` by randomized response (where the sum is 0, a private coin answers),
    and Bayes' rule updates w. Every action of every policy is eps-private.

    ## Observation Space

    One float32 row of 2 K + 1 numbers: the posterior weights, their logarithms (-10 or more), and t / T.

    ## Action Space

    A contrast, ``Box(-1, 1, (K,))``. Only its direction matters. 0 asks nothing: everybody tosses a coin.

    ## Rewards

    With ``J(w) = sum_k w_k KL(f_k, f_w)``, the expected loss of a round, question t = 1..T earns
    ``(T - t) (J(w) - E[J(w') | question]) / J(uniform)``: the expected saving in the rounds to come, in units
    of a round before the first answer. It depends on neither the truth nor the answer. Under a uniform truth
    its expected sum is ``T - risk / J(uniform)``, where the risk is the expected total KL.

    ``info["kl"]`` and ``info["tv"]`` are the losses of the round. When an episode ends, ``info["risk"]`` is
    its total KL, and ``info["score"]`` is 0 at the mean risk of uniformly random contrasts, and 1 at that of
    greedy ones (:func:`greedy_contrast`). The means are estimated once for the rules, when the first episode
    ends; there is no score where they do not show that greedy is better, or where M T is above 2 million.

    ## Arguments

    The class, epsilon, horizon and truth: see :class:`AskArguments`, or ``help()``.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = gym.make("LDPAsk-v0")
        >>> env.observation_space.shape, env.action_space
        ((17,), Box(-1.0, 1.0, (8,), float32))
        >>> _ = env.reset(seed=0)
        >>> env.step(np.array([1, -1, 0, 0, 0, 0, 0, 0]))[1] > 0.0
        True
    """

    metadata: dict[str, Any] = {"render_modes": []}

    @takes(AskArguments)
    def __init__(self, arguments: AskArguments) -> None:
        self._make_games(arguments)
        self._referee: AskReferee
        self.game = self._referee.game
        self._actions = Contrasts(self.game.num_hypotheses, 1.0)
        self.observation_space, self.action_space = self._referee.space, self._actions.space

    def _make_referee(self, num_games: int) -> AskReferee:
        return AskReferee(self.scenario, num_games, self.arguments)


class LDPAskVectorEnv(LDPDistVectorEnv):
    """B games of :class:`LDPAskEnv` at once, with its arguments and those of a vector environment."""

    metadata: dict[str, Any] = {**LDPDistVectorEnv.metadata, "render_modes": []}

    @takes(AskVectorArguments)
    def __init__(self, arguments: AskVectorArguments) -> None:
        self._make_games(arguments)
        self._referee: AskReferee
        self.game = self._referee.game
        self._actions = Contrasts(self.game.num_hypotheses, 1.0, (self.num_envs,))
        self.single_observation_space, self.single_action_space = (
            self._referee.space,
            self._actions.space,
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = self._actions.batched_space

    def _make_referee(self, num_games: int) -> AskReferee:
        return AskReferee(self.scenario, num_games, self.arguments)
