"""Base class of the suites, and the rules that they share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_gym import statistics
from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.results import Results
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.registry import Registry

if TYPE_CHECKING:
    from pandas import DataFrame

SUITES: Registry[Suite] = Registry("suite", group="ldp_gym.suites")

SIZES = ("default", "small")

REDRAWN = {"redraw_hypotheses": True, "observe_candidates": True}
"""Rules of a game with a new class in every episode: an interval over episodes is then one over classes."""

TABLES = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16}
"""Rules of the Dirichlet(0.3) tables that most suites play."""

DELTA = 1e-5
"""Delta of the channels that need one."""

_LONGEST_ADDED = 100_000
"""Longest horizon that learners added by a user play: stepping through more would take hours."""

_AXES = {"T": "horizon", "K": "num_hypotheses", "M": "num_labels", "eps": "epsilon"}
"""Attributes of an experiment, by the symbol of an axis."""


class Suite(ABC):
    """Experiments, the quantity that they vary, and claims about their results.

    A custom suite defines :meth:`own_experiments`, and :meth:`findings` and :meth:`draw` where the defaults
    do not fit. :func:`ldp_gym.bench.run` plays an instance, ``ldp-gym bench module:Class`` a class.

    Attributes:
        name: name on the command line.
        title: one line about the suite.
        claim: statement of the paper or of theory that is measured.
        ranks_learners: whether its table is a leaderboard, to be printed too.
        axis: quantity of the x-axis: "T", "K", "M" or "eps"; "" for none.
        predicted: predicted slope in log-log and its reason, by learner and channel.
        parameters: arguments that make the suite again, for its record in a store.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    ranks_learners: ClassVar[bool] = False
    axis: ClassVar[str] = ""
    predicted: ClassVar[Mapping[tuple[str, str], tuple[float, str]]] = {}
    parameters: Mapping[str, Any] = {}

    @property
    def address(self) -> str:
        """Name in a store: the suite's name if it is registered, else ``module:Class``."""
        registered = SUITES.get(self.name) is type(self)
        return self.name if registered else f"{type(self).__module__}:{type(self).__qualname__}"

    @abstractmethod
    def own_experiments(self, small: bool) -> list[Experiment]:
        """Experiments of the suite, without those that a user adds."""

    def findings(self, results: Results) -> Iterable[Finding]:
        """Conclusions from the results; by default the slopes along the axis."""
        for learner, channel in results.pairs if self.axis else ():
            line = results.line(learner, channel, self.position)
            if len(line) > 1 and learner != "uniform":
                x = [self.position(r.experiment) for r in line]
                slope = statistics.slope(x, [r.totals for r in line])
                value, why = self.predicted.get((learner, channel), (None, ""))
                end = "." if value is None else f"; predicted {value:+g} ({why})."
                span = f"in {self.axis} from {x[0]:,.10g} to {x[-1]:,.10g}"
                yield Finding(f"{learner} on {channel}: the risk has slope {slope} {span}{end}")

    def lead(self, results: Results) -> tuple[str, dict[str, str]]:
        """Sentence that a report leads with, and numbers by their meaning; most suites have none."""
        return "", {}

    def draw(self, results: Results) -> figures.Figure:
        """Draw the figure; by default risks along the axis, or of every learner on every channel."""
        if self.axis:
            return figures.draw_lines(figures.pair_lines(results, self.position), self.axis)
        panels: figures.Panels = {}
        for r in sorted(results.successes, key=lambda r: (r.learner != "bayes", r.risk.value)):
            panel, row = self.place(r.experiment)
            panels.setdefault(panel, {}).setdefault(r.learner, {})[row] = r.risk
        return figures.draw_rows(panels, xlabel="total KL (nats)")

    def place(self, experiment: Experiment) -> tuple[str, str]:
        """Panel and row of an experiment in a figure without an axis."""
        return "", experiment.channel

    def position(self, experiment: Experiment) -> float:
        """Place of an experiment on the axis."""
        return float(getattr(experiment, _AXES[self.axis]))

    def tables(self, results: Results) -> dict[str, DataFrame]:
        """Further tables by title; most suites have none."""
        return {}

    def experiments(
        self,
        size: str = "default",
        *,
        learners: Sequence[str] = (),
        channels: Sequence[str] = (),
        episodes: int | None = None,
    ) -> list[Experiment]:
        """Experiments of the suite, with further learners and channels in its games."""
        every = self.own_experiments(small=validation.choice("size", size, SIZES) == "small")
        if episodes is not None:
            every = [replace(e, episodes=episodes) for e in every]
        given = [{"channel_kwargs": {}, "delta": 0.0, **channel_rules(channel)} for channel in channels]
        every += [replace(e, rules=replace(e.rules, **rules)) for rules in given for e in every]
        short = [e for e in every if e.horizon <= _LONGEST_ADDED]
        every += [replace(e, learner=learner, options={}) for learner in learners for e in short]
        unique: dict[str, Experiment] = {}  # two that play the same count once
        for e in every:
            unique.setdefault(json.dumps(e.setup, sort_keys=True), e)
        return list(unique.values())


def channel_rules(channel: str) -> dict[str, Any]:
    """Rules that name a channel, with the delta that it needs."""
    declared = CHANNELS.class_of(channel)
    if not issubclass(declared, Channel):
        raise TypeError(f"{channel} is not a channel: it must be a subclass of ldp_gym.Channel")
    return {"channel": channel} | ({} if declared.pure else {"delta": DELTA})
