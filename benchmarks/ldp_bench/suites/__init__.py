"""Suites: experiments, the quantity of the x-axis, and claims."""

from ldp_bench.suites import comparisons
from ldp_bench.suites.base import DELTA, SIZES, SUITES, Finding, Suite, judge
from ldp_bench.suites.comparisons import YourGame
from ldp_bench.suites.limit import Limit
from ldp_bench.suites.measured_rates import Rates
from ldp_bench.suites.num_labels import NumLabels
from ldp_bench.suites.theorems import Theorems

_OWN: tuple[type[Suite], ...] = (
    comparisons.Quick,
    Rates,
    Theorems,
    NumLabels,
    Limit,
    comparisons.Contexts,
    comparisons.Misspecified,
    comparisons.Moving,
    comparisons.Splits,
)
"""Suites in the order of a report."""
SUITES.own.update({suite.name: suite for suite in _OWN})

__all__ = ["DELTA", "SIZES", "SUITES", "Finding", "Suite", "YourGame", "judge"]
