"""Play a learner for many episodes, and sum up its losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

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
from ldp_gym.processes import count_jobs, one_thread, share_out_all
from ldp_gym.statistics import CONFIDENCE, Estimate, largest_mean, largest_quantile
from ldp_gym.theory.contraction import ClassFloor
from ldp_gym.truths.base import NO_MEMBER

_BLOCK_FLOATS = 600_000
"""Target size of a block of tape, in floats."""

_KEPT_BYTES = 2**26
"""Largest part of a game's tape that is kept for its next learner, in bytes."""

_LOSS_PREFIX = "losses/"
"""Prefix of the names of losses among an evaluation's arrays."""

_NO_BEST = -2
"""Sentinel: no best hypothesis. A tie of weights is -1."""

_MOST_TOGETHER = 1024
"""Largest number of episodes that are played together."""

_FEWEST_STEPPED = 256
"""Smallest number of episodes that a stepped learner plays together, if there are as many."""

_PIECES = 16
"""Target number of pieces into which the episodes are cut."""

_FEWEST_ROUNDS = 256
"""Smallest block of tape that pieces leave room for, in rounds."""


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
        """Cumulative loss of a name, in the shape of :attr:`kl`; an error if it was not computed."""
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
    def num_episodes(self) -> int:
        """Number of episodes, of each truth if every truth was played."""
        return self.kl.shape[-2]

    @property
    def has_all_truths(self) -> bool:
        """True if every truth was played (``truth="all"``)."""
        return self.kl.ndim == 3

    @property
    def floor(self) -> ClassFloor | None:
        """Risk that no private channel and learner can beat (:func:`ldp_gym.theory.class_floor`).

        None where that is not proved: for a truth that is given or outside the class, contexts that
        depend on the past, redrawn classes, delta > 0, and results that were stored.
        """
        if self.scenario is None:
            return None
        return self.scenario.floor

    @property
    def risk(self) -> float:
        """Mean total KL.

        If every truth was played, the largest of K means: it is biased upwards, as the truth with
        the unluckiest episodes is picked. :meth:`held_out_estimate` has no such bias.
        """
        return float(self.kl[..., -1].mean(axis=-1).max())

    @property
    def worst_truth(self) -> int:
        """Truth of the largest mean total KL, if every truth was played."""
        if not self.has_all_truths:
            raise ValueError('worst_truth compares all truths: call evaluate(..., truth="all")')
        return int(self.kl[..., -1].mean(axis=-1).argmax())

    def at_worst_truth(self) -> Evaluation:
        """Episodes of the worst truth if every truth was played; otherwise all episodes."""
        if not self.has_all_truths:
            return self
        worst = self.worst_truth
        at_worst = {name: values[worst] for name, values in self._per_episode.items()}
        return self._with(at_worst)

    @property
    def _per_episode(self) -> dict[str, Any]:
        """All arrays but the checkpoints, by name; each has a row per episode, on the last axis but one."""
        arrays = {f"{_LOSS_PREFIX}{name}": sums for name, sums in self.losses.items()}
        for declared in fields(self):
            if declared.name in ("rounds", "losses", "scenario"):
                continue
            array = getattr(self, declared.name)
            if array is not None:
                arrays[declared.name] = array
        return arrays

    def _with(self, arrays: Mapping[str, Any]) -> Evaluation:
        """The same evaluation with other arrays per episode, named as in :attr:`arrays`."""
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
    def identification_rate(self) -> float | None:
        """Share of episodes whose heaviest weight is on the best hypothesis; None without weights."""
        if self.weights is None:
            return None
        is_best = _heaviest(self.weights) == self.best
        return float(is_best.mean())

    @property
    def decided(self) -> FloatArray:
        """First checkpoint with at most one hypothesis left, ``(episodes,)``; inf if there is none."""
        if self.left is None:
            raise ValueError("decided needs confidence sets: call evaluate(..., alpha=0.05)")
        is_decided = self.left <= 1
        return np.where(is_decided, self.rounds, np.inf).min(axis=-1)

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """Mean total KL (the largest of K means if every truth was played), with its confidence interval."""
        totals = np.atleast_2d(self.kl[..., -1])
        return largest_mean(totals, confidence, least=0.0)

    def held_out_estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """Estimate the risk at one truth, without the bias of :attr:`risk` if every truth was played.

        The truth is the one with the largest mean in the first half of the episodes, and the estimate
        is the mean of the second half. Its expectation is at most the largest risk of a truth.
        """
        half = self.num_episodes // 2
        if half < 1:
            raise ValueError(f"two halves need at least 2 episodes, got {self.num_episodes}")
        totals = np.atleast_2d(self.kl[..., -1])
        selected = int(totals[:, :half].mean(axis=-1).argmax())
        second_half = totals[[selected], half:]
        return largest_mean(second_half, confidence, least=0.0)

    def quantile(self, q: float, of: str = "kl", confidence: float = CONFIDENCE) -> Estimate:
        """Estimate the q-quantile of an episode's total loss: the loss is at most this with probability q.

        Its interval is that of order statistics, which assumes nothing about the law of the losses;
        an end that the episodes are too few for is infinite. If every truth was played, it is the
        largest quantile of a truth.

        Args:
            q: probability, in (0, 1).
            of: name of the loss.
            confidence: confidence of the interval.

        Example:
            >>> losses = {"kl": np.arange(1.0, 201.0)[:, None]}
            >>> print(Evaluation(np.array([5]), losses, np.zeros((200, 2))).quantile(0.9))
            180.0 [171.0, 189.0]
        """
        totals = np.atleast_2d(self._loss(of)[..., -1])
        share = validation.fraction("q", q)
        confidence = validation.fraction("confidence", confidence)
        return largest_quantile(totals, share, confidence, least=0.0)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Ends of the confidence interval of :attr:`risk`, over the episodes."""
        estimate = self.estimate(validation.fraction("confidence", confidence))
        if self.num_episodes < 2:
            raise ValueError(f"an interval needs at least 2 episodes, got {self.num_episodes}")
        return estimate.low, estimate.high

    def __repr__(self) -> str:
        return (
            f"Evaluation(risk={self.risk:.4g}, episodes={self.num_episodes}, T={self.rounds[-1]})"
        )

    def __str__(self) -> str:
        return "\n".join([*self._risk_lines(), *self._regret_lines()])

    def _risk_lines(self) -> list[str]:
        """Lines of text about the risk: its estimate, rare failures, and the bias of the worst truth."""
        horizon = int(self.rounds[-1])
        first = (
            f"risk    {self.risk:,.2f} nats over {horizon:,} rounds, {self.num_episodes} episodes"
        )
        if self.has_all_truths:
            first += f", worst truth {self.worst_truth} of {len(self.kl)}"

        estimate = self.estimate()
        unseen = estimate.warning(horizon * Rules.max_loss)
        if estimate.known and not unseen:
            first += f", 95% interval [{estimate.low:,.2f}, {estimate.high:,.2f}]"
        lines = [first]
        if unseen:
            lines.append(f"unseen  {unseen}")

        if self.has_all_truths:
            lines.append(f"        the largest of {len(self.kl)} estimates, biased upwards")
            if self.num_episodes >= 2:
                lines.append(
                    f"held    {self.held_out_estimate()} in the second half of the episodes, at the "
                    f"truth that is worst in the first"
                )
        return lines

    def _regret_lines(self) -> list[str]:
        """Lines of text about the best hypothesis, at the worst truth if every truth was played."""
        played = self.at_worst_truth()
        infinite = ~np.isfinite(played.opt)
        if infinite.any():
            share = f"{int(infinite.sum())} of {infinite.size} episodes"
            reason = "as every hypothesis excluded a label"
            return [f"regret  none: OPT is infinite in {share}, {reason}"]

        regret = played.regret.mean()
        opt = played.opt.mean()
        lines = [f"regret  {regret:,.2f} over the best hypothesis, OPT {opt:,.2f}"]
        if played.identification_rate is not None:
            lines.append(
                f"found   the best hypothesis in {played.identification_rate:.0%} of the episodes"
            )
        return lines


def join_episodes(parts: Sequence[Evaluation]) -> Evaluation:
    """Concatenate evaluations of the same game along the episodes."""
    arrays_of_parts = [part._per_episode for part in parts]
    first = arrays_of_parts[0]
    joined: dict[str, Any] = {}
    for name in first:
        episode_axis = -2
        joined[name] = np.concatenate([arrays[name] for arrays in arrays_of_parts], episode_axis)
    return parts[0]._with(joined)


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
    if isinstance(env, Recording):
        recording = env
    else:
        recording = Recording(as_scenario(env), most_bytes=0)
    scenario = recording.scenario

    count = validation.whole("episodes", episodes, least=1)
    seed = validation.seed("seed", seed)
    averages = validation.flag("averages", averages)
    leaders = validation.flag("leaders", leaders)
    validation.function("progress", progress, "of the number of rounds played")
    rounds = _checkpoints(scenario.horizon, checkpoints)
    names = scenario.losses if losses is None else load_losses(losses)
    if averages and not scenario.hypotheses.constant:
        raise ValueError(
            f"average predictions need a class without contexts, got {scenario.hypotheses!r}"
        )
    _warn_of_channel(scenario, seed)
    members = _members(scenario, truth)
    made = build_learner(learner, scenario.game)
    alpha = _valid_alpha(alpha, made)
    floats_per_episode = _result_size(scenario, len(names), len(rounds)) * len(members)
    validation.fits_memory("episodes", count, floats_per_episode, "results")

    work = _Work(learner, scenario, rounds, names, averages, leaders, alpha)
    plays = [Play(seed + i, member) for member in members for i in range(count)]
    in_blocks = plays_blocks(made) and not scenario.channel.adaptive
    together = _episodes_at_a_time(scenario, in_blocks, len(plays))
    pieces = [plays[start : start + together] for start in range(0, len(plays), together)]
    parts = _play_pieces(work, made, recording, pieces, count_jobs(jobs), progress)

    joined = join_episodes(parts)
    if truth == "all":
        return replace(_with_truths_axis(joined, len(members)), scenario=scenario)
    drawn_uniformly = truth is None and getattr(scenario.truth, "member", 0) is None
    if drawn_uniformly:
        return replace(joined, scenario=scenario)
    return replace(joined, scenario=None)


def _result_size(scenario: Scenario, num_losses: int, num_checkpoints: int) -> int:
    """Largest number of floats that an evaluation keeps of one episode."""
    game = scenario.game
    at_checkpoints = num_losses + 2  # the losses, the leader and the size of the confidence set
    at_the_end = 2 * game.num_hypotheses + game.num_labels
    return at_checkpoints * num_checkpoints + at_the_end


def _with_truths_axis(joined: Evaluation, num_truths: int) -> Evaluation:
    """Give the arrays of episodes, sorted by their truth, a leading axis of the truths."""
    arrays = {}
    for name, values in joined._per_episode.items():
        arrays[name] = values.reshape(num_truths, -1, values.shape[-1])
    return joined._with(arrays)


def _warn_of_channel(scenario: Scenario, seed: int) -> None:
    """Warn of a channel that breaks its promise, or cannot tell hypotheses apart.

    Args:
        scenario: the game.
        seed: seed of an episode whose first candidates the channel's promise is checked on.
    """
    episodes = Episodes(scenario, scenario.start_episodes([first_generator(seed)]))
    candidates = episodes.play(1).candidates
    first_table = candidates.reshape(-1, *candidates.shape[-2:])[0]  # (K, M)
    warn_of_broken_promise(scenario.channel, first_table)
    warn_of_blind_pairs(scenario, stacklevel=3)


def _members(scenario: Scenario, truth: int | str | None) -> list[int | None]:
    """Truths to play: all members, one of them, or None for that of the rules."""
    if truth is None:
        return [None]
    if isinstance(truth, str) and truth == "all":
        num_hypotheses = scenario.hypotheses.num_hypotheses
        return [scenario.valid_member(member) for member in range(num_hypotheses)]
    return [scenario.valid_member(truth)]


def _valid_alpha(alpha: float | None, learner: LearnerProtocol) -> float | None:
    """Check the level of the confidence sets that the learner is to keep, if any."""
    if alpha is None:
        return None
    alpha = validation.fraction("alpha", alpha)
    if not hasattr(learner, "confidence_set"):
        raise ValueError(
            f"alpha asks for confidence sets, which {learner!r} does not keep; 'bayes' does"
        )
    return alpha


def _play_pieces(
    work: _Work,
    learner: LearnerProtocol,
    recording: Recording,
    pieces: Sequence[Sequence[Play]],
    jobs: int,
    progress: Callable[[int], None] | None,
) -> list[Evaluation]:
    """Play the pieces of the episodes, in this process or in several.

    Args:
        work: function of a piece, which is sent to other processes.
        learner: the learner that plays in this process.
        recording: the tape that it plays.
        pieces: episodes that are played together.
        jobs: number of processes.
        progress: callback with the number of rounds played since the last call.
    """
    report = progress or _ignore
    num_processes = min(jobs, len(pieces))
    if num_processes == 1:
        with one_thread():
            return [work.play(learner, recording, piece, report) for piece in pieces]

    horizon = work.scenario.horizon
    return share_out_all(work, pieces, num_processes, lambda piece: report(horizon * len(piece)))


def _ignore(rounds: int) -> None:
    """Default progress callback: does nothing."""


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
    """Checkpoints in increasing order, the horizon last: those given, or ten per decade."""
    if given is None:
        decades = np.log10(horizon)
        spaced = np.logspace(0, decades, num=1 + int(np.ceil(10 * decades)))
        whole = np.rint(spaced).astype(np.int64)
        return np.unique(np.append(whole, horizon))

    given = validation.list_of("checkpoints", given, "rounds")
    rounds = [validation.whole("checkpoints", t, least=1) for t in given]
    if max(rounds, default=1) > horizon:
        raise ValueError(f"checkpoints must lie in 1..{horizon}, got {max(rounds)}")
    return np.unique([*rounds, horizon])


def _episodes_at_a_time(scenario: Scenario, in_blocks: bool, total: int) -> int:
    """Number of episodes that are played together: few enough to keep several processes busy.

    It does not depend on the number of processes, as the last bit of a loss depends on it.

    Args:
        scenario: the game.
        in_blocks: True if the learner plays many rounds at a time.
        total: number of all episodes.
    """
    rounds_in_block = _BLOCK_FLOATS // scenario.footprint  # of all episodes together
    if in_blocks:
        most_episodes = rounds_in_block // _FEWEST_ROUNDS
        fewest_episodes = rounds_in_block // scenario.horizon  # whole episodes in one block
    else:
        most_episodes = rounds_in_block  # a round of each
        fewest_episodes = _FEWEST_STEPPED
    episodes_per_piece = math.ceil(total / _PIECES)
    wanted = max(fewest_episodes, episodes_per_piece)
    return max(1, min(most_episodes, _MOST_TOGETHER, wanted))


class Play(NamedTuple):
    """An episode to play."""

    seed: int
    truth: int | None  # a member; None for the truth of the rules


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
        """The learner, made once in each process."""
        return build_learner(self.learner, self.scenario.game)

    def __call__(self, plays: Sequence[Play]) -> Evaluation:
        """Play some episodes together in a worker process, which keeps no tape."""
        recording = Recording(self.scenario, most_bytes=0)
        with one_thread():
            return self.play(self._made, recording, plays, _ignore)

    def play(
        self,
        learner: LearnerProtocol,
        recording: Recording,
        plays: Sequence[Play],
        report: Callable[[int], None],
    ) -> Evaluation:
        """Play some episodes together.

        Args:
            learner: the learner that plays.
            recording: tape of the game.
            plays: seeds and truths of the episodes.
            report: callback with the number of rounds of each block that was played.
        """
        sums = _Sums(self, len(plays))
        observed = _Observed(self, learner, len(plays))
        begin_episodes(learner, [first_generator(play.seed) for play in plays])
        for block in recording.blocks(plays, observed.stops):
            predictions = _predict_block(learner, block)
            sums.add(block, predictions)
            observed.observe(block)
            report(block.num_rounds * len(plays))

        average = None
        if sums.prediction is not None:
            average = sums.prediction / self.scenario.horizon
        return Evaluation(
            rounds=self.checkpoints,
            losses={name: np.cumsum(parts, axis=-1) for name, parts in sums.losses.items()},
            comparator=sums.comparator,
            weights=_weights(learner, sums.comparator.shape),
            average_prediction=average,
            leaders=_stack(observed.leaders),
            left=_stack(observed.left),
            confidence_set=observed.confidence_set,
        )


class _Sums:
    """Sums over the rounds of B episodes.

    Attributes:
        losses: sums by name, in the rounds up to each checkpoint from the one before, ``(B, checkpoints)``.
        comparator: loss of each hypothesis, ``(B, K)``.
        prediction: sum of the predictions, ``(B, M)``, if averages are asked for.
    """

    def __init__(self, work: _Work, episodes: int) -> None:
        game = work.scenario.game
        self._checkpoints = work.checkpoints
        self.losses = {name: np.zeros((episodes, len(work.checkpoints))) for name in work.losses}
        self.comparator = np.zeros((episodes, game.num_hypotheses))
        self.prediction: FloatArray | None = None
        if work.averages:
            self.prediction = np.zeros((episodes, game.num_labels))

    def add(self, block: Block, predictions: FloatArray) -> None:
        """Add the rounds of a block, with the learner's predictions ``(B, n, M)``."""
        tape = block.tape
        losses = charge(list(self.losses), tape.distributions, predictions, tape.negentropies)

        # The block's rounds fall into segments that end at checkpoints.
        last_round = block.end - 1
        first, last = np.searchsorted(self._checkpoints, (block.start, last_round), side="right")
        segment_starts = np.append(0, self._checkpoints[first:last] - block.start)
        for name, parts in self.losses.items():
            parts[:, first : last + 1] += np.add.reduceat(losses[name], segment_starts, axis=1)

        # If candidates and truth are the same in all rounds, one loss stands for all of them.
        rounds_per_loss = block.num_rounds / block.losses.shape[1]
        self.comparator += block.losses.sum(axis=1) * rounds_per_loss
        if self.prediction is not None:
            self.prediction += predictions.sum(axis=1)


class _Observed:
    """Leaders and confidence sets of a learner at checkpoints, if they are asked for.

    Attributes:
        stops: rounds at which blocks must end to see it; None if nothing is asked for.
        leaders: hypothesis of the heaviest weight, ``(B,)`` at each checkpoint.
        left: size of the confidence set, ``(B,)`` at each checkpoint.
        confidence_set: the last confidence set, ``(B, K)``.
    """

    def __init__(self, work: _Work, learner: LearnerProtocol, episodes: int) -> None:
        self._checkpoints = work.checkpoints
        self._learner: Any = learner
        self._alpha = work.alpha
        self._shape = (episodes, work.scenario.game.num_hypotheses)
        self._wants_leaders = work.leaders
        shows_weights_in_blocks = plays_blocks(learner) and hasattr(learner, "weights_along")
        self.stops: IntArray | None = None
        if work.alpha is not None or (work.leaders and not shows_weights_in_blocks):
            self.stops = work.checkpoints
        self.leaders: list[IntArray] = []
        self.left: list[IntArray] = []
        self.confidence_set: BoolArray | None = None

    def observe(self, block: Block) -> None:
        """Record the learner at the checkpoints in a block, after it played the block."""
        first, last = np.searchsorted(self._checkpoints, (block.start, block.end), side="right")
        for checkpoint in self._checkpoints[first:last].tolist():
            if self._wants_leaders:
                weights = self._weights_at(checkpoint, block)
                if weights is not None:
                    self.leaders.append(_heaviest(weights))
            if self._alpha is not None and checkpoint == block.end:
                confidence_set: BoolArray = self._learner.confidence_set(self._alpha)
                self.confidence_set = confidence_set
                self.left.append(confidence_set.sum(axis=-1))

    def _weights_at(self, checkpoint: int, block: Block) -> FloatArray | None:
        """The learner's weights ``(B, K)`` at a checkpoint in the last block; None if it has none."""
        if checkpoint == block.end:
            return _weights(self._learner, self._shape)
        weights_along: FloatArray = self._learner.weights_along
        if weights_along.shape[-1] != self._shape[-1]:  # they weigh something else than hypotheses
            return None
        return weights_along[:, checkpoint - block.start]


def _stack(columns: Sequence[IntArray]) -> IntArray | None:
    """Columns ``(B,)`` side by side, ``(B, n)``; None if there is none."""
    if not columns:
        return None
    return np.stack(columns, axis=-1)


def _weights(learner: LearnerProtocol, shape: tuple[int, ...]) -> FloatArray | None:
    """A learner's weights ``(B, K)`` of the hypotheses; None if its attribute has another shape."""
    try:
        weights = np.asarray(getattr(learner, "weights", None), dtype=np.float64)
    except (TypeError, ValueError):  # no numbers: an attribute with another meaning
        return None
    if weights.shape not in (shape, shape[-1:]):
        return None
    return np.broadcast_to(weights, shape).copy()


def _heaviest(weights: FloatArray) -> IntArray:
    """Hypothesis of the heaviest weight, of weights ``(..., K)``; -1 for a tie."""
    is_heaviest = weights == weights.max(axis=-1, keepdims=True)
    unique = is_heaviest.sum(axis=-1) == 1
    return np.where(unique, weights.argmax(axis=-1), NO_MEMBER)


class Block(NamedTuple):
    """Rounds of the tape, the number of rounds before them, and the loss of each hypothesis.

    One loss stands for all rounds of a block if candidates and truth are the same in all of them.
    """

    start: int
    tape: Tape
    losses: FloatArray  # (B, n or 1, K)

    @property
    def num_rounds(self) -> int:
        """Number of rounds in the block."""
        return self.tape.labels.shape[1]

    @property
    def end(self) -> int:
        """Number of rounds up to the end of the block."""
        return self.start + self.num_rounds

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        given = [array for array in vars(self.tape).values() if array is not None]
        return self.losses.nbytes + sum(array.nbytes for array in given)


class Recording:
    """Tape of a game that several learners play, one after the other; it does not depend on them.

    Args:
        scenario: the game.
        most_bytes: largest part of the tape that is kept.
    """

    def __init__(self, scenario: Scenario, most_bytes: int = _KEPT_BYTES) -> None:
        self.scenario = scenario
        self._bytes_left = most_bytes
        self._kept: dict[tuple[object, ...], list[Block]] = {}

    def blocks(self, plays: Sequence[Play], stops: IntArray | None = None) -> Iterator[Block]:
        """Yield episodes block by block; a block ends at every stop.

        The blocks are kept for the next learner if there is room for all of them.
        """
        key: tuple[object, ...] = tuple(plays)
        if stops is not None:
            key = (*plays, *stops.tolist())
        if key in self._kept:
            yield from self._kept[key]
            return

        blocks: list[Block] = []
        size = 0
        for block in self._record(plays, stops):
            size += block.num_bytes
            if size <= self._bytes_left:
                blocks.append(block)
            else:
                blocks.clear()
            yield block
        if blocks:
            self._kept[key] = blocks
            self._bytes_left -= size

    def _record(self, plays: Sequence[Play], stops: IntArray | None) -> Iterator[Block]:
        """Play episodes block by block; a block ends at every stop."""
        scenario = self.scenario
        starts: list[EpisodeStart] = []
        for truth, group in groupby(plays, key=lambda play: play.truth):
            generators = [first_generator(play.seed) for play in group]
            starts += scenario.start_episodes(generators, truth)
        episodes = Episodes(scenario, starts, show_contexts=False)

        constant_losses = "distributions" in scenario.constant_fields
        for start, end in pairwise(self._edges(len(plays), stops)):
            tape = episodes.play(end - start)
            _make_read_only(tape)
            if start == 0 or not constant_losses:
                losses = kl_to_each(tape.distributions, tape.candidates, tape.negentropies)
            yield Block(start, tape, losses)

    def _edges(self, episodes: int, stops: IntArray | None) -> list[int]:
        """Rounds at which blocks begin and end, from 0 to the horizon."""
        horizon = self.scenario.horizon
        block = self.scenario.rounds_at_a_time(episodes, _BLOCK_FLOATS)
        if block <= FEW_ROUNDS:  # products of more rounds are faster
            block = self.scenario.rounds_at_a_time(episodes, 2 * _BLOCK_FLOATS)
        edges = {*range(0, horizon, block), horizon}
        if stops is not None:
            edges.update(stops.tolist())
        return sorted(edges)


def _make_read_only(tape: Tape) -> None:
    """Make the arrays that a learner is handed read-only: a learner that changes them gets an error."""
    for array in (tape.candidates, tape.messages, tape.log_likelihoods):
        if array is not None:
            array.flags.writeable = False


def _predict_block(learner: LearnerProtocol, block: Block) -> FloatArray:
    """The learner's predictions ``(B, n, M)``, checked as the environment would check them."""
    tape = block.tape
    played = play_block(learner, tape.candidates, tape.messages, tape.log_likelihoods)
    predictions = game_arrays.prediction_floats("what play() returns", played)
    shape = (*tape.labels.shape, tape.candidates.shape[-1])
    if predictions.shape != shape:
        raise ValueError(
            f"predictions of a block must have shape {shape} (B, n, M), got {predictions.shape}"
        )
    return game_arrays.predictions(
        predictions,
        lambda row: f"the learner's prediction in round {block.start + row[-1] + 1}",
        "a prediction is a distribution over the labels",
    )
