"""How often ``check_channel`` catches channels that lie.

``python benchmarks/liars.py`` prints the table of docs/privacy.md; ``--honest`` holds every channel of ours
to the same check, and prints how close it came to a false alarm.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable

import numpy as np
from sly_channels import LIARS

import ldp_gym
from ldp_gym.channels import Channel
from ldp_gym.privacy.conduct import find_misconduct
from ldp_gym.privacy.honesty import ALPHA, Inquiry


def log_odds(channel: Channel, samples: int | None, seed: int) -> float:
    """The evidence against a channel; infinite where no statistics are needed."""
    if find_misconduct(channel, seed):
        return math.inf
    inquiry = Inquiry(channel, samples, seed)
    if inquiry.impossible_message() or inquiry.hidden_ratio():
        return math.inf
    return inquiry.evidence().log_odds


def measure(make: Callable[[], Channel], samples: int | None, seeds: range) -> str:
    start = time.process_time()
    odds = np.array([log_odds(make(), samples, seed) for seed in seeds])
    caught = int((odds >= -math.log(ALPHA)).sum())
    seconds = (time.process_time() - start) / len(seeds)
    spread = f"log odds from {odds.min():.1f} to {odds.max():.1f}"
    return f"{caught} of {len(seeds)}, {spread}, {seconds:.1f} s each"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--honest", action="store_true", help="check our own channels instead")
    parser.add_argument("--hypotheses", type=int, default=8, help="K")
    parser.add_argument("--labels", type=int, default=16, help="M, where a liar does not have its own")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of our own channels")
    parser.add_argument("--horizon", type=int, default=50, help="of our own channels")
    parser.add_argument("--samples", type=int, default=None, help="messages; the default of check_channel")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="only those whose name has this")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
    seeds = range(given.first, given.first + given.seeds)

    def honest(name: str) -> Channel:
        delta = 1e-5 if name.endswith("-vector") else 0.0
        make = ldp_gym.CHANNELS[name]
        return make(given.hypotheses, given.labels, given.horizon, epsilon=given.epsilon, delta=delta)

    for name in ldp_gym.CHANNELS if given.honest else LIARS:
        if given.only in name:
            make = honest if given.honest else (lambda name: LIARS[name](given.hypotheses, given.labels))
            print(
                f"{name:70s} {measure(lambda name=name, make=make: make(name), given.samples, seeds)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
