"""Base class of the suites, the rules that they share, and findings with tests of what they claim."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results, is_level
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
        if not self.axis:
            return
        for learner, channel in results.pairs:
            line = results.line(learner, channel, self.position)
            if len(line) > 1 and learner != "uniform":
                yield self._find_slope(learner, channel, line)

    def _find_slope(self, learner: str, channel: str, line: Sequence[ExperimentResult]) -> Finding:
        """Slope of the risk along the axis, and the predicted one if there is any."""
        positions = [self.position(result.experiment) for result in line]
        slope = statistics.slope(positions, [result.totals for result in line])
        text = (
            f"{learner} on {channel}: the risk has slope {slope} in {self.axis} from "
            f"{positions[0]:,.10g} to {positions[-1]:,.10g}"
        )
        if (learner, channel) in self.predicted:
            predicted, reason = self.predicted[learner, channel]
            text += f"; predicted {predicted:+g} ({reason})"
        return Finding(f"{text}.")

    def lead(self, results: Results) -> tuple[str, dict[str, str]]:
        """Sentence that a report leads with, and numbers by their meaning; most suites have none."""
        return "", {}

    def draw(self, results: Results) -> figures.Figure:
        """Draw the figure; by default risks along the axis, or of every learner on every channel."""
        if self.axis:
            return figures.draw_lines(figures.pair_lines(results, self.position), self.axis)
        panels: figures.Panels = {}
        bayes_first = sorted(
            results.successes, key=lambda result: (result.learner != "bayes", result.risk.value)
        )
        for result in bayes_first:
            panel, row = self.place(result.experiment)
            rows = panels.setdefault(panel, {}).setdefault(result.learner, {})
            rows[row] = result.risk
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
        validation.choice("size", size, SIZES)
        experiments = self.own_experiments(small=size == "small")
        if episodes is not None:
            experiments = [replace(experiment, episodes=episodes) for experiment in experiments]

        on_own_channels = list(experiments)
        for channel in channels:
            rules = {"channel_kwargs": {}, "delta": 0.0, **channel_rules(channel)}
            experiments += [
                replace(experiment, rules=replace(experiment.rules, **rules))
                for experiment in on_own_channels
            ]

        short = [experiment for experiment in experiments if experiment.horizon <= _LONGEST_ADDED]
        for learner in learners:
            experiments += [
                replace(experiment, learner=learner, options={}) for experiment in short
            ]

        # Experiments that play the same count once.
        unique: dict[str, Experiment] = {}
        for experiment in experiments:
            unique.setdefault(json.dumps(experiment.setup, sort_keys=True), experiment)
        return list(unique.values())


def channel_rules(channel: str) -> dict[str, Any]:
    """Rules that name a channel, with the delta that it needs."""
    declared = CHANNELS.class_of(channel)
    if not issubclass(declared, Channel):
        raise TypeError(f"{channel} is not a channel: it must be a subclass of ldp_gym.Channel")
    if declared.pure:
        return {"channel": channel}
    return {"channel": channel, "delta": DELTA}


def compare_with_bayes(
    places: Mapping[str, Sequence[ExperimentResult]], start: str = "On no channel"
) -> Iterator[Finding]:
    """Compare learners with Bayes in each place, such as a channel: by theorem none does better.

    The intervals of the paired differences of all learners in a place hold together with 95% confidence.
    A learner is level with Bayes if its interval contains 0 and little else (:func:`is_level`); if it
    contains 0 and much else, the episodes are too few to tell.
    """
    tests = list[PValues]()
    below_bayes = list[str]()
    level: dict[str, list[str]] = {}
    unclear: dict[str, list[str]] = {}
    for place, results in places.items():
        for bayes in [result for result in results if result.learner == "bayes"]:
            others = [result for result in results if result is not bayes]
            for other in others:
                tests.append(above(paired(other.totals, bayes.totals), 0.0))
                gap = difference(other.totals, bayes.totals, len(others))
                if is_level(gap, float(bayes.totals.mean())):
                    level.setdefault(other.learner, []).append(place)
                elif gap.contains(0.0):
                    unclear.setdefault(other.learner, []).append(place)
                elif gap.high < 0.0:
                    advantage = Estimate(-gap.value, -gap.high, -gap.low)
                    below_bayes.append(f"{other.learner} on {place} by {advantage} nats")
    if not tests:
        return

    played = Counter(result.learner for results in places.values() for result in results)
    sentences = [f"{start} does one of these learners do better than Bayes."]
    if below_bayes:
        sentences = [f"Below Bayes: {'; '.join(below_bayes)}."]
    if level:
        sentences.append(f"Level with Bayes: {_list_places(level, played)}.")
    if unclear:
        sentences.append(f"Too few episodes to tell: {_list_places(unclear, played)}.")
    yield Finding(" ".join(sentences), conjunction(tests), in_words=True)


def _list_places(places: Mapping[str, Sequence[str]], played: Mapping[str, int]) -> str:
    """List learners with their places in words; learners with the same places stand together.

    Args:
        places: names of places by learner.
        played: number of places in which a learner played.
    """
    learners: dict[str, list[str]] = {}
    for learner, names in places.items():
        if len(names) < 3:
            where = " and ".join(names)
        elif len(names) == played[learner]:
            where = f"all {len(names)} that it plays"
        else:
            where = f"{len(names)} of {played[learner]} that it plays"
        learners.setdefault(where, []).append(learner)
    return "; ".join(f"{', '.join(names)} on {where}" for where, names in learners.items())


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    claims = [finding.p_values for finding in findings if finding.p_values]
    remaining = iter(verdicts(claims))
    judged = list[tuple[Finding, Verdict | None]]()
    for finding in findings:
        verdict = next(remaining) if finding.p_values else None
        if finding.in_words and verdict is not Verdict.CONTRADICTED:
            verdict = None
        judged.append((finding, verdict))
    return judged
