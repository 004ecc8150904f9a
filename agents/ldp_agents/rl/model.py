"""Trained networks of ``amortized`` as learners: small files that play with NumPy only."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldp_agents.base import ExponentialWeights
from ldp_agents.rl import network
from ldp_agents.rl.relations import LabelEvidence
from ldp_agents.rl.storage import WEIGHTS, read_card, write_card
from ldp_gym import CHANNELS, HYPOTHESES, Game
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.core.files import read_arrays, replacing
from ldp_gym.core.registry import Registry
from ldp_gym.engine.learners import Track

SHIPPED = Path(__file__).parent / "weights" / "amortized"
"""Directory of the model that comes with the package."""

_MEASURED = {
    "epsilon": "1.00 to 1.03 times Bayes at eps = 0.1, and 1.00 at eps = 16",
    "K": "1.00 to 1.01 times Bayes at K = 128",
    "M": "1.00 to 1.01 times Bayes at M = 512",
    "T": "1.00 to 1.03 times Bayes at T = 50 and 10,000",
}
"""Total KL of the shipped model outside of its training; docs/learned.md has the tables."""


@dataclass(frozen=True)
class Model:
    """A trained network and the games that it was trained on. Called with a game, it makes a learner.

    Attributes:
        parameters: the arrays of the network.
        trained_on: ``[least, largest]`` for any of ``epsilon``, ``K``, ``M`` and ``T``; names of ``channels``
            and of ``classes``. Keys that are missing are not checked.
        card: the configuration and the versions that made it.
        measured: measurements outside of these games, in words, by the same keys.
    """

    track: ClassVar[Track] = "uninformed"

    parameters: Mapping[str, FloatArray]
    trained_on: Mapping[str, Any]
    card: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, game: Game) -> EvidenceLearner:
        """The model as a learner of the game."""
        return EvidenceLearner(game, self)

    def save(self, directory: Path) -> None:
        """Write the two files of the model."""
        directory.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {name: np.float32(array) for name, array in self.parameters.items()}
        with replacing(directory / WEIGHTS) as part:
            np.savez_compressed(part, **arrays)
        write_card(directory, {"trained_on": dict(self.trained_on), **self.card})

    @classmethod
    def read(cls, directory: Path) -> Model:
        """Read the two files of a model. They are numbers and text, and run no code.

        Raises:
            ValueError: if they are damaged, or the weights unpack to more than 256 MiB.
        """
        card = read_card(directory)
        try:
            arrays = read_arrays(directory / WEIGHTS)
        except ValueError as error:
            raise ValueError(f"{directory / WEIGHTS} does not hold a model's weights: {error}") from error
        parameters = {name: array.astype(np.float64) for name, array in arrays.items()}
        return cls(parameters, card.pop("trained_on"), card)


class EvidenceLearner(ExponentialWeights):
    """Exponential weights on label evidence, with a smooth mixture as the prediction.

    In a game eps is fixed and a relation is one number, so the network is worked out once, as a table.

    Args:
        game: the public rules.
        model: a trained model.

    Raises:
        IncompatibleChannelError: if the channel's messages are not private, or it does not define
            ``agreement``.
    """

    track = "uninformed"
    rate = 1.0

    def __init__(self, game: Game, model: Model) -> None:
        self.model = model
        self._evidence = LabelEvidence(game.channel, network.learned_weights(model.parameters, game.channel))
        self._smoothing = smoothing_of(game)
        super().__init__(game)
        if outside := describe_outside(model.trained_on, model.measured, game):
            name = model.card.get("config", {}).get("algorithm", "a model")
            _warn(f"{name!r} plays outside of what it was trained on: {outside}")

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The label evidence, negated."""
        return -self._evidence(messages, candidates, self.posterior)

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._smoothing.smooth(weights, candidates)


def smoothing_of(game: Game) -> Clipping:
    """The paper's smoothing of predictions with 1/T^2 in place of 1/T, so that their KL is finite.

    1/T costs a nat per episode where the truth rules labels out: on disjoint supports a quarter of the loss
    of Bayes at eps = 4.
    """
    return Clipping(game.horizon**2, game.clipping.rule)


def describe_outside(trained_on: Mapping[str, Any], measured: Mapping[str, str], game: Game) -> str:
    """In which respects a game lies outside of ``trained_on``, with what was measured there; often empty."""
    numbers = {"K": game.num_hypotheses, "M": game.num_labels, "T": game.horizon}
    found = {}
    for key, number in {"epsilon": game.channel.epsilon, **numbers}.items():
        least, largest = trained_on.get(key, (number, number))
        if not least <= number <= largest:
            symbol = "eps" if key == "epsilon" else key
            found[key] = f"{symbol} = {number:g}, trained on {least:g} to {largest:g}"
    parts: dict[str, tuple[str, Registry[Any], object]] = {"channels": ("channel", CHANNELS, game.channel)}
    if game.hypotheses is not None:  # the family of a class that is redrawn is not among the public rules
        parts["classes"] = ("class family", HYPOTHESES, game.hypotheses)
    for key, (kind, registry, part) in parts.items():
        names = [name for name, maker in registry.own.items() if maker is type(part)]
        name = names[0] if names else type(part).__name__
        if name not in trained_on.get(key, [name]):
            found[key] = f"{kind} {name!r}, trained on {', '.join(trained_on[key])}"
    said = {key: f"measured: {text}" for key, text in measured.items()}
    return "; ".join(f"{text} ({said.get(key, 'nothing was measured there')})" for key, text in found.items())


@cache  # each text once
def _warn(text: str) -> None:
    warnings.warn(text, OutsideTrainingWarning, stacklevel=4)


@cache
def _shipped() -> Model:
    return replace(Model.read(SHIPPED), measured=_MEASURED)


def amortized(game: Game) -> EvidenceLearner:
    """Network trained on simulated games: how far to trust what messages say about labels; close to Bayes.

    ``ldp-gym train amortized`` makes it; docs/learned.md says what it was trained on.

    Args:
        game: the public rules.
    """
    return _shipped()(game)


amortized.track = Model.track  # type: ignore[attr-defined]
