"""Risk against the number of labels: the paper's main point."""

from __future__ import annotations

import operator

import numpy as np

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, certain
from ldp_gym.bench.results import Results
from ldp_gym.bench.suites.base import REDRAWN, Suite
from ldp_gym.channels.base import CHANNELS

CHOSEN = ("randomized-response", "subset-selection", "laplace-single", "vote", "split", "wheel")
BASE_LABELS = 16
_POSITION = operator.attrgetter("num_labels")
PARTS = (1, 4, 16, 64, 256, 1024)


class NumLabels(Suite):
    """Tables with every label cut into ever more equal parts: M grows and nothing else changes."""

    name = "num-labels"
    title = "Risk against M"
    claim = (
        "Randomized response pays for the number of labels; channels on the hypotheses do not, however many"
        " labels there are. Refined Dirichlet(0.3) tables, one per episode, K = 8, eps = 1, Bayes on each "
        "channel."
    )
    order = 60

    def own_experiments(self, small: bool) -> list[Experiment]:
        """The refinements of the same base tables, another one in each episode."""
        horizon, episodes = (300, 16) if small else (1000, 32)
        return [
            Experiment(
                {
                    "hypotheses": "refined",
                    "num_hypotheses": 8,
                    "num_labels": BASE_LABELS * parts,
                    "hypotheses_kwargs": {"parts": parts},
                    **REDRAWN,
                    "channel": channel,
                    "horizon": horizon,
                },
                "bayes",
                episodes=episodes,
                block=16 if parts <= 16 else 4,
            )
            for channel in CHOSEN
            for parts in (PARTS[:4] if small else PARTS)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Slopes in M."""
        found = []
        for channel in CHOSEN:
            line = results.line("bayes", channel, _POSITION)
            if len(line) < 2:
                continue
            least, most = (result.experiment.num_labels for result in (line[0], line[-1]))
            span = f"{channel}: from M = {least} to {most:,}"
            if CHANNELS.class_of(channel).free_of_num_labels:
                change = max(float(np.abs(r.totals - line[0].totals).max()) for r in line)
                found.append(
                    Finding(
                        f"{span} no episode's risk changes by more than {change:.0e} nats.",
                        certain(change < 1e-6),
                    )
                )
                continue
            samples = [r.experiment.num_labels for r in line], [r.totals for r in line]
            _, contributions = statistics.slope_contributions(*samples)
            grows = above(contributions, 0.0) if channel == "randomized-response" else None
            found.append(Finding(f"{span} the risk has slope {statistics.slope(*samples)} in M.", grows))
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Risk against M."""
        drawing, axes = figures.new_figure(width=7.0, height=3.8)
        panel = axes[0, 0]
        figures.draw_lines(panel, results, _POSITION)
        panel.set_xlabel("number of labels M")
        figures.set_log_scale(panel, "x", sorted(results.group(_POSITION)))
        figures.set_log_scale(panel, "y")
        figures.add_legend(drawing)
        return drawing
