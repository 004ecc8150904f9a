"""LDPDistBox-v0: the game of LDPDist-v0 for RL libraries, float32 features in and logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, mixture
from ldp_gym.engine.losses import charge
from ldp_gym.engine.playback import LEARNER_ONLY, Playback
from ldp_gym.engine.posterior import PublicPosterior
from ldp_gym.engine.referee import Info
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.rules import (
    CHANNEL_RULES,
    CLASS_RULES,
    NATURE_RULES,
    TRUTH_RULES,
    Rules,
    rule,
    takes,
)
from ldp_gym.engine.scenario import EpisodeStart, Scenario, first_generator
from ldp_gym.engine.seats import Moves
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.envs.base import EnvArguments
from ldp_gym.envs.dist import Transcript
from ldp_gym.envs.features import DEFAULT_LOGIT_RANGE, FloatRow, Logits, RawRow, RunningEvidence
from ldp_gym.envs.named_games import META_GAME, NAMED_GAINS, NAMED_GAMES
from ldp_gym.envs.references import kept_by_rules
from ldp_gym.envs.single import SingleEnv
from ldp_gym.envs.vector import LockStepEnv, VectorArguments
from ldp_gym.statistics import unit_of_score

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

_FEWEST_REFERENCES = 16
"""Least number of episodes on which the gain of Bayes is estimated."""

_MOST_REFERENCES = 512
"""Largest number of episodes on which the gain of Bayes is estimated."""


class Evidence(Observation):
    """The running evidence for each hypothesis, computed one block of tape at a time."""

    def __init__(self, playback: Playback) -> None:
        game = playback.scenario.game
        self._channel = game.channel
        self._evidence = RunningEvidence(game, (playback.num_games,))
        self._shown = np.zeros((playback.num_games, game.num_hypotheses + 1), dtype=np.float32)
        self.space = RunningEvidence.space(game)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._evidence.restart(games)
        self._shown[games] = 0.0

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """The evidence after each round."""
        games_at_once = max(1, _ROUNDS_AT_ONCE // tape.labels.shape[1])
        pieces = []
        for first in range(0, len(games), games_at_once):
            piece = slice(first, first + games_at_once)
            log_likelihoods = tape.read_by(self._channel, piece)
            pieces.append(self._evidence.along(log_likelihoods, games[piece]))
        return {"evidence": np.concatenate(pieces, axis=0)}

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        self._shown[...] = playback.now("evidence")

    def observe(self, game: int | EllipsisType = ...) -> FloatRow:
        return self._shown[game].copy()


class RawTranscript(Observation):
    """The transcript as one row: a message stands next to the context that it was about."""

    def __init__(self, playback: Playback) -> None:
        scenario = playback.scenario
        self._transcript = Transcript(playback)
        self._row = RawRow(scenario.observation_space, scenario.horizon)
        self._last = np.zeros((playback.num_games, self._row.width), dtype=np.float32)
        self.space = self._row.space

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._transcript.begin(games, starts)
        self._last[games] = 0.0

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        self._last[...] = self._row.shown(self._transcript.observe())
        self._transcript.watch(playback, predictions, losses)

    def observe(self, game: int | EllipsisType = ...) -> FloatRow:
        return self._row(self._transcript.observe(game), self._last[game])


def estimate_bayes_gain(scenario: Scenario) -> float | None:
    """Mean return of the exact posterior, the unit of a score; None where it is not shown to be above 0.

    There are as many episodes as take about a second in the named games.
    """
    numbers = _REFERENCE_NUMBERS
    if scenario.adaptive:
        numbers //= _ADAPTIVE_SHARE
    affordable = numbers // (scenario.horizon * scenario.footprint)
    episodes = int(np.clip(affordable, _FEWEST_REFERENCES, _MOST_REFERENCES))
    generators = [first_generator(_REFERENCE_SEED + i) for i in range(episodes)]
    games = Episodes(scenario, scenario.start_episodes(generators))
    posterior = PublicPosterior(scenario.game.num_hypotheses, (episodes,))
    block = scenario.rounds_at_a_time(episodes, 2**20)

    gains = np.zeros(episodes)
    for played in range(0, scenario.horizon, block):
        tape = games.play(min(block, scenario.horizon - played))
        weights = posterior.along(tape.read_by(scenario.channel))
        predictions = mixture(weights, tape.candidates)
        losses = charge(["kl"], tape.distributions, predictions, tape.negentropies)["kl"]
        gains += np.minimum(tape.uniform_losses(), scenario.max_loss).sum(axis=1)
        gains -= np.minimum(losses, scenario.max_loss).sum(axis=1)
    return unit_of_score(gains)


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
        "losses",
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


_SHIPPED: dict[str, float | None] = {
    BoxArguments(**game).to_json(): NAMED_GAINS[name]
    for name, game in {**NAMED_GAMES, "meta": META_GAME}.items()
}


@kept_by_rules(_SHIPPED)
def bayes_gain(scenario: Scenario, rules: Rules) -> float | None:
    """Gain of Bayes in the game of these rules, estimated once."""
    return estimate_bayes_gain(scenario)


class Mixer(Role):
    """The learner's seat: mixtures of the hypotheses, paid by their gain over the uniform mixture."""

    seats = LEARNER_ONLY
    reads_candidates = True

    def __init__(self, playback: Playback, rules: BoxArguments) -> None:
        super().__init__(playback, rules)
        if rules.observation == "message":
            self.observation = RawTranscript(playback)
        else:
            self.observation = Evidence(playback)
        self._max_loss = np.array(playback.scenario.max_loss)
        self._returns = np.zeros(playback.num_games)

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._returns[games] = 0.0

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """The losses of the uniform mixture."""
        return {"uniform_losses": tape.uniform_losses()}

    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        num_hypotheses = self.playback.scenario.game.num_hypotheses
        return Logits(num_hypotheses, self.rules.logit_range, batch_shape)

    def moves(self, actions: FloatArray) -> Moves:
        return Moves(predictions=mixture(actions, self.playback.candidates_now))

    def rewards(self, losses: FloatArray) -> FloatArray:
        uniform_losses = np.minimum(self.playback.now("uniform_losses"), self._max_loss)
        rewards = uniform_losses - np.minimum(losses, self._max_loss)
        self._returns += rewards
        return rewards

    def end_info(self) -> Info:
        """Scores ``(B,)``: 0 for the uniform mixture, 1 for Bayes' mean; empty unless Bayes gains."""
        if self._bayes_gain is None:
            return {}
        return {"score": self._returns / self._bayes_gain}

    @cached_property
    def _bayes_gain(self) -> float | None:
        return bayes_gain(self.playback.scenario, self.rules)


class LDPDistBoxEnv(SingleEnv):
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

    role = Mixer

    @takes(BoxArguments)
    def __init__(self, arguments: BoxArguments) -> None:
        self._make(arguments)


class LDPDistBoxVectorEnv(LockStepEnv):
    """B games of :class:`LDPDistBoxEnv` at once, with its arguments and those of a vector environment.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> envs = gym.make_vec("LDPDistBox-v0", num_envs=3, horizon=10)
        >>> envs.reset(seed=0)[0].shape
        (3, 9)
    """

    role = Mixer

    @takes(BoxVectorArguments)
    def __init__(self, arguments: BoxVectorArguments) -> None:
        self._make(arguments)
