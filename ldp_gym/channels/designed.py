"""The channel that is designed for the candidates at hand, out of all extremal mechanisms."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.capacity import best_share
from ldp_gym.channels.scores import quadratic_losses
from ldp_gym.channels.two_level import log_mixture
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.core.divergences import kl

MOST_LABELS, MOST_HYPOTHESES = 64, 32
"""Largest M and K of a table that is designed for."""

_FEW_LABELS = 10
"""Up to this number of labels the pool holds all sets: 1,022 of ten labels."""

_STEEPEST = 10.0
"""Largest eps that sets are chosen for; at a larger eps the same sets are used."""

_ROUNDS, _STARTS, _KEPT = 5, 10, 200
"""Search rounds, random covers of each shape per round, and sets that a round hands on."""

_BARRIERS = (1.0, 0.1, 0.01, 1e-3)
"""Weights of the logarithmic barrier, relative to what the information is worth: the last one is the gap."""

_TIE = 1e-12
"""Preferences, of the order of one, that differ by less are equal: rounding must not decide."""

_DIGITS = 12
"""Digits of a table that matter: tables that agree to them share a design."""


class Design(NamedTuple):
    """An extremal channel for a table.

    Attributes:
        sets: the labels in each set, ones and zeros, ``(n, M)``.
        masses: ``c_S``, the probability of the set from a label inside, ``(n,)``.
        cost: J of the channel.
        gap: proved bound on how far below the cost, relatively, the least J may lie; None without a proof.
    """

    sets: FloatArray
    masses: FloatArray
    cost: float
    gap: float | None


class Designed(Channel):
    """A set of labels that probably holds the label; the sets are optimised for the candidates.

    A message is the number of a set S of labels. A label in S sends it with probability ``c_S``, any other
    label with ``e^-eps c_S``: every eps-private channel is one of this kind with messages merged (Kairouz, Oh
    and Viswanath 2016). The masses ``c_S`` minimise ``J = sum_{i != j} p_ij / (1/T + D_ij)``: with i the
    truth, a message tells ``D_ij`` nats against j, so j stays in play for about ``1 / D_ij`` rounds, of which
    one costs ``p_ij = KL(f_i, (f_i + f_j) / 2)``.

    J is convex in the masses. A small logarithmic barrier makes the problem strictly convex, with one
    solution, and Newton's method is run to convergence: every processor finds the same design. Up to ten
    labels all sets take part; with more, sets found by a deterministic search.

    Example:
        K = 3 hypotheses, M = 3 labels, eps = 1. On disjoint supports a message that names one label and one
        that rules one out are equally good by symmetry, and singletons win:

        >>> design = Designed(3, 3, 1000).design(np.eye(3))
        >>> design.sets[design.masses > 0.1].tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> design.masses[:3].round(2).tolist()  # randomized response: e / (e + 2) = 0.58
        [0.57, 0.57, 0.57]

    Privacy: the sets and masses depend on public things only. A set has one probability from the labels in
    it and ``e^-eps`` times that from others, so the log ratio of two labels is 0 or eps. The masses cover
    every label alike, so that probabilities sum to one.

    Use it where messages may not depend on earlier ones, for a constant class or a finite pool of contexts:
    at M = 10 its risk is 12 to 24% below the best other non-adaptive channel. Do not use it for more than 64
    labels or 32 hypotheses, or where every round has another table: those games are refused. A table takes
    up to a few seconds when it is first seen, and is kept.

    The base measure of :meth:`log_density` counts numbers. A set may have several numbers: their count is
    fixed by M, so that the message space is known before the candidates.
    """

    most_tables: ClassVar[int | None] = 64
    num_uniforms = 1

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta)
        if self.num_labels > MOST_LABELS or self.num_hypotheses > MOST_HYPOTHESES:
            raise ValueError(
                f"'designed' takes at most {MOST_LABELS} labels and {MOST_HYPOTHESES} hypotheses, got "
                f"{num_labels:,} and {num_hypotheses:,}; 'split' and 'wheel' take any number"
            )

    @property
    def num_messages(self) -> int:
        """Count of set numbers."""
        return 128 + self.num_labels // 2

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """The numbers of the sets."""
        return gym.spaces.Discrete(self.num_messages)

    def design(self, candidates: FloatArray) -> Design:
        """The design for candidates ``(K, M)``."""
        return _design(_key(candidates), self.epsilon, self.horizon, self.num_messages)

    def _look_up(self, candidates: FloatArray, field: str) -> tuple[FloatArray, IntArray]:
        """A field of the plans of all tables among the candidates, and each one's number, ``(...)``."""
        tables = candidates.reshape(-1, *candidates.shape[-2:])
        # A sum with random weights tells tables apart, without comparing all with all.
        weights = np.random.default_rng(0).standard_normal(tables.shape[1:])
        marks = np.round(np.einsum("nkm,km->n", tables, weights), _DIGITS - 3)
        _, first, which = np.unique(marks, return_index=True, return_inverse=True)
        plans = [_plan(_key(tables[i]), self.epsilon, self.horizon, self.num_messages) for i in first]
        return np.stack([getattr(plan, field) for plan in plans]), which.reshape(candidates.shape[:-2])

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        cumulative, which = self._look_up(candidates, "cumulative")
        uniforms = uniforms[..., 0]
        which, labels = np.broadcast_arrays(which, np.asarray(labels), subok=False)
        # Bisection: the first number at which the label's distribution function exceeds the uniform.
        below = np.zeros(np.broadcast_shapes(labels.shape, uniforms.shape), dtype=np.int64)
        step = 1 << (self.num_messages - 1).bit_length()
        while step := step >> 1:
            beyond = below + step
            inside = beyond < self.num_messages
            passed = cumulative[which, labels, np.where(inside, beyond, 0) - 1] <= uniforms
            below = np.where(inside & passed, beyond, below)
        return below

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        sets, which = self._look_up(candidates, "sets")
        return sets[which, np.asarray(messages)]

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        log_density, which = self._look_up(candidates, "log_density")
        return log_density[which, np.asarray(messages)]

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        log_likelihood, which = self._look_up(candidates, "log_likelihood")
        return log_likelihood[which, np.asarray(messages)]

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        losses, which = self._look_up(candidates, "losses")
        return losses[which, np.asarray(messages)]


class _Plan(NamedTuple):
    """Everything that the channel says at one table, by message number."""

    sets: FloatArray  # (N, M)
    cumulative: FloatArray  # (M, N)
    log_density: FloatArray  # (N, M)
    log_likelihood: FloatArray  # (N, K)
    losses: FloatArray  # (N, K)


_Key = tuple[tuple[int, ...], bytes]


def _key(table: FloatArray) -> _Key:
    """Shape and bytes of a table, which caches can look up."""
    return table.shape, (np.round(table, _DIGITS) + 0.0).tobytes()  # no negative zero


@lru_cache(maxsize=128)
def _plan(key: _Key, epsilon: float, horizon: int, num_messages: int) -> _Plan:
    table, design = np.frombuffer(key[1]).reshape(key[0]), _design(key, epsilon, horizon, num_messages)
    numbers = np.arange(num_messages) % len(design.masses)  # a set has one number or more
    sets, masses = design.sets[numbers], (design.masses / np.bincount(numbers))[numbers]
    chances, log_masses = np.einsum("nm,km->nk", sets, table), np.log(masses)[:, None]
    log_density = log_mixture(sets.copy(), log_masses, epsilon)
    cumulative = np.cumsum(np.exp(log_density), axis=0).T
    squares = np.einsum("n,nk->k", masses, np.square(chances))
    log_likelihood = log_mixture(chances.copy(), log_masses, epsilon)
    losses = quadratic_losses(chances, squares, epsilon)
    return _Plan(sets, cumulative / cumulative[:, -1:], log_density, log_likelihood, losses)


@lru_cache(maxsize=128)
def _design(key: _Key, epsilon: float, horizon: int, most_sets: int) -> Design:
    """The design of at most ``most_sets`` sets for a table, over T rounds."""
    whole = np.frombuffer(key[1]).reshape(key[0])
    # Labels that speak for the hypotheses alike join the first of their kind, and nothing is lost.
    alike = whole / np.maximum(whole.sum(axis=0), 1e-300)
    first = (np.abs(alike[:, :, None] - alike[:, None, :]).max(axis=0) < 1e-9).argmax(axis=0)
    kinds, group = np.unique(first, return_inverse=True)
    if len(kinds) == 1:  # no label tells anything, but a channel has two messages
        kinds = group = np.arange(whole.shape[1])
    table, proved = np.stack([np.bincount(group, row) for row in whole]), len(kinds) <= _FEW_LABELS
    problem = _Problem(table, math.exp(-min(epsilon, _STEEPEST)), horizon)
    if proved:
        numbers = np.arange(1, 2 ** len(kinds) - 1)
        pool = _tidy(((numbers[:, None] >> np.arange(len(kinds))) & 1).astype(np.float64))
    else:
        pool = problem.search(epsilon)
    masses, slack = problem.solve(pool, _BARRIERS)
    least = problem.cost(pool, masses) - slack
    if len(pool) > most_sets:
        pool = _heaviest(pool, masses, most_sets)
        masses, _ = problem.solve(pool, _BARRIERS)
    gap = 1.0 - least / problem.cost(pool, masses) if proved and epsilon <= _STEEPEST else None
    low = math.exp(-epsilon)  # from here on the true eps
    masses = masses / (low * masses.sum() + (1.0 - low) * (masses @ pool).mean())
    return Design(pool[:, group], masses, _Problem(table, low, horizon).cost(pool, masses), gap)


class _Problem:
    """The convex program of one table: masses of given sets with the least J, at ``low = e^-eps``."""

    def __init__(self, table: FloatArray, low: float, horizon: int) -> None:
        self.table, self.low, self.shift = table, low, 1.0 / horizon
        self.pairs = np.nonzero(~np.eye(len(table), dtype=np.bool_))
        prices = np.stack([kl(f, (f + table) / 2.0) for f in table])[self.pairs]
        self.prices = np.maximum(prices, 1e-12)  # twins cost nothing

    def laws(self, sets: FloatArray) -> FloatArray:
        """``P_k``: probability of sets ``(..., M)`` from each hypothesis, over their masses, ``(..., K)``."""
        laws = self.low + (1.0 - self.low) * np.einsum("...m,km->...k", sets, self.table)
        return np.maximum(laws, 1e-300)

    def information(self, sets: FloatArray) -> FloatArray:
        """``P_i log(P_i / P_j) - P_i + P_j``, ``(pairs, n)``: what a unit of mass on sets adds to D_ij."""
        laws = self.laws(sets).T
        base = laws[self.pairs[1]]
        ratio = (laws[self.pairs[0]] - base) / base
        series = ratio**2 * (1 / 2 - ratio * (1 / 6 - ratio * (1 / 12 - ratio * (1 / 20 - ratio / 30))))
        exact = (1.0 + ratio) * np.log1p(np.maximum(ratio, -1.0 + 1e-16)) - ratio
        return base * np.where(np.abs(ratio) < 1e-3, series, exact)

    def cost(self, sets: FloatArray, masses: FloatArray) -> float:
        """J."""
        return float((self.prices / (self.information(sets) @ masses + self.shift)).sum())

    def solve(self, sets: FloatArray, barriers: tuple[float, ...]) -> tuple[FloatArray, float]:
        """Masses of sets ``(n, M)``, of which the first M are singletons, and how far J is above the least.

        Newton's method on ``J - mu sum_S w_S log c_S``, where masses cover every label once; J is then at
        most ``mu sum_S w_S`` above the least. The fixed weights w give sets that are equally good different
        masses. The Hessian is diagonal but for one row per pair, so the linear system is small.
        """
        told, labels = self.information(sets), sets.shape[1]
        # The first label is covered once, and the others as often: this form keeps its digits at a small eps.
        covers = np.concatenate([self.low + (1.0 - self.low) * sets[:, :1], sets[:, 1:] - sets[:, :1]], axis=1).T
        rows, covered = np.concatenate([told, covers]), sets[labels:].sum(axis=0)
        masses = np.ones(len(sets))
        masses[:labels] += 1.5 * covered.max() - covered  # singletons fill up: a feasible start
        masses /= covers[0] @ masses
        weights = 0.5 + np.random.default_rng(0).random(len(sets))
        weights /= weights.sum()
        now = told @ masses
        unit = float(self.prices / (now + self.shift) ** 2 @ now) or 1.0
        prices, duals = self.prices / unit, np.zeros(len(rows))
        for barrier in barriers:
            pull, smallest = barrier * weights, math.inf
            for _ in range(100):
                now = told @ masses + self.shift
                duals[: len(told)] = -prices / now**2
                slope = duals @ rows - pull / masses  # of the Lagrangian: steps to its zero lose no digits
                scaled = rows * (masses**2 / pull)
                system = scaled @ rows.T
                system[np.diag_indices(len(told))] += now**3 / (2.0 * prices)
                missing = np.append(np.zeros(len(told)), np.eye(labels)[0] - covers @ masses)
                norm = 1.0 / np.sqrt(np.diag(system))
                turn = norm * np.linalg.solve(system * norm[:, None] * norm, -norm * (scaled @ slope + missing))
                relative = -(masses / pull) * (slope + turn @ rows)
                step, largest = relative * masses, float(np.abs(relative).max())
                moved, gain = told @ step, -float(slope @ step)
                length = min(1.0, 0.99 / max(-relative.min(), 1e-300))
                while largest > 1e-4 and length > 1e-9:  # backtrack, by differences that do not cancel
                    change = -length * float((prices * moved / (now * (now + length * moved))).sum())
                    if change - float(pull @ np.log1p(length * relative)) <= -0.1 * length * gain:
                        break
                    length /= 2.0
                masses = masses + length * step
                duals[len(told) :] += length * turn[len(told) :]
                done = 1e-13 if barrier == barriers[-1] else 1e-2
                if largest < done or (largest < 1e-7 and largest > smallest / 2.0):
                    break  # converged, or as far as floats go
                smallest = min(smallest, largest)
        return masses, barriers[-1] * unit

    def search(self, epsilon: float) -> FloatArray:
        """Sets for many labels ``(n, M)``: those of covers that tell most at the slopes of the best so far.

        A cover has g sets with every label in w of them. Where each label moves to the w sets in which the
        gradient of ``sum_ij u_ij D_ij``, ``u_ij = p_ij / (1/T + D_ij)^2``, is largest for it, the sum can
        only grow, because it is convex.
        """
        rng, slopes = np.random.default_rng(0), np.zeros((len(self.table), len(self.table)))
        slopes[self.pairs] = self.prices / self.prices.sum()
        each, pool = min(1.0 / max(best_share(epsilon), 1e-9), 64.0), np.eye(self.table.shape[1])
        several = [(math.floor(each), 1), (math.ceil(each), 1), (math.ceil(each) + 1, 1)]
        shapes = {(2, 1), *several, *((round(w * each), w) for w in (2, 3))}
        liked = self.table / np.maximum(self.table.sum(axis=0), 1e-300)
        for _ in range(_ROUNDS):
            for size, times in sorted(shape for shape in shapes if shape[1] < shape[0] <= 64):
                tastes = rng.standard_normal((_STARTS, size, len(liked)))
                covers = _join(np.einsum("sgk,km->sgm", tastes, liked), times)
                for _ in range(20):
                    laws = self.laws(covers)
                    logs = np.log(laws)
                    pulls = logs * slopes.sum(axis=1) - logs @ slopes.T + slopes.sum(axis=0)
                    pulls -= (laws @ slopes) / laws
                    covers = _join(np.einsum("sgk,km->sgm", pulls, self.table), times)
                pool = np.concatenate([pool, covers.reshape(-1, pool.shape[1])])
            pool = _tidy(pool)
            masses, _ = self.solve(pool, _BARRIERS[:3])
            worth = self.prices / (self.information(pool) @ masses + self.shift) ** 2
            slopes[self.pairs] = worth / worth.sum()
            pool = _heaviest(pool, masses, _KEPT)
        return pool


def _tidy(sets: FloatArray) -> FloatArray:
    """Sets ``(n, M)``, each once and in order, after all singletons; neither the empty nor the full one."""
    sets, labels = np.unique(sets, axis=0), sets.shape[1]
    sizes = sets.sum(axis=1)
    return np.concatenate([np.eye(labels), sets[(sizes > 1) & (sizes < labels)]])


def _heaviest(sets: FloatArray, masses: FloatArray, most: int) -> FloatArray:
    """The singletons, and of the other sets those with the largest masses."""
    labels = sets.shape[1]
    others = labels + np.argsort(-masses[labels:], kind="stable")[: most - labels]
    return np.concatenate([sets[:labels], sets[np.sort(others)]])


def _join(preferences: FloatArray, times: int) -> FloatArray:
    """Covers ``(s, g, M)`` in which every label is in the sets it prefers; of equals, in the first."""
    covers, left = np.zeros(preferences.shape), preferences.copy()
    for _ in range(times):
        best = (left >= left.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)[:, None]
        np.put_along_axis(covers, best, 1.0, axis=1)
        np.put_along_axis(left, best, -np.inf, axis=1)
    return covers
