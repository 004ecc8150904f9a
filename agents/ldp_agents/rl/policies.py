"""Policies of stable-baselines3 that were trained on LDPDistBox-v0, as learners."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldp_agents.base import Learner
from ldp_agents.rl.storage import POLICY, read_card, versions, write_card
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, mixture, softmax
from ldp_gym.core.errors import IncompatibleChannelError, extra
from ldp_gym.core.files import replacing
from ldp_gym.engine.learners import Track
from ldp_gym.engine.rules import DEFAULTS
from ldp_gym.engine.scenario import Scenario
from ldp_gym.envs.features import RunningEvidence

_ALGORITHMS = {
    "stable_baselines3": ("A2C", "DDPG", "PPO", "SAC", "TD3"),
    "sb3_contrib": ("ARS", "CrossQ", "RecurrentPPO", "TQC", "TRPO"),
}
"""Names of the algorithms that can be stored, by package. A card names one of them, never code."""


def _algorithm_class(name: str) -> Any:
    for package, names in _ALGORITHMS.items():
        if name in names:
            with extra("rl", "a policy of stable-baselines3"):
                return getattr(__import__(package), name)
    known = ", ".join(name for names in _ALGORITHMS.values() for name in names)
    raise ValueError(f"unknown algorithm {name!r}; known: {known}")


def game_parameters(game: Game) -> dict[str, Any]:
    """Properties of a game, as JSON, that a policy which was trained on it depends on."""
    channel, fingerprint = game.channel, "redrawn"
    if game.hypotheses is not None:  # candidates at a few contexts identify the class
        contexts = np.random.default_rng(0).standard_normal((4, game.hypotheses.context_dim))
        candidates = np.ascontiguousarray(game.hypotheses(contexts).round(6))
        fingerprint = hashlib.sha256(candidates.tobytes()).hexdigest()[:12]
    return {
        "channel": type(channel).__name__,
        "epsilon": channel.epsilon,
        "delta": channel.delta,
        "calibration": getattr(channel, "calibration", None),
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
        "class": fingerprint,
    }


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The entries of ``first`` in which ``second`` differs, in words.

    Example:
        >>> differences({"K": 4, "M": 6}, {"K": 5, "M": 6})
        'K 4 (not 5)'
    """
    return ", ".join(
        f"{key} {value} (not {second.get(key)})" for key, value in first.items() if second.get(key) != value
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
        if differ := differences(trained_on, game_parameters(game)):
            raise IncompatibleChannelError(
                f"the policy was trained for {differ}: train one for this game with 'ldp-gym train ppo'; "
                f"the learner 'bayes' reads every channel"
            )
        super().__init__(game)
        self.algorithm = algorithm
        self.reset()

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin without evidence or memory."""
        super().reset(batch_shape)
        self._evidence = RunningEvidence(self.game, batch_shape)
        self._begins = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        """Begin without evidence or memory in the games of ``mask``."""
        self._evidence.restart(mask)
        self._begins = self._begins | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The mixture of the candidates by the policy's mean action."""
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
        """Take in the message."""
        self._evidence.update(candidates, message)
        self._weights = None


@dataclass(frozen=True)
class TrainedPolicy:
    """A trained SB3 model; called with a game, it makes a learner.

    Attributes:
        algorithm: the SB3 model.
        card: the configuration and the versions that made it.
    """

    track: ClassVar[Track] = "informed"

    algorithm: Any
    card: Mapping[str, Any]

    @cached_property
    def _trained_on(self) -> dict[str, Any]:
        return game_parameters(Scenario(**self.card["config"]["rules"]).game)

    def __call__(self, game: Game) -> PolicyLearner:
        return PolicyLearner(game, self.algorithm, self._trained_on)

    def save(self, directory: Path) -> None:
        """Write the policy and its card."""
        name = type(self.algorithm).__name__
        if type(self.algorithm) is not _algorithm_class(name):
            raise ValueError(f"only the algorithms of the libraries can be stored, got a custom {name}")
        directory.mkdir(parents=True, exist_ok=True)
        with replacing(directory / POLICY) as part:
            self.algorithm.save(part)
        write_card(directory, {"policy": name, "trained_on": self._trained_on, **self.card})


@dataclass(frozen=True)
class StoredPolicy:
    """A policy in a directory, read when it makes a learner: it can be sent to another process."""

    track: ClassVar[Track] = "informed"
    runs_stored_code: ClassVar[bool] = True

    directory: Path

    @property
    def example_rules(self) -> dict[str, Any]:
        """The rules of the game that it was trained on."""
        return dict(read_card(self.directory)["config"]["rules"])

    def __call__(self, game: Game) -> PolicyLearner:
        card = read_card(self.directory)
        algorithm = _algorithm_class(card["policy"]).load(self.directory / POLICY, device="cpu")
        return PolicyLearner(game, algorithm, card["trained_on"])


def save(model: Any, directory: str | Path) -> None:
    """Store an SB3 model that was trained on LDPDistBox-v0: ``evaluate`` and the benchmark then play it.

    Args:
        model: a trained algorithm of stable-baselines3 or sb3-contrib.
        directory: where its files go.

    Raises:
        TypeError: if its environment is not LDPDistBox-v0, shows raw messages, or normalizes observations.
        ValueError: if rules of the game cannot be written as JSON.
    """
    path, env = validation.path("directory", directory), model.get_env()
    if model.get_vec_normalize_env() is not None:
        raise TypeError("a learner cannot repeat VecNormalize: train without it, the features are scaled")
    spec = None if env is None else env.get_attr("spec")[0]
    if spec is None or not spec.id.startswith("LDPDistBox"):
        raise TypeError(f"the model must have been trained on LDPDistBox-v0, got {spec and spec.id}")
    if spec.kwargs.get("observation", "evidence") != "evidence":
        raise TypeError('a learner gets no contexts: train with observation="evidence"')
    rules = {name: value for name, value in spec.kwargs.items() if name in DEFAULTS}
    try:
        rules = json.loads(json.dumps(rules))
    except TypeError as error:
        raise ValueError(f"rules must be names, numbers and lists to be stored: {error}") from error
    config = {"algorithm": type(model).__name__, "rules": rules, "steps": int(model.num_timesteps)}
    TrainedPolicy(model, {"config": config, "versions": versions()}).save(path)
