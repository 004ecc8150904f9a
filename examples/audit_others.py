"""Audit local mechanisms of other packages: an adapter is a function from a label to a message.

    pip install opendp multi-freq-ldpy pure-ldp==1.2.0 diffprivlib     # any of them
    python examples/audit_others.py

A package that is not installed, or does not load, is left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ldp_gym import audit

Adapter = tuple[str, int, Callable[[int], Any]]


def with_numpy(epsilon: float) -> Iterator[Adapter]:
    rng = np.random.default_rng(0)
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    yield "randomized response", 2, lambda label: label if rng.random() < keep else 1 - label


def with_opendp(epsilon: float) -> Iterator[Adapter]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    two = dp.m.make_randomized_response_bool(math.exp(epsilon) / (math.exp(epsilon) + 1))
    four = dp.m.make_randomized_response(
        list(range(4)), math.exp(epsilon) / (math.exp(epsilon) + 3)
    )
    yield "randomized response of bool", 2, lambda label: two(bool(label))
    yield "randomized response of 4 categories", 4, four


def with_multi_freq_ldpy(epsilon: float) -> Iterator[Adapter]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    yield "GRR", 8, lambda label: GRR_Client(label, 8, epsilon)
    yield "SUE", 8, lambda label: UE_Client(label, 8, epsilon, optimal=False)
    yield "OUE", 8, lambda label: UE_Client(label, 8, epsilon, optimal=True)


def with_pure_ldp(epsilon: float) -> Iterator[Adapter]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    direct = DEClient(epsilon, 8)
    unary = UEClient(epsilon, 8, use_oue=False)
    yield "direct encoding", 8, lambda label: direct.privatise(label + 1)
    yield "symmetric unary encoding", 8, lambda label: unary.privatise(label + 1)


def with_diffprivlib(epsilon: float) -> Iterator[Adapter]:
    from diffprivlib.mechanisms import Binary, Geometric

    binary = Binary(epsilon=epsilon, value0="no", value1="yes")
    geometric = Geometric(epsilon=epsilon, sensitivity=3)
    yield "Binary", 2, lambda label: binary.randomise(["no", "yes"][label])
    yield "Geometric, labels 0 to 3", 4, geometric.randomise


PACKAGES = {
    "numpy": with_numpy,
    "opendp": with_opendp,
    "multi-freq-ldpy": with_multi_freq_ldpy,
    "pure-ldp": with_pure_ldp,
    "diffprivlib": with_diffprivlib,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--trials", type=int, default=100_000)
    arguments = parser.parse_args()
    for package, adapters in PACKAGES.items():
        try:
            for name, num_labels, mechanism in adapters(arguments.epsilon):
                estimate = audit.estimate_epsilon(
                    mechanism,
                    num_labels=num_labels,
                    claimed=arguments.epsilon,
                    trials=arguments.trials,
                )
                print(f"{package}, {name}: {estimate.verdict}", flush=True)
        except ImportError as error:
            print(f"{package}: left out ({error})")


if __name__ == "__main__":
    main()
