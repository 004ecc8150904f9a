"""The data of frames, kept round by round while the games are played. They include the hidden truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at_round, mixture, uniform_distribution
from ldp_gym.core.divergences import kl
from ldp_gym.engine.referee import Round
from ldp_gym.engine.scenario import Scenario


@dataclass(frozen=True)
class FrameData:
    """The contents of one frame.

    Attributes:
        title: the rules, in a line.
        played: number of rounds played.
        horizon: T.
        truth: index of the true hypothesis in the last round, -1 outside the class.
        distribution: the truth's distribution in the last round, ``(M,)``.
        posterior: public posterior after the last message, ``(K,)``.
        prediction: ``p_hat_t`` of the last round; None before the first.
        message: the message of the last round; None before the first.
        weights: weights that the learner has shown, ``(K,)``, or None.
        losses: cumulative KL after each round, ``(played,)``.
        uniform: cumulative KL of the uniform mixture of the hypotheses.
    """

    title: str
    played: int
    horizon: int
    truth: int
    distribution: FloatArray
    posterior: FloatArray
    prediction: FloatArray | None = None
    message: Messages | None = None
    weights: FloatArray | None = None
    losses: FloatArray = field(default_factory=lambda: np.zeros(0))
    uniform: FloatArray = field(default_factory=lambda: np.zeros(0))


_MOST_UNREAD = 256
"""Rounds that are collected before their posterior and losses are worked out together."""


class FrameHistory:
    """Spectator of B games that keeps the data of their frames.

    Args:
        scenario: the game that is played.
        num_games: B.
    """

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self._scenario = scenario
        self._frames: dict[int, FrameData] = {}
        self._posterior = scenario.game.public_posterior((num_games,))
        self._weights: FloatArray | None = None
        self._unread: list[Round] = []

    def begin(self, games: IntArray, members: IntArray, distributions: FloatArray) -> None:
        """Begin the frames of the given games, from the members ``(B,)`` and distributions of all games."""
        self._read()
        self._posterior.restart(games)
        self._weights = None
        title, prior = repr(self._scenario.channel), self._posterior.weights
        for game in games.tolist():
            self._frames[game] = FrameData(
                title, 0, self._scenario.horizon, int(members[game]), distributions[game].copy(), prior[game]
            )

    def watch(self, round_: Round) -> None:
        """Note a round of all games."""
        self._unread.append(round_)
        if len(self._unread) == _MOST_UNREAD:
            self._read()

    def _read(self) -> None:
        """Work out the rounds since the last frame together: one by one takes far longer."""
        if not self._unread:
            return
        rounds, self._unread = self._unread, []
        seen, members, predictions, messages, losses, distributions = (
            np.stack([getattr(played, name) for played in rounds], axis=1)
            for name in ("seen", "members", "predictions", "messages", "losses", "distributions")
        )
        candidates = seen if self._scenario.redraws else self._scenario.hypotheses(seen)
        weights = uniform_distribution(*losses.shape, candidates.shape[-2])
        uniform = kl(distributions, mixture(weights, candidates))
        self._advance(messages, candidates)
        for game, frame in self._frames.items():
            self._frames[game] = replace(
                frame,
                played=frame.played + len(rounds),
                truth=int(members[game, -1]),
                distribution=distributions[game, -1],
                prediction=predictions[game, -1],
                message=messages[game, -1],
                losses=_extended(frame.losses, losses[game]),
                uniform=_extended(frame.uniform, uniform[game]),
            )

    def _advance(self, messages: Messages, candidates: FloatArray) -> None:
        channel = self._scenario.channel
        if not channel.adaptive:
            self._posterior.advance(channel.log_likelihood(messages, candidates).sum(axis=1))
            return
        for t in range(messages.shape[1]):
            now = candidates if candidates.ndim == 2 else at_round(candidates, t)
            self._posterior.advance(channel.log_likelihood(messages[:, t], now, self._posterior.weights))

    def show(self, weights: npt.ArrayLike) -> None:
        """Keep a learner's weights ``(B, K)``, or ``(K,)`` for all games, for the next frames."""
        shown, expected = validation.numbers("weights", weights), self._posterior.weights.shape
        if shown.shape not in (expected[-1:], expected):
            raise ValueError(
                f"weights to show are one per hypothesis, K = {expected[-1]}, got shape {shown.shape}"
            )
        total = game_arrays.row_totals(
            shown,
            game_arrays.PREDICTION_TOLERANCE,
            lambda _: "the row of weights",
            "weights sum to one",
            place="hypothesis",
        )
        self._weights = np.broadcast_to(shown / total[..., None], expected)  # not the caller's own array

    def frame_data(self, game: int = 0) -> FrameData:
        """Contents of a game's frame now."""
        self._read()
        weights = None if self._weights is None else self._weights[game]
        return replace(self._frames[game], posterior=self._posterior.latest_weights[game], weights=weights)


def _extended(sums: FloatArray, more: FloatArray) -> FloatArray:
    return np.append(sums, np.cumsum(more) + (sums[-1] if len(sums) else 0.0))
