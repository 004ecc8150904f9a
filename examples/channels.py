"""Which channel for which K, M and eps: the risk of Bayes on every pure channel, on random tables.

A cell is the total KL in nats: the mean over random tables of the mean over their episodes, and the standard
error over the tables.

    python examples/channels.py --shapes 8x16 8x256 32x1024 128x1024
    python examples/channels.py --shapes 8x16 32x256 --epsilons 0.5 1 2 4
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

import ldp_gym


def table_risks(
    channel: str | None, size: int, labels: int, epsilon: float, arguments: argparse.Namespace
) -> np.ndarray:
    """The mean total KL on each table, ``(tables,)``; of the uniform mixture if there is no channel."""
    risks = []
    for class_seed in range(arguments.first_table, arguments.first_table + arguments.tables):
        rules = {
            "hypotheses": "dirichlet",
            "num_hypotheses": size,
            "num_labels": labels,
            "class_seed": class_seed,
            "channel": channel or "randomized-response",
            "horizon": arguments.horizon,
            "epsilon": epsilon,
        }
        learner = "bayes" if channel else "uniform"
        # Other seeds for each table: with the same ones the tables' risks would not be independent.
        first = class_seed * arguments.episodes
        result = ldp_gym.evaluate(learner, rules, episodes=arguments.episodes, seed=first)
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
    parser.add_argument("--episodes", type=int, default=4, help="on each table")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0], metavar="EPS")
    pure = [name for name in ldp_gym.CHANNELS.names() if ldp_gym.CHANNELS[name].pure]
    names = [name for name in pure if name != "identity"]
    parser.add_argument("--channels", nargs="+", default=names, metavar="NAME")
    arguments = parser.parse_args()
    for shape, epsilon in itertools.product(arguments.shapes, arguments.epsilons):
        size, labels = (int(number) for number in shape.split("x"))
        print(f"K = {size}, M = {labels}, T = {arguments.horizon:,}, eps = {epsilon:g}", flush=True)
        for channel in (None, *arguments.channels):
            kind = ldp_gym.CHANNELS[channel] if channel else ldp_gym.Channel
            if size > (kind.most_hypotheses or size) or labels > (kind.most_labels or labels):
                continue  # too large for this channel
            risks = table_risks(channel, size, labels, epsilon, arguments)
            error = risks.std(ddof=1) / np.sqrt(len(risks))
            print(f"  {channel or '(uniform mixture)':20s} {risks.mean():9,.1f} ± {error:,.1f}", flush=True)


if __name__ == "__main__":
    main()
