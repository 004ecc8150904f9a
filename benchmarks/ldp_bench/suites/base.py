"""Base class of the suites, the rules that they share, and findings with tests of what they claim."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results
from ldp_gym import statistics
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.registry import Registry
from ldp_gym.statistics import (
    Estimate,
    PValues,
    Verdict,
    above,
    conjunction,
    difference,
    paired,
    verdicts,
)

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


@dataclass(frozen=True)
class Finding:
    """A conclusion computed from results.

    Attributes:
        text: the conclusion in words.
        p_values: tests of the claim that it makes; None if it claims nothing.
        in_words: True if the words say all that was found, so that only a contradiction gets a mark.
    """

    text: str
    p_values: PValues | None = None
    in_words: bool = False

    def __post_init__(self) -> None:
        if self.p_values is not None:
            validation.instance(
                "p_values", self.p_values, PValues, "p-values, such as above() returns"
            )


class Suite(ABC):
    """Experiments, the quantity that they vary, and claims about their results.

    A custom suite defines :meth:`own_experiments`, and :meth:`findings` and :meth:`draw` where the defaults
    do not fit. :func:`ldp_bench.run` plays an instance, ``ldp-gym bench module:Class`` a class.

    Attributes:
        name: name on the command line.
        title: one line about the suite.
        claim: statement of the paper or of theory that is measured.
        axis: quantity of the x-axis: "T", "K", "M" or "eps"; "" for none.
        predicted: predicted slope in log-log and its reason, by learner and channel.
        parameters: arguments that make the suite again, for its record in a store.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
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
        given = [
            {"channel_kwargs": {}, "delta": 0.0, **channel_rules(channel)} for channel in channels
        ]
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


def compare_with_bayes(
    places: Mapping[str, Sequence[ExperimentResult]], start: str = "On no channel"
) -> Iterator[Finding]:
    """Compare learners with Bayes in each place, such as a channel: by theorem none does better.

    A learner is level with Bayes if the interval of their paired difference contains 0. The intervals of
    all learners in a place hold together with 95% confidence.
    """
    tests, below, level = list[PValues](), list[str](), defaultdict[str, list[str]](list)
    for place, results in places.items():
        for bayes in [result for result in results if result.learner == "bayes"]:
            for other in [result for result in results if result is not bayes]:
                tests.append(above(paired(other.totals, bayes.totals), 0.0))
                gap = difference(other.totals, bayes.totals, len(results) - 1)
                if gap.contains(0.0):
                    level[other.learner].append(place)
                elif gap.high < 0.0:
                    less = Estimate(-gap.value, -gap.high, -gap.low)
                    below.append(f"{other.learner} on {place} by {less} nats")
    if not tests:
        return
    text = (
        f"Below Bayes: {'; '.join(below)}."
        if below
        else f"{start} does one of these learners do better than Bayes."
    )
    played = Counter(result.learner for results in places.values() for result in results)
    ties: dict[str, list[str]] = {}
    for learner, some in level.items():
        count = (
            f"all {len(some)}"
            if len(some) == played[learner]
            else f"{len(some)} of {played[learner]}"
        )
        ties.setdefault(
            " and ".join(some) if len(some) < 3 else f"{count} that it plays", []
        ).append(learner)
    told = "; ".join(f"{', '.join(learners)} on {where}" for where, learners in ties.items())
    yield Finding(
        f"{text} Level with Bayes: {told}." if ties else text, conjunction(tests), in_words=True
    )


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    judged = iter(verdicts([finding.p_values for finding in findings if finding.p_values]))
    found = [(finding, next(judged) if finding.p_values else None) for finding in findings]
    contradicted = Verdict.CONTRADICTED
    return [
        (f, None if f.in_words and verdict is not contradicted else verdict) for f, verdict in found
    ]
