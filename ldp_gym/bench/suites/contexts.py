"""Natures from kind to omniscient, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, find_least_risk
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import Suite
from ldp_gym.natures.base import NATURES

CHOSEN = ("iid", "drift", "adversary", "omniscient")
CHANNELS = ("laplace-single", "split")
LEARNERS = ("uniform", "exp3", "centred-exp3", "bayes")


class Contexts(Suite):
    """The default class against four natures."""

    name = "contexts"
    title = "Who picks the contexts"
    claim = (
        "The theorems hold for arbitrary contexts. The adversary weighs what Bayes is charged against what a "
        "message tells, on the public transcript alone: Bayes stays optimal, and pays more than on i.i.d. "
        "contexts. The omniscient takes the largest charge from the truth at once: it leaks the truth, so "
        "that neither Bayes' optimality nor the information limit holds, and is no worst case. "
        "Softmax-linear class, K = 8, M = 16, eps = 1."
    )
    order = 90

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Four natures, two channels, four learners."""
        horizon, episodes = (100, 8) if small else (1000, 64)
        return [
            Experiment(
                {"nature": nature, "channel": channel, "horizon": horizon},
                learner,
                episodes=episodes,
                block=32,
            )
            for nature in CHOSEN
            for channel in CHANNELS
            for learner in LEARNERS
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Whether Bayes is best where it must be, and the adversary harder than i.i.d. contexts."""
        found = []
        for channel in CHANNELS:
            played = {_nature(r.experiment): r for r in results.select(learner="bayes", channel=channel)}
            if {"iid", "adversary"} <= set(played):
                found.append(_hardness(channel, played))
        for (nature, channel), lines in results.group(lambda e: (_nature(e), e.channel)).items():
            finding = find_least_risk(f"{nature}, {channel}", lines)
            if NATURES.class_of(nature).leaks_truth:
                finding = Finding(f"{finding.text} This nature leaks the truth.")
            found.append(finding)
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Risk of every learner against every nature."""
        channels, learners = results.channels, results.learners
        natures = list(results.group(_nature))
        drawing, axes = figures.new_figure(len(channels), width=4.4, height=3.0, sharey=True)
        for panel, channel in zip(axes.flat, channels, strict=True):
            for i, learner in enumerate(learners):
                lines = results.select(channel=channel, learner=learner)
                shift = (i - (len(learners) - 1) / 2.0) * 0.12
                places = np.array([natures.index(_nature(r.experiment)) for r in lines]) + shift
                hue = figures.colour(learner, i)
                figures.draw_points(
                    panel, places.tolist(), [r.risk for r in lines], learner, hue, linestyle=""
                )
            panel.set_xticks(range(len(natures)), natures)
            panel.set_title(channel)
            figures.set_log_scale(panel, "y")
        figures.add_legend(drawing)
        axes.flat[0].set_ylabel("total KL (nats)")
        return drawing


def _nature(experiment: Experiment) -> str:
    return str(experiment.rules["nature"])


def _hardness(channel: str, played: Mapping[str, ExperimentResult]) -> Finding:
    """How much more than on i.i.d. contexts Bayes pays for others, by nature."""
    iid = played["iid"]
    times = ", ".join(
        f"{nature} {result.risk.value / iid.risk.value:.2f}"
        for nature, result in played.items()
        if nature != "iid"
    )
    return Finding(
        f"{channel}: Bayes' risk as a multiple of that on i.i.d. contexts, {iid.risk}: {times}. The claim is "
        f"that the adversary's is above 1.",
        above(played["adversary"].totals - iid.totals, 0.0),
    )
