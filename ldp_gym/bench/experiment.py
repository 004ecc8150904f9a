"""What a suite asks for, and the cells it is cut into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import ldp_gym
from ldp_gym.channels.base import CHANNELS
from ldp_gym.engine.rules import rule_value
from ldp_gym.engine.scenario import Scenario
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.learners import LEARNERS, is_directory, learner_maker
from ldp_gym.natures.base import NATURES
from ldp_gym.registry import is_builtin

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
        return str(rule_value(self.game, "channel"))

    @property
    def horizon(self) -> int:
        """T."""
        return int(rule_value(self.game, "horizon"))

    @property
    def size(self) -> tuple[int, int]:
        """K and M."""
        rest = ("channel", "channel_kwargs", "delta")  # whatever they are
        return _size(json.dumps({name: self.game[name] for name in self.game if name not in rest}))

    @property
    def kind(self) -> str:
        """The class of the game, with its size."""
        name = rule_value(self.game, "hypotheses")
        return "{}, K = {}, M = {:,}".format(name if isinstance(name, str) else "table", *self.size)

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
        truths = self.entry.size[0] if self.entry.truth == "all" else 1
        return self.entry.episodes * self.entry.horizon * truths

    @cached_property
    def configuration(self) -> str:
        """Everything that its result depends on, in one canonical line."""
        facts = asdict(self.entry)
        del facts["block"]  # how the work is cut changes no result
        facts |= {"seed": self.seed, "version": ldp_gym.__version__, "sources": _sources(self.entry)}
        return json.dumps(facts, sort_keys=True, allow_nan=False)

    @cached_property
    def key(self) -> str:
        """The configuration's fingerprint."""
        return hashlib.sha256(self.configuration.encode()).hexdigest()


@cache  # the entries of a suite share a few games
def _size(rules: str) -> tuple[int, int]:
    hypotheses = Scenario(**json.loads(rules)).hypotheses
    return hypotheses.num_hypotheses, hypotheses.num_labels


def _sources(entry: Entry) -> dict[str, str]:
    """The fingerprints of code and models that are not ours: changed, they are another configuration."""
    if is_directory(entry.learner):
        files = sorted(path for path in Path(entry.learner).iterdir() if path.is_file())
        makers: dict[str, Any] = {}
        sources = {entry.learner: _fingerprint(files)}
    else:
        makers, sources = {entry.learner: LEARNERS[entry.learner]}, {}
    makers[entry.channel] = CHANNELS[entry.channel]
    for registry, argument in ((HYPOTHESES, "hypotheses"), (NATURES, "nature")):
        name = entry.game.get(argument)
        if isinstance(name, str) and ":" in name:
            makers[name] = registry[name]
    return sources | {name: _code(maker) for name, maker in makers.items() if not is_builtin(maker)}


def _code(maker: Any) -> str:
    """The fingerprint of the package that something was made in, or of its module if that is in none."""
    top = import_module(maker.__module__.partition(".")[0])
    if hasattr(top, "__path__"):
        return _fingerprint(sorted(path for folder in top.__path__ for path in Path(folder).rglob("*.py")))
    return _fingerprint([Path(top.__file__)]) if top.__file__ else ""


def _fingerprint(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def may_play_here(learner: str) -> bool:
    """Whether a learner's code comes with this package: others play in a process of their own.

    A trained model is numbers, and our code plays them; unless what is stored runs code when it is read.
    """
    if is_directory(learner):
        return not getattr(learner_maker(learner), "runs_stored_code", False)
    return is_builtin(LEARNERS[learner])
