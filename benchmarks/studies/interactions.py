"""Risk of Bayes against the number of interactions: how often the public posterior of a channel advances.

Dirichlet tables, redrawn in every episode: K = 32, M = 64, T = 1,000, eps = 1. With a batch of n users the
posterior under which users of ``adaptive-split`` answer advances T / n times; ``split`` never looks at it.

    python benchmarks/studies/interactions.py --csv interactions.csv --picture interactions.png
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import ldp_gym

RULES = {
    "hypotheses": "dirichlet",
    "redraw_hypotheses": True,
    "observe_candidates": True,
    "num_hypotheses": 32,
    "num_labels": 64,
    "epsilon": 1.0,
}


def measure(horizon: int, batches: list[int], episodes: int) -> pd.DataFrame:
    """The mean total KL on each channel, with its standard error."""
    games = [("split", 1), *(("adaptive-split", batch) for batch in batches)]
    rows = []
    for channel, batch in games:
        rules = {**RULES, "horizon": horizon, "channel": channel, "batch": batch}
        totals = ldp_gym.evaluate("bayes", rules, episodes=episodes).kl[:, -1]
        rows.append({
            "channel": channel,
            "batch": batch,
            "interactions": 1 if channel == "split" else -(-horizon // batch),
            "risk": totals.mean(),
            "standard_error": totals.std(ddof=1) / np.sqrt(episodes),
        })  # fmt: skip
        print(
            f"{channel} in batches of {batch}: {rows[-1]['risk']:.0f} ± {rows[-1]['standard_error']:.0f}",
            flush=True,
        )
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, path: str) -> None:
    """The risk against the number of interactions."""
    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = figure.subplots()
    split, adaptive = (
        table[(table["channel"] == "split") == is_split] for is_split in (True, False)
    )
    axes.errorbar(
        adaptive["interactions"],
        adaptive["risk"],
        2 * adaptive["standard_error"],
        marker="o",
        capsize=3,
    )
    for _, row in adaptive.iterrows():
        place = row["interactions"], row["risk"] + 2 * row["standard_error"]
        axes.annotate(f"n = {row['batch']}", place, (3, 3), textcoords="offset points")
    axes.axhline(split["risk"].item(), color="C1", zorder=0, label="split, no interaction")
    axes.margins(x=0.16)
    axes.set(
        xscale="log",
        ylim=(0, 1.2 * adaptive["risk"].max()),
        xlabel="public posteriors that users answer under, T / n",
    )
    axes.set_ylabel("total KL of Bayes, nats")
    axes.set_title("adaptive-split in batches of n users")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 5, 20, 50, 100, 250, 1000])
    parser.add_argument("--episodes", type=int, default=256)
    parser.add_argument("--csv", help="write the table here")
    parser.add_argument("--picture", help="picture to write")
    arguments = parser.parse_args()
    table = measure(arguments.horizon, arguments.batches, arguments.episodes)
    if arguments.csv:
        table.round(2).to_csv(arguments.csv, index=False)
    if arguments.picture:
        draw(table, arguments.picture)


if __name__ == "__main__":
    main()
