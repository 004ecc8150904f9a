"""Natures from kind to omniscient, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import Finding, Suite
from ldp_gym.natures.base import NATURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results

CHOSEN = ("iid", "drift", "adversary", "omniscient")
CHANNELS = ("laplace-single", "split")
LEARNERS = ("uniform", "exp3", "centred-exp3", "bayes")


class Contexts(Suite):
    """The default class against four natures."""

    name: ClassVar[str] = "contexts"
    title: ClassVar[str] = "Who picks the contexts"
    claim: ClassVar[str] = (
        "The theorems hold for arbitrary contexts. An adversary on the public transcript leaves Bayes "
        "optimal; an omniscient one leaks the truth through its contexts, and there neither Bayes' "
        "optimality nor the information limit holds. Softmax-linear class, K = 8, M = 16, eps = 1."
    )

    def games(self, small: bool) -> list[Entry]:
        """Four natures, two channels, four learners."""
        horizon, episodes = (100, 8) if small else (1000, 64)
        return [
            Entry(
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
        """Whether Bayes is best where it must be."""
        found = []
        for nature, channel, lines in _groups(results):
            best = min(lines, key=lambda played: played.totals.mean())
            bayes = next((p for p in lines if p.entry.learner == "bayes"), best)
            leaks = bool(getattr(NATURES[nature], "leaks_truth", False))
            found.append(
                Finding(
                    f"{nature}, {channel}: {best.entry.learner} has the least risk, {best.risk}; Bayes "
                    f"{bayes.risk}." + (" This nature leaks the truth." if leaks else ""),
                    None if leaks else statistics.difference(best.totals, bayes.totals).high >= 0.0,
                )
            )
        return found

    def draw(self, results: Results) -> Figure:
        """Risk of every learner against every nature."""
        from ldp_gym.bench import figures

        channels = list(dict.fromkeys(p.entry.channel for p in results.played))
        learners = list(dict.fromkeys(p.entry.learner for p in results.played))
        natures = list(dict.fromkeys(p.entry.game["nature"] for p in results.played))
        drawn, axes = figures.figure(len(channels), width=4.4, height=3.0, sharey=True)
        for panel, channel in zip(axes.flat, channels, strict=True):
            for i, learner in enumerate(learners):
                lines = results.of(channel=channel, learner=learner)
                shift = (i - (len(learners) - 1) / 2.0) * 0.12
                places = np.array([natures.index(p.entry.game["nature"]) for p in lines]) + shift
                hue = figures.colour(learner, i)
                figures.points(panel, places.tolist(), [p.risk for p in lines], learner, hue, linestyle="")
            panel.set_xticks(range(len(natures)), natures)
            panel.set_title(channel)
            figures.logarithmic(panel, "y")
        figures.legend(drawn)
        axes.flat[0].set_ylabel("total KL (nats)")
        return drawn


def _groups(results: Results) -> list[tuple[str, str, list[Played]]]:
    groups: dict[tuple[str, str], list[Played]] = {}
    for played in results.played:
        groups.setdefault((played.entry.game["nature"], played.entry.channel), []).append(played)
    return [(nature, channel, lines) for (nature, channel), lines in groups.items()]
