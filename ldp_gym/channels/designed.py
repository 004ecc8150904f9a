"""A channel that is optimised for the given candidates, over all extremal mechanisms."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.bit import TIE
from ldp_gym.channels.two_level import TwoLevelChannel, best_share, log_mixture, quadratic_losses
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.core.divergences import kl
from ldp_gym.core.sampling import cumulative, inverse

_FEW_LABELS = 10  # up to this number of labels all sets take part: 1,022 of ten labels
_STEEPEST = 10.0  # largest eps that masses are optimised for; a larger eps uses the same sets
_ROUNDS, _STARTS, _KEPT = (
    5,
    10,
    200,
)  # of the search: rounds, random covers of a shape, sets handed on
_BARRIER, _SEARCH_BARRIER = (
    1e-3,
    1e-2,
)  # weights of the barrier, relative to the information's worth
_DIGITS = 12  # tables that agree to this number of digits have one design


class Design(NamedTuple):
    """Extremal channel for a table: a message is the number of a set of labels; sets may repeat."""

    sets: FloatArray  # the labels in the set of each number, ones and zeros, (N, M)
    masses: FloatArray  # c_S, the probability of the number from a label inside, (N,)
    cost: float  # J of the channel
    gap: float | None  # proved bound on how far below the cost, relatively, the least J may lie


class Designed(TwoLevelChannel):
    """A set of labels that probably holds the label; the sets are optimised for the candidates.

    A message is the number of a set S of labels: a label in S sends it with probability ``c_S``, any other
    with ``e^-eps c_S``. Every eps-private channel is one of this kind with messages merged (Kairouz, Oh and
    Viswanath 2016). The masses ``c_S`` minimise the convex ``J = sum_{i != j} p_ij / (1/T + D_ij)``: with i
    the truth, a message tells ``D_ij`` nats against j, so j stays in play for about ``1 / D_ij`` rounds, and
    each of them costs ``p_ij = KL(f_i, (f_i + f_j) / 2)``. Newton's method solves it, with a small barrier,
    to the last digits, so every processor finds the same design.

    Example:
        K = 3 hypotheses on disjoint labels, eps = 1: nearly all mass is on the single labels, which is
        randomized response (``e / (e + 2) = 0.576`` each).

        >>> design = Designed(3, 3, 1000).design(np.eye(3))
        >>> single = design.sets.sum(axis=1) == 1
        >>> (design.masses[single] @ design.sets[single] > 0.57).tolist()
        [True, True, True]

    Privacy: sets and masses are public, and a set has one of two probabilities, ``e^eps`` apart.

    When to use it: messages may not depend on earlier ones, and the class is constant or has a finite pool of
    contexts. It is never blind to a pair. When not: more than 64 labels, 32 hypotheses or 64 tables, which
    are refused. A table takes up to ten seconds when it is first seen.

    The base measure of :meth:`log_density` counts numbers, of which a set has one or more.
    """

    most_tables: ClassVar[int | None] = 64
    most_labels: ClassVar[int | None] = 64
    most_hypotheses: ClassVar[int | None] = 32
    num_uniforms = 1

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """Space of messages: numbers of sets, as many as M allows, as the candidates are not known yet."""
        return gym.spaces.Discrete(128 + self.num_labels // 2)

    def design(self, candidates: FloatArray) -> Design:
        """The design for candidates ``(K, M)``."""
        # Where two processors disagree on the last bits of a table, its design is the same.
        table = np.round(candidates, _DIGITS)
        return _design(
            table.tobytes(), table.shape, self.epsilon, self.horizon, int(self.message_space.n)
        )

    def _designs(
        self, candidates: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Index of each table of candidates ``(...)``; the distinct tables, their sets and their masses."""
        tables = candidates.reshape(-1, *candidates.shape[-2:])
        # A sum with random weights tells tables apart, without comparing all with all.
        weights = np.random.default_rng(0).standard_normal(tables.shape[1:])
        marks = np.round(np.einsum("nkm,km->n", tables, weights), _DIGITS - 3)
        _, first, which = np.unique(marks, return_index=True, return_inverse=True)
        designs = [self.design(table) for table in tables[first]]
        sets, masses = (
            np.stack([made.sets for made in designs]),
            np.stack([made.masses for made in designs]),
        )
        return which.reshape(candidates.shape[:-2]), tables[first], sets, masses

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        which, _, sets, masses = self._designs(candidates)
        laws = np.exp(log_mixture(sets, np.log(masses)[..., None], self.epsilon))
        return inverse(cumulative(laws.swapaxes(1, 2))[which, labels], uniforms[..., 0])

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        which, _, sets, _ = self._designs(candidates)
        return sets[which, np.asarray(messages)]

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        which, _, _, masses = self._designs(candidates)
        return np.log(masses[which, np.asarray(messages)])[..., None]

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        which, tables, sets, masses = self._designs(candidates)
        squares = np.einsum("tn,tnk->tk", masses, np.einsum("tnm,tkm->tnk", sets, tables) ** 2)[
            which
        ]
        return quadratic_losses(
            self._chances(messages, candidates, posterior), squares, self.epsilon
        )


@lru_cache(maxsize=128)
def _design(data: bytes, shape: tuple[int, int], epsilon: float, horizon: int, size: int) -> Design:
    whole = np.frombuffer(data).reshape(shape)
    # Labels that speak for the hypotheses alike join the first of their kind: nothing is lost.
    alike = whole / np.maximum(whole.sum(axis=0), 1e-300)
    first = (np.abs(alike[:, :, None] - alike[:, None, :]).max(axis=0) < 1e-9).argmax(axis=0)
    kinds, group = np.unique(first, return_inverse=True)
    if len(kinds) == 1:  # no label tells anything, but a channel has two messages
        kinds = group = np.arange(whole.shape[1])
    table = np.einsum("km,mg->kg", whole, np.eye(len(kinds))[group])
    problem, low = _Problem(table, math.exp(-min(epsilon, _STEEPEST)), horizon), math.exp(-epsilon)
    pool = problem.search(epsilon)
    masses, least = problem.solve(pool, _BARRIER)
    if len(pool) > size:
        pool = _heaviest(pool, masses, size)
        masses, _ = problem.solve(pool, _BARRIER)
    proved = len(kinds) <= _FEW_LABELS and epsilon <= _STEEPEST
    gap = 1.0 - least / problem.cost(pool, masses) if proved else None
    masses = masses / (low * masses.sum() + (1.0 - low) * (masses @ pool).mean())  # at the true eps
    cost, numbers = _Problem(table, low, horizon).cost(pool, masses), np.arange(size) % len(pool)
    return Design(pool[numbers][:, group], (masses / np.bincount(numbers))[numbers], cost, gap)


class _Problem:
    """The convex program of one table: masses of given sets with the least J, at ``low = e^-eps``."""

    def __init__(self, table: FloatArray, low: float, horizon: int) -> None:
        self.table, self.low, self.shift = table, low, 1.0 / horizon
        self.pairs = np.nonzero(~np.eye(len(table), dtype=np.bool_))
        prices = kl(table[:, None], (table[:, None] + table) / 2.0)
        self.prices = np.maximum(prices[self.pairs], 1e-12)  # twins cost nothing

    def laws(self, sets: FloatArray) -> FloatArray:
        """``P_k``: probability of sets ``(..., M)`` from each hypothesis, over their masses, ``(..., K)``."""
        return np.maximum(
            self.low + (1.0 - self.low) * np.einsum("...m,km->...k", sets, self.table), 1e-300
        )

    def information(self, sets: FloatArray) -> FloatArray:
        """``P_i log(P_i / P_j) - P_i + P_j``, ``(pairs, n)``: what a unit of mass on sets adds to D_ij."""
        law, base = (self.laws(sets).T[side] for side in self.pairs)
        ratio = (law - base) / base
        r = np.clip(ratio, -1e-3, 1e-3)
        series = r**2 * (1 / 2 - r * (1 / 6 - r * (1 / 12 - r * (1 / 20 - r / 30))))
        exact = (1.0 + ratio) * np.log1p(np.maximum(ratio, -1.0 + 1e-16)) - ratio
        return base * np.where(r == ratio, series, exact)

    def cost(self, sets: FloatArray, masses: FloatArray) -> float:
        """Objective ``J = sum p_ij / (1/T + D_ij)`` of sets ``(n, M)`` with masses ``(n,)``."""
        return float((self.prices / (self.information(sets) @ masses + self.shift)).sum())

    def solve(self, sets: FloatArray, barrier: float) -> tuple[FloatArray, float]:
        """Masses of sets ``(n, M)``, of which the first M are singletons, and a lower bound on the least J.

        Newton's method on ``J - mu sum_S w_S log c_S`` where masses cover every label once; J is then at most
        ``mu sum_S w_S`` above the least. Unequal fixed weights w decide between sets that are equally good.
        """
        told, labels = self.information(sets), sets.shape[1]
        # The first label is covered once and the others as often: this form keeps its digits at a small eps.
        ones = self.low + (1.0 - self.low) * sets[:, :1]
        covers = np.concatenate([ones, sets[:, 1:] - sets[:, :1]], axis=1).T
        masses, rest = np.ones(len(sets)), sets[labels:].sum(axis=0)
        masses[:labels] += 1.5 * rest.max() - rest  # singletons fill up: a feasible start
        masses /= covers[0] @ masses
        weights = 0.5 + np.random.default_rng(0).random(len(sets))
        worth = float(self.prices / (told @ masses + self.shift) ** 2 @ (told @ masses))
        prices, pull = self.prices / (worth or 1.0), barrier * weights / weights.sum()
        duals, least = np.zeros(labels), math.inf
        for _ in range(400):
            now, missing = told @ masses + self.shift, np.eye(labels)[0] - covers @ masses
            # By relative masses: the Lagrangian's slope; the Hessian is diagonal but for a row per pair.
            slope = (duals @ covers - (prices / now**2) @ told) * masses - pull
            rows = np.concatenate([told, covers]) * masses
            system = (rows / pull) @ rows.T + np.diag(
                np.append(now**3 / (2.0 * prices), np.zeros(labels))
            )
            right = -(rows / pull) @ slope - np.append(np.zeros(len(told)), missing)
            norm = 1.0 / np.sqrt(np.diag(system))
            found = norm * np.linalg.solve(system * norm[:, None] * norm, norm * right)
            step = -(slope + found @ rows) / pull
            largest = float(np.abs(step).max())
            length = 1.0 / (1.0 + largest)  # masses stay positive
            masses, duals = masses * (1.0 + length * step), duals + length * found[len(told) :]
            if largest < 1e-13 or least / 2.0 < largest < 1e-7:  # converged, or as far as floats go
                break
            least = min(least, largest)
        return masses, self.cost(sets, masses) - barrier * worth

    def search(self, epsilon: float) -> FloatArray:
        """Sets ``(n, M)`` to optimise over: all of them for few labels, else the result of a local search.

        A cover has g sets, with every label in w of them. The convex ``sum_ij u_ij D_ij``,
        ``u_ij = p_ij / (1/T + D_ij)^2``, grows if each label moves to the w sets of its largest gradients.
        """
        labels = self.table.shape[1]
        if labels <= _FEW_LABELS:
            return _tidy(np.indices([2] * labels).reshape(labels, -1).T.astype(np.float64))
        rng, slopes = np.random.default_rng(0), np.zeros((len(self.table), len(self.table)))
        pool, worth = np.eye(labels), self.prices
        each = min(
            1.0 / max(best_share(epsilon), 1e-9), 64.0
        )  # sets at capacity have this share of labels
        shapes = {(round(w * each), w) for w in (1, 2, 3)} | {
            (math.floor(each) + i, 1) for i in range(3)
        }
        liked = self.table / np.maximum(self.table.sum(axis=0), 1e-300)
        for _ in range(_ROUNDS):
            slopes[self.pairs] = worth / worth.sum()
            for size, times in sorted(
                shape for shape in shapes | {(2, 1)} if shape[1] < shape[0] <= 64
            ):
                drawn = rng.standard_normal((_STARTS, size, len(liked)))
                covers = _join(np.einsum("sgk,km->sgm", drawn, liked), times)
                for _ in range(20):
                    laws = self.laws(covers)
                    pulls = np.log(laws) * slopes.sum(axis=1) - np.log(laws) @ slopes.T
                    pulls += slopes.sum(axis=0) - (laws @ slopes) / laws
                    covers = _join(np.einsum("sgk,km->sgm", pulls, self.table), times)
                pool = np.concatenate([pool, covers.reshape(-1, pool.shape[1])])
            pool = _tidy(pool)
            masses, _ = self.solve(pool, _SEARCH_BARRIER)
            worth = self.prices / (self.information(pool) @ masses + self.shift) ** 2
            pool = _heaviest(pool, masses, _KEPT)
        return pool


def _tidy(sets: FloatArray) -> FloatArray:
    """Sets ``(n, M)``, each once and in order, after all singletons; neither the empty nor the full one."""
    sets, labels = np.unique(sets, axis=0), sets.shape[1]
    sizes = sets.sum(axis=1)
    return np.concatenate([np.eye(labels), sets[(sizes > 1) & (sizes < labels)]])


def _heaviest(sets: FloatArray, masses: FloatArray, most: int) -> FloatArray:
    """The singletons, and those of the other sets that have the largest masses."""
    labels = sets.shape[1]
    others = labels + np.argsort(-masses[labels:], kind="stable")[: most - labels]
    return np.concatenate([sets[:labels], sets[np.sort(others)]])


def _join(preferences: FloatArray, times: int) -> FloatArray:
    """Covers ``(s, g, M)`` in which every label is in the sets it prefers; ties go to the first."""
    covers, left = np.zeros(preferences.shape), preferences.copy()
    for _ in range(times):
        best = (left >= left.max(axis=1, keepdims=True) - TIE).argmax(axis=1)[:, None]
        np.put_along_axis(covers, best, 1.0, axis=1)
        np.put_along_axis(left, best, -np.inf, axis=1)
    return covers
