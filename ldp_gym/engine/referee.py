"""The referee of B games: shows what the learners may see, and charges them for what they predict.

One game is the case B = 1. Single and vector environment are thin views of this class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.core.divergences import kl, kl_to_each, tv
from ldp_gym.engine.playback import NotesFactory, Playback
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.seeding import LearnerGenerators

_ZERO = np.zeros(())


@dataclass(frozen=True)
class Round:
    """What was played in a round of B games.

    Attributes:
        seen: the contexts ``(B, d)``; the candidates ``(B, K, M)`` where each episode has its own class.
        members: which hypothesis the truth is, -1 where it is none, ``(B,)``.
        distributions: the truths', ``(B, M)``.
        predictions: what was predicted, ``(B, M)``.
        messages: what was sent.
        losses: what was charged, ``(B,)``.
    """

    seen: FloatArray
    members: IntArray
    distributions: FloatArray
    predictions: FloatArray
    messages: Messages
    losses: FloatArray


class Spectator(Protocol):
    """Someone who watches the games, the hidden truth included, and changes nothing in them."""

    def begin(self, games: IntArray, members: IntArray, distributions: FloatArray) -> None:
        """The given games begin; ``members (B,)`` and ``distributions (B, M)`` are of all of them."""

    def watch(self, round_: Round) -> None:
        """A round of all games has been played."""


class Referee:
    """Plays B games of a scenario.

    Args:
        scenario: the game.
        num_games: B.
        spectator: who watches, if anyone does.
        make_notes: see :class:`ldp_gym.engine.playback.Playback`.

    Attributes:
        begun: which games have begun, ``(B,)``.
        over: which have played all their rounds, or have not begun, ``(B,)``.
        learner_generators: makes generators for a learner's own coins, one per game.
    """

    def __init__(
        self,
        scenario: Scenario,
        num_games: int,
        spectator: Spectator | None = None,
        make_notes: NotesFactory | None = None,
    ) -> None:
        self.scenario = scenario
        self._spectator = spectator
        self._playback = Playback(scenario, num_games, make_notes)
        self.begun = np.zeros(num_games, dtype=np.bool_)
        self.over = self._playback.over
        self.learner_generators = LearnerGenerators()
        self._max_loss = np.array(scenario.max_loss)
        placeholder = scenario.channel.placeholder
        self._messages = np.tile(placeholder, (num_games, *[1] * placeholder.ndim))

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Begin new episodes in the given games, each with its own generator; returns their info."""
        self._playback.begin(games, [self.scenario.start_episode(rng, member) for rng in generators])
        self.begun[games] = True
        self.learner_generators.begin(games.tolist(), generators)
        self._messages[games] = self.scenario.channel.placeholder
        if self._spectator is not None:
            members, distributions = self._playback.now("members"), self._playback.now("distributions")
            self._spectator.begin(games, members, distributions)
        return {"truth": self._playback.now("members").copy()} if self.scenario.reveal else {}

    def observe(self, game: int | EllipsisType = ...) -> dict[str, npt.NDArray[Any]]:
        """What the learners see now, theirs to keep: rounds, contexts, messages, candidates on request.

        Args:
            game: the learner of one game, or of all.
        """
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
        """Charge the predictions ``(B, M)`` of the current round, and go on to the next.

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
                    truth, self._playback.candidates, self._playback.now("negentropies")
                ),
            }
        self._messages[...] = self._playback.now("messages")
        if self._spectator is not None:
            seen = self._playback.now("candidates" if self.scenario.redraws else "contexts")
            self._spectator.watch(
                Round(
                    seen.copy(),
                    self._playback.now("members").copy(),
                    truth.copy(),
                    predictions.copy(),
                    self._messages.copy(),
                    losses,
                )
            )
        self._playback.advance()
        return np.subtract(_ZERO, np.minimum(losses, self._max_loss)), info

    def episode_info(self) -> dict[str, npt.NDArray[Any]]:
        """Info ``(B,)`` that is shown only when an episode ends."""
        return {}

    @property
    def candidates(self) -> FloatArray:
        """The public ``f_j(x_t)`` of the current round, ``(B, K, M)``."""
        return self._playback.candidates


def member_option(scenario: Scenario, options: Mapping[str, Any] | None) -> int | None:
    """The member that ``reset(options={"truth": j})`` asks for."""
    options = validation.options("options", options)
    unknown = set(options) - {"truth"}
    if unknown:
        raise ValueError(f"unknown reset options {sorted(unknown)}; the known one is 'truth'")
    return scenario.valid_member(options["truth"]) if options and "truth" in options else None
