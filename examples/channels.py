"""Which channel for which K, M and eps: the risk of Bayes on every pure channel, on random tables.

A cell is the total KL in nats, the mean over classes and episodes, with its standard error over the episodes:
the classes are taken as they are.

    python examples/channels.py --shapes 8x16 8x256 32x1024 128x1024
    python examples/channels.py --shapes 8x16 32x256 --epsilons 0.5 1 2 4
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

import ldp_gym


def totals(
    channel: str | None, size: int, labels: int, epsilon: float, arguments: argparse.Namespace
) -> np.ndarray:
    """Total KL of each episode, over several classes; of the uniform mixture if there is no channel."""
    parts = []
    for class_seed in range(arguments.classes):
        game = {
            "hypotheses": "dirichlet",
            "num_hypotheses": size,
            "num_labels": labels,
            "class_seed": class_seed,
            "channel": channel or "randomized-response",
            "horizon": arguments.horizon,
            "epsilon": epsilon,
        }
        learner = "bayes" if channel else "uniform"
        episodes = arguments.episodes // arguments.classes
        # Other seeds for each class: the same ones would make its episodes alike, and the error too small.
        result = ldp_gym.evaluate(learner, game, episodes=episodes, seed=class_seed * episodes)
        parts.append(result.kl[:, -1])
    return np.concatenate(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shapes = ["8x16", "8x256", "32x1024", "128x1024"]
    parser.add_argument("--shapes", nargs="+", default=shapes, metavar="KxM")
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=32, help="a cell, over all its classes")
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0], metavar="EPS")
    pure = [name for name in ldp_gym.CHANNELS.names() if ldp_gym.CHANNELS[name].pure]
    names = [name for name in pure if name != "identity"]
    parser.add_argument("--channels", nargs="+", default=names, metavar="NAME")
    arguments = parser.parse_args()
    for shape, epsilon in itertools.product(arguments.shapes, arguments.epsilons):
        size, labels = (int(number) for number in shape.split("x"))
        print(f"K = {size}, M = {labels}, T = {arguments.horizon:,}, eps = {epsilon:g}", flush=True)
        for channel in (None, *arguments.channels):
            values = totals(channel, size, labels, epsilon, arguments)
            error = values.std(ddof=1) / np.sqrt(len(values))
            print(f"  {channel or '(uniform mixture)':20s} {values.mean():9,.1f} ± {error:,.1f}", flush=True)


if __name__ == "__main__":
    main()
