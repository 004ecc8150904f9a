"""What a training run is made of, as JSON has it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ldp_gym.core import validation
from ldp_gym.core.files import write_text
from ldp_gym.engine.rules import as_rules

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")

CONFIG = "config.json"
"""The file of a run that says what it is made of."""

_PACKAGES = ("ldp-gym", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


@dataclass(frozen=True)
class Config:
    """One training run.

    Attributes:
        algorithm: a name of ``ldp_agents.rl.algorithms.ALGORITHMS``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``; a class that is redrawn shows its
            candidates.
        steps: how many rounds to play.
        seed: of the episodes and of the network.
        settings: the algorithm's own, where they are not its defaults.
    """

    algorithm: str
    rules: Mapping[str, Any]
    steps: int
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check it, and make it what will come back from JSON."""
        validation.text("algorithm", self.algorithm)
        validation.whole("steps", self.steps, least=0)
        validation.seed("seed", self.seed)
        rules = as_rules("rules", self.rules)
        shown = {"observe_candidates": True} if rules.get("redraw_hypotheses") else {}
        object.__setattr__(self, "rules", _through_json({**rules, **shown}))
        settings = validation.options_dict("settings", self.settings)
        object.__setattr__(self, "settings", _through_json(settings))

    def read(self, kind: type[Settings]) -> Settings:
        """The algorithm's settings, with its defaults.

        Raises:
            ValueError: for one that it does not have, listing those it does, or of another type.
        """
        known = vars(kind())
        for name, value in self.settings.items():
            if name not in known:
                has = ", ".join(f"{setting}={default}" for setting, default in known.items())
                raise ValueError(f"{self.algorithm} has no setting {name!r}; it has {has}")
            default = known[name]
            if isinstance(default, tuple):
                of_names = isinstance(default[0], str)
                if not isinstance(value, list) or (of_names and not all(isinstance(v, str) for v in value)):
                    what = "names" if of_names else "whole numbers"
                    example = json.dumps(list(default)[:2], separators=(",", ":"))
                    raise ValueError(f"{name} must be a list of {what}, such as {example}, got {value!r}")
                for width in () if of_names else value:
                    validation.whole(name, width, least=1)
            elif isinstance(default, int):
                validation.whole(name, value, least=1)
            elif isinstance(default, float):
                validation.real(name, value)
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()}
        return kind(**given)

    def card(self, settings: Any) -> dict[str, Any]:
        """The configuration, with all of the algorithm's settings, and the versions: what made a model."""
        return {
            "config": _through_json({**asdict(self), "settings": asdict(settings)}),
            "versions": versions(),
        }


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write down what made a model."""
    write_text(path, json.dumps(card, indent=2) + "\n")


def read_config(directory: Path) -> Config:
    """The configuration of the run in a directory.

    Raises:
        ValueError: if its file is damaged.
    """
    path = directory / CONFIG
    try:
        return Config(**json.loads(path.read_text("utf-8"))["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): move it away, or choose another directory") from error


def _through_json(value: dict[str, Any]) -> Any:
    return json.loads(json.dumps(value))


def versions() -> dict[str, str]:
    """The versions of what makes a model."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """In which entries of ``first`` the second differs, in words; empty if in none.

    Example:
        >>> differences({"K": 4, "M": 6}, {"K": 5, "M": 6})
        'K 4 (not 5)'
    """
    return ", ".join(
        f"{key} {value} (not {second.get(key)})" for key, value in first.items() if second.get(key) != value
    )
