"""Risk of Bayes on hard contexts, relative to i.i.d. ones: the adversary over several pools, and searches.

python benchmarks/studies/hard_contexts.py --csv docs/data/hard-contexts.csv    # about twenty minutes
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from context_search import hardest_contexts

import ldp_gym
from ldp_gym import statistics

CHANNELS = ("split", "laplace-single")
APART = 10**8
"""Distance between the seeds of two searches: none plays an episode of another."""


def risk(rules: Mapping[str, Any], episodes: int) -> ldp_gym.Evaluation:
    """Bayes in a game, on seeds that no search plays."""
    return ldp_gym.evaluate("bayes", rules, episodes=episodes, seed=10**9)


def multiple(hard: ldp_gym.Evaluation, iid: ldp_gym.Evaluation) -> str:
    """The ratio of two risks, with the interval that follows from both of theirs.

    On the logarithmic scale each side of the two intervals is taken for a deviation, and independent ones
    add up in squares (Donner and Zou 2012).
    """
    hard_low, hard_high = hard.interval()
    iid_low, iid_high = iid.interval()
    below = math.hypot(math.log(hard.risk / hard_low), math.log(iid_high / iid.risk))
    above = math.hypot(math.log(hard_high / hard.risk), math.log(iid.risk / iid_low))
    ratio = hard.risk / iid.risk
    return f"{ratio:.2f} [{ratio * math.exp(-below):.2f}, {ratio * math.exp(above):.2f}]"


def cell(hard: ldp_gym.Evaluation, iid: ldp_gym.Evaluation) -> str:
    """The risk with its interval, and as a multiple of the i.i.d. risk."""
    low, high = hard.interval()
    return f"{hard.risk:.1f} [{low:.1f}, {high:.1f}], {multiple(hard, iid)} times"


def measure(channel: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the rows of a channel: the contexts, and the risk."""
    rules = {"channel": channel}
    iid = risk(rules, 4000)
    low, high = iid.interval()
    yield "i.i.d.", f"{iid.risk:.1f} [{low:.1f}, {high:.1f}]"
    ratios = []
    for pool in range(options.pools):
        game = {**rules, "nature": "adversary", "nature_kwargs": {"pool_seed": pool}}
        adversarial = risk(game, options.episodes)
        yield f"adversary, pool {pool}", cell(adversarial, iid)
        ratios.append(adversarial.risk / iid.risk)
    if len(ratios) > 1:
        mean = statistics.mean(np.array(ratios))
        yield (
            "adversary, mean of the pools",
            f"{mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}] times",
        )
    omniscient = risk({**rules, "nature": "omniscient"}, options.episodes)
    yield "omniscient", cell(omniscient, iid)
    for length in (1, 3):
        name = f"at most {length} contexts in turn"
        if length == 1:
            name = "a constant context"
        for number in range(options.searches):
            search = hardest_contexts(rules, "bayes", length=length, seed=number * APART)
            yield f"searched: {name}, seed {number}", cell(search.evaluation, iid)


def main() -> None:
    """Print the rows of each channel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="of each adversary")
    parser.add_argument("--pools", type=int, default=6)
    parser.add_argument(
        "--searches", type=int, default=2, help="seeds, for each channel and length"
    )
    parser.add_argument("--channels", nargs="+", default=CHANNELS, choices=CHANNELS)
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    cells: dict[str, dict[str, str]] = {}
    for channel in options.channels:
        for contexts, written in measure(channel, options):
            cells.setdefault(channel, {})[contexts] = written
            print(f"{channel}, {contexts}: {written}", flush=True)
    if options.csv:
        pd.DataFrame(cells).rename_axis("contexts").to_csv(options.csv)


if __name__ == "__main__":
    main()
