"""Risk against the horizon: the theorems of Sections 4 and 5, and where their learners begin to learn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ldp_gym import theory
from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, below, every
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import DELTA, REDRAWN, Suite, channel_rules
from ldp_gym.core.arrays import FloatArray

NUM_HYPOTHESES = 8
GAME: dict[str, Any] = {
    "hypotheses": "dirichlet",
    "num_hypotheses": NUM_HYPOTHESES,
    "num_labels": 16,
    **REDRAWN,
}

PAIRS = (
    ("exp3", "laplace-single", 10**7),
    ("wma", "laplace-vector", 10**6),
    ("centred-exp3", "laplace-single", 10**6),
    ("centred-exp3", "laplace-vector", 10**6),
    ("bayes", "laplace-single", 10**6),
    ("uniform", "laplace-single", 10**4),
)
"""Learner, channel and the longest horizon that it is worth playing."""

EPISODES = {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 8}
"""How many tables, and episodes, at each horizon; the shorter ones share theirs with the longer."""

LONGEST = max(EPISODES)

BOUNDS = (
    ("exp3", "laplace-single", partial(theory.exp3_bound, NUM_HYPOTHESES, epsilon=1.0)),
    ("wma", "laplace-vector", partial(theory.wma_bound, NUM_HYPOTHESES, epsilon=1.0, delta=DELTA)),
)
"""Learner, channel and what its theorem promises in this game, by T."""


class Upper(Suite):
    """EXP3 and WMA as the paper has them, over four decades of T."""

    name = "upper"
    title = "Risk against T, below the theorems' bounds"
    claim = (
        "Algorithms 1 and 2 have risk of order sqrt(T) up to logarithms: at most the theorem's bound, and "
        "of slope less than 1 in log-log once they learn. Dirichlet(0.3) tables with K = 8, M = 16, eps = 1; "
        "every episode has a table of its own, the same at every T, so that the intervals are over tables."
    )
    order = 20

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Each horizon is a game of its own: noise, clipping and rates are made for it."""
        longest = 10**4 if small else LONGEST
        return [
            Experiment(
                {**GAME, **channel_rules(channel), "horizon": horizon},
                learner,
                episodes=max(2, episodes // 8) if small else episodes,
                block=max(1, min(32, 10**6 // horizon)),
            )
            for learner, channel, end in PAIRS
            for horizon, episodes in EPISODES.items()
            if horizon <= min(end, longest)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Slopes, where the linear regime ends, and the bounds."""
        found = []
        idle = results.line("uniform", "laplace-single")
        per_round = idle[0].totals / idle[0].horizon if idle else np.array([np.nan])
        for learner, channel, _ in PAIRS:
            line = results.line(learner, channel)
            if learner != "uniform" and len(line) > 1:
                found.append(_regime(line, per_round))
        for learner, channel, bound in BOUNDS:
            if line := results.line(learner, channel):
                worst = max(r.totals.max() / bound(r.horizon) for r in line)
                found.append(
                    Finding(
                        f"{learner}: at most {worst:.2g} times the theorem's bound, in any episode.",
                        every(below(r.totals, bound(r.horizon)) for r in line),
                    )
                )
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Risk and bounds against T."""
        drawing, axes = figures.new_figure(width=8.2, height=4.4)
        panel = axes[0, 0]
        for i, (learner, channel) in enumerate(results.pairs):
            line = results.line(learner, channel)
            x = [r.horizon for r in line]
            label, hue = f"{learner} on {channel}", figures.pair_colour(learner, channel, i)
            if len(line) > 1:
                slope = statistics.slope(x[-2:], [r.totals for r in line[-2:]])
                label += f"\n{figures.slope_label(slope)} at the end"
            figures.draw_points(panel, x, [r.risk for r in line], label, hue)
        horizons = sorted({r.horizon for r in results.successes})
        for learner, _, bound in BOUNDS:
            label, hue = f"bound of {learner.upper()}", figures.colour(learner)
            panel.plot(horizons, [bound(t) for t in horizons], ":", color=hue, label=label)
        idle = results.line("uniform", "laplace-single")
        if idle:  # it never learns: beyond what was played, it goes on like that
            last = idle[-1]
            beyond = [t for t in horizons if t >= last.horizon]
            each = last.totals.mean() / last.horizon
            panel.plot(
                beyond, [each * t for t in beyond], "--", color=figures.colour("uniform"), linewidth=1.0
            )
        panel.set(xlabel="horizon T", ylabel="total KL (nats)")
        figures.set_log_scale(panel, "x", horizons)
        figures.set_log_scale(panel, "y")
        figures.add_legend(drawing)
        return drawing


def _regime(line: list[ExperimentResult], per_round: FloatArray) -> Finding:
    """The slope over the last decade, and the risk as a share of the uniform mixture's on the same tables."""
    learner, channel = line[0].learner, line[0].channel
    before, last = line[-2:]
    samples = [before.horizon, last.horizon], [before.totals, last.totals]
    slope, (_, contributions) = statistics.slope(*samples), statistics.slope_contributions(*samples)
    shares = {r.horizon: r.totals.mean() / (per_round[: len(r.totals)].mean() * r.horizon) for r in line}
    learns = [f"{horizon:,}" for horizon, share in shares.items() if share < 0.5]
    start = f"from T = {learns[0]}" if learns else "nowhere"
    return Finding(
        f"{learner} on {channel}: slope {slope} between T = {before.horizon:,} and "
        f"{last.horizon:,}; below half of the uniform mixture's risk {start}; at the end it has "
        f"{shares[last.horizon]:.2g} of it.",
        below(contributions, 1.0) if learner == "exp3" and last.horizon == LONGEST else None,
    )
