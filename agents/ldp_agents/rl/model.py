"""Trained models: small files that play with NumPy alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldp_agents.base import ExponentialWeights
from ldp_agents.rl import network
from ldp_agents.rl.any_truth import AnyTruthLearner
from ldp_agents.rl.config import differences
from ldp_agents.rl.scope import warn_outside
from ldp_agents.rl.smoothing import smoothing_of
from ldp_gym import Game
from ldp_gym.errors import IncompatibleChannelError
from ldp_gym.features.evidence import LabelEvidence
from ldp_gym.files import read_arrays, replacing, write_text
from ldp_gym.learners import Track
from ldp_gym.numerics.arrays import FloatArray, Messages

ANY_TRUTH = "any-truth"
"""The kind of a model that holds a learned update."""

WEIGHTS, CARD = "weights.npz", "model.json"
"""The two files of a model: its arrays, and what made them."""


def game_parameters(game: Game) -> dict[str, Any]:
    """What of a game a policy may depend on that was trained on it alone, as JSON has it."""
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
    """See whether a game has the parameters that such a policy needs.

    Raises:
        IncompatibleChannelError: if it has not, saying what differs.
    """
    if differ := differences(needs, game_parameters(game)):
        raise IncompatibleChannelError(
            f"the policy was trained for {differ}: train one for this game with 'ldp-gym train'; "
            f"the learner 'bayes' reads every channel"
        )


@dataclass(frozen=True)
class Model:
    """A trained network and what it was trained on.

    Attributes:
        parameters: the network's arrays.
        evidence: what it says of a channel, a name of :data:`ldp_agents.rl.network.EVIDENCE`; or
            :data:`ANY_TRUTH`, for a learned update on weights of label evidence.
        trained_on: the games that it saw, as :func:`ldp_agents.rl.scope.warn_outside` reads it.
        card: the configuration and the versions that made it.
        measured: what was measured outside of these games, likewise.
    """

    track: ClassVar[Track] = "uninformed"

    parameters: Mapping[str, FloatArray]
    evidence: str
    trained_on: Mapping[str, Any]
    card: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The algorithm that made it."""
        return str(self.card.get("config", {}).get("algorithm", "a model"))

    def __call__(self, game: Game) -> EvidenceLearner | AnyTruthLearner:
        """The model as a learner of the game."""
        if self.evidence != ANY_TRUTH:
            return EvidenceLearner(game, self)
        check_private(game)
        learner = AnyTruthLearner(game, self.parameters)
        warn_outside(self.name, self.trained_on, self.measured, game)
        return learner

    def save(self, directory: Path) -> None:
        """Write the model's two files."""
        directory.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {
            name: np.asarray(array, dtype=np.float32) for name, array in self.parameters.items()
        }
        with replacing(directory / WEIGHTS) as part:
            np.savez_compressed(part, **arrays)
        card = {"evidence": self.evidence, "trained_on": dict(self.trained_on), **self.card}
        write_text(directory / CARD, json.dumps(card, indent=2) + "\n")

    @classmethod
    def read(cls, directory: Path) -> Model:
        """Read a model's two files. They are numbers and text: no code in them is run.

        Raises:
            ValueError: if they are damaged, or the weights unpack to more than 256 MiB.
        """
        card = read_card(directory)
        if card.get("evidence") not in (*network.EVIDENCE, ANY_TRUTH):
            found = card.get("evidence")
            raise ValueError(f"{directory / CARD} is no model's card: it has evidence {found!r}")
        try:
            arrays = read_arrays(directory / WEIGHTS)
            parameters = {name: array.astype(np.float64) for name, array in arrays.items()}
        except ValueError as error:
            raise ValueError(f"{directory / WEIGHTS} is no model's weights: {error}") from error
        return cls(parameters, card.pop("evidence"), card.pop("trained_on"), card)


def read_card(directory: Path) -> dict[str, Any]:
    """What made a model.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        card = json.loads((directory / CARD).read_text("utf-8"))
        if not isinstance(card["trained_on"], dict):
            raise ValueError("trained_on is of another kind")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{directory / CARD} is no model's card: {error}") from error
    return dict(card)


def check_private(game: Game) -> None:
    """See whether a game's messages are private: eps is what a network reads.

    Raises:
        IncompatibleChannelError: if they are labels.
    """
    if not math.isfinite(game.channel.epsilon):
        raise IncompatibleChannelError(
            f"a learned agent reads private messages, and {game.channel!r} sends labels; "
            f"the learner 'bayes' reads every channel"
        )


class EvidenceLearner(ExponentialWeights):
    """Plays a trained model: exponential weights of its label evidence, and a smooth mixture.

    The network's weights are worked out once, when the learner is made: in a game eps is fixed, and a
    relation of a message to a label is one number.

    Args:
        game: the public rules.
        model: a trained model.

    Raises:
        IncompatibleChannelError: if the messages of the game's channel are not private, or not said to agree
            with labels.
    """

    rate = 1.0
    track = "uninformed"

    def __init__(self, game: Game, model: Model) -> None:
        check_private(game)
        self.model = model
        weights, self._counts = network.EVIDENCE[model.evidence](model.parameters, game.channel)
        self._evidence = LabelEvidence(game.channel, weights)
        self._smoothing = smoothing_of(game)
        super().__init__(game)
        warn_outside(model.name, model.trained_on, model.measured, game)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The label evidence, negated."""
        return -(self._evidence(messages, candidates, self.posterior) @ self._counts)

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._smoothing.smooth(weights, candidates)
