"""Choice of a channel by K, M and eps: the risk of Bayes on every pure channel, on random tables.

A cell is the total KL in nats: the mean over random tables of the mean over their episodes, and the standard
error over the tables.

    python examples/channels.py --shapes 8x16 8x256 32x1024 128x1024
    python examples/channels.py --shapes 8x16 32x256 --epsilons 0.5 1 2 4 --csv channels.csv
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

import ldp_gym

UNIFORM = "uniform mixture"


def table_risks(
    channel: str,
    size: int,
    labels: int,
    epsilon: float,
    episodes: int,
    arguments: argparse.Namespace,
) -> np.ndarray:
    """The mean total KL on each table, ``(tables,)``."""
    risks = []
    for class_seed in range(arguments.first_table, arguments.first_table + arguments.tables):
        rules = {
            "hypotheses": "dirichlet",
            "num_hypotheses": size,
            "num_labels": labels,
            "class_seed": class_seed,
            "channel": "randomized-response" if channel == UNIFORM else channel,
            "horizon": arguments.horizon,
            "epsilon": epsilon,
        }
        learner = "uniform" if channel == UNIFORM else "bayes"
        # Other seeds for each table: with the same ones the tables' risks would not be independent.
        result = ldp_gym.evaluate(learner, rules, episodes=episodes, seed=class_seed * episodes)
        risks.append(result.kl[:, -1].mean())
    return np.array(risks)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shapes = ["8x16", "8x256", "32x1024", "128x1024"]
    parser.add_argument("--shapes", nargs="+", default=shapes, metavar="KxM")
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--first-table", type=int, default=0, help="the first table's class_seed")
    parser.add_argument(
        "--episodes", nargs="+", type=int, default=[4], help="on each table, by shape"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0], metavar="EPS")
    pure = [name for name in ldp_gym.CHANNELS if ldp_gym.CHANNELS[name].pure]
    names = [name for name in pure if name != "identity"]
    parser.add_argument("--channels", nargs="+", default=names, metavar="NAME")
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    counts = dict(zip(arguments.shapes, itertools.cycle(arguments.episodes)))
    cells: dict[str, dict[str, str]] = {}
    for shape, epsilon in itertools.product(arguments.shapes, arguments.epsilons):
        size, labels = (int(number) for number in shape.split("x"))
        print(f"K = {size}, M = {labels}, T = {arguments.horizon:,}, eps = {epsilon:g}", flush=True)
        heads = [f"K={size} M={labels}"] * (len(arguments.shapes) > 1)
        heads += [f"eps = {epsilon:g}"] * (len(arguments.epsilons) > 1)
        column = cells.setdefault(", ".join(heads) or "total KL", {})
        for channel in (UNIFORM, *arguments.channels):
            risks = table_risks(channel, size, labels, epsilon, counts[shape], arguments)
            mean, error = risks.mean(), risks.std(ddof=1) / np.sqrt(len(risks))
            digits = 0 if mean >= 20.0 else 1
            column[channel] = f"{mean:,.{digits}f} ± {error:,.{digits}f}"
            print(f"  {channel:20s} {mean:9,.1f} ± {error:,.1f}", flush=True)
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(cells).rename_axis("channel").to_csv(arguments.csv, na_rep="-")


if __name__ == "__main__":
    main()
