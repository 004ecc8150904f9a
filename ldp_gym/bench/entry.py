"""What a suite asks for, and the cells it is cut into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import util
from pathlib import Path
from typing import Any

import ldp_gym
from ldp_gym.learners import LEARNERS

BLOCK = 25
"""How many episodes of one truth a cell plays, unless its suite says otherwise."""


@dataclass(frozen=True)
class Entry:
    """A learner in a game, for a number of episodes.

    Attributes:
        game: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists, so that they go
            through JSON.
        learner: a learner's name, your own as ``module:Class``, or a trained model's directory.
        options: the learner's options.
        episodes: how many; episode i has seed ``seed + i``, whoever plays it.
        truth: as in :func:`ldp_gym.evaluate`.
        estimates: whether to keep the episodes' average predictions (:mod:`ldp_gym.batch`) instead of losses.
        block: how many episodes a cell plays.
    """

    game: Mapping[str, Any]
    learner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 32
    truth: int | str | None = None
    estimates: bool = False
    block: int = BLOCK

    @property
    def channel(self) -> str:
        """The channel's name."""
        return str(self.game.get("channel", "laplace-single"))

    @property
    def horizon(self) -> int:
        """T."""
        return int(self.game.get("horizon", 1000))

    def cells(self, seed: int) -> list[Cell]:
        """The entry in blocks of episodes. They do not depend on who plays them, or how many at a time."""
        return [
            Cell(replace(self, episodes=min(self.block, self.episodes - start)), seed + start)
            for start in range(0, self.episodes, self.block)
        ]

    def __str__(self) -> str:
        return f"{self.learner} on {self.channel}, T = {self.horizon:,}"


@dataclass(frozen=True)
class Cell:
    """A block of an entry's episodes: the unit of work, of storage and of resumption."""

    entry: Entry
    seed: int

    @property
    def rounds(self) -> int:
        """How many rounds it plays: what its time goes with."""
        size = int(self.entry.game.get("num_hypotheses") or 8) if self.entry.truth == "all" else 1
        return self.entry.episodes * self.entry.horizon * size

    @property
    def configuration(self) -> str:
        """Everything that its result depends on, in one canonical line."""
        facts = asdict(self.entry)
        del facts["block"]  # how the work is cut changes no result
        own = {name: _source(name) for name in (self.entry.learner, self.entry.channel) if _is_own(name)}
        facts |= {"seed": self.seed, "version": ldp_gym.__version__, "sources": own}
        return json.dumps(facts, sort_keys=True, allow_nan=False)

    @property
    def key(self) -> str:
        """The configuration's fingerprint."""
        return hashlib.sha256(self.configuration.encode()).hexdigest()


def _is_own(name: str) -> bool:
    return ":" in name or Path(name).is_dir()


def _source(name: str) -> str:
    """The fingerprint of the file of ``module:Object``, or of a directory: changed, it is another game."""
    if Path(name).is_dir():
        files = sorted(path for path in Path(name).iterdir() if path.is_file())
    else:
        spec = util.find_spec(name.partition(":")[0])
        if spec is None or spec.origin is None:
            raise ValueError(f"cannot find the module of {name!r}: is it installed, or in this directory?")
        files = [Path(spec.origin)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def is_ours(learner: str) -> bool:
    """Whether a learner's code comes with this package: others play in a process of their own."""
    if _is_own(learner):
        return ":" not in learner  # a trained model is numbers, and our code plays them
    return LEARNERS[learner].__module__.partition(".")[0] == "ldp_agents"
