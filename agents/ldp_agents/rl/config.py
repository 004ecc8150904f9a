"""What a training run is made of, as JSON has it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from ldp_gym import Game
from ldp_gym.learners import Learner
from ldp_gym.scenario import Scenario, scenario_of

_PACKAGES = ("ldp-gym", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


@dataclass(frozen=True)
class Config:
    """One training run.

    Attributes:
        algorithm: a name of ``ldp_agents.rl.ALGORITHMS``.
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

    @property
    def scenario(self) -> Scenario:
        """The game that is trained on. A class that is redrawn shows its candidates."""
        return scenario_of(self.rules)

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


class Watch(Protocol):
    """Who is told how a training run goes."""

    def __call__(self, steps: int, player: Callable[[], Player], save: Callable[[Path], None]) -> None:
        """So many rounds have been played; ``player`` and ``save`` give the model as it is now."""


def unwatched(steps: int, player: Callable[[], Player], save: Callable[[Path], None]) -> None:
    """A watch that does not look."""
