"""LDPDistBox-v0: the game of LDPDist-v0 for RL libraries, float32 features in and logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, mixture
from ldp_gym.core.divergences import kl
from ldp_gym.engine.posterior import PublicPosterior
from ldp_gym.engine.referee import Observer, Referee
from ldp_gym.engine.rules import (
    CHANNEL_RULES,
    CLASS_RULES,
    NATURE_RULES,
    TRUTH_RULES,
    Rules,
    kept_by_rules,
    rule,
    takes,
)
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.envs.features import DEFAULT_LOGIT_RANGE, Logits, RawRow, RunningEvidence
from ldp_gym.envs.single import EnvArguments, LDPDistEnv
from ldp_gym.envs.vector import LDPDistVectorEnv, VectorArguments
from ldp_gym.statistics import unit_of_score

NAMED_GAMES: dict[str, dict[str, Any]] = {
    "easy": {
        "hypotheses": "dirichlet",
        "num_hypotheses": 4,
        "num_labels": 8,
        "channel": "split",
        "epsilon": 4.0,
        "horizon": 200,
    },
    "medium": {},
    "memory": {"channel": "split", "observation": "message"},
    "hard": {"channel": "randomized-response", "observation": "message"},
}
"""Keyword arguments of LDPDistBox-easy-v0, -medium-v0, -memory-v0 and -hard-v0. They never change."""

_ROUNDS_AT_ONCE = 2**13
"""Target number of rounds, over all games, whose features are worked out at once: temporary arrays of this
size stay in a processor's cache."""

_REFERENCE_SEED = 5 * 10**8
"""Seed of the first episode on which the gain of Bayes is estimated, one of those for training."""

_REFERENCE_NUMBERS = 2**26
"""Target size, in floats of tape, of the episodes on which the gain of Bayes is estimated. Its standard error
is then about 1% in the named games."""

_ADAPTIVE_SHARE = 8
"""Divisor of :data:`_REFERENCE_NUMBERS` in adaptive games: a round costs more, and gains vary less."""

_REFERENCE_EPISODES = (16, 512)
"""Least and largest number of episodes on which the gain of Bayes is estimated."""


class BoxFeatures(Observer):
    """Features of LDPDistBox-v0, computed one block of tape at a time."""

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self._channel = scenario.channel
        self._evidence = RunningEvidence(scenario.game, (num_games,))

    def begin(self, games: IntArray) -> None:
        self._evidence.restart(games)

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """The evidence after each round, and the losses of the uniform mixture."""
        step = max(1, _ROUNDS_AT_ONCE // tape.labels.shape[1])
        pieces = [slice(first, first + step) for first in range(0, len(games), step)]
        evidence = [
            self._evidence.along(tape.read_by(self._channel, piece), games[piece])
            for piece in pieces
        ]
        return {
            "evidence": np.concatenate(evidence, axis=0),
            "uniform_losses": tape.uniform_losses(),
        }


def estimate_bayes_gain(scenario: Scenario) -> float | None:
    """Mean return of the exact posterior, the unit of a score; None where it is not shown to be above 0.

    There are as many episodes as take about a second in the named games.
    """
    numbers = _REFERENCE_NUMBERS // (_ADAPTIVE_SHARE if scenario.adaptive else 1)
    episodes = int(
        np.clip(numbers // (scenario.horizon * scenario.footprint), *_REFERENCE_EPISODES)
    )
    starts = scenario.start_episodes(
        [first_generator(_REFERENCE_SEED + i) for i in range(episodes)]
    )
    games, posterior = (
        Episodes(scenario, starts),
        PublicPosterior(scenario.game.num_hypotheses, (episodes,)),
    )
    gains, played = np.zeros(episodes), 0
    while played < scenario.horizon:
        rounds = min(scenario.rounds_at_a_time(episodes, 2**20), scenario.horizon - played)
        tape = games.play(rounds)
        predictions = mixture(posterior.along(tape.read_by(scenario.channel)), tape.candidates)
        losses = kl(tape.distributions, predictions, tape.negentropies)
        gains += np.minimum(tape.uniform_losses(), scenario.max_loss).sum(axis=1)
        gains -= np.minimum(losses, scenario.max_loss).sum(axis=1)
        played += rounds
    return unit_of_score(gains)


@kept_by_rules
def bayes_gain(scenario: Scenario, rules: Rules) -> float | None:
    """Gain of Bayes in the game of these rules, estimated once."""
    return estimate_bayes_gain(scenario)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxArguments(EnvArguments):
    """Arguments of LDPDistBox-v0. Redrawn hypotheses are always observed."""

    env_id = "LDPDistBox-v0"
    takes = (
        *CLASS_RULES,
        *CHANNEL_RULES,
        "horizon",
        *NATURE_RULES,
        *TRUTH_RULES,
        "observe_candidates",
        "redraw_hypotheses",
        "batch",
        "reveal",
        "max_loss",
    )

    logit_range: float = rule(DEFAULT_LOGIT_RANGE, "bound on a logit.")
    observation: str = rule("evidence", '``"evidence"`` or ``"message"``.')

    def __post_init__(self) -> None:
        """Check the values, and show the candidates of redrawn hypotheses."""
        super().__post_init__()
        validation.choice("observation", self.observation, ("evidence", "message"))
        if self.redraw_hypotheses:
            object.__setattr__(self, "observe_candidates", True)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxVectorArguments(BoxArguments, VectorArguments):
    """Arguments of LDPDistBox-v0 for B games."""


class BoxReferee(Referee):
    """Referee that shows features and rewards the gain over the uniform mixture."""

    def __init__(
        self, scenario: Scenario, num_games: int, history: Observer | None, arguments: BoxArguments
    ) -> None:
        super().__init__(scenario, num_games, history, BoxFeatures(scenario, num_games))
        self._rules = arguments
        self._table: FloatArray | None = None
        if scenario.shares_table:
            self._table = scenario.hypotheses(np.zeros(scenario.hypotheses.context_dim))
        self._evidence = np.zeros((num_games, scenario.game.num_hypotheses + 1), dtype=np.float32)
        self._returns = np.zeros(num_games)
        self._row: RawRow | None = None
        self.space = RunningEvidence.space(scenario.game)
        if arguments.observation == "message":
            self._row = RawRow(scenario.observation_space, scenario.horizon)
            self.space = self._row.space
        self._last = np.zeros((num_games, self._row.width if self._row else 0), dtype=np.float32)

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        for state in (self._evidence, self._last, self._returns):
            state[games] = 0.0
        return super().begin(games, generators, member)

    def observe(self, game: int | EllipsisType = ...) -> Any:
        """The features of one game, or of all."""
        if self._row is not None:
            return self._row(super().observe(game), self._last[game])
        return self._evidence[game].copy()

    def judge(self, predictions: FloatArray) -> tuple[FloatArray, dict[str, npt.NDArray[Any]]]:
        """Compute the losses of mixtures with weights ``(B, K)``; the rewards are gains."""
        playback = self._playback
        if self._row is not None:
            self._last[...] = self._row.shown(super().observe())
        candidates = playback.now("candidates") if self._table is None else self._table
        self._evidence[...] = playback.now("evidence")
        uniform_losses = np.minimum(
            playback.now("uniform_losses"), self._max_loss
        )  # before the next round
        rewards, info = super().judge(mixture(predictions, candidates))
        rewards += uniform_losses
        self._returns += rewards
        return rewards, info

    def episode_info(self) -> dict[str, npt.NDArray[Any]]:
        """Scores ``(B,)``: 0 for the uniform mixture, 1 for Bayes' mean; empty unless Bayes gains."""
        return {} if self._bayes_gain is None else {"score": self._returns / self._bayes_gain}

    @cached_property
    def _bayes_gain(self) -> float | None:
        return bayes_gain(self.scenario, self._rules)


class LDPDistBoxEnv(LDPDistEnv):
    """The game of :class:`ldp_gym.LDPDistEnv` as a ``Box`` environment for RL libraries.

    ## Observation Space

    With ``observation="evidence"`` K + 1 numbers: for each hypothesis the evidence of all messages so far in
    units of its noise, and t / T (:class:`ldp_gym.envs.features.RunningEvidence`). This is a sufficient
    statistic up to a factor, so a policy needs no memory; it must learn how far to trust the evidence.
    With ``observation="message"`` the raw observation in one row: t / T, this round's context, and the last
    message after the context that it was about (:class:`ldp_gym.envs.features.RawRow`). A policy needs a
    memory, and must learn what a message means.

    ## Action Space

    K logits of a mixture of the hypotheses, ``Box(-logit_range, logit_range)``. 0 is the uniform mixture. A
    standard deviation of 1 is one logit. Larger finite logits are played as they are, not clipped.

    ## Rewards

    The gain over the uniform mixture, ``KL(p*, mean_j f_j) - KL(p*, p_hat)``, each KL at most ``max_loss``.
    A return of 0 means that nothing was learned. ``info["kl"]`` and ``info["tv"]`` are as in LDPDist-v0. When
    an episode ends, ``info["score"]`` is its return divided by the mean return of the exact posterior, which
    is estimated once for the rules, when the first episode ends; it is left out where that mean is not shown
    to be above 0. An action never changes a message, so ``gamma=0`` loses nothing.

    ## Arguments

    ``logit_range``, ``observation``, ``render_mode``, and the rules of the game: see
    :class:`ldp_gym.engine.rules.Rules`, or ``help()``. With ``redraw_hypotheses=True`` the observation
    ``"message"`` also holds the candidates.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = gym.make("LDPDistBox-v0", hypotheses="dirichlet", channel="randomized-response")
        >>> env.observation_space.shape, env.action_space
        ((9,), Box(-5.0, 5.0, (8,), float32))
        >>> _ = env.reset(seed=0)
        >>> env.step(np.zeros(8))[1]  # the uniform mixture gains nothing
        0.0
    """

    @takes(BoxArguments)
    def __init__(self, arguments: BoxArguments) -> None:
        self._make_games(arguments)
        self._referee: BoxReferee
        self._actions = Logits(self.game.num_hypotheses, arguments.logit_range)
        self.observation_space, self.action_space = self._referee.space, self._actions.space

    def _make_referee(self, num_games: int) -> BoxReferee:
        return BoxReferee(self.scenario, num_games, self._history, self.arguments)


class LDPDistBoxVectorEnv(LDPDistVectorEnv):
    """B games of :class:`LDPDistBoxEnv` at once, with its arguments and those of a vector environment.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> envs = gym.make_vec("LDPDistBox-v0", num_envs=3, horizon=10)
        >>> envs.reset(seed=0)[0].shape
        (3, 9)
    """

    @takes(BoxVectorArguments)
    def __init__(self, arguments: BoxVectorArguments) -> None:
        self._make_games(arguments)
        self._referee: BoxReferee
        self._actions = Logits(self.game.num_hypotheses, arguments.logit_range, (self.num_envs,))
        self.single_observation_space, self.single_action_space = (
            self._referee.space,
            self._actions.space,
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = self._actions.batched_space

    def _make_referee(self, num_games: int) -> BoxReferee:
        return BoxReferee(self.scenario, num_games, self._history, self.arguments)
