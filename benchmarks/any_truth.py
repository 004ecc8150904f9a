"""The tables of docs/measurements.md: what learners pay when the truth is no member, on redrawn tables.

python benchmarks/any_truth.py                    # every learner, on three channels
python benchmarks/any_truth.py --table posterior  # what an adaptive channel's public posterior costs

A row is the mean total KL of the same episodes, each with a table of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import ldp_agents
import ldp_gym
from ldp_gym import Game

GAME = {
    "hypotheses": "dirichlet",
    "redraw_hypotheses": True,
    "observe_candidates": True,
    "num_hypotheses": 8,
    "num_labels": 16,
    "horizon": 1000,
}

TRUTHS: dict[str, dict[str, Any]] = {
    "member": {},
    "half of two": {"truth": "mixture", "truth_kwargs": {"weights": [0.5, 0.5]}},
    "mixture of two": {"truth": "mixture", "truth_kwargs": {"num_members": 2}},
    "mixture of all": {"truth": "mixture", "truth_kwargs": {"num_members": 8}},
    "one switch": {"truth": "switching", "truth_kwargs": {"num_switches": 1}},
    "contaminated, 0.2": {"truth": "contaminated", "truth_kwargs": {"rho": 0.2}},
}

LEARNERS: dict[str, tuple[str, dict[str, float]]] = {
    "uniform": ("uniform", {}),
    "bayes": ("bayes", {}),
    "share 0.001": ("fixed-share", {"share": 0.001}),
    "share 0.005": ("fixed-share", {"share": 0.005}),
    "soft 0.05": ("soft-bayes", {"rate": 0.05}),
    "soft 0.1": ("soft-bayes", {"rate": 0.1}),
    "soft 0.2": ("soft-bayes", {"rate": 0.2}),
    "pairs": ("pairs", {}),
    "robust": ("robust", {}),
}

POSTERIORS: dict[str, dict[str, float]] = {
    "plain": {},
    "share 0.001": {"posterior_share": 0.001},
    "share 0.005": {"posterior_share": 0.005},
    "share 0.02": {"posterior_share": 0.02},
    "rate 0.25": {"posterior_rate": 0.25},
}


def main() -> None:
    """Print one of the tables as Markdown."""
    parser = argparse.ArgumentParser(description="Print one of the tables of docs/measurements.md.")
    parser.add_argument("--table", choices=("learners", "posterior"), default="learners")
    parser.add_argument("--episodes", type=int, default=96)
    parser.add_argument("--seed", type=int, default=2000)
    options = parser.parse_args()
    lines = {"learners": learners_table, "posterior": posterior_table}[options.table]
    for line in lines(partial(risk, episodes=options.episodes, seed=options.seed)):
        print(line, flush=True)


Risk = Callable[[str, Mapping[str, Any]], tuple[float, float]]


def risk(learner: str, rules: Mapping[str, Any], *, episodes: int, seed: int) -> tuple[float, float]:
    """The mean total KL of a learner of :data:`LEARNERS`, and its standard error."""
    name, options = LEARNERS[learner]

    def make_learner(game: Game) -> ldp_agents.Learner:
        return ldp_agents.make(name, game, **options)

    totals = ldp_gym.evaluate(make_learner, {**GAME, **rules}, episodes=episodes, seed=seed).kl[:, -1]
    return float(totals.mean()), float(totals.std(ddof=1) / episodes**0.5)


def learners_table(measure: Risk) -> Iterator[str]:
    """A row per channel, eps and truth; at its end robust against the best, and against uniform."""
    yield _row("eps, channel, truth", *LEARNERS, "robust / best", "robust / uniform")
    yield _row(*["---"] * (len(LEARNERS) + 3))
    for channel in ("laplace-single", "split", "adaptive-groups"):
        for epsilon in (1.0, 4.0):
            for name, truth in TRUTHS.items():
                rules = {"channel": channel, "epsilon": epsilon, **truth}
                found = {learner: measure(learner, rules) for learner in LEARNERS}
                robust, uniform = found["robust"][0], found["uniform"][0]
                others = found.keys() - {"robust", "uniform"}
                best = min(found[learner][0] for learner in others)
                cells = (f"{mean:,.0f} ± {error:.0f}" for mean, error in found.values())
                ratios = (f"{robust / best:.2f}", f"{robust / uniform:.2f}")
                yield _row(f"{epsilon:g}, {channel}, {name}", *cells, *ratios)


def posterior_table(measure: Risk) -> Iterator[str]:
    """A row per eps, truth and learner; a column per public posterior."""
    yield _row("eps, truth, learner", *POSTERIORS)
    yield _row(*["---"] * (len(POSTERIORS) + 1))
    for epsilon in (1.0, 4.0):
        for name, truth in TRUTHS.items():
            for learner in ("bayes", "robust"):
                rules = {"channel": "adaptive-groups", "epsilon": epsilon, **truth}
                found = [measure(learner, {**rules, "channel_kwargs": each}) for each in POSTERIORS.values()]
                cells = (f"{mean:,.1f} ± {error:.1f}" for mean, error in found)
                yield _row(f"{epsilon:g}, {name}, {learner}", *cells)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
