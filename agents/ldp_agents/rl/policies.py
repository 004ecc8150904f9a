"""Policies of stable-baselines3 that were trained on LDPDistBox-v0, as learners."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldp_agents.base import Learner
from ldp_gym import Game
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, mixture, softmax
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.envs.features import RunningEvidence

_ALGORITHMS = {
    "stable_baselines3": ("A2C", "DDPG", "PPO", "SAC", "TD3"),
    "sb3_contrib": ("ARS", "CrossQ", "RecurrentPPO", "TQC", "TRPO"),
}
"""Names of the algorithms that can be stored, by package. A card names one of them, never code."""


def algorithm_class(name: str) -> Any:
    """The class of an algorithm of stable-baselines3 or sb3-contrib."""
    for package, names in _ALGORITHMS.items():
        if name in names:
            with extra("rl", "a policy of stable-baselines3"):
                return getattr(__import__(package), name)
    known = ", ".join(name for names in _ALGORITHMS.values() for name in names)
    raise ValueError(f"unknown algorithm {name!r}; known: {known}")


def game_parameters(game: Game) -> dict[str, Any]:
    """Properties of a game, as JSON, that a policy which was trained on it depends on."""
    channel, rng = game.channel, np.random.default_rng(0)
    if game.hypotheses is None:
        candidates = rng.dirichlet(np.ones(channel.num_labels), channel.num_hypotheses)
    else:  # candidates at a few contexts identify the class, and messages there the options of the channel
        candidates = game.hypotheses(rng.standard_normal((4, game.hypotheses.context_dim)))
    posterior = game.public_posterior((4,)).weights if channel.adaptive else None
    labels = np.arange(4) % channel.num_labels
    messages = channel.encode(labels, candidates, rng.random((4, channel.num_uniforms)), posterior)
    return {
        "channel": type(channel).__name__,
        "epsilon": channel.epsilon,
        "delta": channel.delta,
        "messages": _fingerprint(messages),
        "batch": game.batch,
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
        "class": "redrawn" if game.hypotheses is None else _fingerprint(candidates),
    }


def _fingerprint(values: Messages) -> str:
    rounded = np.ascontiguousarray(values, dtype=np.float64).round(6) + 0.0  # of -0.0 and 0.0 one
    return hashlib.sha256(rounded.tobytes()).hexdigest()[:12]


def describe_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The entries of ``first`` in which ``second`` differs, in words, such as ``K 4 (not 5)``."""
    return ", ".join(
        f"{key} {value} (not {second.get(key)})"
        for key, value in first.items()
        if second.get(key) != value
    )


class PolicyLearner(Learner):
    """Learner that plays the mean action of an SB3 policy on the evidence, with or without a memory.

    Args:
        game: the public rules.
        algorithm: the SB3 model.
        trained_on: the properties that the game must have, as :func:`game_parameters` gives them.

    Raises:
        IncompatibleChannelError: if the game differs.
    """

    def __init__(self, game: Game, algorithm: Any, trained_on: Mapping[str, Any]) -> None:
        if differ := describe_differences(trained_on, game_parameters(game)):
            raise IncompatibleChannelError(
                f"the policy was trained for {differ}: train one for this game with 'ldp-gym train ppo'; "
                f"the learner 'bayes' reads every channel"
            )
        super().__init__(game)
        self.algorithm = algorithm
        self.reset()

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        super().reset(batch_shape)
        self._evidence = RunningEvidence(self.game, batch_shape)
        self._begins = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        self._evidence.restart(mask)
        self._begins = self._begins | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """Mixture of the candidates, weighed by the policy's mean action."""
        if self._weights is None:  # the policy acts, and remembers, once per round
            features = self._evidence.features
            action, self._memory = self.algorithm.predict(
                features.reshape(-1, features.shape[-1]),
                state=self._memory,
                episode_start=self._begins.reshape(-1),
                deterministic=True,
            )
            self._begins = np.zeros_like(self._begins)
            self._weights = softmax(action.astype(np.float64).reshape(*self._begins.shape, -1))
        return mixture(self._weights, candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        self._evidence.update(candidates, message)
        self._weights = None
