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
    """Look up the class of an algorithm of stable-baselines3 or sb3-contrib.

    Raises:
        ValueError: if the name is not one of those that can be stored.
    """
    for package, names in _ALGORITHMS.items():
        if name in names:
            with extra("rl", "a policy of stable-baselines3"):
                return getattr(import_module(package), name)
    known = [name for names in _ALGORITHMS.values() for name in names]
    raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(known)}")


def game_parameters(game: Game) -> dict[str, Any]:
    """Return the properties of a game on which a policy trained on it depends, for JSON.

    These are its numbers (eps, delta, K, M, T and the number of users who answer under one
    posterior), and fingerprints of its class of hypotheses and of its channel's messages.
    """
    channel = game.channel
    rng = np.random.default_rng(0)

    # Candidates at a few contexts identify the class. A class that changes from episode to episode
    # has none to identify; any distributions then serve to compute messages.
    if game.hypotheses is None:
        candidates = rng.dirichlet(np.ones(channel.num_labels), channel.num_hypotheses)
        class_fingerprint = "redrawn"
    else:
        contexts = rng.standard_normal((_SAMPLES, game.hypotheses.context_dim))
        candidates = game.hypotheses(contexts)
        class_fingerprint = _fingerprint(candidates)

    # Messages at these candidates identify the options of the channel.
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
    """Hash an array, rounded to six decimals, to twelve hexadecimal digits."""
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
            # Without the method that plays a block of rounds, a learner is called once a round.
            self.play = None  # type: ignore[method-assign, assignment]
        self.reset()

    def _has_memory(self) -> bool:
        """Tell if the policy returns a state, as a recurrent network does, and wants it back."""
        num_features = self.game.num_hypotheses + 1
        observations = np.zeros((1, num_features), dtype=np.float32)
        _, state = self.algorithm.predict(observations, deterministic=True)
        return state is not None

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin a new episode in each of the games, which ``batch_shape`` arranges."""
        super().reset(batch_shape)
        self._evidence = RunningEvidence(self.game, batch_shape)

        # What the policy observes: one number per hypothesis, then t / T. All are 0 at the start.
        num_features = self.game.num_hypotheses + 1
        self._features = np.zeros((*batch_shape, num_features), dtype=np.float32)

        # An adaptive channel encodes labels with the public posterior, so decoding needs it too.
        self._public_posterior: PublicPosterior | None = None
        if self.game.channel.adaptive:
            self._public_posterior = self.game.public_posterior(batch_shape)

        # SB3's policies with a memory return it, and forget it in games whose episode starts.
        self._episode_starts = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None

        # Weights of the hypotheses in the current round, None until the policy has acted.
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in the games of a mask; the others go on."""
        super().restart(mask)
        self._evidence.restart(mask)
        self._features[mask] = 0.0
        if self._public_posterior is not None:
            self._public_posterior.restart(mask)
        self._episode_starts = self._episode_starts | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """Return mixtures ``(..., M)`` of candidates ``(..., K, M)``, weighted by the policy."""
        # The policy acts once per round, as it may remember what it was shown.
        if self._weights is None:
            self._weights = self._act(self._features, self._episode_starts)
            self._episode_starts = np.zeros_like(self._episode_starts)
        return mixture(self._weights, candidates)

    def _act(self, features: FloatRow, episode_starts: BoolArray) -> FloatArray:
        """Return the softmax of the policy's mean action: weights ``(..., K)`` of the hypotheses.

        Args:
            features: observations ``(..., K + 1)``.
            episode_starts: whether an episode starts with this round, ``(...)``.
        """
        batch_shape = features.shape[:-1]
        num_features = features.shape[-1]

        # SB3 takes one axis of games.
        actions, self._memory = self.algorithm.predict(
            features.reshape(-1, num_features),
            state=self._memory,
            episode_start=episode_starts.reshape(-1),
            deterministic=True,
        )
        logits = actions.astype(np.float64).reshape(*batch_shape, -1)
        return softmax(logits)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Add the log-likelihoods of a round's message to the evidence that the policy observes."""
        posterior_weights = None
        if self._public_posterior is not None:
            posterior_weights = self._public_posterior.weights
        log_likelihoods = self.game.channel.log_likelihood(
            np.asarray(message), candidates, posterior_weights
        )
        if self._public_posterior is not None:
            self._public_posterior.advance(log_likelihoods)

        one_round = log_likelihoods[..., None, :]
        self._features = self._evidence.along(one_round)[..., 0, :]
        self._weights = None

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Return the predictions of n rounds, ``(B, n, M)``, and learn from their messages.

        Args:
            candidates: the hypotheses at the contexts, ``(B or 1, n or 1, K, M)``.
            messages: ``(B, n, ...)``.
            log_likelihoods: those of the messages, ``(B, n, K)``, if they are known already.
        """
        if log_likelihoods is None and self._public_posterior is not None:
            # The likelihood of a message depends on the posterior after the message before it.
            return play_stepwise(self, candidates, messages)
        if log_likelihoods is None:
            log_likelihoods = self.game.channel.log_likelihood(messages, candidates)
        if self._public_posterior is not None:
            self._public_posterior.along(log_likelihoods)

        # The policy predicts a round from the features before it, and learns from its message.
        features_at_start = self._features[..., None, :]
        features_after = self._evidence.along(log_likelihoods)
        features_before = np.concatenate([features_at_start, features_after[..., :-1, :]], axis=-2)
        self._features = features_after[..., -1, :]
        self._weights = None

        # A policy without a memory ignores where episodes start.
        episode_starts = np.zeros(features_before.shape[:-1], dtype=np.bool_)
        weights = self._act(features_before, episode_starts)
        return mixture(weights, candidates)
