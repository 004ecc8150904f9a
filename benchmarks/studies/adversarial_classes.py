"""Audit of every pure channel on classes built to break its promise.

Sparse rows, one-hot rows, equal rows, tiny masses, labels that nobody allows, and rows just above a whole
number of the paper's cells; M from 2 to 64, K from 2 to 16, T from 2 to 10^6, eps from 0.01 to 10.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import ldp_gym
from ldp_gym.audit import certify
from ldp_gym.channels.noisy import NoisyChannel

CLASSES_AT_ONCE = 500
"""Number of classes between two lines of progress; each of these blocks has a seed."""


def draw_table(rng: np.random.Generator) -> np.ndarray:
    """Random class ``(K, M)`` whose rows are of several awkward kinds."""
    size = int(rng.integers(2, 17))
    num_labels = int(rng.integers(2, 65))
    table = rng.dirichlet(np.full(num_labels, 10 ** rng.uniform(-2, 1)), size=size)
    for row in table:
        kind = rng.integers(7)  # 6: as it was drawn
        if kind == 0:  # one-hot
            row[:] = one_hot(num_labels, rng)
        elif kind == 1:  # sparse
            row[rng.random(num_labels) < 0.7] = 0.0
        elif kind == 2:  # tiny masses
            row *= 10.0 ** rng.uniform(-300, 0, size=num_labels)
        elif kind == 3:  # the same as the first
            row[:] = table[0]
        elif (
            kind == 4
        ):  # nearly uniform off one label: slightly above one of the paper's cells each
            row[:] = 1.0
            row[rng.integers(num_labels)] = 0.0
        elif kind == 5:  # uniform on a random set
            row[:] = rng.random(num_labels) < rng.random()
        if row.sum() < 1e-290:
            row[:] = one_hot(num_labels, rng)
        row /= row.sum()

    if rng.random() < 0.3:  # a label that nobody allows
        table[:, rng.integers(num_labels)] = 0.0
        empty = table.sum(axis=-1) == 0.0
        table[empty] = one_hot(num_labels, rng)
        table /= table.sum(axis=-1, keepdims=True)
    return table


def one_hot(num_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Certainty of a random label."""
    return np.eye(num_labels)[rng.integers(num_labels)]


def draw_channel(rng: np.random.Generator, name: str, table: np.ndarray) -> ldp_gym.Channel:
    """The named channel for a class, with a random horizon, eps and calibration."""
    facts = {
        "num_hypotheses": table.shape[0],
        "num_labels": table.shape[1],
        "horizon": int(10 ** rng.uniform(np.log10(2), 6)),
        "epsilon": 10 ** rng.uniform(-2, 1),
    }
    options = {}
    if issubclass(ldp_gym.CHANNELS[name], NoisyChannel):
        options["calibration"] = str(rng.choice(["paper", "tight"]))
    return ldp_gym.CHANNELS.build(name, facts, options)


def pure_channels() -> list[str]:
    """Names of the registered channels that promise a pure eps."""
    return [name for name in ldp_gym.CHANNELS if ldp_gym.CHANNELS[name].pure and name != "identity"]


def audit(classes: int, seed: int = 0) -> list[str]:
    """List the broken promises of every pure channel on this number of classes."""
    rng = np.random.default_rng(seed)
    broken = []
    for index in range(classes):
        table = draw_table(rng)
        for name in pure_channels():
            channel = draw_channel(rng, name, table)
            public = rng.dirichlet(np.ones(len(table))) if channel.adaptive else None
            certificate = certify(channel, table, public)
            if not certificate.holds:
                broken.append(f"class {index}: {channel!r} has eps {certificate.epsilon}")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    broken: list[str] = []
    for done in range(0, arguments.classes, CLASSES_AT_ONCE):
        count = min(CLASSES_AT_ONCE, arguments.classes - done)
        broken += audit(count, arguments.seed + done)
        progress = f"\r{done + count:,} classes, {len(broken)} broken promises"
        print(progress, end="", file=sys.stderr, flush=True)
    channels = ", ".join(pure_channels())
    print(f"\n{arguments.classes:,} classes, {channels}: {len(broken)} broken promises")
    print(*broken[:20], sep="\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
