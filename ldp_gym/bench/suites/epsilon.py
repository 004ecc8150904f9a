"""Risk against the privacy level."""

from __future__ import annotations

from ldp_gym.bench.suites.sweep import Sweep


class Epsilon(Sweep):
    """Dirichlet(0.3) tables with K = 8, M = 16 at privacy levels from 1/4 to 8."""

    name = "epsilon"
    title = "Risk against eps"
    claim = (
        "The bound of Algorithm 2 falls like 1/eps. A message tells about eps^2/8 nats at small eps, so "
        "that Bayes needs 1/eps^2 as many rounds. T = 10,000; every episode has a table of its own, so that "
        "the intervals are over tables."
    )
    order = 40
    argument = "epsilon"
    values = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    symbol = "eps"
    predicted = {
        ("exp3", "laplace-single"): (-1.0, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (-1.0, "the bound's"),
        ("bayes", "laplace-single"): (-2.0, "information, at small eps"),
        ("bayes", "split"): (-2.0, "information, at small eps"),
    }
    settings = {
        "hypotheses": "dirichlet",
        "num_hypotheses": 8,
        "num_labels": 16,
    }
