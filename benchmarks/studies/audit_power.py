"""Planted mistakes that the black-box audit finds, and its false alarms.

Twenty local mechanisms that claim eps = 0.8, each right and with one mistake. They were written down before
the audit saw any of them; its settings were chosen on others. Five others claim (eps, delta). False alarms
are counted over right mechanisms of nine kinds, with random labels and eps, and over right (eps, delta)
mechanisms of five kinds.

    python benchmarks/studies/audit_power.py docs/data/audit-power.csv
    python benchmarks/studies/audit_power.py --delta 10 docs/data/audit-delta.csv
    python benchmarks/studies/audit_power.py --delta-alarms 1000 docs/data/audit-delta-alarms.csv
    python benchmarks/studies/audit_power.py --false-alarms 1000 docs/data/audit-alarms.csv
    python benchmarks/studies/audit_power.py --rare 20 docs/data/audit-rare.csv
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
from scipy.optimize import brentq

from ldp_gym import audit
from ldp_gym.channels.accounting import gaussian_delta
from ldp_gym.core.arrays import FloatArray
from ldp_gym.statistics import largest_share, least_share

EPSILON = 0.8
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


def bits(num_labels: int, epsilon: float, shared: bool = False) -> Mechanism:
    """Optimized unary encoding; all bits may wrongly share a random number."""
    flip = 1 / (math.exp(epsilon) + 1)
    return lambda label: (
        RNG.random(1 if shared else num_labels)
        < np.where(np.arange(num_labels) == label, 0.5, flip)
    ).astype(np.uint8)


def choose(
    num_labels: int, epsilon: float, size: int = 2, arrange: Callable[..., Any] = RNG.permutation
) -> Mechanism:
    """Subset selection: a set of names, with the label in it e^eps times as often as another."""
    weight = math.exp(epsilon) * size / (math.exp(epsilon) * size + num_labels - size)

    def send(label: int) -> tuple[int, ...]:
        others = RNG.permutation(np.delete(np.arange(num_labels), label)).tolist()
        chosen = (
            [*sorted(others[: size - 1]), label] if RNG.random() < weight else sorted(others[:size])
        )
        return tuple(arrange(chosen))

    return send


def laplace(num_labels: int, epsilon: float, digits: int = 2) -> Mechanism:
    """Label plus Laplace noise, rounded to a grid that does not depend on the label."""
    return lambda label: round(label + RNG.laplace(scale=(num_labels - 1) / epsilon), digits)


def geometric(num_labels: int, epsilon: float) -> Mechanism:
    """Label plus two-sided geometric noise."""
    share = 1.0 - math.exp(-epsilon / (num_labels - 1))
    return lambda label: int(label + RNG.geometric(share) - RNG.geometric(share))


def hadamard(num_labels: int, epsilon: float) -> Mechanism:
    """A random row of a Hadamard matrix, and its entry at the label, flipped at times."""
    size = 1 << num_labels.bit_length()

    def send(label: int) -> tuple[int, int]:
        row = int(RNG.integers(size))
        return row, ((row & label).bit_count() + (RNG.random() < 1 / (math.exp(epsilon) + 1))) % 2

    return send


def exponential(num_labels: int, epsilon: float) -> Mechanism:
    """Exponential mechanism: exp(eps u / 2), with utilities u in [0, 1] of five answers."""
    weights = np.exp(epsilon / 2 * np.random.default_rng(0).random((num_labels, 5)).round())
    ends = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return lambda label: int((RNG.random() > ends[label]).sum().clip(max=4))


def hashed(num_labels: int, epsilon: float) -> Mechanism:
    """One of eight salts and a bit of the salted label's hash, flipped at times, as a string."""

    def send(label: int) -> str:
        salt = int(RNG.integers(8))
        bit = (label * (2 * salt + 3) + salt) // 4 % 2
        return f"{salt:02d}-{'ab'[bit ^ (RNG.random() < 1 / (math.exp(epsilon) + 1))]}"

    return send


def named_set(num_labels: int, epsilon: float) -> Mechanism:
    """Subset selection as a set of strings."""
    return then(lambda chosen: {f"n{name}" for name in chosen}, choose(num_labels, epsilon))


def leaking(mechanism: Mechanism, share: float, message: Callable[[int], Any]) -> Mechanism:
    """A mechanism that sends another message now and then."""
    return lambda label: message(label) if RNG.random() < share else mechanism(label)


def leaking_one(share: float) -> Mechanism:
    """Randomized response that sends 99 for label 5 of 8 now and then, and for no other."""
    right = respond(8, EPSILON)
    return lambda label: 99 if label == 5 and RNG.random() < share else right(label)


def among_all(label: int) -> int:
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + 5)
    return label if RNG.random() < keep else int(RNG.integers(6))


def never_eleven(label: int) -> int:
    sent = TWELVE(label)
    return never_eleven(label) if (label, sent) == (7, 11) else sent


def always_in(label: int) -> frozenset[str]:
    return frozenset({"abcde"[label], "abcde"[(label + int(RNG.integers(1, 5))) % 5]})


def normal(label: int) -> float:
    return round(label + RNG.normal(scale=math.sqrt(2) / EPSILON), 2)


def one_sided(label: int) -> int:
    return int(label + RNG.geometric(1 - math.exp(-EPSILON / 2)))


def seed_in_message(seeds: int) -> Mechanism:
    """A seed, and randomized response with that seed's randomness."""

    def send(label: int) -> tuple[int, int]:
        seed = int(RNG.integers(seeds))
        return seed, respond(3, EPSILON, np.random.default_rng(seed))(label)

    return send


def reseeded(seeds: int) -> Mechanism:
    """Laplace noise from a generator that is seeded anew with one of ``seeds`` seeds."""
    return lambda label: round(
        label / 3 + np.random.default_rng(int(RNG.integers(seeds))).laplace(scale=1 / EPSILON), 6
    )


class Case(NamedTuple):
    """A mistake, and a mechanism with and without it."""

    mistake: str
    num_labels: int
    wrong: Mechanism
    right: Mechanism


THREE, FOUR, FIVE, TWELVE = (respond(size, EPSILON) for size in (3, 4, 5, 12))
WORDS = then(["red", "green", "blue"].__getitem__, THREE)
END_LAST, SORTED = choose(7, EPSILON, arrange=list), choose(7, EPSILON, arrange=sorted)
DIGITS = then(str, FIVE)
COINS = then(lambda name: bytes([name, int(RNG.integers(256))]), FOUR)

CASES = [
    Case("randomized response at 1.5 eps", 10, respond(10, 1.2), respond(10, 0.8)),
    Case("randomized response of words at 1.15 eps", 3,
         then(["red", "green", "blue"].__getitem__, respond(3, 0.92)), WORDS),
    Case("the other label is drawn among all, itself too", 6, among_all, respond(6, 0.8)),
    Case("a string tells the label, once in 100", 5, leaking(DIGITS, 0.01, "?{}".format), DIGITS),
    Case("sends label + 100, thrice in 1,000", 3, leaking(THREE, 0.003, lambda y: 100 + y), THREE),
    Case("one label of 12 never sends one name", 12, never_eleven, TWELVE),
    Case("unary encoding at 1.3 eps, as bytes", 9,
         then(bytes, then(np.packbits, bits(9, 1.04))), then(bytes, then(np.packbits, bits(9, 0.8)))),
    Case("unary encoding with one random number for all bits", 5, bits(5, 0.8, shared=True), bits(5, 0.8)),
    Case("subset of 3 as an array, at 1.25 eps", 8,
         then(np.array, choose(8, 1.0, 3)), then(np.array, choose(8, 0.8, 3))),
    Case("set of two strings that always has the label", 5, always_in, named_set(5, 0.8)),
    Case("sorted list, but the label comes last", 7, END_LAST, SORTED),
    Case("Laplace scale divided by 1.3, labels 0 to 4", 5, laplace(5, 1.04, 1), laplace(5, 0.8, 1)),
    Case("normal noise of the same deviation", 2, normal, laplace(2, 0.8)),
    Case("geometric noise on one side, labels 0 to 2", 3, one_sided, geometric(3, 0.8)),
    Case("exponential mechanism at 2 eps", 6, exponential(6, 1.6), exponential(6, 0.8)),
    Case("the seed of the noise is in the message", 3, seed_in_message(300),
         then(lambda z: (int(RNG.integers(300)), z), THREE)),
    Case("Laplace noise from one of 4,000 seeds", 3, reseeded(4000), laplace(3, 0.8)),
    Case("Laplace noise in floats", 3, lambda y: y / 10 + RNG.laplace(scale=0.25), laplace(3, 0.8)),
    Case("bits of salted hashes at 1.4 eps", 6, hashed(6, 1.12), hashed(6, 0.8)),
    Case("bytes with a checksum of the label, once in 30", 4,
         leaking(COINS, 1 / 30, lambda y: bytes([FOUR(y), 17 * y + 5])), COINS),
]  # fmt: skip


def audit_case(mechanism: Mechanism, num_labels: int) -> tuple[audit.EpsilonEstimate, float]:
    start = time.process_time()
    found = audit.estimate_epsilon(mechanism, num_labels=num_labels, claimed=EPSILON)
    return found, time.process_time() - start


def measure_power() -> list[dict[str, Any]]:
    audit.estimate_epsilon(THREE, num_labels=3, trials=400)  # loads what it needs
    rows = []
    for case in CASES:
        wrong, seconds = audit_case(case.wrong, case.num_labels)
        right, _ = audit_case(case.right, case.num_labels)
        rows.append(
            {
                "mistake": case.mistake,
                "labels": case.num_labels,
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


KINDS = [respond, bits, choose, laplace, geometric, hadamard, exponential, named_set, hashed]


def count_false_alarms(
    count: int, confidence: float = 0.9, trials: int = 4000
) -> list[dict[str, Any]]:
    """Count false alarms in audits of correct mechanisms, by kind."""
    rng, alarms = np.random.default_rng(2), dict.fromkeys(KINDS, 0)
    for i in range(count):
        num_labels, epsilon, kind = (
            int(rng.integers(3, 7)),
            float(rng.uniform(0.1, 3.0)),
            KINDS[i % len(KINDS)],
        )
        options = {
            "num_labels": num_labels,
            "claimed": epsilon,
            "confidence": confidence,
            "trials": trials,
        }
        alarms[kind] += not audit.estimate_epsilon(
            kind(num_labels, epsilon), seed=i, **options
        ).holds
    print({kind.__name__: number for kind, number in alarms.items()})
    return [count_row(sum(alarms.values()), count, "alarms", confidence=confidence, trials=trials)]


def count_rare(count: int) -> list[dict[str, Any]]:
    """Count audits of 10^5 trials that find a leak of one label of eight, by its probability."""
    return [
        count_row(
            sum(not audit_case(leaking_one(share), 8)[0].holds for _ in range(count)),
            count,
            "found",
            probability=share,
        )
        for share in (0.003, 0.01, 0.03)
    ]


def count_row(hits: int, count: int, what: str, **settings: Any) -> dict[str, Any]:
    low, high = least_share(hits, count, 0.025), largest_share(hits, count, 0.025)
    row = {**settings, "audits": count, what: hits, "share": f"{hits / count:.3f}"}
    return {**row, "95% interval": f"{low:.3f} to {high:.3f}"}


# -- Mechanisms that claim (eps, delta) -------------------------------------------------------------------

DELTA = 0.01
"""The delta that the five mechanisms claim, with eps = 0.8."""


def normal_scale(distance: float, epsilon: float, delta: float) -> float:
    """Least standard deviation of normal noise that hides a distance (Balle and Wang 2018)."""
    return float(brentq(lambda scale: gaussian_delta(distance / scale, epsilon) - delta, 1e-3, 1e3))


def one_hot_noise(num_labels: int, scale: float) -> Mechanism:
    """The label's unit vector with normal noise, rounded, so that floats give nothing away."""

    def send(label: int) -> FloatArray:
        noisy = np.eye(num_labels)[label] + RNG.normal(scale=scale, size=num_labels)
        return noisy.round(3)

    return send


def leaky_response(num_labels: int, epsilon: float, share: float) -> Mechanism:
    """Randomized response that sends the label in the clear with this probability."""
    return leaking(respond(num_labels, epsilon), share, lambda label: 100 + label)


def repeated(mechanism: Mechanism, times: int) -> Mechanism:
    """Several independent messages about one label."""
    return lambda label: tuple(mechanism(label) for _ in range(times))


class DeltaMechanism(NamedTuple):
    """A right and a wrong mechanism of M labels that claim (eps, delta)."""

    mistake: str
    right: Callable[[int, float, float], Mechanism]
    wrong: Callable[[int, float, float], Mechanism]


DELTA_CASES = [
    DeltaMechanism(
        "normal noise for a sensitivity of 1, not sqrt(2)",
        lambda m, e, d: one_hot_noise(m, normal_scale(math.sqrt(2.0), e, d)),
        lambda m, e, d: one_hot_noise(m, normal_scale(1.0, e, d)),
    ),
    DeltaMechanism(
        "normal noise for ten times the delta",
        lambda m, e, d: one_hot_noise(m, normal_scale(math.sqrt(2.0), e, d)),
        lambda m, e, d: one_hot_noise(m, normal_scale(math.sqrt(2.0), e, 10.0 * d)),
    ),
    DeltaMechanism(
        "the label in the clear with probability 2 delta",
        lambda m, e, d: leaky_response(m, e, d),
        lambda m, e, d: leaky_response(m, e, 2.0 * d),
    ),
    DeltaMechanism(
        "two messages, composition counted once",
        lambda m, e, d: repeated(leaky_response(m, e / 2.0, d / 2.0), 2),
        lambda m, e, d: repeated(leaky_response(m, e, d), 2),
    ),
    DeltaMechanism(
        "delta granted to each of four messages",
        lambda m, e, d: repeated(leaky_response(m, e / 4.0, d / 4.0), 4),
        lambda m, e, d: repeated(leaky_response(m, e / 4.0, d), 4),
    ),
]


def measure_delta_power(count: int) -> list[dict[str, Any]]:
    """Audit the mechanisms with and without their mistakes, ``count`` times each with 10^5 messages."""
    rows = []
    for case in DELTA_CASES:
        row: dict[str, Any] = {"mistake": case.mistake, "labels": 4, "audits": count}
        start = time.process_time()
        for version, make in (("wrong", case.wrong), ("right", case.right)):
            mechanism = make(4, EPSILON, DELTA)
            by_delta = [
                audit.estimate_delta(
                    mechanism, num_labels=4, epsilon=EPSILON, claimed=DELTA, seed=seed
                )
                for seed in range(count)
            ]
            by_epsilon = [
                audit.estimate_epsilon(
                    mechanism, num_labels=4, delta=DELTA, claimed=EPSILON, seed=seed
                )
                for seed in range(count)
            ]
            proved = np.median([estimate.delta for estimate in by_delta])
            row[f"{version}: proved delta"] = f"{proved:.4f}"
            row[f"{version}: convicted by delta"] = sum(not e.holds for e in by_delta)
            row[f"{version}: convicted by eps"] = sum(not e.holds for e in by_epsilon)
        seconds = time.process_time() - start
        row["CPU seconds per audit"] = f"{seconds / (4 * count):.1f}"
        rows.append(row)
        print(*row.values(), sep=" | ", flush=True)
    return rows


def count_delta_alarms(
    count: int, confidence: float = 0.9, trials: int = 4000
) -> list[dict[str, Any]]:
    """Count false alarms in audits of right (eps, delta) mechanisms, of delta and of eps in turn."""
    rng = np.random.default_rng(3)
    alarms = 0
    for i in range(count):
        num_labels = int(rng.integers(2, 6))
        epsilon = float(rng.uniform(0.2, 2.0))
        delta = float(10.0 ** rng.uniform(-3.0, -1.0))
        mechanism = DELTA_CASES[i % len(DELTA_CASES)].right(num_labels, epsilon, delta)
        options = {"num_labels": num_labels, "confidence": confidence, "trials": trials, "seed": i}
        if (i // len(DELTA_CASES)) % 2 == 0:
            estimate = audit.estimate_delta(mechanism, epsilon=epsilon, claimed=delta, **options)
            alarms += not estimate.holds
        else:
            bound = audit.estimate_epsilon(mechanism, claimed=epsilon, delta=delta, **options)
            alarms += not bound.holds
    return [count_row(alarms, count, "alarms", confidence=confidence, trials=trials)]


def main() -> None:
    warnings.simplefilter("ignore")
    *options, path = sys.argv[1:]
    measures = {
        "--false-alarms": count_false_alarms,
        "--rare": count_rare,
        "--delta": measure_delta_power,
        "--delta-alarms": count_delta_alarms,
    }
    rows = measures[options[0]](int(options[1])) if options else measure_power()
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
