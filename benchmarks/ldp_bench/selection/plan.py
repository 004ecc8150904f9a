"""The plan of a survey: what its clients and its server must agree on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy.typing as npt

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import LearnerProtocol, build_learner


@dataclass(frozen=True)
class Plan:
    """A survey that finds a best model; :meth:`to_json` and :meth:`from_json` round-trip.

    Attributes:
        models: names of the K models.
        labels: names of the M labels.
        losses: log-loss of each model on the log, in nats per user.
        channel_name: name of the channel.
        channel_kwargs: its further options.
        epsilon: its privacy level.
        delta: its delta; 0 for a pure channel.
        horizon: T that channel and learner are made for.
        users: number of users to ask, from which on 95% of the simulated surveys succeeded.
        learner_name: name of the learner that reads the messages.
        batch: number of users who answer under one public posterior.
        smoothing: share of the uniform distribution in every model.
        tolerance: difference of log-loss that does not matter, in nats per user.
        alpha: chance that the stopping rule, ``Bayes.confidence_set``, may drop a true model.
    """

    models: tuple[str, ...]
    labels: tuple[Any, ...]
    losses: tuple[float, ...]
    channel_name: str
    channel_kwargs: Mapping[str, Any]
    epsilon: float
    delta: float
    horizon: int
    users: int
    learner_name: str
    batch: int
    smoothing: float
    tolerance: float
    alpha: float = 0.05

    def channel(self) -> Channel:
        """The channel of the survey."""
        size = {
            "num_hypotheses": len(self.models),
            "num_labels": len(self.labels),
            "horizon": self.horizon,
        }
        game = size | {"epsilon": self.epsilon, "delta": self.delta}
        return CHANNELS.build(self.channel_name, game, self.channel_kwargs)

    def learner(self) -> LearnerProtocol:
        """A new learner for the survey."""
        return build_learner(
            self.learner_name, Game(None, self.channel(), self.horizon, self.batch)
        )

    def smooth(self, probabilities: npt.ArrayLike) -> FloatArray:
        """Predictions ``(..., K, M)`` of the models, mixed with a little of the uniform distribution."""
        table = game_arrays.candidates(probabilities, len(self.models), len(self.labels))
        return (1.0 - self.smoothing) * table + self.smoothing / len(self.labels)

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that :meth:`to_json` wrote; it may name registered channels and learners only."""
        given, names = json.loads(text), [field.name for field in fields(cls)]
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            raise ValueError(f"a plan has {', '.join(names)}; got {validation.describe(given)}")
        refuse_addresses([given["channel_name"], given["learner_name"]], "the plan")
        lists = {name: tuple(validation.list_of(name, given[name], "values")) for name in names[:3]}
        validation.options_dict("channel_kwargs", given["channel_kwargs"])
        for name in ("users", "batch"):
            validation.whole(name, given[name], least=1)
        for name in ("smoothing", "alpha"):
            validation.fraction(name, given[name])
        validation.nonnegative("tolerance", given["tolerance"])
        plan = cls(**{**given, **lists})
        plan.learner()  # raises if the channel or the learner cannot be made
        return plan
