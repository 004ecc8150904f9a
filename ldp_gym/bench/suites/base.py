"""What a suite is: what is run, what follows from it, and its figure."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.page import Column
from ldp_gym.bench.results import Results
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.core.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUITES: Registry[Suite] = Registry("suite", group="ldp_gym.suites")

SIZES = ("default", "small")

REDRAWN = {"redraw_hypotheses": True, "observe_candidates": True}
"""Every episode has a class of its own: an interval over episodes is then one over classes."""

DELTA = 1e-5
"""The delta of the channels that need one."""

_LONGEST = 100_000
"""Games of more rounds are not played by learners that a user adds: stepping would take hours."""


@dataclass(frozen=True)
class SuiteTable:
    """A table of a suite's own, beside that of its experiments.

    Attributes:
        title: what it shows.
        columns: as :func:`ldp_gym.bench.page.table` takes them.
        rows: likewise.
        printed: whether a terminal has room for it.
    """

    title: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Any]
    printed: bool = False


class Suite(ABC):
    """One claim, and how it is measured.

    A suite of your own defines :meth:`own_experiments`, :meth:`findings` and :meth:`draw`. It is run as an
    instance by :func:`ldp_gym.bench.run`, or by ``ldp-gym bench module:Class``.

    Attributes:
        name: what it is called on the command line.
        title: a line about it.
        claim: what the paper, or theory, says.
        order: its place among the suites of a report, the smallest first.
        ranks_learners: whether its table is a leaderboard, to be printed too.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    order: ClassVar[int] = 100
    ranks_learners: ClassVar[bool] = False

    @property
    def address(self) -> str:
        """Where a report finds it again: its name if it is registered, else ``module:Class``."""
        maker = type(self)
        known = self.name in SUITES and SUITES[self.name] is maker
        return self.name if known else f"{maker.__module__}:{maker.__qualname__}"

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made with, for a report to make it again."""
        return {}

    @abstractmethod
    def own_experiments(self, small: bool) -> list[Experiment]:
        """The suite's own experiments."""

    @abstractmethod
    def findings(self, results: Results) -> list[Finding]:
        """What follows from the results."""

    @abstractmethod
    def draw(self, results: Results) -> Figure:
        """The figure."""

    def tables(self, results: Results) -> list[SuiteTable]:
        """Tables of its own; most suites have none."""
        return []

    def experiments(
        self,
        size: str = "default",
        *,
        learners: Sequence[str] = (),
        channels: Sequence[str] = (),
        episodes: int | None = None,
    ) -> list[Experiment]:
        """The suite's experiments, with further learners and channels in its games."""
        experiments = self.own_experiments(small=validation.choice("size", size, SIZES) == "small")
        if episodes is not None:
            count = validation.whole("episodes", episodes, least=1)
            experiments = [replace(experiment, episodes=count) for experiment in experiments]
        experiments += [
            replace(experiment, rules=_move(experiment.rules, channel))
            for channel in channels
            for experiment in experiments
        ]
        experiments += [
            replace(experiment, learner=learner, options={})
            for learner in learners
            for experiment in experiments
            if experiment.horizon <= _LONGEST
        ]
        unique: dict[str, Experiment] = {}  # without those that play the same again
        for experiment in experiments:
            unique.setdefault(json.dumps(experiment.setup, sort_keys=True), experiment)
        return list(unique.values())


def _move(rules: Mapping[str, Any], channel: str) -> dict[str, Any]:
    """The same game on another channel."""
    kept = {name: value for name, value in rules.items() if name not in ("channel_kwargs", "delta")}
    return kept | channel_rules(channel)


def channel_rules(channel: str) -> dict[str, Any]:
    """A channel with the delta it needs, as keyword arguments of a game."""
    return {"channel": channel} | ({} if CHANNELS.class_of(channel).pure else {"delta": DELTA})
