"""The data of frames, kept round by round while the games are played. They include the hidden truth."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.engine.playback import Observer, Playback
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.engine.tape import Tape


@dataclass(frozen=True)
class FrameData:
    """The contents of one frame, after a round or before the first."""

    title: str  # the rules, in a line
    played: int  # number of rounds
    horizon: int
    truth: int  # index of the true hypothesis in the last round, -1 outside the class
    distribution: FloatArray  # the truth's in the last round, (M,)
    posterior: FloatArray  # public posterior after the last message, (K,)
    prediction: FloatArray | None  # p_hat_t of the last round; None before the first
    message: Messages | None  # of the last round; None before the first
    weights: FloatArray | None  # those that the learner has shown, (K,), or None
    losses: FloatArray  # cumulative KL after each round, (played,)
    uniform: FloatArray  # cumulative KL of the uniform mixture of the hypotheses


class FrameHistory(Observer):
    """Observer of B games that keeps the data of their frames."""

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self._scenario = scenario
        self._posterior = scenario.game.public_posterior((num_games,))
        self._played = np.zeros(num_games, dtype=np.int64)
        self._members = np.zeros(num_games, dtype=np.int64)
        self._distributions = np.zeros((num_games, scenario.game.num_labels))
        self._last: dict[str, npt.NDArray[Any]] = {}  # other fields of the last round of all games
        self._losses: deque[FloatArray] = deque(maxlen=scenario.horizon)  # (2, B) of each round
        self._weights: FloatArray | None = None

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._posterior.restart(games)
        self._played[games] = 0
        self._weights = None

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """The posterior after each round, and the losses of the uniform mixture."""
        if self._played[games[0]] == 0:
            self._members[games], self._distributions[games] = (
                tape.members[:, 0],
                tape.distributions[:, 0],
            )
        return {
            "posterior": self._posterior.latest_along(tape.read_by(self._scenario.channel), games),
            "uniform_losses": tape.uniform_losses(),
        }

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        self._played += 1
        self._members[...] = playback.now("members")
        self._distributions[...] = playback.now("distributions")
        self._last = {name: playback.now(name).copy() for name in ("messages", "posterior")}
        self._last["predictions"] = predictions.copy()
        self._losses.append(np.stack([losses, playback.now("uniform_losses")]))

    def show(self, weights: npt.ArrayLike) -> None:
        """Keep a learner's weights ``(B, K)``, or ``(K,)`` for all games, for the next frames."""
        shown, expected = validation.numbers("weights", weights), self._posterior.weights.shape
        if shown.shape not in (expected[-1:], expected):
            raise ValueError(
                f"weights to show are one per hypothesis, K = {expected[-1]}, got shape {shown.shape}"
            )
        tolerance, advice = game_arrays.PREDICTION_TOLERANCE, "weights sum to one"
        total = game_arrays.row_totals(
            shown, tolerance, lambda _: "the row of weights", advice, "hypothesis"
        )
        self._weights = np.broadcast_to(
            shown / total[..., None], expected
        )  # not the caller's own array

    def frame_data(self, game: int = 0) -> FrameData:
        """Contents of a game's frame now."""
        played = int(self._played[game])
        rows = islice(self._losses, len(self._losses) - played, None)
        losses = np.array([row[:, game] for row in rows]).reshape(played, 2).cumsum(axis=0)
        last = {name: values[game] for name, values in self._last.items()} if played else {}
        return FrameData(
            title=repr(self._scenario.channel),
            played=played,
            horizon=self._scenario.horizon,
            truth=int(self._members[game]),
            distribution=self._distributions[game].copy(),
            posterior=last.get(
                "posterior", uniform_distribution(self._scenario.game.num_hypotheses)
            ),
            prediction=last.get("predictions"),
            message=last.get("messages"),
            weights=None if self._weights is None else self._weights[game],
            losses=losses[:, 0],
            uniform=losses[:, 1],
        )
