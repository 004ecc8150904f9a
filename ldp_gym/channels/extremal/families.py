"""Sets of labels as messages, and what they tell about the hypotheses of a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import kl

_MOST_STEPS = 20

FLATTEST, STEEPEST = 1e-3, 10.0
"""The eps that a channel is chosen for lie in between: beyond, linear programs run out of digits."""


class Family(NamedTuple):
    """Sets of labels with masses that cover all labels alike.

    Attributes:
        sets: which labels are in each set, ones and zeros, ``(n, M)``.
        masses: ``c_S``, ``(n,)``.
    """

    sets: FloatArray
    masses: FloatArray

    def scaled(self, low: float) -> Family:
        """The same with masses that make a channel, ``low`` being ``e^-eps``."""
        total = low * self.masses.sum() + (1.0 - low) * (self.masses @ self.sets).mean()
        return Family(self.sets, self.masses / total)


class Table:
    """What sets tell about the hypotheses of a table.

    Args:
        candidates: ``(K, M)``.
        epsilon: the privacy level.
    """

    def __init__(self, candidates: FloatArray, epsilon: float) -> None:
        self.candidates = candidates
        self.num_hypotheses, self.num_labels = candidates.shape
        self.low = math.exp(-min(max(epsilon, FLATTEST), STEEPEST))

    def family(self, sets: FloatArray, masses: FloatArray) -> Family:
        """The channel of sets and masses. The empty set and the full one tell nothing, and are left out."""
        sizes = sets.sum(axis=-1)
        useful = (sizes > 0.0) & (sizes < self.num_labels) & (masses > 0.0)
        return Family(sets[useful], masses[useful]).scaled(self.low)

    def laws(self, sets: FloatArray) -> FloatArray:
        """The probability of sets ``(..., M)`` from each hypothesis, over their masses: ``(..., K)``."""
        return self.low + (1.0 - self.low) * (sets @ self.candidates.T)

    def information(self, family: Family) -> FloatArray:
        """``D_ij``, ``(K, K)``."""
        laws = self.laws(family.sets)
        logs, weighed = np.log(laws), laws * family.masses[:, None]
        return np.maximum((weighed * logs).sum(axis=0)[:, None] - weighed.T @ logs, 0.0)

    def scores(self, sets: FloatArray, slopes: FloatArray) -> FloatArray:
        """``sum_ij u_ij P_i log(P_i / P_j)`` of sets ``(..., M)``: what a unit of mass on them adds."""
        laws = self.laws(sets)
        logs = np.log(laws)
        return (laws * logs) @ slopes.sum(axis=1) - (laws * (logs @ slopes.T)).sum(axis=-1)

    def gradients(self, sets: FloatArray, slopes: FloatArray) -> FloatArray:
        """By how much a score grows if a label joins, to first order and up to a factor: ``(..., M)``."""
        laws = self.laws(sets)
        logs = np.log(laws)
        by_law = (logs + 1.0) * slopes.sum(axis=1) - logs @ slopes.T - (laws @ slopes) / laws
        return by_law @ self.candidates

    @cached_property
    def prices(self) -> FloatArray:
        """``p_ij = KL(f_i, (f_i + f_j) / 2)``, ``(K, K)``."""
        return np.stack([kl(f, (f + self.candidates) / 2.0) for f in self.candidates])


def ascend(step: Callable[[FloatArray], FloatArray], sets: FloatArray) -> FloatArray:
    """Take steps from some sets until nothing changes."""
    for _ in range(_MOST_STEPS):
        better = step(sets)
        if np.array_equal(better, sets):
            break
        sets = better
    return sets
