"""The plan of a survey: what its clients and its server must agree on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from ldp_bench.planning.models import Models, fingerprint_of, label_index
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.engine.game import Game

VERSION = 1
"""Version of the record. A client refuses any other."""


@dataclass(frozen=True)
class Plan:
    """A survey that tells which model is right; :meth:`to_json` and :meth:`from_json` round-trip.

    Attributes:
        models: names of the K models.
        labels: names of the M labels.
        features: names of the features; None for a table, or features without names.
        probe: made-up rows of features at which clients and server compare their models.
        fingerprint: hash of the models' predictions at the probe rows, or of the table.
        table: probabilities ``(K, M)`` of models that do not depend on features, else None.
        channel_name: name of the channel.
        epsilon: its privacy level.
        alpha: largest probability that the survey drops a model that is right.
        tolerance: KL divergence, in nats per user, up to which models need not be told apart.
        alike: pairs of models, by their indices, that need not be told apart.
        users: users within which 95% of the simulated surveys ended.
        most_users: largest number of users.
        batch: number of users who answer an adaptive channel at the same time.
    """

    models: tuple[str, ...]
    labels: tuple[Any, ...]
    features: tuple[str, ...] | None
    probe: tuple[tuple[Any, ...], ...]
    fingerprint: str
    table: tuple[tuple[float, ...], ...] | None
    channel_name: str
    epsilon: float
    alpha: float
    tolerance: float
    alike: tuple[tuple[int, int], ...]
    users: int
    most_users: int
    batch: int

    def channel(self) -> Channel:
        """The channel of the survey."""
        size = {
            "num_hypotheses": len(self.models),
            "num_labels": len(self.labels),
            "horizon": self.most_users,
            "epsilon": self.epsilon,
            "delta": 0.0,
        }
        return CHANNELS.build(self.channel_name, size, {})

    def game(self) -> Game:
        """Public rules of the survey."""
        return Game(None, self.channel(), self.most_users, self.batch)

    def label(self, name: object) -> int:
        """Index of the label of that name, or of a name whose text it is."""
        return label_index(self.labels, name)

    def candidates(self, models: Models | None = None, features: Any = None) -> FloatArray:
        """Predictions ``(n, K, M)`` for n rows of features; ``(1, K, M)`` of the plan's own table.

        Raises:
            ValueError: if the models are not those of the plan.
        """
        if self.table is not None:
            return np.array(self.table)[None]
        if models is None:
            raise ValueError("the plan's models predict from features: the models are needed")
        self.check_models(models)
        return models.predict(features)

    def check_models(self, models: Models) -> None:
        """Raise a ValueError unless names and predictions of the models are those of the plan."""
        if tuple(models.names) != self.models:
            raise ValueError(
                f"the plan is about the models {self.models}, got {tuple(models.names)}"
            )
        if models.fingerprint(self.probe, self.features) != self.fingerprint:
            raise ValueError(
                "the models predict otherwise than those of the plan at its probe rows"
            )
        if [str(label) for label in models.labels or ()] != [str(label) for label in self.labels]:
            raise ValueError(f"the plan is about the labels {self.labels}, got {models.labels}")

    def to_json(self) -> str:
        """Write the plan as JSON."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str, *, most: float | None = None) -> Plan:
        """Read the plan that :meth:`to_json` wrote.

        It may name registered channels only: no code is imported because a file says so.

        Args:
            text: the JSON text.
            most: largest eps that the reader allows; any if not given.

        Raises:
            ValueError: for an eps above ``most``, another version, unknown or missing entries, and values
                that do not fit together.
        """
        try:
            given = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a plan is JSON text: {error}") from None
        names = [field.name for field in fields(cls)]
        if not isinstance(given, dict):
            raise ValueError(f"a plan is a JSON object, got {validation.describe(given)}")
        version = given.pop("version", None)
        if version != VERSION:
            raise ValueError(f"this is version {version!r} of a plan; this program reads {VERSION}")
        unknown = sorted(set(given) - set(names))
        missing = sorted(set(names) - set(given))
        if unknown or missing:
            raise ValueError(f"a plan with unknown entries {unknown} and missing entries {missing}")
        refuse_addresses([given["channel_name"]], "the plan")
        try:
            plan = cls(**{name: _frozen(value) for name, value in given.items()})
            plan._check()
        except TypeError as error:
            raise ValueError(f"a plan with a wrong value: {error}") from error
        if most is not None and plan.epsilon > validation.positive("most", most):
            raise ValueError(f"the plan has eps = {plan.epsilon:g}, more than the {most:g} allowed")
        return plan

    def _check(self) -> None:
        """Check every value, and that they fit together."""
        models = validation.texts("models", self.models, "names of models")
        labels = validation.list_of("labels", self.labels, "names of labels")
        for label in labels:
            validation.instance("labels", label, (str, int, float), "a list of texts or numbers")
        _check_different("models", models)
        _check_different("labels", labels)
        if self.features is not None:
            validation.texts("features", self.features, "names of features")
        for row in validation.list_of("probe", self.probe, "rows of features"):
            validation.list_of("probe", row, "rows of features")
        validation.text("fingerprint", self.fingerprint)
        validation.text("channel_name", self.channel_name)
        validation.positive("epsilon", self.epsilon)
        validation.fraction("alpha", self.alpha)
        validation.nonnegative("tolerance", self.tolerance)
        for pair in validation.list_of("alike", self.alike, "pairs of models"):
            if len(validation.indices("alike", pair, len(models))) != 2:
                raise ValueError(f"alike must be pairs of models, got {pair}")
        for name in ("users", "most_users", "batch"):
            validation.whole(name, getattr(self, name), least=1)
        if self.table is not None:
            table = game_arrays.checked_table(self.table)
            if table.shape != (len(models), len(labels)):
                raise ValueError(
                    f"the plan has {len(models)} models and {len(labels)} labels, and a table of shape "
                    f"{table.shape}"
                )
            if fingerprint_of(np.array(self.table)) != self.fingerprint:
                raise ValueError(
                    "the plan's table does not match its fingerprint: the file is damaged"
                )
        self.channel()


def _check_different(name: str, values: Sequence[Any]) -> None:
    """Raise a ValueError unless the values are two or more, with different texts."""
    texts = [str(value) for value in values]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise ValueError(f"{name} must be two or more different names, got {values}")


def _frozen(value: Any) -> Any:
    """Turn lists, also in lists, into tuples; other values are returned as they are."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value
