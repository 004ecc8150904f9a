"""Risk of Bayes on hard contexts, relative to i.i.d. ones: the adversary over several pools, and searches.

python benchmarks/hard_contexts.py      # the table of docs/measurements.md: about twenty minutes
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from context_search import hardest_contexts

import ldp_gym
from ldp_gym.core.intervals import mean_interval

CHANNELS = ("split", "laplace-single")
APART = 10**8
"""Distance between the seeds of two searches: none plays an episode of another."""


def risk(rules: Mapping[str, Any], episodes: int) -> ldp_gym.Evaluation:
    """Bayes in a game, on seeds that no search plays."""
    return ldp_gym.evaluate("bayes", rules, episodes=episodes, seed=10**9)


def multiple(found: ldp_gym.Evaluation, iid: ldp_gym.Evaluation) -> str:
    """The ratio of two risks, with the interval that follows from both of theirs.

    On the logarithmic scale each side of the two intervals is taken for a deviation, and independent ones
    add up in squares (Donner and Zou 2012).
    """
    ratio = math.log(found.risk / iid.risk)
    (low, high), (least, most) = found.interval(), iid.interval()
    below = math.hypot(math.log(found.risk / low), math.log(most / iid.risk))
    above = math.hypot(math.log(high / found.risk), math.log(iid.risk / least))
    return f"{math.exp(ratio):.2f} [{math.exp(ratio - below):.2f}, {math.exp(ratio + above):.2f}]"


def row(name: str, found: ldp_gym.Evaluation, iid: ldp_gym.Evaluation) -> None:
    """Print a line of the table: the risk with its interval, and as a multiple of the i.i.d. risk."""
    low, high = found.interval()
    print(f"| {name} | {found.risk:.1f} [{low:.1f}, {high:.1f}] | {multiple(found, iid)} |", flush=True)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="of each adversary")
    parser.add_argument("--pools", type=int, default=6)
    parser.add_argument("--searches", type=int, default=2, help="seeds, for each channel and length")
    parser.add_argument("--channel", choices=CHANNELS, help="only this one")
    options = parser.parse_args()
    print("| channel, contexts | risk of Bayes | times the i.i.d. risk |\n|---|---|---|")
    for channel in [options.channel] if options.channel else CHANNELS:
        rules = {"channel": channel}
        iid = risk(rules, 4000)
        low, high = iid.interval()
        print(f"| {channel}, i.i.d. | {iid.risk:.1f} [{low:.1f}, {high:.1f}] | 1 |", flush=True)
        ratios = []
        for pool in range(options.pools):
            game = {**rules, "nature": "adversary", "nature_kwargs": {"pool_seed": pool}}
            found = risk(game, options.episodes)
            row(f"{channel}, adversary, pool {pool}", found, iid)
            ratios.append(found.risk / iid.risk)
        if len(ratios) > 1:
            low, high = mean_interval(np.array(ratios), 0.95)
            print(f"| {channel}, adversary, pools | | {np.mean(ratios):.2f} [{low:.2f}, {high:.2f}] |")
        row(f"{channel}, omniscient", risk({**rules, "nature": "omniscient"}, options.episodes), iid)
        for length in (1, 3):
            name = "a constant context" if length == 1 else f"at most {length} contexts in turn"
            for number in range(options.searches):
                search = hardest_contexts(rules, "bayes", length=length, seed=number * APART)
                row(f"{channel}, searched: {name}, seed {number}", search.evaluation, iid)


if __name__ == "__main__":
    main()
