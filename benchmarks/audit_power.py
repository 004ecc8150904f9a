"""`python benchmarks/audit_power.py`: which planted mistakes the black-box audit finds, and its false alarms.

Twenty local mechanisms, each right and with one mistake, that claim eps = 1. Every pair of a mechanism is
audited with a number of trials that finds the mistake; the right one gets as many. False alarms are counted
over right mechanisms of random kinds, labels and eps, at the confidence stated.

    python benchmarks/audit_power.py docs/data/audit-power.csv
    python benchmarks/audit_power.py --false-alarms 1000 docs/data/audit-alarms.csv
"""

from __future__ import annotations

import csv
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ldp_gym import audit
from ldp_gym.statistics import share_interval

EPSILON = 1.0
RNG = np.random.default_rng(1)

Mechanism = Callable[[int], Any]


def respond(num_labels: int, epsilon: float, rng: np.random.Generator = RNG) -> Mechanism:
    """Randomized response: the label with probability e^eps / (e^eps + M - 1), else another."""

    def send(label: int) -> int:
        if rng.random() < math.exp(epsilon) / (math.exp(epsilon) + num_labels - 1):
            return label
        return int((label + rng.integers(1, num_labels)) % num_labels)

    return send


def then(change: Callable[..., Any], mechanism: Mechanism) -> Mechanism:
    """A mechanism whose message is changed by a function."""
    return lambda label: change(mechanism(label))


def bits(num_labels: int, one: float, other: float) -> Mechanism:
    """Unary encoding: the label's bit is 1 with one probability, the others with another."""
    return lambda label: (
        RNG.random(num_labels) < np.where(np.arange(num_labels) == label, one, other)
    ).astype(int)


def choose(num_labels: int, size: int, epsilon: float, shuffled: bool = True) -> Mechanism:
    """Subset selection: a set of names, with the label in it e^eps times as often as another."""
    weight = math.exp(epsilon) * size / (math.exp(epsilon) * size + num_labels - size)

    def send(label: int) -> tuple[int, ...]:
        others = RNG.permutation(np.delete(np.arange(num_labels), label)).tolist()
        chosen = [label, *others[: size - 1]] if RNG.random() < weight else others[:size]
        return tuple(RNG.permutation(chosen).tolist()) if shuffled else tuple(chosen)

    return send


def laplace(scale: float, digits: int = 2) -> Mechanism:
    """Label plus Laplace noise, rounded to a grid that does not depend on the label."""
    return lambda label: round(label + RNG.laplace(scale=scale), digits)


def geometric(epsilon: float) -> Mechanism:
    """Label plus two-sided geometric noise."""
    share = 1.0 - math.exp(-epsilon)
    return lambda label: int(label + RNG.geometric(share) - RNG.geometric(share))


def seeded(seeds: int) -> Mechanism:
    """Laplace noise from a generator that is seeded anew, out of so many seeds."""
    return lambda label: round(label / 7 + np.random.default_rng(int(RNG.integers(seeds))).laplace(), 4)


def ordered_set(shuffled: bool) -> Mechanism:
    """Subset selection on 4 names whose hashes collide: the order of the set is that of insertion."""
    send = choose(4, 2, EPSILON, shuffled)
    return lambda label: {8 * name for name in send(label)}


def leaking_one(mechanism: Mechanism, share: float) -> Mechanism:
    """A mechanism that sends 99 for label 5 now and then, and for no other."""
    return lambda label: 99 if label == 5 and RNG.random() < share else mechanism(label)


def leaking(mechanism: Mechanism, share: float, message: Callable[[int], Any] = int) -> Mechanism:
    """A mechanism that sends the label itself now and then."""
    return lambda label: message(label) if RNG.random() < share else mechanism(label)


class Case(NamedTuple):
    """A mistake, and a mechanism with and without it."""

    mistake: str
    num_labels: int
    wrong: Mechanism
    right: Mechanism
    trials: int = 100_000


RR4, RR8, TWO = respond(4, 1.0), respond(8, 1.0), respond(2, 1.0)
HALF, FLIP = math.exp(0.5) / (math.exp(0.5) + 1), 1 / (math.exp(0.5) + 1)
RIGHTLY = math.e / (math.e + 1)


def keep_too_often(label: int) -> int:
    return label if RNG.random() < math.e / (math.e + 1) else int((label + RNG.integers(1, 4)) % 4)


def never_six(label: int) -> int:
    sent = RR8(label)
    return never_six(label) if (label, sent) == (2, 6) else sent


def name(label: int) -> str:
    return "user-" + "abcd"[RR4(label)]


def typo(label: int) -> str:
    return "uesr-" + "abcd"[label]


def rounded_early(label: int) -> float:
    return label / 4 + round(RNG.laplace(scale=0.75), 1)


def rounded_late(label: int) -> float:
    return round(label / 4 + RNG.laplace(scale=0.75), 1)


def padded(most: int) -> Mechanism:
    return lambda label: bytes([TWO(label), RNG.integers(most if label else 3)])


CASES = [
    Case("randomized response at 2 eps", 4, respond(4, 2.0), RR4),
    Case("randomized response at 1.2 eps", 4, respond(4, 1.2), RR4),
    Case("the probabilities of 2 labels, for 4", 4, keep_too_often, RR4),
    Case("sends label + 10 in the clear, once in 100", 4, leaking(RR4, 0.01, lambda y: 10 + y), RR4),
    Case("one label of 8 sends a name of its own, once in 100", 8, leaking_one(RR8, 0.01), RR8),
    Case("one label of 8 never sends one name", 8, never_six, RR8),
    Case("unary encoding: flips for eps, not eps / 2", 6, bits(6, RIGHTLY, 1 - RIGHTLY), bits(6, HALF, FLIP)),
    Case("unary encoding: flips only zeros", 6, bits(6, 1.0, FLIP), bits(6, HALF, FLIP)),
    Case("subset as a list, the label first", 6, choose(6, 2, 1.0, shuffled=False), choose(6, 2, 1.0)),
    Case("subset at 1.3 eps", 6, choose(6, 2, 1.3), choose(6, 2, 1.0)),
    Case("subset as a Python set, at 1.3 eps", 6, then(set, choose(6, 3, 1.3)), then(set, choose(6, 3, 1.0))),
    Case("Python set whose order tells what came first", 4, ordered_set(False), ordered_set(True)),
    Case("Laplace noise for sensitivity 1, labels 0 to 3", 4, laplace(1.0), laplace(3.0)),
    Case("Laplace scale divided by 1.2", 2, laplace(1 / 1.2), laplace(1.0)),
    Case("Laplace noise rounded, then label / 4 added", 4, rounded_early, rounded_late),
    Case("geometric noise for sensitivity 1, labels 0 to 3", 4, geometric(1.0), geometric(1 / 3)),
    Case("Laplace noise from one of 1,000 seeds", 2, seeded(1000), laplace(1.0)),
    Case("Laplace noise in floats, not rounded", 2, lambda y: y + RNG.laplace(), laplace(1.0)),
    Case("a string with a typo that names the label, once in 50", 4, leaking(name, 0.02, typo), name),
    Case("bytes with padding that label 1 never sends", 2, padded(2), padded(3)),
]  # fmt: skip


def audit_case(case: Case, mechanism: Mechanism, seed: int = 0) -> tuple[audit.EpsilonEstimate, float]:
    start = time.process_time()
    found = audit.estimate_epsilon(
        mechanism, num_labels=case.num_labels, claimed=EPSILON, trials=case.trials, seed=seed
    )
    return found, time.process_time() - start


def measure_power() -> list[dict[str, Any]]:
    audit.estimate_epsilon(TWO, num_labels=2, trials=400)  # loads what it needs
    rows = []
    for case in CASES:
        wrong, seconds = audit_case(case, case.wrong)
        right, _ = audit_case(case, case.right)
        rows.append(
            {
                "mistake": case.mistake,
                "labels": case.num_labels,
                "trials": case.trials,
                "proved eps": f"{wrong.epsilon:.2f}",
                "found": "no" if wrong.holds else "yes",
                "right version: proved eps": f"{right.epsilon:.2f}",
                "right version passes": "yes" if right.holds else "no",
                "CPU seconds": f"{seconds:.1f}",
            }
        )
        print(*rows[-1].values(), sep=" | ")
        print(f"    {wrong}\n    {right if not right.holds else ''}", flush=True)
    return rows


def count_false_alarms(count: int, confidence: float = 0.9, trials: int = 4000) -> list[dict[str, Any]]:
    """Audits of right mechanisms: randomized response, whose every event at the edge has a ratio of e^eps."""
    alarms = 0
    rng = np.random.default_rng(2)
    for i in range(count):
        num_labels, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.1, 3.0))
        found = audit.estimate_epsilon(
            respond(num_labels, epsilon, rng),
            num_labels=num_labels,
            claimed=epsilon,
            confidence=confidence,
            trials=trials,
            seed=i,
        )
        alarms += not found.holds
    low, high = share_interval(alarms, count, 0.95)
    row = {"audits": count, "trials": trials, "confidence": confidence, "alarms": alarms}
    return [{**row, "rate": f"{alarms / count:.3f}", "95% interval": f"{low:.3f} to {high:.3f}"}]


def main() -> None:
    warnings.simplefilter("ignore")
    *options, path = sys.argv[1:]
    rows = count_false_alarms(int(options[1])) if options else measure_power()
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(rows[-1])


if __name__ == "__main__":
    main()
