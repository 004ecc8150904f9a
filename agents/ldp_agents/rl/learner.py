"""Trained networks of ``amortized`` as learners: small files that play with NumPy only."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from ldp_agents.base import ExponentialWeights
from ldp_agents.rl import network
from ldp_gym import HYPOTHESES, Game
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.engine.learners import Track


@dataclass(frozen=True)
class Model:
    """A trained network and the games that it was trained on, which makes learners when called.

    Attributes:
        parameters: the arrays of the network.
        trained_on: ``[least, largest]`` for any of ``epsilon``, ``K``, ``M`` and ``T``; names of
            ``classes``. Keys that are missing are not checked.
        card: the configuration and the versions that made it.
    """

    track: ClassVar[Track] = "uninformed"

    parameters: Mapping[str, FloatArray]
    trained_on: Mapping[str, Any]
    card: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, game: Game) -> NetworkLearner:
        """The model as a learner of the game."""
        return NetworkLearner(game, self)


class NetworkLearner(ExponentialWeights):
    """Exponential weights on learned log-likelihoods, with a smooth mixture as the prediction.

    In a game eps is fixed and a relation is one number, so the network is evaluated once, as a
    table.

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
        self._relation = network.Relation(game.channel)
        self._node_weights = network.learned_weights(model.parameters, game.channel)
        self._smoothing = smoothing_of(game)
        super().__init__(game)
        outside = describe_outside(model.trained_on, game)
        if outside:
            name = model.card.get("config", {}).get("algorithm", "a model")
            _warn(
                f"{name!r} plays outside of what it was trained on: {outside}. See docs/learned.md"
            )

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Return the negated learned log-likelihoods ``(..., K)`` of messages."""
        log_likelihoods = network.learned_log_likelihood(
            self._relation, self._node_weights, messages, candidates, self.posterior
        )
        return -log_likelihoods

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._smoothing.smooth(weights, candidates)


def smoothing_of(game: Game) -> Clipping:
    """The paper's smoothing of predictions with 1/T^2 in place of 1/T, so that their KL is finite.

    1/T costs a nat per episode where the truth rules labels out: on disjoint supports a quarter of
    the loss of Bayes at eps = 4.
    """
    return Clipping(game.horizon**2, game.clipping.rule)


def describe_outside(trained_on: Mapping[str, Any], game: Game) -> str:
    """Describe how a game lies outside of the games that a model was trained on.

    Args:
        trained_on: ``[least, largest]`` for any of ``epsilon``, ``K``, ``M`` and ``T``, and the
            names of the families of ``classes``.
        game: the public rules of the game.

    Returns:
        The differences in words, an empty string if there are none.
    """
    numbers = {
        "epsilon": game.channel.epsilon,
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
    }
    differences = []
    for key, number in numbers.items():
        # A key that is missing is not checked: any number lies within its own range.
        least, largest = trained_on.get(key, (number, number))
        if not least <= number <= largest:
            symbol = key
            if key == "epsilon":
                symbol = "eps"
            differences.append(f"{symbol} = {number:g}, trained on {least:g} to {largest:g}")

    # The public rules of a redrawn class do not say its family.
    families = trained_on.get("classes")
    if families is not None and game.hypotheses is not None:
        family = _family_of(game.hypotheses)
        if family not in families:
            differences.append(f"class family {family!r}, trained on {', '.join(families)}")
    return "; ".join(differences)


def _family_of(hypotheses: Any) -> str:
    """Registered name of a class of hypotheses, else the name of its Python class."""
    for name, maker in HYPOTHESES.own.items():
        if maker is type(hypotheses):
            return name
    return type(hypotheses).__name__


@cache
def _warn(text: str) -> None:
    """Warn about games outside of the training, with each text once."""
    warnings.warn(text, OutsideTrainingWarning, stacklevel=4)
