"""Risk against the number of hypotheses."""

from __future__ import annotations

from ldp_gym.bench.suites.sweep import Sweep


class NumHypotheses(Sweep):
    """Dirichlet(0.3) tables of 4 to 64 hypotheses over 64 labels."""

    name = "num-hypotheses"
    title = "Risk against K"
    claim = (
        "The bound of Algorithm 2 grows like sqrt(K) up to logarithms. Where one of K coordinates is "
        "revealed, Bayes needs K times as many rounds. T = 10,000, eps = 1; every episode has a table of "
        "its own, so that the intervals are over tables."
    )
    order = 30
    argument = "num_hypotheses"
    values = (4, 8, 16, 32, 64)
    symbol = "K"
    predicted = {
        ("exp3", "laplace-single"): (0.5, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (0.5, "the bound's"),
        ("bayes", "laplace-single"): (1.0, "one coordinate of K per round"),
    }
    settings = {"hypotheses": "dirichlet", "num_labels": 64}
