"""Write the floors under the risk on disjoint supports that the package ships: ldp_gym/theory/floors.json.

python benchmarks/studies/floors.py      # about ten minutes

On disjoint supports, under a uniform truth, the least expected KL of a round is the expected entropy of the
posterior. Every eps-private channel is an extremal one with messages merged: its messages are sets S of
hypotheses, and S has probability ``c_S e^eps`` for members and ``c_S`` for others (Kairouz, Oh and Viswanath
2016). So a posterior is known by how many answers each hypothesis has for it, and the least risk V of the
rounds that are left obeys

    ``V_{t+1}(w) = H(w) + min_c sum_S c_S V_t(w r_S)``,

where ``r_S`` is e^eps on S and 1 elsewhere, ``sum_S c_S r_S = 1``, and weights w need not sum to one:
V and the entropy ``H(w) = |w| log |w| - sum w log w`` are homogeneous.

1. *Prices.* Any numbers ``pi_k`` with ``sum_k r_S[k] pi_k <= V_t(w r_S)`` for all S prove that the minimum is
   at least ``sum_k pi_k``. The simplex method finds the best ones; what they violate at most, in units of
   ``sum_k r_S[k] w_k``, is taken off. So is more than the rounding of the sums. A bad search gives a low
   floor, never a wrong one.
2. *Dropping.* V is a minimum over strategies of functions that are linear in w: concave and homogeneous,
   hence superadditive. A hypothesis that is more than D answers behind the leader is dropped: that lowers V.

With a lower bound of V_t on the right, both give one of V_{t+1}: the floor follows by induction from V_0 = 0.
"""

from __future__ import annotations

import json
import math
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from ldp_gym import theory
from ldp_gym.core.arrays import FloatArray, IntArray

EPSILONS = (4.0, 2.0, 1.0, 0.5)
"""Privacy levels of the tables."""

MOST_ROUNDS = 1000
"""Largest horizon of the tables."""

NUM_ROUNDS = 48
"""Number of horizons that a table has."""

DEPTHS = {3: 41, 4: 26, 5: 17, 6: 13, 7: 11, 8: 10}
"""Largest D by number of hypotheses."""

_DECIDED = 16.0
"""Log-likelihood ratio beyond which nothing is gained by a larger D."""

_ROUNDING_MARGIN = 1e-13
"""Share of the absolute prices that is taken off for rounding; sums of nine products err by 1.3e-15."""

_PIVOTS = 60
"""Largest number of pivots at a state in a round."""

_LEAST_VIOLATION = 1e-7
"""Relative violation of prices below which no pivot is made."""

_LEAST_GROWTH = 1e-7
"""Relative growth per round below which more rounds add nothing."""

_STATES_AT_ONCE = 2048
"""Number of states that are worked on together."""


class _States:
    """The posteriors over k hypotheses with at most D answers between the leader and the last.

    Attributes:
        entropies: unnormalised entropies, where the leader weighs 1.
        sums: sums of the weights.
        raised: ``r_S`` of every set but the whole, ``(2^k - 1, k)``.
        after: number of the posterior after S, among those of all k, ``(n, 2^k - 1)``.
        growth: weight of the leader after S.
        basis: sets of the current basis, ``(n, k)``, and its inverse.
    """

    def __init__(
        self, size: int, epsilon: float, depth: int, offsets: IntArray, starts: list[int]
    ) -> None:
        numbers = np.arange(2**size - 1)
        sets = (numbers[:, None] >> np.arange(size)) & 1
        self.raised = 1.0 + math.expm1(epsilon) * sets
        weights = np.exp(-epsilon * offsets)
        self.sums = weights.sum(axis=1)
        self.entropies = self.sums * np.log(self.sums) + epsilon * (weights * offsets).sum(axis=1)
        self.after = np.empty((len(offsets), len(sets)), dtype=np.int32)
        self.growth = np.ones((len(offsets), len(sets)))
        for s, members in enumerate(sets):
            moved = offsets - members
            behind = moved.min(axis=1)
            moved = np.sort(moved - behind[:, None], axis=1)
            self.after[:, s] = _find(moved, depth, starts)
            self.growth[behind < 0, s] = math.exp(epsilon)
        self.priced = weights @ self.raised.T
        singles = 2 ** np.arange(size)
        self.basis = np.tile(singles, (len(offsets), 1))
        self.inverse = np.tile(np.linalg.inv(self.raised[singles]), (len(offsets), 1, 1))

    def advance(self, values: FloatArray) -> FloatArray:
        """A lower bound of V with one round more, from one of V, ``(n,)``."""
        starts = range(0, len(self.sums), _STATES_AT_ONCE)
        chunks = [slice(start, start + _STATES_AT_ONCE) for start in starts]
        return np.concatenate([self._advance_chunk(values, rows) for rows in chunks])

    def _advance_chunk(self, values: FloatArray, rows: slice) -> FloatArray:
        """The same for some of the states."""
        costs = self.growth[rows] * values[self.after[rows]]  # V_t(w r_S), of every S
        sums = self.sums[rows]
        priced = self.priced[rows]
        basis = self.basis[rows]
        inverse = self.inverse[rows]

        bound = np.empty(len(costs))
        active = np.arange(len(costs))  # states whose prices are still improved
        for pivots_left in reversed(range(_PIVOTS + 1)):
            costs_of_basis = np.take_along_axis(costs[active], basis[active], axis=1)
            prices = np.einsum("nij,nj->ni", inverse[active], costs_of_basis)
            totals = prices.sum(axis=1)

            violations = (prices @ self.raised.T - costs[active]) / priced[active]
            entering = violations.argmax(axis=1)
            largest = np.maximum(violations[np.arange(len(active)), entering], 0.0)
            violated = largest * sums[active]
            margin = _ROUNDING_MARGIN * self.raised.max() * np.abs(prices).sum(axis=1)
            bound[active] = totals - violated - margin

            improvable = violated > _LEAST_VIOLATION * totals
            if pivots_left == 0 or not improvable.any():
                break
            active = active[improvable]
            self._pivot(basis, inverse, active, entering[improvable])
        return np.maximum(self.entropies[rows] + bound, 0.0) * (1.0 - _ROUNDING_MARGIN)

    def _pivot(
        self, basis: IntArray, inverse: FloatArray, active: IntArray, entering: IntArray
    ) -> None:
        """Exchange the set that first runs out of mass for the one that enters, at active states."""
        mass = inverse[active].sum(axis=1)
        change = np.einsum("nij,ni->nj", inverse[active], self.raised[entering])
        ratio = np.full(mass.shape, np.inf)
        np.divide(np.maximum(mass, 0.0), change, where=change > 1e-9, out=ratio)
        basis[active, ratio.argmin(axis=1)] = entering
        inverse[active] = np.linalg.inv(self.raised[basis[active]])


def _offsets(size: int, depth: int) -> IntArray:
    """Answers by which each of k hypotheses is behind the leader, sorted, for all states."""
    return np.array(
        [(0, *rest) for rest in combinations_with_replacement(range(depth + 1), size - 1)]
    )


def _find(offsets: IntArray, depth: int, starts: list[int]) -> IntArray:
    """The numbers of states with the given sorted offsets, those beyond D dropped."""
    num_kept = (offsets <= depth).sum(axis=1)
    states = np.zeros(len(offsets), dtype=np.int64)
    for size in range(2, offsets.shape[1] + 1):
        rows = num_kept == size
        states[rows] = starts[size] + _rank(offsets[rows, 1:size], depth)
    return states


def _rank(rest: IntArray, depth: int) -> IntArray:
    """The number of sorted offsets in the order of ``combinations_with_replacement``."""
    length = rest.shape[1]
    number = np.zeros(len(rest), dtype=np.int64)
    before = np.zeros(len(rest), dtype=np.int64)
    for place in range(length):
        # Multisets of the places that are left, out of the values from v on: C(depth - v + left, left).
        left = length - place
        counts = np.array([math.comb(depth - v + left, left) for v in range(depth + 2)])
        number += counts[before] - counts[rest[:, place]]
        before = rest[:, place]
    return number


def disjoint_floors(num_hypotheses: int, epsilon: float, depth: int, horizon: int) -> FloatArray:
    """Lower bounds of the least risk of 1, 2, ... rounds; up to the horizon, or until they hardly grow."""
    sizes = range(2, num_hypotheses + 1)
    offsets = {size: _offsets(size, depth) for size in sizes}
    starts = [0, 0, 1]  # the first state is that of one hypothesis, whose value is 0
    for size in sizes:
        starts.append(starts[-1] + len(offsets[size]))
    states = [_States(size, epsilon, depth, offsets[size], starts) for size in sizes]
    start_of_game = starts[num_hypotheses]  # all hypotheses are level, and weigh 1 each
    values = np.concatenate([[0.0], *(of_size.entropies for of_size in states)])
    floors = [math.log(num_hypotheses)]
    while len(floors) < horizon:
        values = np.concatenate([[0.0], *(of_size.advance(values) for of_size in states)])
        floors.append(float(values[start_of_game]) / num_hypotheses)
        if floors[-1] - floors[-2] <= _LEAST_GROWTH * floors[-1]:
            break
    return np.maximum.accumulate(floors)


def main() -> None:
    """Compute every table, rounded down to six decimals, and write them to the package."""
    path = Path(theory.__file__).with_name("floors.json")
    tables: dict[str, dict[str, list[list[float]]]] = {}
    for epsilon in EPSILONS:
        tables_by_size = tables.setdefault(f"{epsilon:g}", {})
        for size, largest_depth in DEPTHS.items():
            depth = min(largest_depth, math.ceil(_DECIDED / epsilon))
            floors = disjoint_floors(size, epsilon, depth, MOST_ROUNDS)
            rounds = np.unique(np.geomspace(1, len(floors), NUM_ROUNDS).round().astype(int))
            rounded_down = np.floor(floors[rounds - 1] * 1e6) / 1e6
            tables_by_size[str(size)] = [rounds.tolist(), rounded_down.round(6).tolist()]
            print(epsilon, size, len(floors), floors[-1], flush=True)
    path.write_text(json.dumps(tables, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
