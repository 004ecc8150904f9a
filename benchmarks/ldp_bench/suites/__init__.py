"""Suites: experiments, the quantity of the x-axis, and claims."""

from ldp_bench.suites import comparisons, paper
from ldp_bench.suites.base import DELTA, SIZES, SUITES, Finding, Suite, judge
from ldp_bench.suites.comparisons import YourGame

_OWN = (
    *(
        comparisons.Quick,
        paper.Rates,
        paper.NumHypotheses,
        paper.Epsilon,
        paper.NumLabels,
        paper.Limit,
    ),
    *(comparisons.Contexts, comparisons.Misspecified, comparisons.Moving, comparisons.Splits),
)
"""Suites in the order of a report."""
SUITES.own.update({suite.name: suite for suite in _OWN})

__all__ = ["DELTA", "SIZES", "SUITES", "Finding", "Suite", "YourGame", "judge"]
