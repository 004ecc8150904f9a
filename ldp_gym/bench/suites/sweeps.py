"""Risk against T, K, eps and M: the suites ``upper``, ``num-hypotheses``, ``epsilon`` and ``num-labels``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, below, certain, every
from ldp_gym.bench.results import Results
from ldp_gym.bench.suites.base import REDRAWN, TABLES, Suite, channel_rules
from ldp_gym.channels.base import CHANNELS

_PAIRS = (
    ("uniform", "laplace-single"),
    ("exp3", "laplace-single"),
    ("centred-exp3", "laplace-single"),
    ("bayes", "laplace-single"),
    ("bayes", "split"),
)
"""Learners and channels of the suites ``num-hypotheses`` and ``epsilon``."""


class Upper(Suite):
    """EXP3 and WMA as the paper has them, over four decades of T, with the bounds of Sections 4 and 5."""

    name = "upper"
    title = "Risk against T, below the theorems' bounds"
    claim = (
        "Algorithms 1 and 2 have risk of order sqrt(T) up to logarithms: at most the theorem's bound, and "
        "of slope less than 1 in log-log once they learn. Dirichlet(0.3) tables with K = 8, M = 16, eps = "
        "1; every episode has a table of its own, the same at every T, so that the intervals are over "
        "tables."
    )
    order = 20
    axis = "T"
    fitted = 2
    pairs = (
        ("exp3", "laplace-single", 10**7),
        ("wma", "laplace-vector", 10**6),
        ("centred-exp3", "laplace-single", 10**6),
        ("centred-exp3", "laplace-vector", 10**6),
        ("bayes", "laplace-single", 10**6),
        ("uniform", "laplace-single", 10**4),
    )
    """Learner, channel and the longest horizon that it is worth playing."""

    episodes: ClassVar[dict[int, int]] = {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 8}
    """Number of tables, and episodes, at each horizon; the shorter ones share theirs with the longer."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        return [
            Experiment(
                {**TABLES, **REDRAWN, **channel_rules(channel), "horizon": horizon},
                learner,
                episodes=max(2, episodes // 8) if small else episodes,
                block=max(1, min(32, 10**6 // horizon)),
            )
            for learner, channel, end in self.pairs
            for horizon, episodes in self.episodes.items()
            if horizon <= min(end, 10**4 if small else end)
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = super().findings(results)
        uniform = results.line("uniform", "laplace-single")[:1]
        for learner, channel, _ in self.pairs[:-1]:
            line = results.line(learner, channel)
            for idle in uniform if line else ():
                shares = [
                    r.totals.mean() / r.horizon / (idle.totals[: len(r.totals)].mean() / idle.horizon)
                    for r in line
                ]
                learns = [
                    f"from T = {r.horizon:,}" for r, share in zip(line, shares, strict=True) if share < 0.5
                ]
                start = (learns or ["nowhere"])[0]
                text = f"{learner} on {channel}: below half of the uniform mixture's risk {start}"
                found.append(Finding(f"{text}; at T = {line[-1].horizon:,} it has {shares[-1]:.2g} of it."))
            if line and np.isfinite(line[0].bound):
                worst = max(r.totals.max() / r.bound for r in line)
                text = f"{learner}: at most {worst:.2g} times the theorem's bound, in any episode."
                found.append(Finding(text, every(below(r.totals, r.bound) for r in line)))
        *_, before, last = [None, None, *results.line("exp3", "laplace-single")]
        if before and last and last.horizon == max(self.episodes):
            horizons, totals = [before.horizon, last.horizon], [before.totals, last.totals]
            slopes = below(statistics.slope_contributions(horizons, totals), 1.0)
            found.append(
                Finding("exp3 on laplace-single: the slope over the last decade is below 1.", slopes)
            )
        return found


class NumHypotheses(Suite):
    """Dirichlet(0.3) tables of 4 to 64 hypotheses over 64 labels."""

    name = "num-hypotheses"
    title = "Risk against K"
    claim = (
        "The bound of Algorithm 2 grows like sqrt(K) up to logarithms. Where one of K coordinates is "
        "revealed, Bayes needs K times as many rounds. T = 10,000, eps = 1; every episode has a table of "
        "its own, so that the intervals are over tables."
    )
    order = 30
    axis = "K"
    predicted = {
        ("exp3", "laplace-single"): (0.5, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (0.5, "the bound's"),
        ("bayes", "laplace-single"): (1.0, "one coordinate of K per round"),
    }

    def own_experiments(self, small: bool) -> list[Experiment]:
        values = (4, 8, 16) if small else (4, 8, 16, 32, 64)
        return _sweep([{**TABLES, "num_labels": 64, "num_hypotheses": value} for value in values], small)


class Epsilon(Suite):
    """Dirichlet(0.3) tables with K = 8, M = 16 at privacy levels from 1/4 to 8."""

    name = "epsilon"
    title = "Risk against eps"
    claim = (
        "The bound of Algorithm 2 falls like 1/eps. A message tells about eps^2/8 nats at small eps, so "
        "that Bayes needs 1/eps^2 as many rounds. T = 10,000; every episode has a table of its own, so "
        "that the intervals are over tables."
    )
    order = 40
    axis = "eps"
    predicted = {
        ("exp3", "laplace-single"): (-1.0, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (-1.0, "the bound's"),
        ("bayes", "laplace-single"): (-2.0, "information, at small eps"),
        ("bayes", "split"): (-2.0, "information, at small eps"),
    }

    def own_experiments(self, small: bool) -> list[Experiment]:
        values = (0.25, 0.5, 1.0) if small else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
        return _sweep([{**TABLES, "epsilon": value} for value in values], small)


def _sweep(games: list[dict[str, Any]], small: bool) -> list[Experiment]:
    """Every pair of learner and channel in every game, with a new table in every episode."""
    horizon, episodes = (200, 6) if small else (10_000, 32)
    return [
        Experiment(
            {**rules, **REDRAWN, **channel_rules(channel), "horizon": horizon},
            learner,
            episodes=episodes,
            block=8,
        )
        for learner, channel in _PAIRS
        for rules in games
    ]


class NumLabels(Suite):
    """Tables with every label cut into ever more equal parts: M grows and nothing else changes."""

    name = "num-labels"
    title = "Risk against M"
    claim = (
        "Randomized response pays for the number of labels; channels on the hypotheses do not, however "
        "many labels there are. Refined Dirichlet(0.3) tables, one per episode, K = 8, eps = 1, Bayes on "
        "each channel."
    )
    order = 60
    axis = "M"

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (300, 16) if small else (1000, 32)
        rules = {"hypotheses": "refined", "num_hypotheses": 8, **REDRAWN, "horizon": horizon}
        return [
            Experiment(
                {**rules, "num_labels": 16 * p, "hypotheses_kwargs": {"parts": p}, "channel": channel},
                "bayes",
                episodes=episodes,
                block=16 if p <= 16 else 4,
            )
            for channel in (
                "randomized-response",
                "subset-selection",
                "laplace-single",
                "vote",
                "split",
                "wheel",
            )
            for p in ((1, 4, 16, 64) if small else (1, 4, 16, 64, 256, 1024))
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for _, channel in results.pairs:
            line = results.line("bayes", channel, self.position)
            if len(line) < 2:
                continue
            x, y = [r.experiment.num_labels for r in line], [r.totals for r in line]
            span = f"{channel}: from M = {x[0]} to {x[-1]:,}"
            if CHANNELS.class_of(channel).free_of_num_labels:
                change = max(float(np.abs(totals - y[0]).max()) for totals in y)
                text = f"{span} no episode's risk changes by more than {change:.0e} nats."
                found.append(Finding(text, certain(change < 1e-6)))
            else:
                claimed = channel == "randomized-response"
                grows = above(statistics.slope_contributions(x, y), 0.0) if claimed else None
                found.append(Finding(f"{span} the risk has slope {statistics.slope(x, y)} in M.", grows))
        return found
