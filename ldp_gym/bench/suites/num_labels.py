"""Risk against the number of labels: the paper's main point."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import Finding, Suite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results

CHANNELS = ("randomized-response", "subset-selection", "laplace-single", "vote", "split", "wheel")
FREE_OF_M = ("laplace-single", "vote", "split", "wheel")
BASE_LABELS = 16
PARTS = (1, 4, 16, 64, 256, 1024)


class NumLabels(Suite):
    """One table, with every label cut into ever more equal parts: M grows and nothing else changes."""

    name: ClassVar[str] = "num-labels"
    title: ClassVar[str] = "Risk against M"
    claim: ClassVar[str] = (
        "Randomized response pays for the number of labels; channels on the hypotheses do not, however many"
        " labels there are. A refined Dirichlet(0.3) table, K = 8, eps = 1, Bayes on each channel."
    )

    def games(self, small: bool) -> list[Entry]:
        """The refinements of one base table."""
        base = np.random.default_rng(0).dirichlet(np.full(BASE_LABELS, 0.3), size=8).tolist()
        horizon, episodes = (300, 16) if small else (1000, 32)
        return [
            Entry(
                {
                    "hypotheses": "refined",
                    "hypotheses_kwargs": {"base": base, "parts": parts},
                    "channel": channel,
                    "horizon": horizon,
                },
                "bayes",
                episodes=episodes,
                block=16 if parts <= 16 else 4,
            )
            for channel in CHANNELS
            for parts in (PARTS[:4] if small else PARTS)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Slopes in M."""
        found = []
        for channel in CHANNELS:
            line = _line(results, channel)
            if len(line) < 2:
                continue
            span = f"{channel}: from M = {_labels(line[0])} to {_labels(line[-1]):,}"
            if channel in FREE_OF_M:
                change = max(float(np.abs(p.totals - line[0].totals).max()) for p in line)
                found.append(
                    Finding(
                        f"{span} no episode's risk changes by more than {change:.0e} nats.", change < 1e-6
                    )
                )
                continue
            slope = statistics.slope([_labels(p) for p in line], [p.totals for p in line])
            grows = slope.low > 0.0 if channel == "randomized-response" else None
            found.append(Finding(f"{span} the risk has slope {slope} in M.", grows))
        return found

    def draw(self, results: Results) -> Figure:
        """Risk against M."""
        from ldp_gym.bench import figures

        drawn, axes = figures.figure(width=7.0, height=3.8)
        panel = axes[0, 0]
        pairs = list(dict.fromkeys((p.entry.learner, p.entry.channel) for p in results.of()))
        for i, (learner, channel) in enumerate(pairs):
            line = sorted(results.of(learner=learner, channel=channel), key=_labels)
            x = [_labels(p) for p in line]
            label = channel if learner == "bayes" else f"{learner} on {channel}"
            hue = figures.colour(channel if learner == "bayes" else learner, i)
            if len(line) > 1:
                label += f"\n{figures.sloped(statistics.slope(x, [p.totals for p in line]))}"
            figures.points(panel, figures.apart(x, i, len(pairs)), [p.risk for p in line], label, hue)
        panel.set(xlabel="number of labels M", ylabel="total KL of Bayes (nats)")
        figures.logarithmic(panel, "x", sorted({_labels(p) for p in results.of()}))
        figures.logarithmic(panel, "y")
        figures.legend(drawn)
        return drawn


def _labels(played: Played) -> int:
    return BASE_LABELS * int(played.entry.game["hypotheses_kwargs"]["parts"])


def _line(results: Results, channel: str) -> list[Played]:
    return sorted(results.of(channel=channel, learner="bayes"), key=_labels)
