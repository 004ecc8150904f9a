"""Disjoint supports against the information limit: how much of what is possible a channel delivers.

A line has the risk of Bayes as a multiple of the limit ``sum_t max(0, log K - (t - 1) C(eps))``, with its
standard error.

    python examples/limit.py --sizes 8 32 --episodes 4000
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
    "designed",
    "adaptive-split",
    "adaptive-wheel",
    "adaptive-groups",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--horizon", type=int, default=900)
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        limit = theory.information_limit(size, arguments.horizon, arguments.epsilon)
        floors = [
            theory.risk_floor(size, arguments.horizon, arguments.epsilon, adaptive=adaptive) / limit
            for adaptive in (True, False)
        ]
        print(
            f"K = {size}, eps = {arguments.epsilon:g}: limit {limit:.1f} nats; proved to be out of "
            f"reach: less than {floors[0]:.3f} of it, {floors[1]:.3f} if channels are not adaptive",
            flush=True,
        )
        for channel in CHANNELS:
            if size > (ldp_gym.CHANNELS[channel].most_hypotheses or size):
                continue
            rules = {
                "hypotheses": "disjoint",
                "num_hypotheses": size,
                "channel": channel,
                "horizon": arguments.horizon,
                "epsilon": arguments.epsilon,
            }
            totals = ldp_gym.evaluate("bayes", rules, episodes=arguments.episodes).kl[:, -1]
            error = totals.std(ddof=1) / math.sqrt(len(totals))
            print(f"  {channel:18s} {totals.mean() / limit:6.3f} ± {error / limit:.3f}", flush=True)


if __name__ == "__main__":
    main()
