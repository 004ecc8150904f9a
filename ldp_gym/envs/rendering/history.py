"""The data of frames, kept round by round while the games are played. They include the hidden truth."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.bit import label_sides
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.divergences import kl
from ldp_gym.engine.playback import Observer, Playback
from ldp_gym.engine.scenario import EpisodeStart
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
    question: FloatArray | None = (
        None  # 1 for a label that was asked about, 0 or 1/2 (a coin), (M,)
    )
    answer: bool | None = None  # True for yes


class FrameHistory(Observer):
    """Observer of B games that keeps the data of their frames."""

    def __init__(self, playback: Playback) -> None:
        num_games = playback.num_games
        self._playback = playback
        self._scenario = playback.scenario
        self._posterior = self._scenario.game.public_posterior((num_games,))
        self._played = np.zeros(num_games, dtype=np.int64)
        self._members = np.zeros(num_games, dtype=np.int64)
        self._distributions = np.zeros((num_games, self._scenario.game.num_labels))
        self._last: dict[str, npt.NDArray[Any]] = {}  # other fields of the last round of all games
        # (2, B) of each round: the losses of the predictions and of the uniform mixture.
        self._losses: deque[FloatArray] = deque(maxlen=self._scenario.horizon)
        self._weights: FloatArray | None = None

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Begin new episodes in these games: their posterior is uniform again."""
        self._posterior.restart(games)
        self._played[games] = 0
        self._weights = None

    def record(self, games: IntArray, tape: Tape) -> dict[str, npt.NDArray[Any]]:
        """Compute the posterior after each round and the losses of the uniform mixture, by name.

        Args:
            games: indices of the games, which are all in the same round.
            tape: their next rounds.
        """
        if self._played[games[0]] == 0:  # a frame before the first round shows its truth
            self._members[games] = tape.members[:, 0]
            self._distributions[games] = tape.distributions[:, 0]
        log_likelihoods = tape.read_by(self._scenario.channel)
        return {
            "posterior": self._posterior.latest_along(log_likelihoods, games),
            "uniform_losses": tape.uniform_losses(),
        }

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        """Keep what a frame shows of a round: predictions ``(B, M)``, losses ``(B,)``, the posterior."""
        self._note_round(predictions, losses, playback.now("uniform_losses"))
        self._last["posterior"] = playback.now("posterior").copy()

    def _note_round(
        self, predictions: FloatArray, losses: FloatArray, uniform_losses: FloatArray
    ) -> None:
        """Keep what frames of all environments show of a round.

        Args:
            predictions: ``(B, M)``.
            losses: KL of the predictions, ``(B,)``.
            uniform_losses: KL of the uniform mixture of the hypotheses, ``(B,)``.
        """
        playback = self._playback
        self._played += 1
        self._members[...] = playback.now("members")
        self._distributions[...] = playback.now("distributions")
        self._last["messages"] = playback.now("messages").copy()
        self._last["predictions"] = predictions.copy()
        self._losses.append(np.stack([losses, uniform_losses]))

    def show(self, weights: npt.ArrayLike) -> None:
        """Keep a learner's weights ``(B, K)``, or ``(K,)`` for all games, for the next frames."""
        given = validation.numbers("weights", weights)
        expected_shape = self._posterior.weights.shape
        num_hypotheses = expected_shape[-1]
        if given.shape not in ((num_hypotheses,), expected_shape):
            raise ValueError(
                f"weights to show are one per hypothesis, K = {num_hypotheses}, got shape {given.shape}"
            )
        totals = game_arrays.row_totals(
            given,
            game_arrays.PREDICTION_TOLERANCE,
            lambda _: "the row of weights",
            "weights sum to one",
            "hypothesis",
        )
        normalised = given / totals[..., None]  # a copy: the caller may change the given array
        self._weights = np.broadcast_to(normalised, expected_shape)

    def frame_data(self, game: int = 0) -> FrameData:
        """Contents of a game's frame after its last round."""
        played = int(self._played[game])
        episode_losses = islice(self._losses, len(self._losses) - played, None)
        # Two columns: the losses of the predictions and of the uniform mixture.
        losses = np.array([both_losses[:, game] for both_losses in episode_losses])
        totals = losses.reshape(played, 2).cumsum(axis=0)

        last: dict[str, npt.NDArray[Any]] = {}
        if played:
            last = {name: values[game] for name, values in self._last.items()}
        weights = None
        if self._weights is not None:
            weights = self._weights[game]
        uniform = uniform_distribution(self._scenario.game.num_hypotheses)
        return FrameData(
            title=repr(self._scenario.channel),
            played=played,
            horizon=self._scenario.horizon,
            truth=int(self._members[game]),
            distribution=self._distributions[game].copy(),
            posterior=last.get("posterior", uniform),
            prediction=last.get("predictions"),
            message=last.get("messages"),
            weights=weights,
            losses=totals[:, 0],
            uniform=totals[:, 1],
        )


class QuestionHistory(FrameHistory):
    """Frames of games in which an agent asks: the belief, the question and its answer."""

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        """Keep what a frame shows of a round: predictions ``(B, M)``, losses ``(B,)``, question, answer."""
        candidates = playback.candidates_now
        uniform_mixture = candidates.mean(axis=-2)
        uniform_losses = kl(
            playback.now("distributions"), uniform_mixture, playback.now("negentropies")
        )
        self._note_round(predictions, losses, uniform_losses)
        questions = playback.now("questions")
        self._last["questions"] = label_sides(questions, candidates)
        # A message is the question, with its sign turned by a yes.
        self._last["answers"] = (playback.now("messages") != questions).any(axis=-1)

    def frame_data(self, game: int = 0) -> FrameData:
        """Contents of a game's frame after its last answer."""
        data = super().frame_data(game)
        weights = self._playback.weights
        assert weights is not None, "the posterior predicts"
        if data.played == 0:  # no question yet, but the truth of the first round
            return replace(
                data,
                truth=int(self._playback.now("members")[game]),
                distribution=self._playback.now("distributions")[game].copy(),
            )
        return replace(
            data,
            posterior=weights[game].copy(),
            question=self._last["questions"][game],
            answer=bool(self._last["answers"][game]),
        )
