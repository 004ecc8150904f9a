"""Observations and actions for RL agents: evidence of a transcript, flat rows, and logits.

LDPDistBox-v0, the wrappers and the trained policies all read transcripts and actions through this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import EllipsisType
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.listing import message_range
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.engine.game import Game
from ldp_gym.engine.role import Actions

FloatRow = npt.NDArray[np.float32]

DEFAULT_LOGIT_RANGE = 5.0
"""Default bound on a logit. Two hypotheses can then be e^10 apart: the others cost 3e-4 nats at K = 8."""

_LEAST_LOG_RATIO = -30.0
"""Lower bound on one message's log-likelihood, relative to the likeliest hypothesis. It keeps a hypothesis
that is ruled out, -inf, from drowning the others. Pure channels with eps up to 30 never reach it."""


class RunningEvidence:
    """Evidence for each hypothesis in units of its noise, ``(..., K + 1)``, with t / T as the last feature.

    Let ``e_s`` be the log-likelihoods of message s less their mean over the K hypotheses, and
    ``V_t = sum_s mean_k e_sk^2``. After t messages feature k is ``sum_s e_sk / sqrt(T V_t / t)``. Its noise
    at the horizon is of size one on every channel, and it lies within ``sqrt(K T)``. The log posterior is a
    multiple of it: an agent has to learn the factor, which depends on eps, T and the class.

    Example:
        >>> from ldp_gym.engine.rules import Rules
        >>> evidence = RunningEvidence(Rules(hypotheses=[[0.9, 0.1], [0.1, 0.9]], horizon=4).scenario().game)
        >>> evidence.along(np.log([[0.6, 0.2]])).tolist()
        [[0.5, -0.5, 0.25]]
    """

    def __init__(self, game: Game, batch_shape: tuple[int, ...] = ()) -> None:
        self.game = game
        self._sums = np.zeros((*batch_shape, game.num_hypotheses))
        self._spread = np.zeros(batch_shape)
        self._rounds = np.zeros(batch_shape)
        self._posterior = game.public_posterior(batch_shape) if game.channel.adaptive else None
        self.features = np.zeros((*batch_shape, game.num_hypotheses + 1), dtype=np.float32)

    @staticmethod
    def space(game: Game) -> gym.spaces.Box:
        """The observation space of one game."""
        bound = np.full(
            game.num_hypotheses + 1, 1.001 * math.sqrt(game.num_hypotheses * game.horizon)
        )
        low = np.append(-bound[1:], 0.0).astype(np.float32)
        high = np.append(bound[1:], 1.0).astype(np.float32)
        return gym.spaces.Box(low, high, dtype=np.float32)

    def along(self, log_likelihoods: FloatArray, games: IntArray | EllipsisType = ...) -> FloatRow:
        """Features after each of n messages, ``(..., n, K + 1)``, from log-likelihoods ``(..., n, K)``."""
        # The hypotheses come first in memory: sums over a short last axis take several times as long.
        evidence = np.moveaxis(log_likelihoods, -1, 0).copy()
        num_hypotheses = len(evidence)
        # A message that every hypothesis rules out, without privacy, tells nothing.
        likeliest = np.maximum.reduce(evidence, axis=0)
        evidence -= np.maximum(likeliest, np.finfo(np.float64).min)
        np.maximum(evidence, _LEAST_LOG_RATIO, out=evidence)
        evidence -= np.add.reduce(evidence, axis=0) / num_hypotheses
        spread = np.einsum("k...,k...->...", evidence, evidence) / num_hypotheses

        # Sums that go on from those of the messages before.
        evidence[..., 0] += np.moveaxis(self._sums[games], -1, 0)
        spread[..., 0] += self._spread[games]
        sums = np.add.accumulate(evidence, axis=-1, out=evidence)
        spreads = np.add.accumulate(spread, axis=-1, out=spread)
        num_messages = sums.shape[-1]
        rounds = self._rounds[games][..., None] + np.arange(1.0, num_messages + 1.0)
        self._sums[games] = np.moveaxis(sums[..., -1], 0, -1)
        self._spread[games] = spreads[..., -1]
        self._rounds[games] = rounds[..., -1]

        horizon = self.game.horizon
        sums *= np.sqrt(rounds / (horizon * np.maximum(spreads, np.finfo(np.float64).tiny)))
        features = np.empty((*rounds.shape, num_hypotheses + 1), dtype=np.float32)
        features[..., :-1] = np.moveaxis(sums, 0, -1)
        features[..., -1] = rounds / horizon
        return features

    def update(self, candidates: FloatArray, messages: Messages) -> None:
        """Take in the messages ``(..., *message_shape)`` of the round with these candidates."""
        weights = None if self._posterior is None else self._posterior.weights
        log_likelihood = self.game.channel.log_likelihood(np.asarray(messages), candidates, weights)
        if self._posterior is not None:
            self._posterior.advance(log_likelihood)
        self.features = self.along(log_likelihood[..., None, :])[..., 0, :]

    def restart(self, games: BoolArray | IntArray) -> None:
        """Begin a new episode in the given games."""
        for state in (self._sums, self._spread, self._rounds, self.features):
            state[games] = 0.0
        if self._posterior is not None:
            self._posterior.restart(games)


class RawRow:
    """Raw observations as one float32 row: t / T, this round's context, the last context, the last message.

    A message stands next to the context that it was about. Candidates, where they are shown, follow each of
    the contexts. A message from a ``Discrete`` space is one-hot; any other is shown as it is. In round 0 the
    last context is zeros, and no name of a one-hot message is 1. ``space`` is the space of one game's row.
    """

    def __init__(self, space: gym.spaces.Dict, horizon: int) -> None:
        self._message = space["message"]
        self._horizon = horizon
        self._names = [name for name in ("context", "candidates") if name in space.spaces]
        shown = [space[name] for name in self._names]
        self.width = sum(math.prod(part.shape or ()) for part in shown)

        last_message = self._message
        if isinstance(last_message, gym.spaces.Discrete):
            last_message = gym.spaces.MultiBinary(int(last_message.n))
        progress = gym.spaces.Box(0.0, 1.0, (1,))
        lows = []
        highs = []
        for part in (progress, *shown, *shown, last_message):
            low, high, _ = message_range(part)
            lows.append(np.full(part.shape or (), low).ravel())
            highs.append(np.full(part.shape or (), high).ravel())
        low_row = np.concatenate(lows).astype(np.float32)
        high_row = np.concatenate(highs).astype(np.float32)
        self.space = gym.spaces.Box(low_row, high_row, dtype=np.float32)

    def shown(self, observation: Mapping[str, npt.NDArray[Any]]) -> FloatRow:
        """The context of a round, and its candidates if they are shown, as rows ``(..., width)``."""
        batch = observation["context"].shape[:-1]
        parts = [observation[name].reshape(*batch, -1) for name in self._names]
        return np.concatenate(parts, axis=-1, dtype=np.float32, casting="same_kind")

    def __call__(self, observation: Mapping[str, npt.NDArray[Any]], last: FloatRow) -> FloatRow:
        """The rows of observations with any leading axes; ``last`` is :meth:`shown` of the round before."""
        played = observation["round"]
        message = np.asarray(observation["message"])
        if isinstance(self._message, gym.spaces.Discrete):
            named = np.arange(self._message.n) == (message - self._message.start)[..., None]
            message = named & (played > 0)
        message = message.reshape(*last.shape[:-1], -1).astype(np.float32)
        share = (played / self._horizon).astype(np.float32)
        return np.concatenate([share, self.shown(observation), last, message], axis=-1)


class Logits(Actions):
    """Actions that are logits: a ``Box`` space, and the weights that an action stands for.

    Logits beyond ``logit_range``, the bound of the space, are accepted if their sum is finite.
    """

    what = "logits"

    def __init__(
        self, num_logits: int, logit_range: float, batch_shape: tuple[int, ...] = ()
    ) -> None:
        bound = validation.positive("logit_range", logit_range)
        self.space = gym.spaces.Box(-bound, bound, (num_logits,), dtype=np.float32)
        self.shape = (*batch_shape, num_logits)

    def checked(self, action: npt.ArrayLike) -> FloatArray:
        """The action as numbers, which must be finite and of the right shape."""
        numbers = validation.numbers("an action", action)
        if numbers.shape != self.shape or not math.isfinite(np.add.reduce(numbers, axis=None)):
            raise ValueError(
                f"an action is finite {self.what} of shape {self.shape}, got shape {numbers.shape}: "
                f"{validation.describe(action)}"
            )
        return numbers

    def read(self, action: npt.ArrayLike) -> FloatArray:
        """The softmax of logits."""
        # The games are side by side in memory: sums over a short last axis take several times as long.
        weights = self.checked(action).T.copy()
        weights -= np.maximum.reduce(weights, axis=0)
        np.exp(weights, out=weights)
        weights /= np.add.reduce(weights, axis=0)
        return weights.T


class Contrasts(Logits):
    """Actions that are contrasts in [-1, 1]; larger ones are accepted, as only the direction matters."""

    what = "coefficients"

    def __init__(self, num_hypotheses: int, batch_shape: tuple[int, ...] = ()) -> None:
        super().__init__(num_hypotheses, 1.0, batch_shape)

    def read(self, action: npt.ArrayLike) -> FloatArray:
        """The contrasts as they are."""
        return self.checked(action)
