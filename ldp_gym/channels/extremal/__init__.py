"""The extremal channel that tells the hypotheses of a table apart best.

A message of an extremal channel is a set S of labels: a label in S sends it with probability ``c_S``, any
other label with ``e^-eps c_S``. Masses ``c_S`` make a channel if they cover all labels alike. Every
eps-private channel is an extremal one with some of its messages merged (Kairouz, Oh and Viswanath 2016).

Which masses are best? Let ``D_ij`` be what a message tells i from j: the KL between its two laws. When i is
the truth, j stays in play for about ``1 / D_ij`` rounds. A round in which both are equally likely costs
``p_ij = KL(f_i, (f_i + f_j) / 2)``. So the cost of a channel is ``J = sum_{i != j} p_ij / (1/T + D_ij)``.

``D_ij`` is linear in the masses, hence J is convex, and Frank and Wolfe's method finds its least value. At
the slopes ``u_ij = p_ij / (1/T + D_ij)^2`` the next channel is the one with the largest ``sum_ij u_ij D_ij``.
All channels found so far are then mixed again. That largest sum, less the sum of the mixture, bounds how far
J is from the least: the duality gap.

* :mod:`.covers` looks for the next channel by ascent, for any number of labels. Its gap is an estimate.
* :mod:`.programs` finds it by linear programs: with a proof for few labels or two hypotheses, and over the
  sets that it finds up to 64 labels, where the gap is an estimate too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.capacity import best_share
from ldp_gym.channels.extremal.covers import CoverSearch
from ldp_gym.channels.extremal.families import FLATTEST, STEEPEST, Family, Table
from ldp_gym.channels.extremal.mixture import Mixture
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray

__all__ = ["Design", "Family", "design"]

GAP = 1e-3
"""How far from the least cost a design may be, relatively, as far as anyone can tell."""

_GAP_OF_TWO = 1e-5
"""The same with two hypotheses, where linear programs are quick."""

_MOST_LABELS = 12
"""Up to so many labels, all sets can be looked at: 2^12 of them."""

_MOST_LABELS_OF_TWO = 128
"""The same with two hypotheses, where few sets matter."""

_STEEPEST_OF_TWO = 5.0
"""Beyond that eps many sets matter again."""

_MOST_LABELS_BY_PROGRAMS = 64
"""Beyond that many labels, linear programs take longer than they are worth."""

_MOST_STEPS = 60
_MOST_PROGRAMS = 15

_PATIENCE = 4
"""After so many steps without progress, a search is over."""

_PROGRESS = 1e-6
"""By what part of the cost a step must better it to count as progress."""


_DIGITS = 12
"""Labels whose likelihoods agree to so many digits speak alike."""


class Design(NamedTuple):
    """A channel for a table, and what is known about it.

    Attributes:
        family: its sets and masses.
        cost: J.
        gap: by what part of the cost a better channel may lie below it.
        exact: whether the gap is proved. Otherwise it is an estimate: no better channel was found.
    """

    family: Family
    cost: float
    gap: float
    exact: bool


def design(candidates: FloatArray, epsilon: float, horizon: int, most_sets: int) -> Design:
    """The best channel of at most so many sets for candidates ``(K, M)`` over T rounds.

    Example:
        >>> made = design(np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]]), 1.0, 1000, most_sets=10)
        >>> made.family.sets.tolist(), made.exact
        ([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], True)
        >>> made.family.masses.round(3).tolist()  # e / (e + 1): randomized response over two sets
        [0.731, 0.731]
    """
    epsilon = validation.positive("epsilon", epsilon)
    most_sets = validation.whole("most_sets", most_sets, least=1)
    merged, group = _merge(game_arrays.table(candidates, "candidates"))
    table = Table(merged, epsilon)
    mixture = Mixture(table, validation.whole("horizon (T)", horizon, least=1))
    rng = np.random.default_rng(0)
    covers = CoverSearch(table, best_share(epsilon), rng)
    mixture.add(covers.first())
    gap = _descend(mixture, covers.best, GAP, _MOST_STEPS, patience=3)
    of_two = table.num_hypotheses == 2
    few_of_two = of_two and table.num_labels <= _MOST_LABELS_OF_TWO and epsilon <= _STEEPEST_OF_TWO
    proved = table.num_labels <= _MOST_LABELS or few_of_two
    if proved or table.num_labels <= _MOST_LABELS_BY_PROGRAMS:
        from ldp_gym.channels.extremal import programs  # SciPy's optimizers take a while to import

        solver: programs.Solver
        if not proved:
            solver = programs.FoundSets(table, np.concatenate([mixture.family.sets, covers.sets]), rng)
        else:
            solver = programs.TwoHypotheses(table) if of_two else programs.AllSets(table)
        enough = _GAP_OF_TWO if proved and of_two else GAP
        gap = _descend(mixture, solver.best, enough, _MOST_PROGRAMS, patience=1)
    exact = proved and FLATTEST <= epsilon <= STEEPEST  # else it was chosen for another eps
    before = mixture.cost
    mixture.keep_sets(most_sets)
    family = Family(mixture.family.sets[:, group], mixture.family.masses)
    return Design(family, mixture.cost, gap + (mixture.cost - before) / mixture.cost, exact)


def _merge(candidates: FloatArray) -> tuple[FloatArray, IntArray]:
    """The table with labels merged that speak for the hypotheses alike, and which label each went to.

    Nothing is lost. A set with a share of such labels is a mixture of sets with all or none of them, which
    covers labels as it does, and the score is convex.
    """
    totals = np.maximum(candidates.sum(axis=0), np.finfo(np.float64).tiny)
    alike = np.round(candidates / totals, _DIGITS)
    _, first, group = np.unique(alike, axis=1, return_index=True, return_inverse=True)
    if len(first) == 1:  # no label tells anything, but a channel has two messages
        return candidates, np.arange(candidates.shape[1])
    rank = first.argsort().argsort()  # in the order in which they come
    group = rank[group]
    return np.stack([np.bincount(group, row) for row in candidates]), group


def _descend(
    mixture: Mixture,
    search: Callable[[FloatArray], tuple[list[Family], float]],
    enough: float,
    most_steps: int,
    patience: int,
) -> float:
    """Mix in what the search finds until the gap has been small so many times in a row; the last gap.

    A search that finds nothing new, to the solver's last digit, is over too.
    """
    small = idle = 0
    for _ in range(most_steps):
        families, most = search(mixture.slopes)
        gap = max(0.0, most - mixture.score) / mixture.cost
        small = small + 1 if gap < enough else 0
        if small == patience or idle == _PATIENCE:
            break
        before = mixture.cost
        mixture.add(families)
        idle = idle + 1 if mixture.cost > before * (1.0 - _PROGRESS) else 0
    return gap
