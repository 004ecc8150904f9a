"""Policies of stable-baselines3 that were trained on LDPDistBox-v0, as learners."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ldp_agents.base import Learner
from ldp_gym import Game
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, mixture, softmax
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.engine.learners import play_stepwise
from ldp_gym.engine.posterior import PublicPosterior
from ldp_gym.envs.features import FloatRow, RunningEvidence

_ALGORITHMS = {
    "stable_baselines3": ("A2C", "DDPG", "PPO", "SAC", "TD3"),
    "sb3_contrib": ("ARS", "CrossQ", "RecurrentPPO", "TQC", "TRPO"),
}
"""Names of the algorithms that can be stored, by package. A card names one of them, never code."""

_SAMPLES = 4
"""Number of contexts and of labels that identify a class and a channel."""


def algorithm_class(name: str) -> Any:
    """Look up the class of an algorithm of stable-baselines3 or sb3-contrib."""
    for package, names in _ALGORITHMS.items():
        if name in names:
            with extra("rl", "a policy of stable-baselines3"):
                return getattr(import_module(package), name)
    known = [name for names in _ALGORITHMS.values() for name in names]
    raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(known)}")


def game_parameters(game: Game) -> dict[str, Any]:
    """Properties of a game, as JSON, that a policy which was trained on it depends on."""
    channel = game.channel
    rng = np.random.default_rng(0)

    # Candidates at a few contexts identify the class; messages there, the options of the channel.
    if game.hypotheses is None:
        candidates = rng.dirichlet(np.ones(channel.num_labels), channel.num_hypotheses)
        class_fingerprint = "redrawn"
    else:
        contexts = rng.standard_normal((_SAMPLES, game.hypotheses.context_dim))
        candidates = game.hypotheses(contexts)
        class_fingerprint = _fingerprint(candidates)

    posterior = None
    if channel.adaptive:
        posterior = game.public_posterior((_SAMPLES,)).weights
    labels = np.arange(_SAMPLES) % channel.num_labels
    uniforms = rng.random((_SAMPLES, channel.num_uniforms))
    messages = channel.encode(labels, candidates, uniforms, posterior)

    return {
        "channel": type(channel).__name__,
        "epsilon": channel.epsilon,
        "delta": channel.delta,
        "messages": _fingerprint(messages),
        "batch": game.batch,
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
        "class": class_fingerprint,
    }


def _fingerprint(values: Messages) -> str:
    """Twelve digits that identify numbers, rounded to six decimals."""
    rounded = np.ascontiguousarray(values, dtype=np.float64).round(6)
    rounded += 0.0  # turns -0.0 into 0.0
    return hashlib.sha256(rounded.tobytes()).hexdigest()[:12]


def describe_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """List the entries of ``first`` in which ``second`` differs, in words.

    >>> describe_differences({"K": 4, "M": 6}, {"K": 5, "M": 6})
    'K 4 (not 5)'
    """
    differences = []
    for key, value in first.items():
        other = second.get(key)
        if other != value:
            differences.append(f"{key} {value} (not {other})")
    return ", ".join(differences)


class PolicyLearner(Learner):
    """Learner that plays the mean action of an SB3 policy on the evidence.

    A policy without a memory is called once for a block of rounds, one with a memory once a round.

    Args:
        game: the public rules.
        algorithm: the SB3 model.
        trained_on: the properties that the game must have, as :func:`game_parameters` gives them.

    Raises:
        IncompatibleChannelError: if the game differs.
    """

    def __init__(self, game: Game, algorithm: Any, trained_on: Mapping[str, Any]) -> None:
        differences = describe_differences(trained_on, game_parameters(game))
        if differences:
            raise IncompatibleChannelError(
                f"the policy was trained for {differences}: train one for this game with "
                f"'ldp-gym train ppo'; the learner 'bayes' reads every channel"
            )
        super().__init__(game)
        self.algorithm = algorithm
        if self._has_memory():
            self.play = None  # type: ignore[method-assign, assignment]
        self.reset()

    def _has_memory(self) -> bool:
        """Tell if the policy returns a state, which it wants back in the next round."""
        row = np.zeros((1, self.game.num_hypotheses + 1), dtype=np.float32)
        _, state = self.algorithm.predict(row, deterministic=True)
        return state is not None

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        super().reset(batch_shape)
        self._evidence = RunningEvidence(self.game, batch_shape)
        self._features = np.zeros((*batch_shape, self.game.num_hypotheses + 1), dtype=np.float32)
        self._public: PublicPosterior | None = None
        if self.game.channel.adaptive:
            self._public = self.game.public_posterior(batch_shape)

        self._begins = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        super().restart(mask)
        self._evidence.restart(mask)
        self._features[mask] = 0.0
        if self._public is not None:
            self._public.restart(mask)
        self._begins = self._begins | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """Mixture of the candidates, with weights from the policy's mean action."""
        # The policy acts once per round, as it may remember what it was shown.
        if self._weights is None:
            self._weights = self._act(self._features, self._begins)
            self._begins = np.zeros_like(self._begins)
        return mixture(self._weights, candidates)

    def _act(self, features: FloatRow, begins: BoolArray) -> FloatArray:
        """Weights ``(..., K)`` at features ``(..., K + 1)``, in games that begin or go on."""
        logits, self._memory = self.algorithm.predict(
            features.reshape(-1, features.shape[-1]),
            state=self._memory,
            episode_start=begins.reshape(-1),
            deterministic=True,
        )
        return softmax(logits.astype(np.float64).reshape(*features.shape[:-1], -1))

    def update(self, candidates: FloatArray, message: Messages) -> None:
        public_weights = None
        if self._public is not None:
            public_weights = self._public.weights
        log_likelihoods = self.game.channel.log_likelihood(
            np.asarray(message), candidates, public_weights
        )
        if self._public is not None:
            self._public.advance(log_likelihoods)

        one_round = log_likelihoods[..., None, :]
        self._features = self._evidence.along(one_round)[..., 0, :]
        self._weights = None

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, ...)`` to predictions ``(B, n, M)``."""
        if self._public is not None:
            if log_likelihoods is None:
                return play_stepwise(self, candidates, messages)
            self._public.along(log_likelihoods)
        elif log_likelihoods is None:
            log_likelihoods = self.game.channel.log_likelihood(messages, candidates)

        after = self._evidence.along(log_likelihoods)
        before = np.concatenate([self._features[..., None, :], after[..., :-1, :]], axis=-2)
        self._features = after[..., -1, :]
        self._weights = None

        # Without a memory, where an episode begins makes no difference.
        begins = np.zeros(before.shape[:-1], dtype=np.bool_)
        return mixture(self._act(before, begins), candidates)
