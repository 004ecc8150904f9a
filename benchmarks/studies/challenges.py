"""Risk of Bayes on ``challenge``: its options, users who answer in batches, and other adaptive channels.

Dirichlet(0.3) tables, T = 1,000, eps = 1, truths drawn uniformly. All rows play the same seeds.

python benchmarks/studies/challenges.py --csv docs/data/challenge.csv      # about five minutes
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import ldp_gym

SIZES = {"8 tables, 8 x 16": (8, 16, 8, 1), "4 tables, 32 x 64": (32, 64, 4, 4)}
"""K, M, number of tables, and the divisor of the number of episodes on each."""

GAMES: dict[str, dict[str, Any]] = {
    "challenge": {},
    "guard 1": {"channel_kwargs": {"guard": 1.0}},
    "no guard": {"channel_kwargs": {"guard": 1e-12}},
    **{f"{turns} turns": {"channel_kwargs": {"turns": turns}} for turns in (0, 1)},
    'question "all"': {"channel_kwargs": {"question": "all", "turns": 0}},
    **{f"batches of {n}": {"batch": n} for n in (10, 100)},
    **{name: {"channel": name} for name in ("adaptive-split", "adaptive-groups")},
}
"""Rules of each row; ``challenge`` with its defaults unless they say otherwise."""


def cell(rules: dict[str, Any], size: int, labels: int, tables: int, episodes: int) -> str:
    """Mean total KL of Bayes and its standard error over the episodes, of the mean over the tables."""
    totals = []
    for i in range(tables):
        table = np.random.default_rng(100 + i).dirichlet(np.full(labels, 0.3), size=size)
        game = {"hypotheses": table, "horizon": 1000, "channel": "challenge", **rules}
        totals.append(
            ldp_gym.evaluate("bayes", game, episodes=episodes, seed=i * episodes).kl[:, -1]
        )
    error = np.sqrt(np.var(totals, axis=1, ddof=1).sum() / episodes) / tables
    return f"{np.mean(totals):.1f} ± {error:.1f}"


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="on each table of 8 hypotheses")
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    rows = []
    for name, rules in GAMES.items():
        row = {"game": name}
        for title, (size, labels, tables, divisor) in SIZES.items():
            row[title] = cell(rules, size, labels, tables, max(options.episodes // divisor, 2))
        rows.append(row)
        print(*row.values(), sep="  ", flush=True)
    if options.csv:
        pd.DataFrame(rows).to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
