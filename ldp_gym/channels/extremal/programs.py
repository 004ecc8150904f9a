"""The best channel for given slopes by linear programs, with a proof that there is no better one.

Duality: let every label have a price. If the prices pay for every set,
``sum_y price_y (e^-eps + (1 - e^-eps) [y in S]) >= score(S)``, then no channel scores more than the sum of
the prices. If they miss some set's score by v, none scores more than that sum plus v times the largest mass
that a channel has in all, ``M / (1 + (M - 1) e^-eps)``. The prices come from a linear program's dual, and the
bound holds whatever the solver's tolerance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ldp_gym.channels.extremal.families import Family, Table, ascend
from ldp_gym.core.arrays import FloatArray

_MOST_ROUNDS = 20
_STARTS = 100
_MOST_FINDS = 60
_ENOUGH = 1e-6
"""What prices may miss, in units of the largest score."""

_NOTHING = 1e-12
"""A mass that counts as none."""


class Solver(ABC):
    """Linear programs for one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @abstractmethod
    def best(self, slopes: FloatArray) -> tuple[list[Family], float]:
        """The channel with the highest score, and a bound on the score of any."""

    def _missed(self, sets: FloatArray, prices: FloatArray, slopes: FloatArray) -> FloatArray:
        """By how much prices miss the scores of sets ``(n, M)``."""
        low = self._table.low
        return self._table.scores(sets, slopes) - (low * prices.sum() + (1.0 - low) * (sets @ prices))

    def _bound(self, prices: FloatArray, missed: float) -> float:
        labels = self._table.num_labels
        return float(prices.sum() + max(missed, 0.0) * labels / (1.0 + (labels - 1) * self._table.low))

    def _program(self, sets: FloatArray, scores: FloatArray) -> _Solution:
        """The best masses of sets ``(n, M)``."""
        raised = self._table.low + (1.0 - self._table.low) * sets
        return _solve(scores, raised.T, self._table.low)

    def _level(self, sets: FloatArray, masses: FloatArray) -> Family:
        """The channel of masses that cover all labels alike to the last digit, not to some tolerance."""
        sets, masses = sets[masses > _NOTHING], masses[masses > _NOTHING]
        uneven = (sets - sets[:, :1])[:, 1:]
        masses = masses - np.linalg.lstsq(uneven.T, masses @ uneven, rcond=None)[0]
        return self._table.family(sets, np.maximum(masses, 0.0))


class AllSets(Solver):
    """For few labels: a program over some sets, to which those that prices miss most are added."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        numbers = np.arange(1, 2**table.num_labels - 1)
        self._sets = ((numbers[:, None] >> np.arange(table.num_labels)) & 1).astype(np.float64)
        self._chosen = np.isin(self._sets.sum(axis=-1), [1, table.num_labels - 1])

    def best(self, slopes: FloatArray) -> tuple[list[Family], float]:
        scores = self._table.scores(self._sets, slopes)
        for _ in range(_MOST_ROUNDS):
            columns = np.flatnonzero(self._chosen)
            program = self._program(self._sets[columns], scores[columns])
            missed = self._missed(self._sets, program.prices, slopes)
            if missed.max() < _ENOUGH * scores.max():
                break
            self._chosen[np.argsort(-missed)[:30]] = True
        family = self._level(self._sets[columns], program.masses)
        return [family], self._bound(program.prices, float(missed.max()))


class FoundSets(Solver):
    """For more labels: a program over sets that were found; ascent finds sets that its prices miss.

    The score of a set is convex in the laws, so to let a label join if the score's gradient exceeds its price
    never lowers what the set is worth. Sets that no ascent finds may be missed: the bound is an estimate.

    Args:
        table: what the sets are for.
        sets: sets to begin with, ``(n, M)``, some of which make a channel.
        rng: where random starts come from.
    """

    def __init__(self, table: Table, sets: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(table)
        self._sets = np.unique(sets, axis=0)
        self._rng = rng

    def best(self, slopes: FloatArray) -> tuple[list[Family], float]:
        sets, scores = self._sets, self._table.scores(self._sets, slopes)
        program = self._program(sets, scores)
        found = ascend(
            lambda some: (self._table.gradients(some, slopes) > program.prices).astype(np.float64),
            self._starts(program.masses),
        )
        found = np.unique(found, axis=0)
        missed = self._missed(found, program.prices, slopes)
        order = np.argsort(-missed)[:_MOST_FINDS]
        new = found[order[missed[order] > _ENOUGH * scores.max()]]
        self._sets = np.unique(np.concatenate([sets, new]), axis=0)
        return [self._level(sets, program.masses)], self._bound(program.prices, float(missed.max()))

    def _starts(self, masses: FloatArray) -> FloatArray:
        """The sets in use, some that are not, and the labels for which random tastes for hypotheses speak."""
        others = self._rng.integers(len(masses), size=_STARTS)
        tastes = self._rng.standard_normal((_STARTS, self._table.num_hypotheses))
        liked = (tastes @ self._table.candidates > 0.0).astype(np.float64)
        return np.concatenate([self._sets[masses > _NOTHING], self._sets[others], liked])


class TwoHypotheses(Solver):
    """For K = 2: the score of a set is the largest of its tangents, one per log ratio s of the two laws.

    A program with one message per tangent of a grid in ``[-eps, eps]`` says how far each message speaks for
    each label. Where its prices miss a set, the set's own ratio joins the grid.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._reach = -float(np.log(table.low))
        self._base = np.linspace(-self._reach, self._reach, 17)
        self._grid = self._base

    def best(self, slopes: FloatArray) -> tuple[list[Family], float]:
        for _ in range(_MOST_ROUNDS):
            grid = self._grid
            program, shares = self._shared_program(slopes)
            sets = self._sets_above(program.prices, slopes)
            missed = self._missed(sets, program.prices, slopes)
            if missed.max(initial=0.0) < _ENOUGH * np.abs(program.prices).sum():
                break
            laws = self._table.laws(sets[np.argsort(-missed)[:4]])
            self._grid = np.unique(np.concatenate([self._grid, np.log(laws[:, 0] / laws[:, 1])]))
        used = grid[shares.max(axis=1) > _NOTHING]
        self._grid = np.union1d(self._base, used)  # what no message used would only slow the next program
        nested = [_nested(row) for row in shares]
        family = self._level(*(np.concatenate(parts) for parts in zip(*nested, strict=True)))
        return [family], self._bound(program.prices, float(missed.max(initial=0.0)))

    def _tangents(self, ratios: FloatArray, slopes: FloatArray) -> FloatArray:
        """What a label that joins adds to the tangents at log ratios ``(M,)`` or ``(n, 1)``."""
        (first, second), (u, v) = self._table.candidates, (slopes[0, 1], slopes[1, 0])
        s = np.exp(ratios)
        return (u * (ratios + 1.0) - v / s) * first + (v * (1.0 - ratios) - u * s) * second

    def _shared_program(self, slopes: FloatArray) -> tuple[_Solution, FloatArray]:
        """Message s has mass c_s, and e_sy of it speaks for label y, ``0 <= e_sy <= c_s``."""
        low, labels, n = self._table.low, self._table.num_labels, len(self._grid)
        tangents = self._tangents(self._grid[:, None], slopes)
        gains = np.concatenate([low * tangents.sum(axis=1), (1.0 - low) * tangents.reshape(-1)])
        each = sparse.hstack([sparse.eye_array(labels)] * n)
        covered = sparse.hstack([np.full((labels, n), low), (1.0 - low) * each]).tocsr()
        by_message = sparse.kron(sparse.eye_array(n), np.ones((labels, 1)))
        within = sparse.hstack([-by_message, sparse.eye_array(n * labels)]).tocsr()
        program = _solve(gains, covered, low, within)
        return program, program.masses[n:].reshape(n, labels)

    def _sets_above(self, prices: FloatArray, slopes: FloatArray) -> FloatArray:
        """All sets that are worth more than their price by some tangent.

        A label's worth at s, its tangent less its price, rises up to ``s = log(f_1[y] / f_2[y])`` and falls
        from there on. So it is positive in one interval, and sets change at the ends of the intervals only.
        """
        first, second = np.maximum(self._table.candidates, np.finfo(np.float64).tiny)
        peak = np.clip(np.log(first) - np.log(second), -self._reach, self._reach)
        joins = self._tangents(peak, slopes) > prices
        ends = []
        for outer in (np.full(len(peak), -self._reach), np.full(len(peak), self._reach)):
            inner = peak
            for _ in range(60):  # bisection, to the last digit
                middle = (inner + outer) / 2.0
                above = self._tangents(middle, slopes) > prices
                inner, outer = np.where(above, middle, inner), np.where(above, outer, middle)
            ends.append(outer)
        points = np.unique(np.concatenate([end[joins] for end in ends] + [[-self._reach, self._reach]]))
        points = ((points[1:] + points[:-1]) / 2.0)[:, None]
        sets = joins & (ends[0] <= points) & (points <= ends[1])
        return np.unique(sets.astype(np.float64), axis=0)


class _Solution(NamedTuple):
    masses: FloatArray
    prices: FloatArray


def _solve(gains: FloatArray, covered: FloatArray, low: float, within: FloatArray | None = None) -> _Solution:
    """Masses of the largest gain that cover every label once, and the labels' prices.

    The program asks that the first label is covered once and the others as much as it is: at a small eps all
    rows of ``covered`` are nearly the same, and only their differences can be told apart.
    """
    # Where all hypotheses are the same, nothing is worth anything.
    unit, others = float(np.abs(gains).max()) or 1.0, covered.shape[0] - 1
    rows = sparse.csr_array(covered)
    rows = sparse.vstack([rows[:1], (rows[1:] - rows[[0] * others]) / (1.0 - low)])
    limits = None if within is None else np.zeros(within.shape[0])
    program = linprog(
        -gains / unit, A_ub=within, b_ub=limits, A_eq=rows, b_eq=np.eye(others + 1)[0], method="highs"
    )
    assert program.status == 0, f"randomized response is always a solution, but: {program.message}"
    first, *differences = -program.eqlin.marginals * unit
    prices = np.array(differences) / (1.0 - low)
    return _Solution(program.x, np.concatenate([[first - prices.sum()], prices]))


def _nested(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A message that speaks for labels by shares ``(M,)``, as nested sets ``(n, M)`` and their masses."""
    levels = np.unique(np.append(np.where(shares > _NOTHING, shares, 0.0), 0.0))
    return (shares >= levels[1:, None]).astype(np.float64), np.diff(levels)
