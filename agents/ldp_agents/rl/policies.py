"""Any policy that stable-baselines3 has trained, as a learner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ldp_agents.base import Learner
from ldp_agents.rl.model import CARD, check_fit
from ldp_gym import Game
from ldp_gym.features.sums import FEATURES
from ldp_gym.files import replacing, write_text
from ldp_gym.numerics.arrays import BoolArray, FloatArray, Messages, softmax

POLICY = "policy.zip"
"""The file of a stored policy, as SB3 saves it."""


class PolicyLearner(Learner):
    """Plays an SB3 model, with or without a memory, that acts by ``MixtureAction`` on features by name.

    Args:
        game: the public rules.
        algorithm: the SB3 model.
        features: a name of ``ldp_gym.features.sums.FEATURES``: what the policy observes.
        logit_range: that of ``MixtureAction``.
    """

    def __init__(self, game: Game, algorithm: Any, features: str, logit_range: float = 10.0) -> None:
        super().__init__(game)
        self.algorithm = algorithm
        self._features = FEATURES[features](game)
        self._range = logit_range
        self.reset()

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin without evidence or memory."""
        super().reset(batch_shape)
        self._features.reset(batch_shape)
        self._begins = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        """Begin without evidence or memory in the games of ``mask``."""
        self._features.restart(mask)
        self._begins = self._begins | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The mixture of the candidates by the policy's mean action."""
        if self._weights is None:  # the policy acts, and remembers, once per round
            seen = self._features.read(candidates).astype(np.float32)
            batch = self._begins.shape
            flat = seen.reshape(-1, *self._features.shape)
            action, self._memory = self.algorithm.predict(
                flat, state=self._memory, episode_start=self._begins.reshape(-1), deterministic=True
            )
            self._begins = np.zeros(batch, dtype=np.bool_)
            self._weights = softmax(self._range * action.astype(np.float64).reshape(*batch, -1))
        return self.game.clipping.smooth(self._weights, candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Take the message into the features."""
        self._features.update(candidates, message)
        self._weights = None


@dataclass(frozen=True)
class TrainedPolicy:
    """An SB3 model, and what it was trained for.

    Attributes:
        algorithm: the SB3 model.
        features: what it observes, by name.
        logit_range: that of its actions.
        trained_on: the parameters of the game that it was trained on, all of which a game must share.
        card: the configuration and the versions that made it.
    """

    algorithm: Any
    features: str
    logit_range: float
    trained_on: Mapping[str, Any]
    card: Mapping[str, Any]

    def __call__(self, game: Game) -> PolicyLearner:
        """The policy as a learner of the game."""
        check_fit(self.trained_on, game)
        return PolicyLearner(game, self.algorithm, self.features, self.logit_range)

    def save(self, directory: Path) -> None:
        """Write the policy, and beside it what made it."""
        directory.mkdir(parents=True, exist_ok=True)
        with replacing(directory / POLICY) as part:
            self.algorithm.save(part)
        plays = {name: getattr(self, name) for name in ("features", "logit_range", "trained_on")}
        write_text(directory / CARD, json.dumps({**plays, **self.card}, indent=2) + "\n")
