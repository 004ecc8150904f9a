"""What a training run is made of, as JSON has it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ldp_gym import Game
from ldp_gym.engine.scenario import Scenario
from ldp_gym.learners import Learner
from ldp_gym.numerics import validation

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")

_PACKAGES = ("ldp-gym", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


@dataclass(frozen=True)
class Config:
    """One training run.

    Attributes:
        algorithm: a name of ``ldp_agents.rl.training.ALGORITHMS``.
        game: keyword arguments of ``gym.make("LDPDist-v0", ...)``.
        steps: how many rounds to play.
        seed: of the games and of the network.
        settings: the algorithm's own, where they are not its defaults.
    """

    algorithm: str
    game: Mapping[str, Any]
    steps: int
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """As it will come back from JSON."""
        for name in ("game", "settings"):
            object.__setattr__(self, name, json.loads(json.dumps(dict(getattr(self, name)))))

    def read(self, kind: type[Settings]) -> Settings:
        """The algorithm's settings, with its defaults.

        Raises:
            ValueError: for one that it does not have, listing those it does, or of another type.
        """
        known = {setting.name: setting.default for setting in fields(kind)}
        for name, value in self.settings.items():
            if name not in known:
                has = ", ".join(f"{setting}={default}" for setting, default in known.items())
                raise ValueError(f"{self.algorithm} has no setting {name!r}; it has {has}")
            default = known[name]
            if isinstance(default, tuple):
                if not isinstance(value, list):
                    raise ValueError(
                        f"{name} must be a list of whole numbers, such as [64,64], got {value!r}"
                    )
                for width in value:
                    validation.whole(name, width, least=1)
            elif isinstance(default, int):
                validation.whole(name, value, least=1)
            elif isinstance(default, float):
                validation.real(name, value)
        return kind(**self.settings)

    @property
    def scenario(self) -> Scenario:
        """The game that is trained on. A class that is redrawn shows its candidates."""
        return Scenario(**self.rules)

    @property
    def rules(self) -> dict[str, Any]:
        """The game's keyword arguments; a class that is redrawn shows its candidates."""
        shown = {"observe_candidates": True} if self.game.get("redraw_hypotheses") else {}
        return {**self.game, **shown}

    def card(self, settings: Any) -> dict[str, Any]:
        """The configuration, with all of the algorithm's settings, and the versions: what made a model."""
        whole = {**asdict(self), "settings": asdict(settings)}
        return {"config": json.loads(json.dumps(whole)), "versions": versions()}


def versions() -> dict[str, str]:
    """The versions of what makes a model."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


Player = Callable[[Game], Learner]
"""A trained model: makes a learner from a game."""


class ProgressCallback(Protocol):
    """Who is told how a training run goes."""

    def __call__(self, steps: int, player: Callable[[], Player], save: Callable[[Path], None]) -> None:
        """So many rounds have been played; ``player`` and ``save`` give the model as it is now."""
