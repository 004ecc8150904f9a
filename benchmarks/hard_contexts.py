"""How much more than on i.i.d. contexts Bayes pays: the adversary over several pools, and a search.

python benchmarks/hard_contexts.py      # the table of docs/results.md: about five minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import ldp_gym
from ldp_gym.search import hardest_contexts

CHANNELS = ("split", "laplace-single")
POOLS = range(6)


def risk(rules: Mapping[str, Any], episodes: int) -> ldp_gym.Evaluation:
    """Bayes in a game, on seeds that the search does not play."""
    return ldp_gym.evaluate("bayes", rules, episodes=episodes, seed=10**9)


def row(name: str, found: ldp_gym.Evaluation, iid: float) -> str:
    """A line of the table: the risk with its interval, and both as multiples of the i.i.d. risk."""
    low, high = found.interval()
    multiples = f"{found.risk / iid:.2f} [{low / iid:.2f}, {high / iid:.2f}]"
    return f"| {name} | {found.risk:.1f} [{low:.1f}, {high:.1f}] | {multiples} |"


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="of each adversary")
    options = parser.parse_args()
    print("| channel, contexts | risk of Bayes | times the i.i.d. risk |\n|---|---|---|")
    for channel in CHANNELS:
        rules = {"channel": channel}
        iid = risk(rules, 1000)
        print(row(f"{channel}, i.i.d.", iid, iid.risk), flush=True)
        for pool in POOLS:
            game = {**rules, "nature": "adversary", "nature_kwargs": {"pool_seed": pool}}
            print(
                row(f"{channel}, adversary, pool {pool}", risk(game, options.episodes), iid.risk), flush=True
            )
        omniscient = risk({**rules, "nature": "omniscient"}, options.episodes)
        print(row(f"{channel}, omniscient", omniscient, iid.risk), flush=True)
        for length in (1, 3):
            found = hardest_contexts(rules, "bayes", length=length)
            name = "a constant context" if length == 1 else f"at most {length} contexts in turn"
            print(row(f"{channel}, searched: {name}", found.evaluation, iid.risk), flush=True)


if __name__ == "__main__":
    main()
