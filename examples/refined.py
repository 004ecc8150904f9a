"""Cost of more labels: a class whose labels are cut into ever finer parts, on several channels.

Cutting labels changes nothing about the hypotheses. A channel whose messages are about hypotheses
does not notice: with the same seeds it has the same risk, episode by episode. One whose messages are
about labels does. A cell is the mean total KL of Bayes in nats, with its standard error.

    python examples/refined.py --parts 1 100 6250
"""

from __future__ import annotations

import argparse

import numpy as np

import ldp_gym

CHANNELS = [
    "randomized-response",
    "laplace-single",
    "vote",
    "split",
    "half-space",
    "adaptive-split",
    "adaptive-groups",
    "challenge",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", type=int, default=[1, 100, 6250])
    parser.add_argument("--labels", type=int, default=16, help="before they are cut")
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--channels", nargs="+", default=CHANNELS, metavar="NAME")
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    cells: dict[str, dict[str, str]] = {}
    sizes = [parts * arguments.labels for parts in arguments.parts]
    print(f"{'M':20s}", *(f"{labels:>16,}" for labels in sizes), flush=True)
    for channel in arguments.channels:
        print(f"{channel:20s}", end="", flush=True)
        for parts, labels in zip(arguments.parts, sizes, strict=True):
            rules = {
                "hypotheses": "refined",
                "hypotheses_kwargs": {"base": "dirichlet", "parts": parts},
                "num_hypotheses": 8,
                "num_labels": labels,
                "channel": channel,
                "horizon": arguments.horizon,
                "epsilon": arguments.epsilon,
            }
            totals = ldp_gym.evaluate("bayes", rules, episodes=arguments.episodes).kl[:, -1]
            error = totals.std(ddof=1) / np.sqrt(len(totals))
            print(f" {totals.mean():8.2f} ± {error:5.2f}", end="", flush=True)
            column = cells.setdefault(f"M = {labels:,}", {})
            column[channel] = f"{totals.mean():.2f} ± {error:.2f}"
        print(flush=True)
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(cells).rename_axis("channel").to_csv(arguments.csv)


if __name__ == "__main__":
    main()
