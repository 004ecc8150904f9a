"""The person watching: what a frame shows, kept round by round while the games are played.

A spectator sees the hidden truth. Nothing that it keeps goes back into the game: observations, rewards and
infos are the same with and without one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at_round, mixture, uniform_distribution
from ldp_gym.core.divergences import kl
from ldp_gym.engine.referee import Round
from ldp_gym.engine.scenario import Scenario


@dataclass(frozen=True)
class FrameData:
    """What there is to see of one game.

    Attributes:
        title: the rules, in a line.
        played: how many rounds have been played.
        horizon: T.
        truth: the index of the true hypothesis in that round, -1 where it is none.
        distribution: the truth's ``f(x_t)`` in the round that was played last, ``(M,)``.
        prediction: ``p_hat_t`` of that round; None before the first.
        message: the message of that round; None before the first.
        posterior: what the messages so far, that one included, say of the hypotheses, ``(K,)``.
        weights: what the learner showed of its own weights, ``(K,)``, if it did.
        losses: cumulative KL after each round, ``(played,)``.
        uniform: the same of the uniform mixture of the hypotheses, which never learns.
    """

    title: str
    played: int
    horizon: int
    truth: int
    distribution: FloatArray
    prediction: FloatArray | None
    message: Messages | None
    posterior: FloatArray
    weights: FloatArray | None
    losses: FloatArray
    uniform: FloatArray


_MOST_UNREAD = 256
"""How many rounds a spectator keeps in mind before it works out what they tell."""


@dataclass
class _GameHistory:
    """What is remembered of one game."""

    truth: int
    distribution: FloatArray
    prediction: FloatArray | None = None
    message: Messages | None = None
    losses: list[float] = field(default_factory=list)
    uniform: list[float] = field(default_factory=list)


class FrameHistory:
    """Watches B games.

    Args:
        scenario: the game that is played.
        num_games: B.
    """

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        self._scenario = scenario
        self._games: dict[int, _GameHistory] = {}
        self._posterior = scenario.game.public_posterior((num_games,))
        self._weights: FloatArray | None = None
        self._unread: list[Round] = []

    def begin(self, games: IntArray, members: IntArray, distributions: FloatArray) -> None:
        """The given games begin; ``members (B,)`` and ``distributions (B, M)`` are of all of them."""
        self._read()
        for game in games.tolist():
            self._games[game] = _GameHistory(int(members[game]), distributions[game].copy())
        self._posterior.restart(games)
        self._weights = None

    def watch(self, round_: Round) -> None:
        """A round of all games has been played."""
        self._unread.append(round_)
        if len(self._unread) == _MOST_UNREAD:
            self._read()

    def _read(self) -> None:
        """Work out what the rounds since the last frame tell: at once, as it takes far longer one by one."""
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
        for game, history in self._games.items():
            history.truth, history.distribution = int(members[game, -1]), distributions[game, -1]
            history.prediction, history.message = predictions[game, -1], messages[game, -1]
            history.losses.extend(losses[game].tolist())
            history.uniform.extend(uniform[game].tolist())

    def _advance(self, messages: Messages, candidates: FloatArray) -> None:
        channel = self._scenario.channel
        if not channel.adaptive:
            self._posterior.advance(channel.log_likelihood(messages, candidates).sum(axis=1))
            return
        for t in range(messages.shape[1]):
            now = candidates if candidates.ndim == 2 else at_round(candidates, t)
            self._posterior.advance(channel.log_likelihood(messages[:, t], now, self._posterior.weights))

    def show(self, weights: npt.ArrayLike) -> None:
        """Keep the learner's weights ``(B, K)``, or ``(K,)`` for all games, for the next frames."""
        shown, expected = validation.numbers("weights", weights), self._posterior.weights.shape
        if shown.shape not in (expected[-1:], expected):
            raise ValueError(
                f"weights to show are one per hypothesis, K = {expected[-1]}, got shape {shown.shape}"
            )
        total = game_arrays.row_totals(
            shown,
            game_arrays.PREDICTION_TOLERANCE,
            lambda _: "what is shown of the weights",
            "weights sum to one",
            place="hypothesis",
        )
        self._weights = np.broadcast_to(shown / total[..., None], expected)  # not the caller's own array

    def frame_data(self, game: int = 0) -> FrameData:
        """What there is to see of a game now."""
        self._read()
        history, scenario = self._games[game], self._scenario
        return FrameData(
            title=repr(scenario.channel),
            played=len(history.losses),
            horizon=scenario.horizon,
            truth=history.truth,
            distribution=history.distribution,
            prediction=history.prediction,
            message=history.message,
            posterior=self._posterior.weights[game],
            weights=None if self._weights is None else self._weights[game],
            losses=np.cumsum(history.losses),
            uniform=np.cumsum(history.uniform),
        )
