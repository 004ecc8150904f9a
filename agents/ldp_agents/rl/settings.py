"""Configuration of a training run, and what an algorithm gets to run it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ldp_agents.rl.storage import LearnerFactory, check_stored_rules, versions
from ldp_gym.core import validation
from ldp_gym.engine.rules import as_rules

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SettingsType = TypeVar("SettingsType", bound="DataclassInstance")

CONFIG = "config.json"
"""File of a run with its configuration and versions."""


@dataclass(frozen=True)
class Config:
    """Configuration of one training run.

    Attributes:
        algorithm: ``ppo`` or ``amortized``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``; a class that is redrawn is shown.
        steps: number of rounds to play.
        seed: seed of the episodes and of the network.
        settings: settings of the algorithm that differ from its defaults.
    """

    algorithm: str
    rules: Mapping[str, Any]
    steps: int
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check it, and convert it to what JSON will give back."""
        validation.text("algorithm", self.algorithm)
        validation.whole("steps", self.steps, least=0)
        validation.seed("seed", self.seed)
        rules = as_rules("rules", self.rules)
        shown = {"observe_candidates": True} if rules.get("redraw_hypotheses") else {}
        object.__setattr__(self, "rules", _through_json({**rules, **shown}))
        object.__setattr__(self, "settings", _through_json(validation.options("settings", self.settings)))

    def read(self, kind: type[SettingsType]) -> SettingsType:
        """The settings of the algorithm, completed by its defaults.

        Raises:
            ValueError: for an unknown setting, listing the known ones, or a value of another type.
        """
        known = vars(kind())
        for name, value in self.settings.items():
            if name not in known:
                has = ", ".join(f"{setting}={default}" for setting, default in known.items())
                raise ValueError(f"{self.algorithm} has no setting {name!r}; it has {has}")
            default = known[name]
            if isinstance(default, tuple):
                like = type(default[0])
                if not isinstance(value, list) or not all(type(one) is like for one in value):
                    raise ValueError(f"{name} must be a list such as {list(default)}, got {value!r}")
            elif isinstance(default, int):
                validation.whole(name, value, least=1)
            elif isinstance(default, float):
                validation.real(name, value)
        return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()})

    def card(self, settings: Any) -> dict[str, Any]:
        """The configuration with all settings of the algorithm, and the versions: what made a model."""
        return {
            "config": _through_json({**asdict(self), "settings": asdict(settings)}),
            "versions": versions(),
        }


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of the run in a directory, as JSON.

    Raises:
        ValueError: if its file is damaged.
    """
    path = directory / CONFIG
    try:
        return dict(json.loads(path.read_text("utf-8"))["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): choose another directory") from error


def stored_config(directory: Path) -> Config:
    """The configuration of the run in a directory, to go on with.

    Raises:
        ValueError: if its file is damaged, or names code.
    """
    config = Config(**read_config(directory))
    check_stored_rules(config.rules)
    return config


def _through_json(value: dict[str, Any]) -> Any:
    return json.loads(json.dumps(value))


ProgressCallback = Callable[[int, Callable[[], LearnerFactory], Callable[[Path], None]], None]
"""Callback with the number of rounds played, a function that gives the current model, and one that saves a
checkpoint."""


@dataclass(frozen=True)
class Run(Generic[SettingsType]):
    """A training run as an algorithm gets it.

    Attributes:
        config: the configuration.
        settings: all settings of the algorithm.
        card: the configuration and the versions, which go with the model.
        progress: progress callback.
        checkpoint: file to go on from, if any.
    """

    config: Config
    settings: SettingsType
    card: Mapping[str, Any]
    progress: ProgressCallback
    checkpoint: Path | None
