"""Disjoint supports against the information limit: how much of what is possible a channel delivers.

A line has the risk of Bayes as a multiple of the limit ``sum_t max(0, log K - (t - 1) C(eps))``, with its
standard error.

    python examples/limit.py --sizes 8 32 --horizons 500 900 --episodes 1000 400
"""

from __future__ import annotations

import argparse
import math

import ldp_gym
from ldp_gym import theory

CHANNELS = [
    "wheel",
    "vote",
    "subset-selection",
    "split",
    "half-space",
    "adaptive-split",
    "adaptive-groups",
    "challenge",
]


def print_floors(size: int, horizon: int, epsilon: float) -> None:
    """Print what is proved to be out of reach, as multiples of the limit."""
    limit = theory.information_limit(size, horizon, epsilon)
    of_all = theory.risk_floor(size, horizon, epsilon, adaptive=True) / limit
    of_fixed = theory.risk_floor(size, horizon, epsilon, adaptive=False) / limit
    print(
        f"K = {size}, eps = {epsilon:g}: limit {limit:.1f} nats; proved to be out of reach: less than "
        f"{of_all:.3f} of it, {of_fixed:.3f} if channels are not adaptive",
        flush=True,
    )


def multiple_of_limit(channel: str, size: int, horizon: int, epsilon: float, episodes: int) -> str:
    """Risk of Bayes on a channel as a multiple of the limit, with its standard error."""
    rules = {
        "hypotheses": "disjoint",
        "num_hypotheses": size,
        "channel": channel,
        "horizon": horizon,
        "epsilon": epsilon,
    }
    totals = ldp_gym.evaluate("bayes", rules, episodes=episodes).kl[:, -1]
    error = totals.std(ddof=1) / math.sqrt(episodes)
    limit = theory.information_limit(size, horizon, epsilon)
    return f"{totals.mean() / limit:.3f} ± {error / limit:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 32])
    parser.add_argument("--horizons", nargs="+", type=int, default=[500, 900], help="of each size")
    parser.add_argument("--episodes", nargs="+", type=int, default=[1000, 400], help="of each size")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()

    columns: dict[str, dict[str, str]] = {}
    games = zip(arguments.sizes, arguments.horizons, arguments.episodes, strict=True)
    for size, horizon, episodes in games:
        print_floors(size, horizon, arguments.epsilon)
        column = columns.setdefault(f"K = {size}", {})
        for channel in CHANNELS:
            column[channel] = multiple_of_limit(channel, size, horizon, arguments.epsilon, episodes)
            print(f"  {channel:20s} {column[channel]}", flush=True)

    if arguments.csv:
        import pandas as pd

        pd.DataFrame(columns).rename_axis("channel").to_csv(arguments.csv, na_rep="-")


if __name__ == "__main__":
    main()
