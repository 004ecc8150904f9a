"""Play a learner for many episodes, and sum up its losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FEW_ROUNDS, BoolArray, FloatArray, IntArray
from ldp_gym.core.divergences import kl_to_each
from ldp_gym.engine.blindness import warn_of_blind_pairs
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import (
    LearnerProtocol,
    begin_episodes,
    build_learner,
    play_block,
    plays_blocks,
)
from ldp_gym.engine.losses import charge, load_losses
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import EpisodeStart, Scenario, first_generator
from ldp_gym.engine.seats import Seat
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.envs.base import EnvArguments
from ldp_gym.envs.single import SingleEnv
from ldp_gym.privacy.certificate import warn_of_broken_promise
from ldp_gym.processes import count_jobs, one_thread, share_out
from ldp_gym.statistics import CONFIDENCE, Estimate, largest_mean
from ldp_gym.theory.contraction import ClassFloor
from ldp_gym.truths.base import NO_MEMBER

_BLOCK_FLOATS, _KEPT_BYTES = 600_000, 2**26
"""Size of a block of tape, in floats, and largest part of a game's tape that is kept for its next learner."""

_LOSS_PREFIX = "losses/"
"""Prefix of the names of losses among an evaluation's arrays."""

_NO_BEST = -2
"""Sentinel: no best hypothesis. A tie of weights is -1."""

_MOST_TOGETHER, _LEAST_STEPPED, _PIECES = 1024, 256, 16
"""Largest number of episodes at a time, smallest for a stepped learner, and target number of pieces."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Losses of a learner, summed up to each checkpoint.

    If every truth was played, all arrays but ``rounds`` have a leading axis of K truths.

    Attributes:
        rounds: the checkpoints, in rounds played; the last is the horizon.
        losses: cumulative losses by name, ``(episodes, len(rounds))`` each.
        comparator: loss of every hypothesis, ``sum_t KL(p*_t, f_j(x_t))``, ``(episodes, K)``.
        weights: the learner's last weights, ``(episodes, K)``; None if it has none.
        average_prediction: ``mean_t p_hat_t``, ``(episodes, M)``; None unless asked for.
        leaders: hypothesis of the heaviest weight at each checkpoint, ``(episodes, len(rounds))``; -1 for a
            tie. None unless asked for, or if the learner has no weights.
        left: size of the learner's confidence set at each checkpoint, ``(episodes, len(rounds))``; None
            unless asked for.
        confidence_set: hypotheses in the last confidence set, boolean ``(episodes, K)``; None likewise.
        scenario: the game, if its truth was uniform or every member in turn; not pickled.
    """

    rounds: IntArray
    losses: Mapping[str, FloatArray]
    comparator: FloatArray
    weights: FloatArray | None = None
    average_prediction: FloatArray | None = None
    leaders: IntArray | None = None
    left: IntArray | None = None
    confidence_set: BoolArray | None = None
    scenario: Scenario | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "scenario": None}

    @property
    def kl(self) -> FloatArray:
        """Cumulative KL in nats, ``(episodes, len(rounds))``."""
        return self.losses["kl"]

    @property
    def tv(self) -> FloatArray:
        """Cumulative total variation, in the shape of :attr:`kl`."""
        return self._loss("tv")

    def _loss(self, name: str) -> FloatArray:
        if name not in self.losses:
            known = ", ".join(self.losses)
            raise ValueError(
                f"the loss {name!r} was not computed, only {known}: call "
                f"evaluate(..., losses=[{name!r}])"
            )
        return self.losses[name]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Evaluation:
        """Make an evaluation from :attr:`arrays`."""
        losses: dict[str, FloatArray] = {}
        others: dict[str, Any] = {}
        for name, array in arrays.items():
            if name.startswith(_LOSS_PREFIX):
                losses[name.removeprefix(_LOSS_PREFIX)] = array
            else:
                others[name] = array
        return cls(losses=losses, **others)

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays by name, to store them; a loss is called ``"losses/"`` and its name."""
        return {"rounds": self.rounds, **self._per_episode}

    @property
    def floor(self) -> ClassFloor | None:
        """Risk that no private channel and learner can beat (:func:`ldp_gym.theory.class_floor`).

        None where that is not proved: for a truth that is given or outside the class, contexts that depend
        on the past, redrawn classes, delta > 0, and results that were stored.
        """
        return None if self.scenario is None else self.scenario.floor

    @property
    def risk(self) -> float:
        """Mean total KL; of the worst truth if every truth was played."""
        return float(self.kl[..., -1].mean(axis=-1).max())

    @property
    def worst_truth(self) -> int:
        """Truth of the largest mean total KL, if every truth was played."""
        if self.kl.ndim != 3:
            raise ValueError('worst_truth compares all truths: call evaluate(..., truth="all")')
        return int(self.kl[..., -1].mean(axis=-1).argmax())

    def at_worst_truth(self) -> Evaluation:
        """Episodes of the worst truth if every truth was played; otherwise all episodes."""
        if self.kl.ndim == 2:
            return self
        return self._with(
            {name: values[self.worst_truth] for name, values in self._per_episode.items()}
        )

    @property
    def _per_episode(self) -> dict[str, Any]:
        """Arrays with a row per episode, on the last axis but one, by name."""
        losses = {f"{_LOSS_PREFIX}{name}": sums for name, sums in self.losses.items()}
        others = [each.name for each in fields(self)]
        for name in ("rounds", "losses", "scenario"):
            others.remove(name)
        kept = {name: getattr(self, name) for name in others}
        return losses | {name: array for name, array in kept.items() if array is not None}

    def _with(self, arrays: Mapping[str, Any]) -> Evaluation:
        """The same evaluation with other arrays per episode."""
        changed = Evaluation.from_arrays({"rounds": self.rounds, **arrays})
        return replace(changed, scenario=self.scenario)

    @property
    def opt(self) -> FloatArray:
        """OPT, ``(episodes,)``: the loss of the best hypothesis; 0 if one is the truth."""
        return self.comparator.min(axis=-1)

    @property
    def best(self) -> IntArray:
        """The hypothesis with the least loss, ``(episodes,)``; -2 where OPT is infinite."""
        return np.where(np.isfinite(self.opt), self.comparator.argmin(axis=-1), _NO_BEST)

    @property
    def regret(self) -> FloatArray:
        """Total KL minus OPT, ``(episodes,)``; -inf where OPT is infinite, NaN where both are."""
        with np.errstate(invalid="ignore"):
            return self.kl[..., -1] - self.opt

    @property
    def found(self) -> float | None:
        """Share of episodes whose heaviest weight is on the best hypothesis; None without weights."""
        return (
            None if self.weights is None else float((_heaviest(self.weights) == self.best).mean())
        )

    @property
    def decided(self) -> FloatArray:
        """First checkpoint with at most one hypothesis left, ``(episodes,)``; inf if there is none."""
        if self.left is None:
            raise ValueError("decided needs confidence sets: call evaluate(..., alpha=0.05)")
        return np.where(self.left <= 1, self.rounds, np.inf).min(axis=-1)

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """:attr:`risk` with its confidence interval, over the episodes."""
        return largest_mean(np.atleast_2d(self.kl[..., -1]), confidence, least=0.0)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Ends of the confidence interval of :attr:`risk`, over the episodes."""
        estimate = self.estimate(validation.fraction("confidence", confidence))
        if self.kl.shape[-2] < 2:
            raise ValueError(f"an interval needs at least 2 episodes, got {self.kl.shape[-2]}")
        return estimate.low, estimate.high

    def __repr__(self) -> str:
        return (
            f"Evaluation(risk={self.risk:.4g}, episodes={self.kl.shape[-2]}, T={self.rounds[-1]})"
        )

    def __str__(self) -> str:
        episodes, horizon = self.kl.shape[-2], int(self.rounds[-1])
        lines = [f"risk    {self.risk:,.2f} nats over {horizon:,} rounds, {episodes} episodes"]
        if self.kl.ndim == 3:
            lines[0] += f", worst truth {self.worst_truth} of {len(self.kl)}"
        estimate = self.estimate()
        if unseen := estimate.warning(horizon * Rules.max_loss):
            lines.append(f"unseen  {unseen}")
        elif estimate.known:
            lines[0] += f", 95% interval [{estimate.low:,.2f}, {estimate.high:,.2f}]"
        played = self.at_worst_truth()  # of which the risk is
        infinite = ~np.isfinite(played.opt)
        if infinite.any():
            share = f"{int(infinite.sum())} of {infinite.size} episodes"
            lines.append(
                f"regret  none: OPT is infinite in {share}, as every hypothesis excluded a label"
            )
            return "\n".join(lines)
        regret, opt = played.regret.mean(), played.opt.mean()
        lines.append(f"regret  {regret:,.2f} over the best hypothesis, OPT {opt:,.2f}")
        if played.found is not None:
            lines.append(f"found   the best hypothesis in {played.found:.0%} of the episodes")
        return "\n".join(lines)


def join_episodes(parts: Sequence[Evaluation]) -> Evaluation:
    """Concatenate evaluations of the same game along the episodes."""
    arrays = [part._per_episode for part in parts]
    return parts[0]._with(
        {name: np.concatenate([each[name] for each in arrays], axis=-2) for name in arrays[0]}
    )


def evaluate(
    learner: str | Callable[[Game], LearnerProtocol],
    env: Mapping[str, Any] | gym.Env[Any, Any] | Recording,
    *,
    episodes: int,
    seed: int = 0,
    truth: int | str | None = None,
    checkpoints: Sequence[int] | None = None,
    losses: Sequence[str] | None = None,
    averages: bool = False,
    leaders: bool = False,
    alpha: float | None = None,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play a learner and return its cumulative losses. The learner never sees them.

    Episode i is the environment's episode under ``reset(seed=seed + i)``. A learner that can play a tape
    (every exponential-weights learner) does, in blocks; any other is stepped, all episodes at once.

    Args:
        learner: a learner's name, a trained model's directory, or a callable from a Game to a learner, such
            as ``ldp_agents.EXP3``.
        env: keyword arguments of ``gym.make("LDPDist-v0", ...)``, such an environment, or a
            :class:`Recording` of a game that several learners play.
        episodes: number of episodes.
        seed: seed of the first episode.
        truth: index of a member for every episode, "all" to play the episodes once with each member, or
            None for the truth of the rules. An error if the rules name a truth outside the class.
        checkpoints: rounds at which to keep the sums; log-spaced by default.
        losses: names of losses to sum up, such as ``["tv", "hellinger"]``; the KL is always one of them. By
            default those of the rules, which are ``["kl", "tv"]`` unless they say otherwise.
        averages: keep the episodes' average predictions too, of a class without contexts.
        leaders: keep the hypothesis of the heaviest weight at each checkpoint too.
        alpha: keep the learner's confidence sets too, which lose a truth in the class with probability at
            most alpha (:meth:`ldp_agents.Bayes.confidence_set`).
        jobs: number of processes, -1 for one per core; the numbers are the same for any.
        progress: callback with the number of rounds played since the last call.

    Example:
        >>> import ldp_agents
        >>> result = evaluate(ldp_agents.Uniform, {"horizon": 100}, episodes=4)
        >>> result.rounds[-1], result.kl.shape == (4, len(result.rounds))
        (np.int64(100), True)
    """
    recording = env if isinstance(env, Recording) else Recording(as_scenario(env), most_bytes=0)
    scenario = recording.scenario
    count = validation.whole("episodes", episodes, least=1)
    seed = validation.seed("seed", seed)
    averages, leaders = validation.flag("averages", averages), validation.flag("leaders", leaders)
    validation.function("progress", progress, "of the number of rounds played")
    report = progress or (lambda rounds: None)
    rounds = _checkpoints(scenario.horizon, checkpoints)
    names = scenario.losses if losses is None else load_losses(losses)
    if averages and not scenario.hypotheses.constant:
        raise ValueError(
            f"average predictions need a class without contexts, got {scenario.hypotheses!r}"
        )
    first = Episodes(scenario, scenario.start_episodes([first_generator(seed)])).play(1).candidates
    warn_of_broken_promise(scenario.channel, first.reshape(-1, *first.shape[-2:])[0])
    warn_of_blind_pairs(scenario)
    all_members = isinstance(truth, str) and truth == "all"
    every = range(scenario.hypotheses.num_hypotheses) if all_members else [truth]
    members = [None if member is None else scenario.valid_member(member) for member in every]
    made = build_learner(learner, scenario.game)
    if alpha is not None:
        alpha = validation.fraction("alpha", alpha)
        if not hasattr(made, "confidence_set"):
            raise ValueError(
                f"alpha asks for confidence sets, which {made!r} does not keep; 'bayes' does"
            )
    numbers = (
        (len(names) + 2) * len(rounds)
        + 2 * scenario.hypotheses.num_hypotheses
        + scenario.hypotheses.num_labels
    )
    validation.fits_memory("episodes", count, len(members) * numbers, "results")
    plays = [(seed + i, member) for member in members for i in range(count)]
    together = _episodes_at_a_time(
        scenario, plays_blocks(made) and not scenario.channel.adaptive, len(plays)
    )
    pieces = [plays[start : start + together] for start in range(0, len(plays), together)]
    processes = min(count_jobs(jobs), len(pieces))
    work = _Work(learner, scenario, rounds, names, averages, leaders, alpha)
    if processes == 1:
        with one_thread():
            parts = {i: work.play(made, recording, piece, report) for i, piece in enumerate(pieces)}
    else:
        parts = {}
        for i, part in share_out(work, pieces, processes):
            if isinstance(part, BrokenProcessPool):
                raise RuntimeError(
                    "a process that played some of the episodes was killed twice"
                ) from part
            parts[i] = part
            report(scenario.horizon * len(pieces[i]))
    shape = (len(members), count) if all_members else (count,)
    uniform = all_members or (truth is None and getattr(scenario.truth, "member", 0) is None)
    joined = join_episodes([parts[i] for i in range(len(pieces))])
    shaped = joined._with(
        {
            name: values.reshape(*shape, values.shape[-1])
            for name, values in joined._per_episode.items()
        }
    )
    return replace(shaped, scenario=scenario if uniform else None)


def as_scenario(env: object) -> Scenario:
    """Scenario of rules, of a dict of them, or of an environment."""
    if isinstance(env, Mapping | Rules):
        return EnvArguments.of(env, "env").scenario()
    if isinstance(env, gym.Env) and isinstance(env.unwrapped, SingleEnv):
        if Seat.LEARNER in env.unwrapped.seats:
            return env.unwrapped.scenario
        raise TypeError(
            f"learners do not play {env}, where an agent asks or picks contexts: score its policy, or play "
            f"it as a channel (ldp_agents.rl.as_channel)"
        )
    raise TypeError(
        f'env must be a dict of gym.make("LDPDist-v0", ...) arguments or such an environment, got '
        f"{validation.describe(env)}"
    )


def _checkpoints(horizon: int, given: Sequence[int] | None) -> IntArray:
    if given is None:
        decades = np.log10(horizon)
        spaced = np.logspace(0, decades, num=1 + int(np.ceil(10 * decades)))
        return np.unique(np.append(np.rint(spaced).astype(np.int64), horizon))
    given = validation.list_of("checkpoints", given, "rounds")
    rounds = [validation.whole("checkpoints", t, least=1) for t in given]
    if max(rounds, default=1) > horizon:
        raise ValueError(f"checkpoints must lie in 1..{horizon}, got {max(rounds)}")
    return np.unique([*rounds, horizon])


def _episodes_at_a_time(scenario: Scenario, in_blocks: bool, total: int) -> int:
    """Number of episodes that are played together: few enough to give several processes some each.

    It does not depend on the number of processes: the last bit of a loss may depend on it.
    """
    rounds = _BLOCK_FLOATS // scenario.footprint
    most, least = (
        (rounds // 256, rounds // scenario.horizon) if in_blocks else (rounds, _LEAST_STEPPED)
    )
    return max(1, min(most, _MOST_TOGETHER, max(least, -(-total // _PIECES))))


@dataclass(frozen=True)
class _Work:
    """Play pieces of the episodes, given by seeds and truths; it can be sent to a process."""

    learner: str | Callable[[Game], LearnerProtocol]
    scenario: Scenario
    checkpoints: IntArray
    losses: Sequence[str]
    averages: bool
    leaders: bool
    alpha: float | None

    @cached_property
    def _made(self) -> LearnerProtocol:
        return build_learner(self.learner, self.scenario.game)

    def __call__(self, plays: Sequence[tuple[int, int | None]]) -> Evaluation:
        with one_thread():
            return self.play(
                self._made, Recording(self.scenario, most_bytes=0), plays, lambda rounds: None
            )

    def play(
        self,
        learner: LearnerProtocol,
        recording: Recording,
        plays: Sequence[tuple[int, int | None]],
        report: Callable[[int], None],
    ) -> Evaluation:
        scenario, checkpoints = self.scenario, self.checkpoints
        total_prediction = (
            np.zeros((len(plays), scenario.game.num_labels)) if self.averages else None
        )
        sums = {name: np.zeros((len(plays), len(checkpoints))) for name in self.losses}
        comparator = np.zeros((len(plays), scenario.game.num_hypotheses))
        leading: list[IntArray] = []
        left: list[IntArray] = []
        confidence_set: BoolArray | None = None
        stops = checkpoints if self.leaders or self.alpha is not None else None
        begin_episodes(learner, [first_generator(seed) for seed, _ in plays])
        for start, tape, charged in recording.blocks(plays, stops):
            predictions = _predict_block(learner, tape, start)
            rounds = predictions.shape[1]
            # The block's rounds fall into segments that end at checkpoints.
            first, last = np.searchsorted(checkpoints, (start, start + rounds - 1), side="right")
            edges = np.append(0, checkpoints[first:last] - start)
            losses = charge(self.losses, tape.distributions, predictions, tape.negentropies)
            for name, total in sums.items():
                total[:, first : last + 1] += np.add.reduceat(losses[name], edges, axis=1)
            if total_prediction is not None:
                total_prediction += predictions.sum(axis=1)
            comparator += charged.sum(axis=1) * (
                rounds / charged.shape[1]
            )  # one for all rounds, or one each
            weights = _weights(learner, comparator.shape)
            if self.leaders and weights is not None and start + rounds == checkpoints[last]:
                leading.append(_heaviest(weights))
            if self.alpha is not None and start + rounds == checkpoints[last]:
                confidence_set = learner.confidence_set(self.alpha)  # type: ignore[attr-defined]
                left.append(confidence_set.sum(axis=-1))
            report(rounds * len(plays))
        cumulative = {name: np.cumsum(total, axis=-1) for name, total in sums.items()}
        average = None if total_prediction is None else total_prediction / scenario.horizon
        led, sizes = (np.stack(found, axis=-1) if found else None for found in (leading, left))
        return Evaluation(
            checkpoints, cumulative, comparator, weights, average, led, sizes, confidence_set
        )


def _weights(learner: LearnerProtocol, shape: tuple[int, ...]) -> FloatArray | None:
    """A learner's weights ``(B, K)`` of the hypotheses; None if its attribute has another shape."""
    try:
        weights = np.asarray(getattr(learner, "weights", None), dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.broadcast_to(weights, shape).copy() if weights.shape in (shape, shape[-1:]) else None


def _heaviest(weights: FloatArray) -> IntArray:
    """Hypothesis of the heaviest weight, of weights ``(..., K)``; -1 for a tie."""
    unique = (weights == weights.max(axis=-1, keepdims=True)).sum(axis=-1) == 1
    return np.where(unique, weights.argmax(axis=-1), NO_MEMBER)


Block = tuple[int, Tape, FloatArray]
"""A block of rounds: its first round, its tape, and the loss of each hypothesis, ``(B, n or 1, K)``."""


class Recording:
    """Tape of a game that several learners play, one after the other; it does not depend on them.

    Args:
        scenario: the game.
        most_bytes: largest part of the tape that is kept.
    """

    def __init__(self, scenario: Scenario, most_bytes: int = _KEPT_BYTES) -> None:
        self.scenario, self._bytes_left = scenario, most_bytes
        self._kept: dict[tuple[object, ...], list[Block]] = {}

    def blocks(
        self, plays: Sequence[tuple[int, int | None]], stops: IntArray | None = None
    ) -> Iterator[Block]:
        """Yield episodes, given by seeds and truths, block by block; a block ends at every stop."""
        which = (*plays, *(() if stops is None else stops.tolist()))
        if which in self._kept:
            yield from self._kept[which]
            return
        kept, size = [], 0
        for block in self._record(plays, stops):
            size += sum(
                array.nbytes for array in (block[2], *vars(block[1]).values()) if array is not None
            )
            if size <= self._bytes_left:
                kept.append(block)
            else:
                kept.clear()
            yield block
        if kept:
            self._kept[which] = kept
            self._bytes_left -= size

    def _record(
        self, plays: Sequence[tuple[int, int | None]], stops: IntArray | None
    ) -> Iterator[Block]:
        scenario = self.scenario
        starts: list[EpisodeStart] = []
        for truth, group in groupby(plays, key=itemgetter(1)):
            starts += scenario.start_episodes([first_generator(seed) for seed, _ in group], truth)
        tapes = Episodes(scenario, starts, show_contexts=False)
        block = scenario.rounds_at_a_time(len(plays), _BLOCK_FLOATS)
        if block <= FEW_ROUNDS:  # products of more rounds are faster
            block = scenario.rounds_at_a_time(len(plays), 2 * _BLOCK_FLOATS)
        ends = {scenario.horizon, *range(block, scenario.horizon, block)}
        ends.update(() if stops is None else stops.tolist())
        for start, end in pairwise([0, *sorted(ends)]):
            tape = tapes.play(end - start)
            for handed in (tape.candidates, tape.messages, tape.log_likelihoods):
                if handed is not None:
                    handed.flags.writeable = (
                        False  # a learner that changes them in place gets an error
                    )
            if not start or "distributions" not in scenario.constant_fields:
                charged = kl_to_each(tape.distributions, tape.candidates, tape.negentropies)
            yield start, tape, charged


def _predict_block(learner: LearnerProtocol, tape: Tape, start: int) -> FloatArray:
    """The learner's predictions ``(B, n, M)``, checked as the environment would check them."""
    played = play_block(learner, tape.candidates, tape.messages, tape.log_likelihoods)
    predictions = game_arrays.prediction_floats("what play() returns", played)
    shape = (*tape.labels.shape, tape.candidates.shape[-1])
    if predictions.shape != shape:
        raise ValueError(
            f"predictions of a block must have shape {shape} (B, n, M), got {predictions.shape}"
        )
    return game_arrays.predictions(
        predictions,
        lambda row: f"the learner's prediction in round {start + row[-1] + 1}",
        "a prediction is a distribution over the labels",
    )
