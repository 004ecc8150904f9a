"""Natures from kind to omniscient, side by side."""

from __future__ import annotations

import numpy as np

from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, least_risk
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
        found = [_hardness(results, channel) for channel in CHANNELS if _natures_of_bayes(results, channel)]
        for (nature, channel), lines in results.group(_nature_and_channel).items():
            best = min(lines, key=lambda result: result.totals.mean())
            bayes = next((r for r in lines if r.learner == "bayes"), best)
            leaks = NATURES.class_of(nature).leaks_truth
            found.append(
                Finding(
                    f"{nature}, {channel}: {best.learner} has the least risk, {best.risk}; Bayes "
                    f"{bayes.risk}." + (" This nature leaks the truth." if leaks else ""),
                    None if leaks else least_risk(bayes, lines),
                )
            )
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Risk of every learner against every nature."""
        channels, learners = results.channels, results.learners
        natures = list(results.group(lambda experiment: experiment.rules["nature"]))
        drawing, axes = figures.new_figure(len(channels), width=4.4, height=3.0, sharey=True)
        for panel, channel in zip(axes.flat, channels, strict=True):
            for i, learner in enumerate(learners):
                lines = results.select(channel=channel, learner=learner)
                shift = (i - (len(learners) - 1) / 2.0) * 0.12
                places = np.array([natures.index(r.experiment.rules["nature"]) for r in lines]) + shift
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


def _natures_of_bayes(results: Results, channel: str) -> dict[str, ExperimentResult]:
    """Bayes against every nature, where both the i.i.d. one and the adversary were played."""
    played = {r.experiment.rules["nature"]: r for r in results.select(learner="bayes", channel=channel)}
    return played if {"iid", "adversary"} <= set(played) else {}


def _hardness(results: Results, channel: str) -> Finding:
    """How much more than on i.i.d. contexts Bayes pays for others."""
    played = _natures_of_bayes(results, channel)
    iid = played["iid"]
    others = {nature: result.risk.value / iid.risk.value for nature, result in played.items()}
    times = ", ".join(f"{nature} {value:.2f}" for nature, value in others.items() if nature != "iid")
    return Finding(
        f"{channel}: Bayes' risk as a multiple of that on i.i.d. contexts, {iid.risk}: {times}. The claim is "
        f"that the adversary's is above 1.",
        above(played["adversary"].totals - iid.totals, 0.0),
    )


def _nature_and_channel(experiment: Experiment) -> tuple[str, str]:
    return experiment.rules["nature"], experiment.channel
