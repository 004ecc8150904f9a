"""Coverage and length of the 95% intervals, on the risks of the package's games.

python benchmarks/studies/interval_coverage.py --csv docs/data/coverage.csv     # about five minutes
python benchmarks/studies/interval_coverage.py --rare    # on a game whose disasters most samples do not show

Each row is a population of episodes. Samples of n episodes are drawn from it, with replacement, so that the
population's mean is what an interval has to cover. Next to our interval stands Student's on the same samples.
What no sample shows, no interval covers: the skewness of each population is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import ldp_gym
from ldp_gym import statistics
from ldp_gym.core.arrays import FloatArray

CONFIDENCE = 0.95
LONGEST = {16: 1.6, 32: 1.4, 100: 1.2, 200: 1.2}
"""Largest length of an interval of n episodes, in units of Student's."""

LEAST = 0.94
"""Least coverage."""

TABLES: dict[str, Any] = {
    "hypotheses": "dirichlet",
    "redraw_hypotheses": True,
    "observe_candidates": True,
}
GAMES: dict[str, dict[str, Any]] = {
    "default game": {},
    "default game, split": {"channel": "split"},
    "tables": TABLES,
    "tables, split": {**TABLES, "channel": "split"},
    "tables, split, eps 4": {**TABLES, "channel": "split", "epsilon": 4.0},
    "disjoint, randomized response": {"hypotheses": "disjoint", "channel": "randomized-response"},
    "tables, vote": {**TABLES, "channel": "vote"},
    "hadamard, one-bit": {"hypotheses": "hadamard", "channel": "one-bit", "horizon": 2000},
    "tables, subset selection, K = 4, M = 32": {
        **TABLES,
        "channel": "subset-selection",
        "num_hypotheses": 4,
        "num_labels": 32,
    },
    "default game, hybrid, eps 2": {"channel": "hybrid", "epsilon": 2.0},
    "tables, scheffe, T = 300": {**TABLES, "channel": "scheffe", "horizon": 300},
    "default game, wheel, eps 0.5": {"channel": "wheel", "epsilon": 0.5},
    "tables, unary encoding, K = 16": {**TABLES, "channel": "unary-encoding", "num_hypotheses": 16},
    "tables, adaptive split, T = 300": {**TABLES, "channel": "adaptive-split", "horizon": 300},
    "drift, one-bit": {"nature": "drift", "channel": "one-bit"},
}
RARE: dict[str, Any] = {
    "hypotheses": "disjoint",
    "num_hypotheses": 8,
    "num_labels": 8,
    "channel": "randomized-response",
    "epsilon": 8.0,
    "horizon": 300,
}
"""A game in which all episodes cost nearly log 8, but for rare ones: Bayes on it."""
Risks = tuple[tuple[str, str], ...]
Differences = tuple[tuple[str, str, str], ...]
RISKS: Risks = (
    ("bayes", "default game"),
    ("bayes", "default game, split"),
    ("centred-exp3", "default game"),
    ("bayes", "tables"),
    ("bayes", "tables, split"),
    ("robust", "tables, split, eps 4"),
    ("bayes", "disjoint, randomized response"),
    ("soft-bayes", "tables, vote"),
    ("bayes", "hadamard, one-bit"),
    ("bayes", "tables, subset selection, K = 4, M = 32"),
    ("bayes", "default game, hybrid, eps 2"),
    ("mle", "tables, scheffe, T = 300"),
)
DIFFERENCES: Differences = (
    ("centred-exp3", "bayes", "default game"),
    ("fixed-share", "bayes", "tables, split"),
    ("soft-bayes", "bayes", "tables, vote"),
    ("mle", "bayes", "tables, scheffe, T = 300"),
)
POPULATIONS: dict[str, tuple[Risks, Differences]] = {
    "chosen on": (RISKS, DIFFERENCES),
    "held out": (
        (
            ("bayes", "default game, wheel, eps 0.5"),
            ("fixed-share", "tables, unary encoding, K = 16"),
            ("bayes", "tables, adaptive split, T = 300"),
            ("robust", "drift, one-bit"),
        ),
        (
            ("fixed-share", "bayes", "tables, unary encoding, K = 16"),
            ("soft-bayes", "bayes", "tables, adaptive split, T = 300"),
            ("robust", "bayes", "drift, one-bit"),
        ),
    ),
}
"""Populations on which the method was chosen, and others."""


@dataclass(frozen=True)
class Coverage:
    """Coverage of the intervals of many samples of n episodes.

    Attributes:
        ours: the share of our intervals that cover the mean.
        below: the share that lies below it.
        student: the share of Student's that cover it.
        length: the mean length of ours, in units of the mean length of Student's.
    """

    ours: float
    below: float
    student: float
    length: float

    def __str__(self) -> str:
        return f"{self.ours:.1%}, {self.length:.2f} ({self.student:.1%})"


def measure(population: FloatArray, count: int, trials: int, seed: int) -> Coverage:
    """Our intervals and Student's on the same samples of ``count`` episodes."""
    samples = np.random.default_rng(seed).choice(population, size=(trials, count))
    mean = population.mean()
    low, high = np.array([(e.low, e.high) for e in map(statistics.mean, samples)]).T
    half = stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * stats.sem(samples, axis=-1)
    return Coverage(
        float(((low <= mean) & (mean <= high)).mean()),
        float((high < mean).mean()),
        float((np.abs(samples.mean(axis=-1) - mean) <= half).mean()),
        float((high - low).mean() / (2 * half).mean()),
    )


def measure_rare(episodes: int, trials: int) -> None:
    """Print how many samples of :data:`RARE` warn of rare failures, and how many of the others cover."""
    population = ldp_gym.evaluate("bayes", RARE, episodes=episodes).kl[:, -1]
    mean = population.mean()
    print(
        f"skewness {stats.skew(population):.1f}, mean {mean:.4f}, median {np.median(population):.4f}"
    )
    for count in LONGEST:
        samples = np.random.default_rng(count).choice(population, size=(trials, count))
        intervals = [*map(statistics.mean, samples)]
        plain = [interval for interval in intervals if interval.unseen == 0.0]
        covered = np.mean([interval.contains(mean) for interval in plain]) if plain else np.nan
        warned = 1.0 - len(plain) / trials
        print(
            f"n = {count}: {warned:.1%} of the samples warn; of the other intervals {covered:.1%} cover"
        )


def populations(
    risks: Risks, differences: Differences, episodes: int
) -> Iterator[tuple[str, FloatArray]]:
    """The risks, and the paired differences of risks, that intervals are made of."""
    known: dict[tuple[str, str], FloatArray] = {}

    def totals(learner: str, game: str) -> FloatArray:
        if (learner, game) not in known:
            known[learner, game] = ldp_gym.evaluate(learner, GAMES[game], episodes=episodes).kl[
                :, -1
            ]
        return known[learner, game]

    for learner, game in risks:
        yield f"{learner}, {game}", totals(learner, game)
    for learner, other, game in differences:
        yield f"{learner} less {other}, {game}", totals(learner, game) - totals(other, game)


def main() -> None:
    """Print the rows of the table, and end with 1 if an interval covers too little or is too long."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=4000, help="of each population")
    parser.add_argument("--trials", type=int, default=4000, help="samples of each population and n")
    parser.add_argument("--csv", help="write the table here")
    parser.add_argument(
        "--rare", action="store_true", help="a game of rare disasters, and nothing else"
    )
    options = parser.parse_args()
    if options.rare:
        measure_rare(options.episodes, options.trials)
        return
    rows, failures = [], []
    for games, (risks, differences) in POPULATIONS.items():
        for name, population in populations(risks, differences, options.episodes):
            row = {"games": games, "episodes": name, "skewness": f"{stats.skew(population):.1f}"}
            for count, longest in LONGEST.items():
                found = measure(population, count, options.trials, seed=count)
                row[f"n = {count}"] = str(found)
                if found.ours < LEAST or found.length > longest:
                    failures.append(f"{name}, n = {count}: {found}")
            print(row, flush=True)
            rows.append(row)
    if options.csv:
        pd.DataFrame(rows).to_csv(options.csv, index=False)
    if failures:
        raise SystemExit("too little, or too long:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
