"""Risk against the horizon: the theorems of Sections 4 and 5, and where their learners begin to learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldp_gym import theory
from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import DELTA, Finding, Suite, on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results

SIZE = 8
GAME: dict[str, Any] = {"hypotheses": "dirichlet", "num_hypotheses": SIZE, "num_labels": 16}

PAIRS = (
    ("exp3", "laplace-single", 10**8),
    ("wma", "laplace-vector", 10**8),
    ("centred-exp3", "laplace-single", 10**7),
    ("centred-wma", "laplace-vector", 10**6),
    ("bayes", "laplace-single", 10**6),
    ("uniform", "laplace-single", 10**4),
)
"""Learner, channel and the longest horizon that it is worth playing."""

EPISODES = {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 4, 10**8: 2}
LONGEST = max(EPISODES)


class Upper(Suite):
    """EXP3 and WMA as the paper has them, over five decades of T."""

    name: ClassVar[str] = "upper"
    title: ClassVar[str] = "Risk against T, below the theorems' bounds"
    claim: ClassVar[str] = (
        "Algorithms 1 and 2 have risk of order sqrt(T) up to logarithms: at most the theorem's bound, and "
        "of slope less than 1 in log-log once they learn. One Dirichlet(0.3) table with K = 8, M = 16, eps "
        "= 1, the first hypothesis the truth at every T."
    )

    def games(self, small: bool) -> list[Entry]:
        """Each horizon is a game of its own: noise, clipping and rates are made for it."""
        longest = 10**4 if small else LONGEST
        return [
            Entry(
                {**GAME, **on(channel), "horizon": horizon},
                learner,
                episodes=max(2, episodes // 8) if small else episodes,
                truth=0,
                block=max(1, min(32, 10**6 // horizon)),
            )
            for learner, channel, end in PAIRS
            for horizon, episodes in EPISODES.items()
            if horizon <= min(end, longest)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Slopes, where the linear regime ends, and the bounds."""
        found = []
        idle = _line(results, "uniform", "laplace-single")
        per_round = float(idle[0].totals.mean() / idle[0].entry.horizon) if idle else np.nan
        for learner, channel, _ in PAIRS:
            line = _line(results, learner, channel)
            if learner != "uniform" and len(line) > 1:
                found.append(_regime(line, per_round))
        for learner, channel, bound in (
            ("exp3", "laplace-single", exp3_bound),
            ("wma", "laplace-vector", wma_bound),
        ):
            line = _line(results, learner, channel)
            worst = max((p.totals.max() / bound(p.entry.horizon) for p in line), default=0.0)
            if line:
                found.append(
                    Finding(
                        f"{learner}: at most {worst:.2g} times the theorem's bound, in any episode.",
                        worst < 1,
                    )
                )
        return found

    def draw(self, results: Results) -> Figure:
        """Risk and bounds against T."""
        from ldp_gym.bench import figures

        drawn, axes = figures.figure(width=8.2, height=4.4)
        panel = axes[0, 0]
        pairs = list(dict.fromkeys((p.entry.learner, p.entry.channel) for p in results.of()))
        for i, (learner, channel) in enumerate(pairs):
            line = _line(results, learner, channel)
            x = [p.entry.horizon for p in line]
            label, hue = f"{learner} on {channel}", figures.pair_colour(learner, channel, i)
            if len(line) > 1:
                slope = statistics.slope(x[-2:], [p.totals for p in line[-2:]])
                label += f"\n{figures.sloped(slope)} at the end"
            figures.points(panel, x, [p.risk for p in line], label, hue)
        horizons = sorted({p.entry.horizon for p in results.played})
        panel.plot(
            horizons,
            [exp3_bound(t) for t in horizons],
            ":",
            color=figures.colour("exp3"),
            label="bound of EXP3",
        )
        panel.plot(
            horizons, [wma_bound(t) for t in horizons], ":", color=figures.colour("wma"), label="bound of WMA"
        )
        idle = _line(results, "uniform", "laplace-single")
        if idle:  # it never learns: beyond what was played, it goes on like that
            last = idle[-1]
            beyond = [t for t in horizons if t >= last.entry.horizon]
            each = last.totals.mean() / last.entry.horizon
            panel.plot(
                beyond, [each * t for t in beyond], "--", color=figures.colour("uniform"), linewidth=1.0
            )
        panel.set(xlabel="horizon T", ylabel="total KL (nats)")
        figures.logarithmic(panel, "x", horizons)
        figures.logarithmic(panel, "y")
        figures.legend(drawn)
        return drawn


def exp3_bound(horizon: int) -> float:
    """Algorithm 2's theorem in this game."""
    return theory.exp3_bound(SIZE, horizon, 1.0)


def wma_bound(horizon: int) -> float:
    """Algorithm 1's theorem in this game."""
    return theory.wma_bound(SIZE, horizon, 1.0, DELTA)


def _line(results: Results, learner: str, channel: str) -> list[Played]:
    return sorted(results.of(learner=learner, channel=channel), key=lambda played: played.entry.horizon)


def _regime(line: list[Played], per_round: float) -> Finding:
    """The slope over the last decade, and how the risk compares with that of the uniform mixture."""
    learner, channel = line[0].entry.learner, line[0].entry.channel
    before, last = line[-2:]
    slope = statistics.slope([before.entry.horizon, last.entry.horizon], [before.totals, last.totals])
    shares = {p.entry.horizon: p.totals.mean() / (per_round * p.entry.horizon) for p in line}
    learns = [f"{horizon:,}" for horizon, share in shares.items() if share < 0.5]
    start = f"from T = {learns[0]}" if learns else "nowhere"
    return Finding(
        f"{learner} on {channel}: slope {slope} between T = {before.entry.horizon:,} and "
        f"{last.entry.horizon:,}; below half of the uniform mixture's risk {start}; at the end it has "
        f"{shares[last.entry.horizon]:.2g} of it.",
        slope.high < 1.0 if learner == "exp3" and last.entry.horizon == LONGEST else None,
    )
