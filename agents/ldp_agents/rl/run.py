"""What the trainer and an algorithm hand each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol

from ldp_agents.rl.config import Config, Settings
from ldp_gym import Game
from ldp_gym.engine.learners import LearnerProtocol

CHECKPOINT = "checkpoint.zip"
"""The file of a run that it goes on from."""

LearnerFactory = Callable[[Game], LearnerProtocol]
"""What makes a learner from a game, such as a trained model."""


class TrainedModel(Protocol):
    """A learner factory that can be stored."""

    def __call__(self, game: Game) -> Any:
        """The model as a learner of the game."""

    def save(self, directory: Path) -> None:
        """Write its files."""


ProgressCallback = Callable[[int, Callable[[], LearnerFactory], Callable[[Path], None]], None]
"""Hears how many rounds have been played, what gives the model of now, and what saves a checkpoint."""


@dataclass(frozen=True)
class Run(Generic[Settings]):
    """A training run as an algorithm gets it.

    Attributes:
        config: what to train, on what.
        settings: the algorithm's own, all of them.
        card: what goes with the model: the configuration and the versions.
        progress: hears how it goes.
        checkpoint: where to go on from, if anywhere.
        logs: the directory of the TensorBoard logs.
    """

    config: Config
    settings: Settings
    card: Mapping[str, Any]
    progress: ProgressCallback
    checkpoint: Path | None
    logs: Path
