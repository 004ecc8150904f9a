"""Theorem 4 put to the test: its steps on random and structured classes, whole games, and decoys.

    python benchmarks/studies/theorem_4.py steps     # about half a minute
    python benchmarks/studies/theorem_4.py games     # about a minute
    python benchmarks/studies/theorem_4.py decoys    # about three minutes

docs/proofs.md has the theorem and these numbers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import hadamard

import ldp_agents  # noqa: F401  (registers the learners)
import ldp_gym
from ldp_gym import theory
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import kl

LEWIS_STEPS = 80
"""Number of fixed-point steps: each halves the error of the Lewis weights, in logarithms."""

_SAME = 1e-11
"""Singular value, relative to the largest, that counts as 0."""

# -- The steps of the proof ----------------------------------------------------------------------------


class Geometry(NamedTuple):
    """Labels of a class that tell hypotheses apart, in the geometry of the Lewis weights.

    Attributes:
        told_apart: mask of these labels, ``(M,)``.
        weights: their Lewis weights tau, ``(n,)``.
        points: ``L^-1 u_y``, ``(d, n)``.
    """

    told_apart: FloatArray
    weights: FloatArray
    points: FloatArray


def geometry(table: FloatArray) -> Geometry:
    """Exact Lewis weights of a class ``(K, M)``, up to rounding."""
    _, singular_values, directions = np.linalg.svd(table[1:] - table[0], full_matrices=False)
    coordinates = directions[singular_values > _SAME * singular_values[0]]
    lengths = np.linalg.norm(coordinates, axis=0)
    told_apart = lengths > 1e-13
    coordinates = coordinates[:, told_apart]
    weights = lengths[told_apart]
    for _ in range(LEWIS_STEPS):
        lower = np.linalg.cholesky((coordinates / weights) @ coordinates.T)
        points = np.linalg.solve(lower, coordinates)
        weights = np.linalg.norm(points, axis=0)
    return Geometry(told_apart, weights, points)


def shares(table: FloatArray, posterior: FloatArray, space: Geometry) -> tuple[float, float]:
    """``E KL / sqrt(d E Q)``, and the largest ``Q / (2 pi E mu(S)^2)``: the theorem says at most 1."""
    prediction = posterior @ table
    mu = (table - prediction)[:, space.told_apart]
    q = (np.square(mu) / space.weights).sum(axis=1)
    divergences = np.where(posterior > 0.0, kl(table, prediction), 0.0)
    bound = math.sqrt(len(space.points) * (posterior @ q))

    unit = space.points / space.weights
    products_of_signs = 2.0 / math.pi * np.arcsin(np.clip(unit.T @ unit, -1.0, 1.0))
    seen = np.einsum("ky,yz,kz->k", mu, products_of_signs, mu) / 4.0
    differs = q > 1e-16
    of_lemma = (q[differs] / (2.0 * math.pi * seen[differs])).max(initial=0.0)
    of_kl = posterior @ divergences / bound if bound > 1e-10 else 0.0
    return float(of_kl), float(of_lemma)


def classes(rng: np.random.Generator) -> Iterator[tuple[str, FloatArray]]:
    """Random and structured classes, each with the name of its kind."""
    for _ in range(500):
        size, num_labels = rng.integers(2, 40, size=2)
        concentration = rng.choice([0.02, 0.1, 0.3, 1.0, 5.0])
        yield "dirichlet", rng.dirichlet(np.full(num_labels, concentration), size=size)
    for size, num_labels in [(2, 64), (3, 200), (60, 3), (100, 2), (200, 5), (40, 40)]:
        for _ in range(20):
            yield "K or M large", rng.dirichlet(np.full(num_labels, 0.3), size=size)
    for size in (4, 8, 16, 32):
        for amplitude in (0.05, 0.3, 0.9, 1.0):
            yield "star", ldp_gym.hypotheses.HadamardStar(size, amplitude=amplitude).table
            yield "leaves", ldp_gym.hypotheses.HadamardStar(size, amplitude=amplitude).table[1:]
    for num_leaves in (3, 7, 15, 31, 63):
        for mass in (0.05, 0.2, 0.4):
            yield "decoys", decoy_class(num_leaves, mass)
    for size in (2, 3, 4, 5, 6, 20):
        yield "disjoint", np.eye(size)
    for _ in range(100):
        table = rng.dirichlet(np.full(rng.integers(3, 20), 0.3), size=rng.integers(3, 20))
        distance = 10.0 ** rng.uniform(-6, -1)
        yield "near-duplicates", np.vstack([table, (1 - distance) * table[0] + distance * table])
    for _ in range(100):
        parts = rng.dirichlet(np.full(rng.integers(5, 30), 0.3), size=rng.integers(2, 5))
        yield "low rank", rng.dirichlet(np.full(len(parts), 0.5), size=20) @ parts
    for _ in range(150):
        table = rng.dirichlet(np.full(rng.integers(2, 30), 0.3), size=rng.integers(2, 30))
        table[rng.random(table.shape) < 0.7] = 0.0
        table[:, 0] += table.sum(axis=1) == 0.0
        yield "zeros", table / table.sum(axis=1, keepdims=True)
    for _ in range(100):
        masses = 10.0 ** -rng.uniform(0, 6, size=rng.integers(3, 40))
        yield "spikes", np.column_stack([np.diag(masses), 1.0 - masses])
        yield "two labels", np.column_stack([masses, 1.0 - masses])


def posteriors(size: int, rng: np.random.Generator) -> list[FloatArray]:
    """Posteriors over K hypotheses: uniform, dense, sparse, of two, nearly certain, and certain."""
    certain = np.eye(size)[rng.integers(size)]
    doubt = 10.0 ** -rng.uniform(0.3, 8)
    two = np.zeros(size)
    two[rng.choice(size, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
    powers = 10.0 ** -rng.uniform(0, 8, size=size)
    dirichlet = [rng.dirichlet(np.full(size, alpha)) for alpha in (0.05, 0.3, 3.0)]
    nearly_certain = (1.0 - doubt) * certain + doubt / size
    uniform = np.full(size, 1.0 / size)
    return [uniform, *dirichlet, two, powers / powers.sum(), nearly_certain, certain]


def check_steps() -> None:
    """Print the largest shares of every kind of class."""
    rng = np.random.default_rng(0)
    largest: dict[str, tuple[float, float]] = {}
    count = 0
    for kind, table in classes(rng):
        space = geometry(table)
        for posterior in posteriors(len(table), rng):
            of_kl, of_lemma = shares(table, posterior, space)
            before = largest.get(kind, (0.0, 0.0))
            largest[kind] = (max(before[0], of_kl), max(before[1], of_lemma))
            count += 1
    print(f"{count:,} pairs of class and posterior; largest share of the bound, of the lemma's:")
    for kind, (of_kl, of_lemma) in largest.items():
        print(f"  {kind:16} {of_kl:.3f}  {of_lemma:.3f}")


# -- Games ---------------------------------------------------------------------------------------------


def check_games() -> None:
    """Print the largest ratio of Bayes' risk, under a uniform truth, to the bound, over the horizons."""
    rng = np.random.default_rng(0)
    star = ldp_gym.hypotheses.HadamardStar(16, epsilon=1.0, horizon=2000).table
    mixtures = rng.dirichlet(np.ones(4), size=64) @ rng.dirichlet(np.full(32, 0.3), size=4)
    games = {
        "dirichlet, 8 x 16": (rng.dirichlet(np.full(16, 0.3), size=8), 1.0, 1000),
        "five disjoint": (np.eye(5), 0.5, 300),
        "32 disjoint": (np.eye(32), 1.0, 800),
        "a pair": (np.array([[0.8, 0.2], [0.2, 0.8]]), 0.5, 300),
        "star": (star, 1.0, 2000),
        "mixtures of four": (mixtures, 1.0, 1500),
        "64 on four labels": (rng.dirichlet(np.full(4, 0.3), size=64), 1.0, 1000),
    }
    for name, (table, epsilon, horizon) in games.items():
        checkpoints = np.unique(np.geomspace(2, horizon, 25).astype(int)).tolist()
        rules = {"hypotheses": table, "epsilon": epsilon, "horizon": horizon}
        print(f"  {name:18} {largest_ratio(rules, theory.rank(table), checkpoints, 200):.3f}")
    for nature in ("iid", "cycle", "drift", "adversary", "omniscient"):
        rules = {"epsilon": 1.0, "horizon": 600, "nature": nature}
        print(f"  default class, {nature:11} {largest_ratio(rules, 7, [150, 600], 48):.3f}")


def largest_ratio(
    rules: dict[str, object], rank: int, checkpoints: list[int], episodes: int
) -> float:
    """The largest ratio of the mean risk to the bound, over the checkpoints."""
    rules = {**rules, "channel": "half-space"}
    played = ldp_gym.evaluate("bayes", rules, episodes=episodes, seed=1, checkpoints=checkpoints)
    size = len(np.atleast_2d(played.weights)[0])
    bounds = [
        theory.half_space_kl_bound(size, int(rounds), rules["epsilon"], rank=rank)  # type: ignore[arg-type]
        for rounds in played.rounds
    ]
    return float((played.kl.mean(axis=0) / bounds).max())


# -- Decoys --------------------------------------------------------------------------------------------


LARGEST_WITH_ALL_TRUTHS = 63
"""Largest number of leaves at which leaves and decoys are played as truths: it takes long."""


def decoy_class(num_leaves: int, mass: float) -> FloatArray:
    """A truth, leaves that differ from it by Hadamard columns, and decoys that hide what the leaves are.

    Labels: a common one, a signal of the decoys, N labels of the truth and the decoys, N of the leaves.
    """
    num_cells = 1 << num_leaves.bit_length()
    columns = hadamard(num_cells)[1 : num_leaves + 1]
    spread = mass / num_cells * (1.0 + columns)
    nothing = np.zeros_like(spread)
    ones = np.ones((num_leaves, 1))
    truth = [1.0 - mass, 0.0, *[mass / num_cells] * num_cells, *[0.0] * num_cells]
    leaves = np.hstack([(1.0 - mass) * ones, 0.0 * ones, nothing, spread])
    decoys = np.hstack([(0.5 - mass) * ones, 0.5 * ones, spread, nothing])
    return np.vstack([truth, leaves, decoys])


def check_decoys() -> None:
    """Print the risk of Bayes at the truth, at a leaf and at a decoy, times ``s / sqrt(K T log K)``."""
    epsilon, mass = 2.0, 0.4
    signal = math.tanh(epsilon / 2.0)
    for num_leaves, episodes in ((7, 200), (31, 60), (63, 24), (127, 24), (255, 10)):
        table = decoy_class(num_leaves, mass)
        size = len(table)
        horizon = int(0.7 * size * math.log(size) / (mass * signal) ** 2)
        unit = math.sqrt(size * horizon * math.log(size)) / signal
        rules = {
            "hypotheses": table,
            "channel": "half-space",
            "epsilon": epsilon,
            "horizon": horizon,
        }
        truths = {"truth": 0}
        if num_leaves <= LARGEST_WITH_ALL_TRUTHS:
            truths |= {"leaf": 1, "decoy": num_leaves + 1}
        for name, truth in truths.items():
            played = ldp_gym.evaluate("bayes", {**rules, "truth": truth}, episodes=episodes, seed=1)
            totals = played.kl[:, -1] / unit
            error = totals.std(ddof=1) / math.sqrt(episodes)
            print(f"  K = {size}, T = {horizon}, {name}: {totals.mean():.2f} ± {error:.2f}")


CHECKS = {"steps": check_steps, "games": check_games, "decoys": check_decoys}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("check", choices=CHECKS)
    CHECKS[parser.parse_args().check]()


if __name__ == "__main__":
    main()
