"""The suite ``num-labels``: labels cut into ever more equal parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results
from ldp_bench.suites.base import REDRAWN, Finding, Suite
from ldp_gym import statistics
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import above, below, certain, conjunction

_UNCHANGED = 1e-6
"""Largest change of an episode's risk, in nats, that counts as rounding."""


class NumLabels(Suite):
    """Tables with every label cut into ever more equal parts: M grows and nothing else changes."""

    name = "num-labels"
    title = "Risk against M"
    claim = (
        "Randomized response pays for the number of labels; channels on the hypotheses do not, however "
        "many labels there are. Refined Dirichlet(0.3) tables, one per episode, K = 8, eps = 1, Bayes on "
        "each channel."
    )
    axis = "M"

    def own_experiments(self, small: bool) -> list[Experiment]:
        channels = (
            "randomized-response",
            "subset-selection",
            "laplace-single",
            "vote",
            "split",
            "wheel",
        )
        horizon, episodes = 1000, 32
        parts: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
        if small:
            horizon, episodes = 300, 16
            parts = (1, 4, 16, 64)

        experiments = [
            Experiment(_refined(channel, count, horizon), "bayes", episodes=episodes)
            for channel in channels
            for count in parts
        ]
        idle = Experiment(_refined("split", 1, horizon), "uniform", episodes=episodes)
        return [*experiments, idle]

    def findings(self, results: Results) -> Iterator[Finding]:
        # The risk of never learning is the same at every M.
        never_learning = results.select(learner="uniform")
        idle = never_learning[0].totals if never_learning else None
        for channel in results.channels:
            line = results.line("bayes", channel, self.position)
            if len(line) < 2:
                continue
            if CHANNELS.class_of(channel).free_of_num_labels:
                yield _find_no_change(channel, line, idle)
            else:
                yield _find_growth(channel, line)


def _refined(channel: str, parts: int, horizon: int) -> Rules:
    """Rules of redrawn tables of 16 labels, each cut into a number of parts."""
    return Rules.of(
        {
            "hypotheses": "refined",
            "hypotheses_kwargs": {"parts": parts},
            "num_hypotheses": 8,
            "num_labels": 16 * parts,
            "channel": channel,
            "horizon": horizon,
            **REDRAWN,
        }
    )


def _span(channel: str, line: Sequence[ExperimentResult]) -> str:
    first, last = line[0].experiment.num_labels, line[-1].experiment.num_labels
    return f"{channel}: from M = {first} to {last:,}"


def _find_no_change(
    channel: str, line: Sequence[ExperimentResult], idle: FloatArray | None
) -> Finding:
    """Claim that M changes no episode's risk, and that Bayes learns; no claim without the control."""
    first = line[0].totals
    change = max(float(np.abs(result.totals - first).max()) for result in line)
    text = f"{_span(channel, line)} no episode's risk changes by more than {change:.0e} nats"
    if idle is None:
        return Finding(f"{text}.")
    share = first.mean() / idle.mean()
    learns = below(statistics.paired(first, idle), 0.0)
    unchanged = certain(change < _UNCHANGED)
    return Finding(
        f"{text}, and Bayes pays {share:.2g} of not learning.", conjunction([unchanged, learns])
    )


def _find_growth(channel: str, line: Sequence[ExperimentResult]) -> Finding:
    """Slope of the risk in M; the claim is that it grows on randomized response."""
    num_labels = [result.experiment.num_labels for result in line]
    totals = [result.totals for result in line]
    slope = statistics.slope(num_labels, totals)
    text = f"{_span(channel, line)} the risk has slope {slope} in M."
    if channel != "randomized-response":
        return Finding(text)
    return Finding(text, above(statistics.slope_contributions(num_labels, totals), 0.0))
