"""LDPAsk-v0: the agent picks each user's private question, and the exact posterior predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType

import gymnasium as gym
import numpy as np

from ldp_gym.channels.bit import label_sides
from ldp_gym.core.arrays import FloatArray, IntArray, expectations
from ldp_gym.core.divergences import mixture_loss, negentropy
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.engine.playback import Playback
from ldp_gym.engine.posterior import bayes_rule
from ldp_gym.engine.referee import Info, Referee
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.rules import (
    CLASS_RULES,
    NATURE_RULES,
    TRUTH_RULES,
    Rules,
    rule,
    takes,
)
from ldp_gym.engine.scenario import EpisodeStart, Scenario, first_generator
from ldp_gym.engine.seats import Moves, Seat
from ldp_gym.engine.tape import ClassPerEpisode, Episodes
from ldp_gym.envs.base import EnvArguments
from ldp_gym.envs.features import Contrasts, FloatRow
from ldp_gym.envs.named_games import ASK_META_REFERENCES, ASK_REFERENCES, ScoreScale
from ldp_gym.envs.references import kept_by_rules
from ldp_gym.envs.rendering.history import QuestionHistory
from ldp_gym.envs.single import SingleEnv
from ldp_gym.envs.vector import LockStepEnv, VectorArguments
from ldp_gym.natures.adversary import Adversary
from ldp_gym.natures.base import PoolNature
from ldp_gym.statistics import unit_of_score
from ldp_gym.truths.base import Member

LEAST_LOG_WEIGHT = -10.0
"""Lower bound on a log weight in an observation."""

_EQUAL = 1e-9
"""Expected loss of a round, in nats, up to which hypotheses count as equal: no question is worth asking."""

_FUTURE_CONTEXTS = 32
"""Largest number of contexts that stand for those to come in the expected loss of a class with contexts."""

_CONTEXT_SEED = TEST.stop * 5 // 8
"""Seed of the first episode whose first context stands for those to come."""

_STARTS = 16
"""Number of contrasts from which :func:`greedy_contrast` starts."""

_TURNS = 4
"""Number of steps by which :func:`greedy_contrast` improves each contrast."""

_SCORE_SEED = TEST.stop * 3 // 4
"""Seed of the first episode on which the risks behind a score are estimated."""

_SCORE_LABELS = 2**25
"""Labels that greedy questions look at in the episodes behind a score: a second in the default game."""

_FEWEST_REFERENCES = 16
"""Least number of episodes behind a score."""

_MOST_REFERENCES = 1024
"""Largest number of episodes behind a score; the unit of the default game then has an error of 3%."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AskArguments(EnvArguments):
    """Arguments of LDPAsk-v0. The agent asks for the channel. Redrawn hypotheses are always observed."""

    env_id = "LDPAsk-v0"
    takes = (
        *CLASS_RULES,
        "epsilon",
        "horizon",
        *NATURE_RULES,
        *TRUTH_RULES,
        "observe_candidates",
        "redraw_hypotheses",
        "losses",
        "reveal",
    )

    hypotheses: object = rule(
        "dirichlet",
        "the class F: a name, a ``(K, M)`` table (array or nested lists), or any other class of "
        "LDPDist-v0; in one with contexts the questions are about ``f_k(x_t)``.",
    )
    horizon: int = rule(200, "T, the number of questions.")
    channel: str = rule("ldp_gym.channels.asked_bit:AskedBit", "the channel that asks.")

    def __post_init__(self) -> None:
        """Check the values, and show the candidates of redrawn hypotheses."""
        super().__post_init__()
        if self.redraw_hypotheses:
            object.__setattr__(self, "observe_candidates", True)


@dataclass(frozen=True, kw_only=True, eq=False)
class AskVectorArguments(AskArguments, VectorArguments):
    """Arguments of LDPAsk-v0 for B games."""


def observe_posterior(weights: FloatArray, progress: FloatArray | float) -> FloatRow:
    """Rows ``(..., 2 K + 1)``: posterior weights ``(..., K)``, their logarithms from -10 on, and t / T."""
    logs = np.log(np.maximum(weights, math.exp(LEAST_LOG_WEIGHT)))
    time = np.broadcast_to(progress, weights.shape[:-1])[..., None]
    return np.concatenate([weights, logs, time], axis=-1, dtype=np.float32)


def greedy_contrast(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """Contrasts ``(..., K)`` whose answers vary most between hypotheses of the given weights ``(..., K)``.

    Local search from 16 fixed contrasts: a step of :func:`ldp_gym.channels.half_space.turn_contrast` never
    lowers the variance of ``f_k(S)``. Candidates are a table ``(K, M)``, or one for each row of weights.
    """
    num_hypotheses = weights.shape[-1]
    starts = np.random.default_rng(0).standard_normal((_STARTS, num_hypotheses))
    repeated = np.repeat(weights.reshape(-1, num_hypotheses), _STARTS, axis=0)
    if candidates.ndim > 2:
        tables = candidates.reshape(-1, *candidates.shape[-2:])
        candidates = np.repeat(tables, _STARTS, axis=0)

    contrasts = np.tile(starts, (len(repeated) // _STARTS, 1))
    for _ in range(_TURNS):
        answers = expectations(candidates, label_sides(contrasts, candidates))
        answers -= np.einsum("nk,nk->n", repeated, answers)[:, None]
        contrasts = repeated * answers
    variances = np.einsum("nk,nk->n", contrasts, answers).reshape(-1, _STARTS)

    best = np.arange(0, len(repeated), _STARTS) + variances.argmax(axis=1)
    return contrasts[best].reshape(weights.shape)


class Belief(Observation):
    """The exact posterior and t / T, and the candidates if there is not one table for all rounds."""

    def __init__(self, playback: Playback) -> None:
        scenario = playback.scenario
        self._playback = playback
        self._shows_candidates = scenario.observe_candidates or not scenario.shares_table
        width = 2 * scenario.game.num_hypotheses + 1
        if self._shows_candidates:
            width += scenario.game.num_hypotheses * scenario.game.num_labels
        self.space = gym.spaces.Box(LEAST_LOG_WEIGHT, 1.0, (width,), dtype=np.float32)

    def observe(self, game: int | EllipsisType = ...) -> FloatRow:
        playback = self._playback
        assert playback.weights is not None, "the posterior predicts"
        progress = playback.rounds[:, 0] / playback.scenario.horizon
        rows = observe_posterior(playback.weights, progress)
        if self._shows_candidates:
            shape = (playback.num_games, *playback.candidates_now.shape[-2:])
            candidates = np.broadcast_to(playback.candidates_now, shape)
            flat = candidates.reshape(playback.num_games, -1)
            rows = np.concatenate([rows, flat], axis=-1, dtype=np.float32)
        return rows[game]


class FutureLoss:
    """Expected KL ``J(w)`` of a round to come, for B games, if the posterior is w.

    ``J(w) = sum_k w_k KL(f_k, f_w)`` with ``f_w = sum_k w_k f_k``. In a class with contexts it is the mean
    over contexts that stand for those to come: the pool of nature if she has one, else the first contexts of
    32 other episodes.
    """

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self._scenario = scenario
        self._contexts = np.zeros((1, scenario.hypotheses.context_dim))
        if not scenario.hypotheses.constant:
            self._contexts = _typical_contexts(scenario)

        num_hypotheses, num_labels = scenario.game.num_hypotheses, scenario.game.num_labels
        if scenario.shares_table:
            self._tables = scenario.hypotheses(self._contexts[0])  # (K, M)
        elif scenario.redraws:
            shape = (num_games, len(self._contexts), num_hypotheses, num_labels)
            self._tables = np.full(shape, 1.0 / num_labels)
        else:
            self._tables = scenario.hypotheses(self._contexts)[None]  # (1, contexts, K, M)
        self._negentropies = negentropy(self._tables)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Take the classes of new episodes, if they have their own."""
        if self._scenario.redraws:
            classes = ClassPerEpisode([start.hypotheses for start in starts])
            self._tables[games] = classes(self._contexts[None])
            self._negentropies[games] = negentropy(self._tables[games])

    def __call__(self, weights: FloatArray) -> FloatArray:
        """J ``(B,)`` of posteriors ``(B, K)``, or ``(B, A)`` of ``(B, A, K)``."""
        tables, negentropies = self._tables, self._negentropies
        if tables.ndim == 2:
            return mixture_loss(weights, tables, negentropies)
        if weights.ndim == 3:
            tables, negentropies = tables[:, None], negentropies[:, None]
        losses = mixture_loss(weights[..., None, :], tables, negentropies)
        return losses.mean(axis=-1)


def _typical_contexts(scenario: Scenario) -> FloatArray:
    """Contexts ``(n, d)`` like those of the rounds to come."""
    if isinstance(scenario.nature, PoolNature):
        return scenario.nature.pool[:_FUTURE_CONTEXTS]
    generators = [first_generator(_CONTEXT_SEED + i) for i in range(_FUTURE_CONTEXTS)]
    contexts = Episodes(scenario, scenario.start_episodes(generators)).open(1).contexts
    assert contexts is not None, "they are shown"
    return contexts[:, 0]


class Asker(Role):
    """The designer's seat: contrasts, paid by the loss that they are expected to save."""

    seats = frozenset({Seat.DESIGNER})

    def __init__(self, playback: Playback, rules: AskArguments) -> None:
        super().__init__(playback, rules)
        if isinstance(playback.scenario.nature, Adversary):
            raise ValueError(
                "LDPAsk-v0 takes no nature 'adversary': it weighs what a message tells, and it moves before "
                "the question is known; both seats are agents' in ldp_gym.parallel_env"
            )
        self.observation = Belief(playback)
        self._future_loss = FutureLoss(playback.scenario, playback.num_games)
        self._units = np.zeros(playback.num_games)
        self._risks = np.zeros(playback.num_games)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._future_loss.begin(games, starts)
        num_hypotheses = self.playback.scenario.game.num_hypotheses
        uniform = np.full((self.playback.num_games, num_hypotheses), 1.0 / num_hypotheses)
        self._units[...] = self._future_loss(uniform)
        self._risks[games] = 0.0

    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        return Contrasts(self.playback.scenario.game.num_hypotheses, batch_shape)

    def moves(self, actions: FloatArray) -> Moves:
        return Moves(questions=actions)

    def rewards(self, losses: FloatArray) -> FloatArray:
        """``(T - t) (J(w) - E[J(w') | question]) / J(uniform)``, and 0 if the hypotheses are equal."""
        self._risks += losses
        rounds_left = self.playback.scenario.horizon - 1 - self.playback.rounds[:, 0]
        savings = rounds_left * self._expected_drops()
        rewards = np.zeros_like(savings)
        np.divide(savings, self._units, out=rewards, where=self._units > _EQUAL)
        return rewards

    def _expected_drops(self) -> FloatArray:
        """``J(w) - E[J(w') | question]``, ``(B,)``, over the two answers."""
        weights = self.playback.weights
        assert weights is not None, "the posterior predicts"
        likelihoods = np.exp(self.playback.now("answer_log_likelihoods"))  # (B, 2, K)
        chances = np.einsum("bk,bak->ba", weights, likelihoods)
        after = self._future_loss(bayes_rule(weights[:, None], likelihoods))
        drops = self._future_loss(weights) - np.einsum("ba,ba->b", chances, after)
        return np.maximum(drops, 0.0)

    def end_info(self) -> Info:
        """Risks and scores ``(B,)``; no scores unless greedy questions beat random ones."""
        info = {"risk": self._risks.copy()}
        if self._references is not None:
            info["score"] = (self._references.zero - self._risks) / self._references.unit
        return info

    @cached_property
    def _references(self) -> ScoreScale | None:
        return estimate_references(self.playback.scenario, self.rules)


_SHIPPED: dict[str, ScoreScale | None] = {
    AskArguments().to_json(): ASK_REFERENCES,
    AskArguments(redraw_hypotheses=True).to_json(): ASK_META_REFERENCES,
}


@kept_by_rules(_SHIPPED)
def estimate_references(scenario: Scenario, rules: Rules) -> ScoreScale | None:
    """Estimate the references of scores; None if greedy questions are not shown to beat random ones.

    If the truth is drawn from the class, the KL of a round has the mean J(w), which varies less.
    """
    labels = scenario.horizon * _STARTS * scenario.hypotheses.num_labels
    if labels > _SCORE_LABELS:  # half a minute, or more
        return None
    episodes = int(np.clip(_SCORE_LABELS // labels, _FEWEST_REFERENCES, _MOST_REFERENCES))
    random = _reference_risks(scenario, rules, episodes, greedy=False)
    greedy = _reference_risks(scenario, rules, episodes, greedy=True)
    if not np.isfinite([random, greedy]).all():
        return None
    unit = unit_of_score(random - greedy)
    return None if unit is None else ScoreScale(float(random.mean()), unit)


def _reference_risks(
    scenario: Scenario, rules: Rules, episodes: int, *, greedy: bool
) -> FloatArray:
    """Risks ``(episodes,)`` of random or of greedy contrasts."""
    truth = scenario.truth
    drawn_from_class = type(truth) is Member and truth.member is None
    referee = Referee(scenario, episodes, Asker, rules)
    playback = referee.playback
    generators = [first_generator(_SCORE_SEED + i) for i in range(episodes)]
    referee.begin(np.arange(episodes), generators)

    rng = np.random.default_rng(0)
    risks = np.zeros(episodes)
    for _ in range(scenario.horizon):
        weights, candidates = playback.weights, playback.candidates_now
        assert weights is not None, "the posterior predicts"
        expected_losses = mixture_loss(weights, candidates, negentropy(candidates))
        if greedy:
            contrasts = greedy_contrast(weights, candidates)
        else:
            contrasts = rng.uniform(-1.0, 1.0, weights.shape)
        _, info = referee.judge(contrasts)
        risks += expected_losses if drawn_from_class else info["kl"]
    return risks


class LDPAskEnv(SingleEnv):
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

    role = Asker
    history = QuestionHistory

    @takes(AskArguments)
    def __init__(self, arguments: AskArguments) -> None:
        self._make(arguments)


class LDPAskVectorEnv(LockStepEnv):
    """B games of :class:`LDPAskEnv` at once, with its arguments and those of a vector environment."""

    role = Asker
    history = QuestionHistory

    @takes(AskVectorArguments)
    def __init__(self, arguments: AskVectorArguments) -> None:
        self._make(arguments)
