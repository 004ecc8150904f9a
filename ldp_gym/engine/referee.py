"""The referee of B games: shows the observations, and computes the losses of predictions.

One game is the case B = 1. The single and the vector environment are thin views of :class:`Referee`. It reads
the tape one round at a time from :class:`Playback`, which records rounds in blocks ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import ZERO, FloatArray, IntArray
from ldp_gym.core.divergences import kl, kl_to_each, tv
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.engine.tape import Episodes, Tape

_BLOCK_NUMBERS = 2**20
"""Largest block of tape, in numbers: 8 MiB."""

_LONGEST_BLOCK = 256
"""Largest block of tape, in rounds: enough to make the cost of a block's calls vanish."""

_FIRST_BLOCK = 2
"""Rounds of the first block of an adaptive game: reset() must not wait for many."""


class Observer:
    """Base class of observers: they see all of B games, the hidden truth included, and change nothing.

    The methods do nothing by default: override those that are needed.
    """

    def begin(self, games: IntArray) -> None:
        """Take note that the given games begin, before the first block of their tape."""

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """Fields ``(len(games), n, ...)`` to record next to a block of these games' tape."""
        return {}

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        """Take note of a round that was played, with predictions ``(B, M)`` and losses ``(B,)``."""


@dataclass
class ResetGroup:
    """Games that began together: they are in the same round, and are recorded together.

    A game that is reset while the others go on leaves its group and becomes a group of its own.
    """

    games: IntArray  # their indices
    episodes: Episodes
    played: int = 0  # number of rounds
    recorded: int = 0  # number of rounds
    cursor: int = 0  # index of the current round in the recorded block

    def leave(self, games: IntArray) -> None:
        """Go on without some of the games."""
        stay = ~np.isin(self.games, games)
        if not stay.all():
            self.games = self.games[stay]
            self.episodes.keep(stay)


class Playback:
    """The current round of each of B games; fields of observers are recorded next to the tape.

    Attributes:
        over: True where a game has played all its rounds, ``(B,)``.
        rounds: number of rounds played, ``(B, 1)``.
    """

    def __init__(
        self, scenario: Scenario, num_games: int, observers: Sequence[Observer] = ()
    ) -> None:
        self.scenario = scenario
        self._observers = observers
        self.over = np.ones(num_games, dtype=np.bool_)
        self.rounds = np.zeros((num_games, 1), dtype=np.int64)
        self._num_games = num_games
        self._block = min(_LONGEST_BLOCK, scenario.rounds_at_a_time(num_games, _BLOCK_NUMBERS))
        self._groups: list[ResetGroup] = []
        self._fields = [
            "contexts",
            "distributions",
            "negentropies",
            "members",
            "labels",
            "messages",
        ]
        if (scenario.observe_candidates or observers) and not scenario.shares_table:
            self._fields.append("candidates")
        self._constant = scenario.constant_fields
        self._record: dict[str, npt.NDArray[Any]] = {}
        self._now: int | tuple[IntArray, IntArray] = 0

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Begin new episodes in the given games."""
        for group in self._groups:
            group.leave(games)
        self._groups = [group for group in self._groups if group.games.size]
        self._groups.append(ResetGroup(games, Episodes(self.scenario, starts)))
        for observer in self._observers:
            observer.begin(games)
        self.over[games] = False
        self._record_block(self._groups[-1])
        self._locate()

    def advance(self) -> None:
        """Go to the next round; a game that is over stays in its last."""
        horizon = self.scenario.horizon
        for group in self._groups:
            if group.played < horizon:
                group.played += 1
                if group.played == horizon:
                    self.over[group.games] = True
                elif group.played == group.recorded:
                    self._record_block(group)
                else:
                    group.cursor += 1
        self._locate()

    def _locate(self) -> None:
        """Note the current round of each game, and its place in the record."""
        if len(self._groups) == 1:
            self._now = self._groups[0].cursor
            self.rounds.fill(self._groups[0].played)
            return
        cursors = np.zeros(self._num_games, dtype=np.int64)
        for group in self._groups:
            cursors[group.games] = group.cursor
            self.rounds[group.games] = group.played
        self._now = (cursors, np.arange(self._num_games))

    def _record_block(self, group: ResetGroup) -> None:
        """Record a group's next rounds, and overwrite those that it has played."""
        # Blocks double from the first on: their length changes nothing in the stream.
        most = max(_FIRST_BLOCK, group.recorded) if self.scenario.adaptive else self._block
        rounds = min(most, self._block, self.scenario.horizon - group.recorded)
        tape = group.episodes.play(rounds)
        group.recorded += rounds
        group.cursor = 0
        # A group of all the games is copied without picking and sorting.
        games = (
            slice(None) if np.array_equal(group.games, np.arange(self._num_games)) else group.games
        )
        recorded = {name: getattr(tape, name) for name in self._fields}
        for observer in self._observers:
            recorded |= observer.record(group.games, tape)
        for name, values in recorded.items():
            constant = name in self._constant
            if name not in self._record:
                shape = (*(() if constant else (self._block,)), self._num_games, *values.shape[2:])
                self._record[name] = np.zeros(shape, dtype=values.dtype)
            if constant:
                self._record[name][games] = values[:, 0]
            else:
                self._record[name][:rounds, games] = np.swapaxes(values, 0, 1)

    def now(self, name: str) -> npt.NDArray[Any]:
        """A field of the tape or of an observer in the current round of each game, ``(B, ...)``.

        It is a view of the record, to be copied before it is given away.
        """
        return self._record[name] if name in self._constant else self._record[name][self._now]

    @property
    def candidates(self) -> FloatArray:
        """The current candidates, ``(B, K, M)``."""
        if "candidates" in self._fields:
            return self.now("candidates").copy()
        candidates = self.scenario.hypotheses(self.now("contexts"))
        return np.array(np.broadcast_to(candidates, (self._num_games, *candidates.shape[-2:])))


class Referee:
    """Referee of B games of a scenario; observers that are None are ignored.

    Attributes:
        begun: True where a game has begun, ``(B,)``.
        over: True where a game has played all its rounds, or has not begun, ``(B,)``.
    """

    def __init__(self, scenario: Scenario, num_games: int, *observers: Observer | None) -> None:
        self.scenario = scenario
        self._observers = [observer for observer in observers if observer is not None]
        self._playback = Playback(scenario, num_games, self._observers)
        self.begun = np.zeros(num_games, dtype=np.bool_)
        self.over = self._playback.over
        self._max_loss = np.array(scenario.max_loss)
        placeholder = scenario.channel.placeholder
        self._messages = np.tile(placeholder, (num_games, *[1] * placeholder.ndim))

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Begin new episodes in the given games, each with its own generator; returns their info."""
        self._playback.begin(games, self.scenario.start_episodes(generators, member))
        self.begun[games] = True
        self._messages[games] = self.scenario.channel.placeholder
        return {"truth": self._playback.now("members").copy()} if self.scenario.reveal else {}

    def observe(self, game: int | EllipsisType = ...) -> dict[str, npt.NDArray[Any]]:
        """Copies of the current observations, of one game or of all."""
        playback = self._playback
        observations = {
            "round": playback.rounds[game].copy(),
            "context": playback.now("contexts")[game].copy(),
            "message": self._messages[game].copy(),
        }
        if self.scenario.observe_candidates:
            observations["candidates"] = playback.candidates[game]
        return observations

    def judge(self, predictions: FloatArray) -> tuple[FloatArray, dict[str, npt.NDArray[Any]]]:
        """Compute the losses of predictions ``(B, M)`` in the current round, and go on to the next.

        Returns:
            The rewards ``(B,)``, ``-min(KL, max_loss)``, and the info.
        """
        truth = self._playback.now("distributions")
        losses = kl(truth, predictions, self._playback.now("negentropies"))
        info: dict[str, npt.NDArray[Any]] = {"kl": losses, "tv": tv(truth, predictions)}
        if self.scenario.reveal:
            info |= {
                "truth": self._playback.now("members").copy(),
                "label": self._playback.now("labels").copy(),
                "comparator": kl_to_each(
                    truth, self.candidates, self._playback.now("negentropies")
                ),
            }
        self._messages[...] = self._playback.now("messages")
        for observer in self._observers:
            observer.watch(self._playback, predictions, losses)
        self._playback.advance()
        return np.subtract(ZERO, np.minimum(losses, self._max_loss)), info  # 0 - x is never -0.0

    def episode_info(self) -> dict[str, npt.NDArray[Any]]:
        """Info ``(B,)`` that is shown only when an episode ends."""
        return {}

    @property
    def candidates(self) -> FloatArray:
        """The public ``f_j(x_t)`` of the current round, ``(B, K, M)``."""
        return self._playback.candidates


def member_option(scenario: Scenario, options: Mapping[str, Any] | None) -> int | None:
    """Member that ``reset(options={"truth": j})`` asks for, checked."""
    options = validation.options_dict("options", options)
    unknown = set(options) - {"truth"}
    if unknown:
        raise ValueError(f"unknown reset options {sorted(unknown)}; the known one is 'truth'")
    return scenario.valid_member(options["truth"]) if "truth" in options else None
