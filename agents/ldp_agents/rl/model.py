"""Trained models: small files that play with NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldp_agents.base import ExponentialWeights, MixtureLearner
from ldp_agents.likelihood import LikelihoodLearner
from ldp_agents.rl import any_truth, network
from ldp_agents.rl.config import write_card
from ldp_agents.rl.scope import warn_outside
from ldp_gym import Game
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages
from ldp_gym.core.files import read_arrays, replacing
from ldp_gym.engine.learners import Track
from ldp_gym.wrappers.features.evidence import LabelEvidence

WEIGHTS, CARD = "weights.npz", "model.json"
"""The two files of a model: its arrays, and what made them."""


@dataclass(frozen=True)
class Model:
    """A trained network and what it was trained on.

    Attributes:
        parameters: the network's arrays.
        evidence: what it says of a channel, a name of :data:`ldp_agents.rl.network.EVIDENCE`.
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

    def __call__(self, game: Game) -> ModelLearner:
        """The model as a learner of the game."""
        return (AnyTruthLearner if self.evidence == network.ANY_TRUTH else EvidenceLearner)(game, self)

    def save(self, directory: Path) -> None:
        """Write the model's two files."""
        directory.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {
            name: np.asarray(array, dtype=np.float32) for name, array in self.parameters.items()
        }
        with replacing(directory / WEIGHTS) as part:
            np.savez_compressed(part, **arrays)
        card = {"evidence": self.evidence, "trained_on": dict(self.trained_on), **self.card}
        write_card(directory / CARD, card)

    @classmethod
    def read(cls, directory: Path) -> Model:
        """Read a model's two files. They are numbers and text: no code in them is run.

        Raises:
            ValueError: if they are damaged, or the weights unpack to more than 256 MiB.
        """
        card = read_card(directory)
        if card.get("evidence") not in network.EVIDENCE:
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


def smoothing_of(game: Game) -> Clipping:
    """What smooths predictions so that their KL is finite: as the paper does it, by 1/T^2 instead of 1/T.

    1/T costs a nat per episode where the truth rules labels out: on disjoint supports a quarter of what Bayes
    pays at eps = 4.
    """
    return Clipping(game.horizon**2, game.clipping.rule)


class ModelLearner(MixtureLearner):
    """Plays a trained model: what its network says of messages, and a smooth mixture.

    The network's weights are worked out once, when the learner is made: in a game eps is fixed, and a
    relation of a message to a label is one number.

    Args:
        game: the public rules.
        model: a trained model.

    Raises:
        IncompatibleChannelError: if the messages of the game's channel are not private, or not said to agree
            with labels.
    """

    track = "uninformed"

    def __init__(self, game: Game, model: Model) -> None:
        self.model = model
        weights, self._counts = network.EVIDENCE[model.evidence](model.parameters, game.channel)
        self._evidence = LabelEvidence(game.channel, weights)
        self._smoothing = smoothing_of(game)
        super().__init__(game)
        warn_outside(model.name, model.trained_on, model.measured, game)

    def label_evidence(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """What messages say for each hypothesis, ``(..., K)``, up to a constant of each round."""
        return self._evidence(messages, candidates, self.posterior) @ self._counts

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self._smoothing.smooth(weights, candidates)


class EvidenceLearner(ModelLearner, ExponentialWeights):
    """Plays a model of label evidence: exponential weights."""

    rate = 1.0

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The label evidence, negated."""
        return -self.label_evidence(messages, candidates)


class AnyTruthLearner(ModelLearner, LikelihoodLearner):
    """Plays a learned update, :mod:`ldp_agents.rl.any_truth`, on label evidence."""

    def __init__(self, game: Game, model: Model) -> None:
        prefix, arrays = any_truth.PREFIX, model.parameters.items()
        dials = {name.removeprefix(prefix): array for name, array in arrays if name.startswith(prefix)}
        self._logits, self._trust = any_truth.read_outputs(network.apply(dials, any_truth.describe(game)))
        self._dials: dict[int, any_truth.Dials] = {}
        self._mixtures = any_truth.mixtures_of(game.num_hypotheses)
        super().__init__(game, model)

    @property
    def weights(self) -> FloatArray:
        """The weights ``(..., K)`` of the hypotheses, summing to one."""
        mixed: FloatArray = self._state.mix(self._mixtures)
        return mixed

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin with equal weights, and with the trust that the network says."""
        super().reset(batch_shape)
        self._state = any_truth.start(self._trust, self.game.num_hypotheses, batch_shape)
        self._rounds = np.zeros(batch_shape, dtype=np.int64)

    def restart(self, mask: BoolArray) -> None:
        """The same in the games of ``mask``."""
        super().restart(mask)
        begin = any_truth.start(self._trust, self.game.num_hypotheses, ())
        for now, at_first in zip(self._state, begin, strict=True):
            now[mask] = at_first
        self._rounds[mask] = 0

    def learn(self, likelihoods: FloatArray) -> None:
        """A round of the update; games may be in different rounds."""
        for t in np.unique(self._rounds):
            here = self._rounds == t
            dials = self._dials_at(int(t))
            if here.all():
                self._state = any_truth.advance(self._state, likelihoods, dials, self._mixtures)
                break
            part = any_truth.State(*(numbers[here] for numbers in self._state))
            part = any_truth.advance(part, likelihoods[here], dials, self._mixtures)
            for now, after in zip(self._state, part, strict=True):
                now[here] = after
        self._rounds = self._rounds + 1

    def _dials_at(self, t: int) -> any_truth.Dials:
        if t not in self._dials:  # the same in every episode
            self._dials[t] = any_truth.dials_at(self._logits, t)
        return self._dials[t]

    def log_likelihoods(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The label evidence, in place of likelihoods."""
        return self.label_evidence(messages, candidates)
