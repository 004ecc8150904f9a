"""Trained models: small files that play with NumPy alone, on the games that they fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ldp_agents.base import Learner
from ldp_agents.rl import network
from ldp_agents.rl.config import differences
from ldp_gym import Game
from ldp_gym.errors import IncompatibleChannelError
from ldp_gym.features.sums import FEATURES
from ldp_gym.files import read_arrays, replacing, write_text
from ldp_gym.numerics.arrays import BoolArray, FloatArray, Messages, softmax

WEIGHTS, CARD = "weights.npz", "model.json"
"""The two files of a model: its arrays, and what made them."""


def game_parameters(game: Game) -> dict[str, Any]:
    """What of a game a model may depend on, as JSON has it."""
    channel = game.channel
    return {
        "channel": type(channel).__name__,
        "epsilon": channel.epsilon,
        "delta": channel.delta,
        "calibration": getattr(channel, "calibration", None),
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
        "class": _fingerprint(game),
    }


def _fingerprint(game: Game) -> str:
    """A short name of the class itself, from its candidates at a few contexts."""
    if game.hypotheses is None:
        return "redrawn"
    contexts = np.random.default_rng(0).standard_normal((4, game.hypotheses.context_dim))
    candidates = np.ascontiguousarray(game.hypotheses(contexts).round(6))
    return hashlib.sha256(candidates.tobytes()).hexdigest()[:12]


def check_fit(needs: Mapping[str, Any], game: Game) -> None:
    """See whether a game has the parameters that a model needs.

    Raises:
        IncompatibleChannelError: if it has not, saying what differs.
    """
    if differ := differences(needs, game_parameters(game)):
        raise IncompatibleChannelError(
            f"the model was trained for {differ}: train one for this game with 'ldp-gym train'; "
            f"the learner 'bayes' reads every channel"
        )


@dataclass(frozen=True)
class Model:
    """A trained network and what it was trained for.

    Attributes:
        parameters: the network's arrays.
        features: the name of the features that it reads.
        trained_on: the :func:`game_parameters` of the game.
        card: the configuration and the versions that made it; nothing here reads it.
    """

    parameters: Mapping[str, FloatArray]
    features: str
    trained_on: Mapping[str, Any]
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> dict[str, Any]:
        """The parameters that a game must share: the channel's; and all others, unless it is equivariant."""
        free = {"K", "M", "T", "class"} if network.is_equivariant(self.parameters) else set()
        return {name: value for name, value in self.trained_on.items() if name not in free}

    def __call__(self, game: Game) -> ModelLearner:
        """The model as a learner of the game."""
        return ModelLearner(game, self)

    def save(self, directory: Path) -> None:
        """Write the model's two files."""
        directory.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {
            name: np.asarray(array, dtype=np.float32) for name, array in self.parameters.items()
        }
        with replacing(directory / WEIGHTS) as part:
            np.savez_compressed(part, **arrays)
        card = {"features": self.features, "trained_on": dict(self.trained_on), **self.card}
        write_text(directory / CARD, json.dumps(card, indent=2) + "\n")

    @classmethod
    def read(cls, directory: Path) -> Model:
        """Read a model's two files. They are numbers and text: no code in them is run.

        Raises:
            ValueError: if they are damaged, or the weights unpack to more than 256 MiB.
        """
        card = read_card(directory)
        try:
            arrays = read_arrays(directory / WEIGHTS)
            parameters = {name: array.astype(np.float64) for name, array in arrays.items()}
        except ValueError as error:
            raise ValueError(f"{directory / WEIGHTS} is no model's weights: {error}") from error
        return cls(parameters, card.pop("features"), card.pop("trained_on"), card)


def read_card(directory: Path) -> dict[str, Any]:
    """What made a model.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        card = json.loads((directory / CARD).read_text("utf-8"))
        if not isinstance(card["trained_on"], dict) or card["features"] not in FEATURES:
            raise ValueError("trained_on or features are of another kind")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{directory / CARD} is no model's card: {error}") from error
    return dict(card)


class ModelLearner(Learner):
    """Plays a trained model: its features of the transcript, its logits, and the paper's smooth mixture.

    Args:
        game: the public rules.
        model: a trained model that fits them.

    Raises:
        IncompatibleChannelError: if the model does not fit the game, saying what differs.
    """

    def __init__(self, game: Game, model: Model) -> None:
        super().__init__(game)
        check_fit(model.needs, game)
        self.model = model
        self._features = FEATURES[model.features](game)

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin without evidence."""
        super().reset(batch_shape)
        self._features.reset(batch_shape)

    def restart(self, mask: BoolArray) -> None:
        """Begin without evidence in the games of ``mask``."""
        self._features.restart(mask)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The mixture of the candidates by the network's logits."""
        return self._predict(self._features.read(candidates), candidates)

    def _predict(self, features: FloatArray, candidates: FloatArray) -> FloatArray:
        logits = network.logits(self.model.parameters, features)
        return self.game.clipping.smooth(softmax(logits), candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Take the message into the features."""
        self._features.update(candidates, message)

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``."""
        return self._predict(self._features.along(candidates, messages), candidates)
