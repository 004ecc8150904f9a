"""The person watching: what a frame shows, kept round by round while the games are played.

A spectator sees the hidden truth. Nothing that it keeps goes back into the game: observations, rewards and
infos are the same with and without one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ldp_gym import posterior
from ldp_gym.arrays import FloatArray, IntArray, Messages, mixture
from ldp_gym.divergences import kl
from ldp_gym.scenario import Scenario
from ldp_gym.spaces import TOLERANCE


@dataclass(frozen=True)
class Scene:
    """What there is to see of one game.

    Attributes:
        title: the rules, in a line.
        played: how many rounds have been played.
        horizon: T.
        truth: the index of the true hypothesis.
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


@dataclass
class _Seat:
    """What is remembered of one game."""

    truth: int
    distribution: FloatArray
    prediction: FloatArray | None = None
    message: Messages | None = None
    losses: list[float] = field(default_factory=list)
    uniform: list[float] = field(default_factory=list)


class Spectator:
    """Watches B games.

    Args:
        scenario: the game that is played.
        num_games: B.
    """

    def __init__(self, scenario: Scenario, num_games: int) -> None:
        size = scenario.hypotheses.num_hypotheses
        self._scenario = scenario
        self._seats: dict[int, _Seat] = {}
        self._log_posterior = posterior.prior((num_games,), size)
        self._weights: FloatArray | None = None

    def begin(self, games: IntArray, truths: IntArray, distributions: FloatArray) -> None:
        """The given games begin; ``truths (B,)`` and ``distributions (B, M)`` are of all of them."""
        for game in games.tolist():
            self._seats[game] = _Seat(int(truths[game]), distributions[game].copy())
        self._log_posterior[games] = posterior.prior((), self._log_posterior.shape[-1])
        self._weights = None

    def watch(
        self,
        distributions: FloatArray,
        candidates: FloatArray,
        predictions: FloatArray,
        messages: Messages,
        losses: FloatArray,
    ) -> None:
        """A round of all games: the truths' distributions, what was predicted, sent and charged."""
        channel = self._scenario.channel
        size = candidates.shape[-2]
        uniform = kl(distributions, mixture(np.full((len(candidates), size), 1.0 / size), candidates))
        public = posterior.weights(self._log_posterior) if channel.interactive else None
        self._log_posterior = posterior.advance(
            self._log_posterior, channel.log_likelihood(messages, candidates, public)
        )
        for game, seat in self._seats.items():
            seat.distribution = distributions[game].copy()
            seat.prediction, seat.message = predictions[game].copy(), messages[game].copy()
            seat.losses.append(float(losses[game]))
            seat.uniform.append(float(uniform[game]))

    def show(self, weights: npt.ArrayLike) -> None:
        """Keep the learner's weights ``(B, K)``, or ``(K,)`` for all games, for the next frames."""
        shown, size = np.asarray(weights, dtype=np.float64), self._log_posterior.shape[-1]
        if shown.shape not in ((size,), self._log_posterior.shape):
            raise ValueError(f"weights to show are one for each of K = {size} hypotheses, got {shown.shape}")
        if not (shown.min() >= 0.0 and np.abs(shown.sum(axis=-1) - 1.0).max() <= TOLERANCE):
            raise ValueError(f"weights to show must be nonnegative and sum to one, got {shown}")
        self._weights = np.broadcast_to(shown, self._log_posterior.shape)

    def scene(self, game: int = 0) -> Scene:
        """What there is to see of a game now."""
        seat, scenario = self._seats[game], self._scenario
        return Scene(
            title=repr(scenario.channel),
            played=len(seat.losses),
            horizon=scenario.horizon,
            truth=seat.truth,
            distribution=seat.distribution,
            prediction=seat.prediction,
            message=seat.message,
            posterior=posterior.weights(self._log_posterior[game]),
            weights=None if self._weights is None else self._weights[game],
            losses=np.cumsum(seat.losses),
            uniform=np.cumsum(seat.uniform),
        )
