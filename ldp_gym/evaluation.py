"""Play a learner for many episodes, and sum up what it was charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.engine.referee import first_generator
from ldp_gym.engine.scenario import Scenario, scenario_of
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.env import LDPDistEnv
from ldp_gym.game import Game
from ldp_gym.learners import Learner, TapeLearner, learner_maker, play_stepwise
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import FloatArray, IntArray, row_sums
from ldp_gym.numerics.divergences import kl, tv
from ldp_gym.numerics.intervals import largest_mean_interval
from ldp_gym.spaces import TOLERANCE

_CELLS = 600_000
"""How many numbers a stretch of tape may hold: 5 MiB, which mostly stays in a processor's cache."""


@dataclass(frozen=True)
class Evaluation:
    """The losses of a learner, summed up to each checkpoint.

    Attributes:
        rounds: the checkpoints, in rounds played; the last is the horizon.
        kl: cumulative KL in nats, ``(episodes, len(rounds))``, or ``(K, episodes, len(rounds))`` when every
            truth was played.
        tv: cumulative total variation, in the same shape.
        average_prediction: ``mean_t p_hat_t`` of each episode, ``(episodes, M)``, where it was asked for;
            ``(K, episodes, M)`` when every truth was played.
    """

    rounds: IntArray
    kl: FloatArray
    tv: FloatArray
    average_prediction: FloatArray | None = None

    @property
    def risk(self) -> float:
        """The mean total KL; over the worst truth, when every truth was played."""
        return float(self.at_worst_truth().kl[:, -1].mean())

    @property
    def worst_truth(self) -> int:
        """The truth of the largest mean total KL, when every truth was played."""
        if self.kl.ndim != 3:
            raise ValueError('only evaluate(..., truth="all") compares truths')
        return int(self.kl[..., -1].mean(axis=-1).argmax())

    def at_worst_truth(self) -> Evaluation:
        """The episodes of the worst truth, when every truth was played; else all there are."""
        if self.kl.ndim == 2:
            return self
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "rounds"}
        worst = self.worst_truth
        return replace(self, **{name: value[worst] for name, value in values.items() if value is not None})

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The confidence interval of :attr:`risk`, over the episodes."""
        confidence = validation.fraction("confidence", confidence)
        totals = self.kl[..., -1]
        if totals.shape[-1] < 2:
            raise ValueError(f"an interval needs at least 2 episodes, got {totals.shape[-1]}")
        return largest_mean_interval(np.atleast_2d(totals), confidence)


def evaluate(
    learner: str | Callable[[Game], Learner],
    env: Mapping[str, Any] | gym.Env[Any, Any],
    *,
    episodes: int,
    seed: int = 0,
    truth: int | str | None = None,
    checkpoints: Sequence[int] | None = None,
    averages: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play a learner and return its cumulative losses. The learner never sees them.

    Episode i is the environment's episode under ``reset(seed=seed + i)``. A learner that can play a tape
    (every exponential-weights learner) does, in blocks; any other is play_stepwise, all episodes in lock step.

    Args:
        learner: a learner's name, a trained model's directory, or what makes a learner from the public
            rules, such as ``ldp_agents.EXP3``.
        env: keyword arguments of ``gym.make("LDPDist-v0", ...)``, or such an environment.
        episodes: how many.
        seed: the first episode's seed.
        truth: an index for every episode, "all" to play the episodes once with each truth, or None for the
            environment's own rule.
        checkpoints: the rounds at which to keep the sums; log-spaced when not given.
        averages: whether to keep the episodes' average predictions too, of a class without contexts.
        progress: called with the number of rounds played after each block.

    Example:
        >>> import ldp_agents
        >>> result = evaluate(ldp_agents.Uniform, {"horizon": 100}, episodes=4)
        >>> result.rounds[-1], result.kl.shape == (4, len(result.rounds))
        (np.int64(100), True)
    """
    scenario = as_scenario(env)
    count = validation.whole("episodes", episodes, least=1)
    seed = validation.whole("seed", seed, least=0)
    rounds = _checkpoints(scenario.horizon, checkpoints)
    if averages and not scenario.hypotheses.constant:
        raise ValueError(f"average predictions need a class without contexts, got {scenario.hypotheses!r}")
    truths: list[int | None]
    if truth == "all":
        truths = list(range(scenario.hypotheses.num_hypotheses))
    else:
        truths = [None if truth is None else scenario.valid_truth(truth)]
    player = as_player(learner, scenario.game)
    plays = [(seed + i, j) for j in truths for i in range(count)]
    in_stretches = isinstance(player, TapeLearner) and not scenario.channel.adaptive
    together = _episodes_at_a_time(scenario, in_stretches)
    predicted = np.zeros((len(plays), scenario.game.num_labels)) if averages else None
    losses = []
    for start in range(0, len(plays), together):
        some = slice(start, start + together)
        sums = None if predicted is None else predicted[some]
        losses.append(_losses(player, scenario, plays[some], rounds, sums, progress))
    shape = (len(truths), count) if truth == "all" else (count,)
    kl_sums, tv_sums = np.concatenate(losses, axis=1).reshape(2, *shape, len(rounds))
    average = None if predicted is None else (predicted / scenario.horizon).reshape(*shape, -1)
    return Evaluation(rounds, kl_sums, tv_sums, average)


def as_scenario(env: object) -> Scenario:
    """The scenario of keyword arguments, or of an environment."""
    if isinstance(env, Mapping):
        return scenario_of({name: value for name, value in env.items() if name != "render_mode"})
    if isinstance(env, gym.Env) and isinstance(env.unwrapped, LDPDistEnv):
        return env.unwrapped.scenario
    raise TypeError(
        f'env must be a dict of gym.make("LDPDist-v0", ...) arguments or such an environment, got {env!r}'
    )


def as_player(learner: str | Callable[[Game], Learner], game: Game) -> Learner:
    """The learner of a name, or of what makes one, for a game."""
    if isinstance(learner, str):
        return learner_maker(learner)(game)
    if not callable(learner):
        raise TypeError(
            f"learner must be a name or make a learner from a game, such as its class; got {learner!r}"
        )
    player = learner(game)
    if not isinstance(player, Learner):
        raise TypeError(f"a learner has reset, predict and update; {learner!r} made {player!r}")
    return player


def _checkpoints(horizon: int, given: Sequence[int] | None) -> IntArray:
    if given is None:
        decades = np.log10(horizon)
        spaced = np.logspace(0, decades, num=1 + int(np.ceil(10 * decades)))
        return np.unique(np.append(np.rint(spaced).astype(np.int64), horizon))
    if not isinstance(given, Iterable):
        raise TypeError(f"checkpoints must be a list of rounds, got {given!r}")
    rounds = [validation.whole("a checkpoint", given_round, least=1) for given_round in given]
    if max(rounds, default=1) > horizon:
        raise ValueError(f"checkpoints must lie in 1..{horizon}, got {max(rounds)}")
    return np.unique([*rounds, horizon])


def _episodes_at_a_time(scenario: Scenario, in_stretches: bool) -> int:
    """How many episodes fill a block: long stretches of a few, or a few rounds of many."""
    rounds = min(scenario.horizon, 256 if in_stretches else 4)
    return max(1, min(1024, _CELLS // (rounds * scenario.footprint)))


def _losses(
    player: Learner,
    scenario: Scenario,
    plays: Sequence[tuple[int, int | None]],
    checkpoints: IntArray,
    predicted: FloatArray | None,
    progress: Callable[[int], None] | None,
) -> FloatArray:
    """Cumulative KL and TV at the checkpoints, ``(2, episodes, len(checkpoints))``.

    The predictions are added to ``predicted``, ``(episodes, M)``, if there is such an array.
    """
    sums = np.zeros((2, len(plays), len(checkpoints)))
    for start, tape, predictions in play_blocks(player, scenario, plays, progress):
        rounds = predictions.shape[1]
        # The block's rounds fall into segments that end at checkpoints.
        first, last = np.searchsorted(checkpoints, (start, start + rounds - 1), side="right")
        edges = np.append(0, checkpoints[first:last] - start)
        losses = kl(tape.distributions, predictions, tape.negentropies), tv(tape.distributions, predictions)
        for total, loss in zip(sums, losses, strict=True):
            total[:, first : last + 1] += np.add.reduceat(loss, edges, axis=1)
        if predicted is not None:
            predicted += predictions.sum(axis=1)
    return np.cumsum(sums, axis=-1)


def play_blocks(
    player: Learner,
    scenario: Scenario,
    plays: Sequence[tuple[int, int | None]],
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Tape, FloatArray]]:
    """Play episodes, given by their seeds and truths, block by block.

    Yields:
        The first round of each block, its tape, and the learner's predictions ``(B, n, M)``.
    """
    starts = [scenario.start_episode(first_generator(seed), truth) for seed, truth in plays]
    tapes = Episodes(scenario, starts, show_contexts=False)
    player.reset((len(plays),))
    play = player.play if isinstance(player, TapeLearner) else partial(play_stepwise, player)
    block = scenario.rounds_at_a_time(len(plays), _CELLS)
    for start in range(0, scenario.horizon, block):
        rounds = min(block, scenario.horizon - start)
        tape = tapes.play(rounds)
        shape = (len(plays), rounds, scenario.game.num_labels)
        yield (
            start,
            tape,
            _validated(play(tape.candidates, tape.messages, tape.log_likelihoods), shape, start),
        )
        if progress is not None:
            progress(rounds * len(plays))


def _validated(predictions: FloatArray, shape: tuple[int, ...], start: int) -> FloatArray:
    """Predictions ``(B, n, M)`` as the environment would take them: checked, and renormalised where off."""
    if predictions.shape != shape:
        raise ValueError(f"predictions of a block must have shape {shape} (B, n, M), got {predictions.shape}")
    total = row_sums(predictions)
    off = np.abs(total - 1.0).max()
    if not (np.minimum.reduce(predictions, axis=None) >= 0.0 and off <= TOLERANCE):
        wrong = (predictions < 0.0).any(axis=-1) | ~(np.abs(total - 1.0) <= TOLERANCE)
        game, t = np.argwhere(wrong)[0]
        fault = validation.fault_of_distributions(predictions[game, t], TOLERANCE)
        raise ValueError(f"the learner's prediction in round {start + t + 1}{fault}")
    return predictions if off < 1e-12 else predictions / total[..., None]
