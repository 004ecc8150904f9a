"""The tape, one round at a time: what a referee of B games reads while it steps them.

Rounds are recorded in blocks ahead of the referee. Games that begin together stay together as one cohort
of episodes; a game that is reset alone leaves its cohort and becomes one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.scenario import Opening, Scenario
from ldp_gym.tape import Episodes, Tape

_CELLS = 2**21
"""How many numbers a block of tape may hold, 16 MiB."""

_LONGEST = 256
"""How many rounds a block of tape may hold: enough to make the cost of a block's calls vanish."""


@dataclass
class Cohort:
    """Games that began together, and how far their rounds are recorded."""

    games: IntArray
    episodes: Episodes
    recorded: int = 0


class Playback:
    """The current round of each of B games.

    Args:
        scenario: the game that is played.
        num_games: B.
    """

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self.scenario = scenario
        self.rounds = np.zeros(num_games, dtype=np.int64)
        self.truths = np.zeros(num_games, dtype=np.int64)
        self._block = min(_LONGEST, scenario.rounds_at_a_time(num_games, _CELLS))
        self._games = np.arange(num_games)
        self._cursor = np.zeros(num_games, dtype=np.int64)
        self._cohorts: list[Cohort] = []
        self._recorded: dict[str, npt.NDArray[Any]] = {}

    def begin(self, games: IntArray, openings: Sequence[Opening]) -> None:
        """Begin new episodes in the given games."""
        for cohort in self._cohorts:
            cohort.games = np.where(np.isin(cohort.games, games), -1, cohort.games)
        self._cohorts = [cohort for cohort in self._cohorts if (cohort.games >= 0).any()]
        cohort = Cohort(games, Episodes(self.scenario, openings))
        self._cohorts.append(cohort)
        self.rounds[games] = 0
        self.truths[games] = cohort.episodes.truths
        self._record(cohort)

    def advance(self) -> None:
        """Go to the next round; a game that has ended stays in its last."""
        self.rounds += self.rounds < self.scenario.horizon
        on = self.rounds < self.scenario.horizon
        self._cursor += on
        if (self._cursor == self._block).any():
            for cohort in self._cohorts:
                first = cohort.games[cohort.games >= 0][0]
                if self._cursor[first] == self._block:
                    self._record(cohort)

    def _record(self, cohort: Cohort) -> None:
        """Record a cohort's next block."""
        rounds = min(self._block, self.scenario.horizon - cohort.recorded)
        tape = cohort.episodes.play(rounds)
        cohort.recorded += rounds
        present = cohort.games >= 0
        games = cohort.games[present]
        self._cursor[games] = 0
        for field in fields(Tape):
            values = getattr(tape, field.name)
            if field.name == "candidates" and not self._keeps(values):
                continue
            if field.name not in self._recorded:
                length = self._block if values.shape[1] == rounds else 1
                shape = (len(self._games), length, *values.shape[2:])
                self._recorded[field.name] = np.zeros(shape, dtype=values.dtype)
            self._recorded[field.name][games, : values.shape[1]] = values[present]

    def _keeps(self, candidates: FloatArray) -> bool:
        """Whether candidates must be kept: seen by the learner, and not one table for all."""
        return self.scenario.observe_candidates and candidates.ndim > 2

    def _now(self, name: str) -> npt.NDArray[Any]:
        recorded = self._recorded[name]
        return recorded[self._games, self._cursor] if recorded.shape[1] > 1 else recorded[:, 0].copy()

    @property
    def over(self) -> BoolArray:
        """Which games have played all their rounds."""
        return self.rounds >= self.scenario.horizon

    @property
    def contexts(self) -> FloatArray:
        """The current contexts, ``(B, d)``; the last again once a game is over."""
        return self._now("contexts")

    @property
    def candidates(self) -> FloatArray:
        """The current candidates, ``(B, K, M)``."""
        if "candidates" in self._recorded:
            return self._now("candidates")
        candidates = self.scenario.hypotheses(self.contexts)
        return np.array(np.broadcast_to(candidates, (len(self._games), *candidates.shape[-2:])))

    @property
    def messages(self) -> Messages:
        """The messages of the current round, ``(B, *message_shape)``, which the learner sees in the next."""
        return self._now("messages")

    @property
    def distributions(self) -> FloatArray:
        """The truth's distributions of the current round, ``(B, M)``. For the referee alone."""
        return self._now("distributions")

    @property
    def labels(self) -> IntArray:
        """The labels of the current round, ``(B,)``. For the referee alone."""
        return self._now("labels")
