"""The playback of B games: the current round of each, played as far ahead as the seats allow.

A seat from outside is asked at its turn, and all others are played by the rules. If only the learner is
outside, whole blocks of rounds are recorded ahead, because predictions never change messages. If the designer
is outside, blocks of rounds wait for its questions, unless nature is adaptive. If Nature is outside, a round
is played when she moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.asked_bit import AskedBit
from ldp_gym.channels.bit import both_answers
from ldp_gym.core.arrays import FloatArray, IntArray, mixture
from ldp_gym.engine.posterior import PublicPosterior
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.engine.seats import Moves, Seat
from ldp_gym.engine.tape import ChosenContexts, Episodes, OpenRounds, Tape

LEARNER_ONLY = frozenset({Seat.LEARNER})
"""Seats of the games of LDPDist-v0."""

_BLOCK_NUMBERS = 2**20
"""Largest block of tape, in numbers: 8 MiB."""

_LONGEST_BLOCK = 256
"""Largest block of tape, in rounds: enough to make the cost of a block's calls vanish."""

_FIRST_BLOCK = 2
"""Rounds of the first block of an adaptive game: reset() must not wait for many."""

_TAPE_FIELDS = ("contexts", "distributions", "negentropies", "members", "labels")
"""Fields of the tape that are always recorded."""

_TURN_FIELDS = ("questions", "messages", "log_likelihoods", "answer_log_likelihoods")
"""Fields of the current round that a designer from outside completes."""


class Observer:
    """Base class of observers: they see all of B games, the hidden truth included, and change nothing.

    The methods do nothing by default: override those that are needed.

    Attributes:
        reads_candidates: True if it reads :attr:`Playback.candidates_now`, which are then recorded.
    """

    reads_candidates = True

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Take note that episodes begin in the given games, before the first block of their tape."""

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

    games: IntArray  # their indices, in order
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
        weights: the exact posterior before the current round's message, ``(B, K)``; None if the learner's
            seat is played from outside.
    """

    def __init__(
        self,
        scenario: Scenario,
        num_games: int,
        seats: frozenset[Seat] = LEARNER_ONLY,
    ) -> None:
        self.scenario = scenario
        self.num_games = num_games
        self.over = np.ones(num_games, dtype=np.bool_)
        self.rounds = np.zeros((num_games, 1), dtype=np.int64)
        self._observers: list[Observer] = []
        self._recorders: list[Observer] = []  # those that override record()
        self._nature_is_outside = Seat.NATURE in seats
        self._designer_is_outside = Seat.DESIGNER in seats
        self._bayes: PublicPosterior | None = None
        self.weights: FloatArray | None = None
        if Seat.LEARNER not in seats:
            self._bayes = PublicPosterior(scenario.game.num_hypotheses, (num_games,))
            self.weights = self._bayes.weights

        self._block = self._longest_block()
        self._fields = self._recorded_fields()
        if scenario.observe_candidates or self._bayes is not None:
            self._record_candidates()
        self._shared_table: FloatArray | None = None
        if scenario.shares_table:
            self._shared_table = scenario.hypotheses(np.zeros(scenario.hypotheses.context_dim))
        # Fields without an axis of rounds: they are the same in all, or those of the current one.
        self._roundless = scenario.constant_fields
        if self._designer_is_outside:
            self._roundless |= set(_TURN_FIELDS)

        self._groups: list[ResetGroup] = []
        self._record: dict[str, npt.NDArray[Any]] = {}
        self._now: int | tuple[IntArray, IntArray] = 0

    def _longest_block(self) -> int:
        """Number of rounds that may be recorded ahead."""
        waits_for_answers = self._designer_is_outside and self.scenario.nature.adaptive
        if self._nature_is_outside or waits_for_answers:
            return 1
        fitting = self.scenario.rounds_at_a_time(self.num_games, _BLOCK_NUMBERS)
        return min(_LONGEST_BLOCK, fitting)

    def _recorded_fields(self) -> list[str]:
        """Names of the fields that are recorded from a tape."""
        recorded = list(_TAPE_FIELDS)
        recorded.append("coins" if self._designer_is_outside else "messages")
        if self._bayes is not None and not self._designer_is_outside:
            recorded.append("log_likelihoods")
        return recorded

    def _record_candidates(self) -> None:
        """Record the candidates too, unless all rounds share one table."""
        if not self.scenario.shares_table and "candidates" not in self._fields:
            self._fields.append("candidates")

    def add_observer(self, observer: Observer) -> None:
        """Let an observer see the games that begin from now on."""
        self._observers.append(observer)
        if type(observer).record is not Observer.record:
            self._recorders.append(observer)
        if observer.reads_candidates:
            self._record_candidates()

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Begin new episodes in the given games."""
        for group in self._groups:
            group.leave(games)
        self._groups = [group for group in self._groups if group.games.size]
        self._groups.append(ResetGroup(games, Episodes(self.scenario, starts)))
        for observer in self._observers:
            observer.begin(games, starts)
        self.over[games] = False
        if self._bayes is not None:
            self._bayes.restart(games)
            self.weights = self._bayes.weights
        if not self._nature_is_outside:
            self._record_ahead(self._groups[-1])
        self._locate()

    def complete(self, moves: Moves) -> None:
        """Play the current round to its end, with the moves of the seats that are outside."""
        if moves.contexts is not None:
            for group in self._groups:
                if group.played < self.scenario.horizon:
                    self._record_block(group, 1, _chosen(moves, self._place_of(group)))
        if moves.questions is not None:
            self._ask(moves.questions)

    def advance(self) -> None:
        """Go to the next round; a game that is over stays in its last."""
        if self._bayes is not None:
            self._bayes.advance(self.now("log_likelihoods"))
            self.weights = self._bayes.weights
        for group in self._groups:
            if group.played + 1 < group.recorded:  # the common case goes first
                group.played += 1
                group.cursor += 1
            elif group.played < self.scenario.horizon:
                self._leave_block(group)
        self._locate()

    def _leave_block(self, group: ResetGroup) -> None:
        """Go to the next round of a group whose current round is the last that was recorded."""
        group.played += 1
        if group.played == self.scenario.horizon:
            self.over[group.games] = True
        elif not self._nature_is_outside:
            self._record_ahead(group)

    def _locate(self) -> None:
        """Note the current round of each game, and its place in the record."""
        if len(self._groups) == 1:
            group = self._groups[0]
            self._now = group.cursor
            self.rounds.fill(group.played)
            return
        cursors = np.zeros(self.num_games, dtype=np.int64)
        for group in self._groups:
            cursors[group.games] = group.cursor
            self.rounds[group.games] = group.played
        self._now = (cursors, np.arange(self.num_games))

    def _record_ahead(self, group: ResetGroup) -> None:
        """Record as many of a group's next rounds as a block may have."""
        most = self._block
        rounds_are_dear = self.scenario.adaptive and not self._designer_is_outside
        if rounds_are_dear:
            # Blocks double from the first on: their length changes nothing in the stream.
            most = min(most, max(_FIRST_BLOCK, group.recorded))
        left = self.scenario.horizon - group.recorded
        self._record_block(group, min(most, left))

    def _record_block(
        self, group: ResetGroup, rounds: int, chosen: ChosenContexts | None = None
    ) -> None:
        """Record a group's next rounds, and overwrite those that it has played."""
        recorded = self._play(group, rounds, chosen)
        group.recorded += rounds
        group.cursor = 0
        games = self._place_of(group)
        for name, values in recorded.items():
            if name not in self._record:
                self._make_room(name, values)
            if name in self._roundless:
                self._record[name][games] = values[:, 0]
            else:
                self._record[name][:rounds, games] = values.swapaxes(0, 1)

    def _play(
        self, group: ResetGroup, rounds: int, chosen: ChosenContexts | None
    ) -> dict[str, npt.NDArray[Any]]:
        """The fields ``(B, n or 1, ...)`` of a group's next rounds."""
        played: OpenRounds | Tape
        if self._designer_is_outside:
            played = group.episodes.open(rounds, chosen)
            return {name: getattr(played, name) for name in self._fields}
        played = group.episodes.play(rounds, chosen)
        recorded = {name: getattr(played, name) for name in self._fields}
        if "log_likelihoods" in recorded:
            recorded["log_likelihoods"] = played.read_by(self.scenario.channel)
        for observer in self._recorders:
            recorded |= observer.record(group.games, played)
        return recorded

    def _place_of(self, group: ResetGroup) -> IntArray | slice:
        """Index of a group's games; a slice if it has all of them, which picks and copies nothing."""
        if len(group.games) == self.num_games:
            return slice(None)
        return group.games

    def _make_room(self, name: str, values: npt.NDArray[Any]) -> None:
        shape = (self.num_games, *values.shape[2:])
        if name not in self._roundless:
            shape = (self._block, *shape)
        self._record[name] = np.zeros(shape, dtype=values.dtype)

    def _ask(self, questions: FloatArray) -> None:
        """Let the users answer the designer's questions ``(B, K)``."""
        channel = self.scenario.channel
        assert isinstance(channel, AskedBit), "the designer sits where the channel asks"
        candidates = self.candidates_now
        messages = channel.answer(questions, self.now("labels"), candidates, self.now("coins"))
        answers = both_answers(questions)
        if candidates.ndim > 2:
            candidates = candidates[:, None]
        likelihoods = channel.log_likelihood(answers, candidates)  # (B, 2, K)
        second = (messages != answers[:, 0]).any(axis=-1)
        self._record["questions"] = questions
        self._record["messages"] = messages
        self._record["answer_log_likelihoods"] = likelihoods
        self._record["log_likelihoods"] = np.where(
            second[:, None], likelihoods[:, 1], likelihoods[:, 0]
        )
        if self.scenario.nature.adaptive:
            for group in self._groups:
                group.episodes.hear(self._record["log_likelihoods"][group.games])

    def now(self, name: str) -> npt.NDArray[Any]:
        """A field of the tape or of an observer in the current round of each game, ``(B, ...)``.

        It is a view of the record, to be copied before it is given away.
        """
        values = self._record[name]
        if name in self._roundless:
            return values
        return values[self._now]

    @property
    def candidates_now(self) -> FloatArray:
        """The current candidates, if they are recorded: a view ``(B, K, M)``, or the table of all games."""
        return self.now("candidates") if self._shared_table is None else self._shared_table

    @property
    def posterior_mean(self) -> FloatArray:
        """The prediction of Bayes in the current round, ``(B, M)``."""
        assert self.weights is not None, "the learner's seat is played by the rules"
        return mixture(self.weights, self.candidates_now)

    @property
    def candidates(self) -> FloatArray:
        """Copies of the current candidates, ``(B, K, M)``."""
        if "candidates" in self._fields:
            return self.now("candidates").copy()
        candidates = self.scenario.hypotheses(self.now("contexts"))
        return np.array(np.broadcast_to(candidates, (self.num_games, *candidates.shape[-2:])))


def _chosen(moves: Moves, games: IntArray | slice) -> ChosenContexts:
    """The contexts that Nature picks from outside in some of the games."""
    assert moves.contexts is not None, "she has moved"
    candidates = moves.candidates
    if candidates is not None:
        candidates = candidates[games, None]
    return ChosenContexts(moves.contexts[games, None], candidates)
