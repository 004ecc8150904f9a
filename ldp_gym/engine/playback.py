"""The tape, one round at a time: what a referee of B games reads while it steps them.

Rounds are recorded in blocks ahead of the referee. Games that begin together stay together as one group
of episodes; a game that is reset alone leaves its group and becomes one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.engine.tape import Episodes, Tape

_CELLS = 2**20
"""How many numbers a block of tape may hold, 8 MiB."""

_LONGEST = 256
"""How many rounds a block of tape may hold: enough to make the cost of a block's calls vanish."""

_FIRST = 2
"""How many rounds the first block has where they are worked out in turn: reset() must not wait for many."""

_EVERY = slice(None)


class Notes(Protocol):
    """Public features of the games of a reset group that are recorded next to the tape."""

    def __call__(self, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """Further fields ``(B, n, ...)`` of the next n rounds."""

    def keep(self, games: BoolArray) -> None:
        """Go on with only some of the games."""


NotesFactory = Callable[[Scenario, int], Notes]
"""Makes the notes of a scenario and a number of games."""


@dataclass
class ResetGroup:
    """Games that began together: they are in the same round, and are recorded together.

    Attributes:
        games: which games they are.
        episodes: their Nature and users.
        played: how many rounds are over.
        recorded: how many rounds have been recorded.
        cursor: where in the recorded block the current round is.
        notes: features that are recorded next to the tape, if any.
    """

    games: IntArray
    episodes: Episodes
    notes: Notes | None = None
    played: int = 0
    recorded: int = 0
    cursor: int = 0

    def leave(self, games: IntArray) -> None:
        """Go on without some of the games."""
        stay = ~np.isin(self.games, games)
        if not stay.all():
            self.games = self.games[stay]
            self.episodes.keep(stay)
            if self.notes is not None:
                self.notes.keep(stay)


class Playback:
    """The current round of each of B games.

    Args:
        scenario: the game that is played.
        num_games: B.
        make_notes: makes the notes of a reset group, if features are recorded next to the tape.

    Attributes:
        over: which games have played all their rounds, ``(B,)``.
        rounds: how many each has played, ``(B, 1)``.
    """

    def __init__(self, scenario: Scenario, num_games: int, make_notes: NotesFactory | None = None) -> None:
        self.scenario = scenario
        self._make_notes = make_notes
        self.over = np.ones(num_games, dtype=np.bool_)
        self.rounds = np.zeros((num_games, 1), dtype=np.int64)
        self._num_games = num_games
        self._block = min(_LONGEST, scenario.rounds_at_a_time(num_games, _CELLS))
        self._groups: list[ResetGroup] = []
        self._fields = ["contexts", "distributions", "negentropies", "members", "labels", "messages"]
        if (scenario.observe_candidates or make_notes) and not scenario.shares_table:
            self._fields.append("candidates")
        # What stays the same throughout an episode.
        self._constant = scenario.constant_fields
        self._record: dict[str, npt.NDArray[Any]] = {}
        self._now: int | tuple[IntArray, IntArray] = 0

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Begin new episodes in the given games."""
        for group in self._groups:
            group.leave(games)
        self._groups = [group for group in self._groups if group.games.size]
        notes = self._make_notes(self.scenario, len(games)) if self._make_notes else None
        self._groups.append(ResetGroup(games, Episodes(self.scenario, starts), notes))
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
        """Note in which round each game is, and where in the record that is."""
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
        """Record a group's next rounds, over those that it has played."""
        # Blocks double from the first on: their length changes nothing in the stream.
        most = max(_FIRST, group.recorded) if self.scenario.adaptive else self._block
        rounds = min(most, self._block, self.scenario.horizon - group.recorded)
        tape = group.episodes.play(rounds)
        group.recorded += rounds
        group.cursor = 0
        # A group of all the games is copied without picking and sorting.
        everyone = np.array_equal(group.games, np.arange(self._num_games))
        games = _EVERY if everyone else group.games
        recorded = {name: getattr(tape, name) for name in self._fields}
        if group.notes is not None:
            recorded |= group.notes(tape)
        for name, values in recorded.items():
            if name in self._constant:
                self._buffer(name, (), values)[games] = values[:, 0]
            else:
                self._buffer(name, (self._block,), values)[:rounds, games] = np.swapaxes(values, 0, 1)

    def _buffer(self, name: str, rounds: tuple[int, ...], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Where a field is recorded, round by round for all games; made when the first values come."""
        if name not in self._record:
            shape = (*rounds, self._num_games, *values.shape[2:])
            self._record[name] = np.zeros(shape, dtype=values.dtype)
        return self._record[name]

    def now(self, name: str) -> npt.NDArray[Any]:
        """A field of :class:`ldp_gym.engine.tape.Tape` in the current round of each game, ``(B, ...)``.

        A view of the record: copy what others may keep. A game that is over shows its last round again.
        """
        return self._record[name] if name in self._constant else self._record[name][self._now]

    @property
    def candidates(self) -> FloatArray:
        """The current candidates, ``(B, K, M)``."""
        if "candidates" in self._fields:
            return self.now("candidates").copy()
        candidates = self.scenario.hypotheses(self.now("contexts"))
        return np.array(np.broadcast_to(candidates, (self._num_games, *candidates.shape[-2:])))
