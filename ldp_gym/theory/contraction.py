"""A floor under the risk of any class, from the contraction of information by private channels. In nats.

The truth is uniform, contexts are independent draws, or do not matter, and channels are eps-private and may
read earlier messages. Let ``I_t`` be the information of t messages about the truth, w the posterior, and
``J_t = E sum_k w_k KL(f_k, sum_j w_j f_j)`` the information of the next *label*: no learner pays less.

1. *Contraction.* With ``s = tanh(eps/2)`` a message tells at most ``s^2`` of what its label tells (Asoodeh
   and Zhang 2022): two labels are the worst case (Ordentlich and Polyanskiy 2021), and on two labels every
   eps-private message is a post-processing of a flipped bit (Kairouz, Oh and Viswanath 2016). It tells at
   most ``C(eps)`` too. So ``I_{t+1} <= I_t + min(C(eps), s^2 J_t)``.
2. *What is unknown costs.* By Gibbs' inequality ``sum_k w_k KL(f_k, p) >= lam (H(w) - log B)`` for every
   ``lam > 0``, where ``B = max_p sum_k exp(-KL(f_k, p) / lam)`` (with contexts, KL is its mean over x, and p
   a function of x). So ``J_t >= D(I_t) = max_lam lam (log K - I_t - log B)``.
3. *Recursion.* The least sum of ``J_t`` under 1 and 2 pays ``D(I_t)`` in every round. To pay more would buy
   information at ``1/s^2`` per nat. Once ``s^2 D < C``, which lasts, the cost of what remains falls by at
   most that, if ``lam <= 1/s^2``; before, C limits what is bought. Any lam in any round gives a floor.

Bounds of B: for ``lam >= 1`` the sum is concave in p, so
``B <= S (1 + (E_x max_y (sum_k v_k f_k / p) - 1) / lam)``, where S is its value at p and ``v_k`` are the
shares of its terms; steps ``p <- sum_k v_k f_k`` make it sharp. For ``lam < 1`` the terms ``u_k`` obey
``u_j u_k <= exp(-2 JS_jk / lam)`` and ``sum_k u_k^lam <= B_1``. So B is at most the largest, over j and x, of
``x + sum_{k != j} min(x, exp(-2 JS_jk / lam) / x)``, which is convex between its corners, and at most
``n + (B_1 - n)^(1/lam)``, where n is the whole part of ``B_1``.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.accounting import MOST_ROUNDS
from ldp_gym.channels.two_level import capacity
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.hypotheses.base import HypothesisClass, as_hypotheses
from ldp_gym.theory.floor import risk_floor
from ldp_gym.theory.pairwise import dominating_law, pair_divergences, pair_floor

LARGEST_EPSILON = 20.0
"""Largest eps for which floors are computed."""

_DRAWN, _MATCHINGS = 256, 8
"""Number of contexts to draw where none are given, and of random matchings that are improved."""

_SMALL_MULTIPLIERS = np.geomspace(0.02, 0.98, 40)
_LARGE_MULTIPLIERS = np.geomspace(1.0, 1000.0, 40)
"""Grids of values of the multiplier lam, below 1 and from 1 on."""

_STEPS, _CONVERGED = 200, 1e-6
"""Largest number of steps towards the best p, and relative gap of B's bound to the sum that ends them."""

_SHRINK = 0.99
"""Share to which the unknown information falls before lam is chosen anew."""

_UNKNOWN, _MARGIN = 1e-12, 1e-9
"""Unknown information, above log B, that counts as none; relative decrease of a floor for rounding."""


class ClassFloor(NamedTuple):
    """Floor under the risk of a class.

    Attributes:
        risk: lower bound on the expected risk under a uniform truth, in nats.
        method: "information", "pairs" or "disjoint supports": the argument that gives the largest floor.
        certified: False if contexts were drawn: the risk is then an estimate, not a proved floor.
    """

    risk: float
    method: str
    certified: bool


def class_floor(
    hypotheses: str | npt.ArrayLike | HypothesisClass,
    horizon: int,
    epsilon: float,
    *,
    contexts: npt.ArrayLike | None = None,
    seed: int = 0,
) -> ClassFloor:
    """Lower bound on the risk under a uniform truth, on all eps-private channels, interactive or not.

    The largest of this module's recursion and, for a class without contexts, of two other floors: the best
    matching of :func:`~ldp_gym.theory.pair_floor` (the pair of the truth is told for free), and on disjoint
    supports :func:`~ldp_gym.theory.risk_floor`. Not for delta > 0, users who are asked again, or contexts
    that depend on the past.

    Args:
        hypotheses: the class: a table ``(K, M)``, a name, or a HypothesisClass.
        horizon: T.
        epsilon: the privacy level, up to 20.
        contexts: the values ``(n, d)`` of a context, all equally likely; standard normal draws when not
            given, which makes the floor an estimate.
        seed: seed of these draws.

    Example:
        >>> floor = class_floor([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], 1000, 1.0)
        >>> round(floor.risk, 2), floor.method, floor.certified
        (5.14, 'information', True)
    """
    members = as_hypotheses(hypotheses, {})
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    epsilon = validation.squarable("epsilon", epsilon, most=LARGEST_EPSILON)
    drawn = contexts is None and not members.constant
    if members.constant:
        tables = game_arrays.distributions(members(np.zeros(members.context_dim)))[None]
    elif contexts is None:
        rng = stream(Purpose.INFORMATION, validation.seed("seed", seed))
        tables = members(rng.standard_normal((_DRAWN, members.context_dim)))
    else:
        tables = members(game_arrays.checked_contexts("contexts", contexts, members.context_dim))
    floors = {"information": _information_floor(tables, rounds, epsilon)}
    if members.constant:
        floors["pairs"] = _pair_floors(tables[0], rounds, epsilon, floors["information"])
        if ((tables[0] > 0.0).sum(axis=0) <= 1).all():
            floors["disjoint supports"] = risk_floor(len(tables[0]), rounds, epsilon)
    method = max(floors, key=lambda name: floors[name])
    return ClassFloor(float(floors[method]), method, not drawn)


# -- Information ---------------------------------------------------------------------------------------


def _information_floor(tables: FloatArray, rounds: int, epsilon: float) -> float:
    """The recursion of this module's third step, from the class at every context, ``(n, K, M)``."""
    contraction, most = math.tanh(epsilon / 2.0) ** 2, capacity(epsilon)
    multipliers, log_bounds = _gibbs_bounds(tables, 1.0 / contraction)
    unknown, total, left = math.log(tables.shape[1]), 0.0, rounds
    while left:
        costs = multipliers * (unknown - log_bounds)
        best = int(costs.argmax())
        cost, multiplier = float(costs[best]), float(multipliers[best])
        if cost <= multiplier * _UNKNOWN:
            break
        if contraction * cost >= most:  # every message tells C(eps)
            count = min(left, max(1, math.floor((1.0 - _SHRINK) * cost / (multiplier * most))))
            total += count * cost - multiplier * most * count * (count - 1) / 2.0
            unknown -= count * most
        else:  # what is unknown, above log B, shrinks by a constant factor
            log_kept = math.log1p(-min(contraction * multiplier, 1.0 - 1e-15))
            count = min(left, max(1, math.floor(math.log(_SHRINK) / log_kept)))
            gone = (unknown - log_bounds[best]) * -math.expm1(count * log_kept)
            total += gone / contraction
            unknown -= gone
        left -= count
    return total * (1.0 - _MARGIN)


def _gibbs_bounds(tables: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Values of lam, at most the largest, and upper bounds of ``log B`` there."""
    large = _LARGE_MULTIPLIERS[largest >= _LARGE_MULTIPLIERS]
    bounds = _concave_bounds(tables, large)
    inverse = 1.0 / _SMALL_MULTIPLIERS
    whole = min(math.floor(bounds[0]), tables.shape[1])
    small = whole + (bounds[0] - whole) ** inverse
    products = np.exp(-2.0 * _divergences(tables) * inverse[:, None, None])  # lam, j, k
    for each, product in enumerate(products):
        np.fill_diagonal(product, 0.0)
        corners = np.concatenate([np.ones((len(product), 1)), np.sqrt(product)], axis=1)[..., None]
        capped = np.minimum(corners, product[:, None] / np.maximum(corners, 1e-300)).sum(axis=-1)
        small[each] = min(small[each], float((corners[..., 0] + capped).max()))
    multipliers = np.concatenate([_SMALL_MULTIPLIERS, large])
    return multipliers, np.log(np.concatenate([small, bounds])) + _UNKNOWN / 2.0


def _concave_bounds(tables: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Upper bounds of B for multipliers of at least 1, rising: each starts from the best p of the last."""
    own = negentropy(tables).mean(axis=0)  # E_x sum_y f_k log f_k
    p = tables.mean(axis=1)
    bounds = np.empty(len(multipliers))
    for each, multiplier in enumerate(multipliers):
        best = math.inf
        for _ in range(_STEPS):
            logs = np.log(np.where(p > 0.0, p, 1.0))
            divergences = own - np.tensordot(tables, logs, axes=([0, 2], [0, 1])) / len(tables)
            terms = np.exp(-np.maximum(divergences, 0.0) / multiplier)
            mixed = np.tensordot(terms / terms.sum(), tables, axes=([0], [1]))
            ratios = np.divide(mixed, p, out=np.zeros_like(p), where=p > 0.0).max(axis=1).mean()
            best = min(best, terms.sum() * (1.0 + max(ratios - 1.0, 0.0) / multiplier))
            p = mixed
            if ratios - 1.0 <= _CONVERGED:
                break
        bounds[each] = best
    return bounds


def _divergences(tables: FloatArray) -> FloatArray:
    """Jensen-Shannon divergences of all pairs, ``(K, K)``, rounded down: means over contexts."""
    likelihoods = np.swapaxes(tables, 1, 2).reshape(-1, tables.shape[1])
    chances = np.full(len(likelihoods), 1.0 / len(tables))
    return np.maximum(pair_divergences(chances, likelihoods) - 1e-15, 0.0)


# -- Pairs ---------------------------------------------------------------------------------------------


def _pair_floors(table: FloatArray, rounds: int, epsilon: float, least: float) -> float:
    """``(2/K)`` times the sum of the floors of the pairs of a matching; 0 if that is surely below ``least``.

    The matching is the best for ``JS_jk sum_t rho^t``, rho the Bhattacharyya coefficient of the most
    telling messages, which is close to the floors, up to a factor.
    """
    size, rounds = len(table), min(rounds, 10_000)
    divergences = _divergences(table[None])
    worth = np.zeros((size + size % 2,) * 2)
    for j, k in combinations(range(size), 2):
        decay = max(1.0 - float(dominating_law(table[j], table[k], epsilon)[1].sum()), 1e-12)
        worth[j, k] = worth[k, j] = divergences[j, k] * -math.expm1(-rounds * decay) / decay
    pairs = [(j, k) for j, k in _matching(worth) if max(j, k) < size]
    if 2.0 / size * rounds * sum(divergences[pair] for pair in pairs) < least:
        return 0.0
    return 2.0 / size * sum(pair_floor(table[j], table[k], rounds, epsilon) for j, k in pairs)


def _matching(worth: FloatArray) -> list[tuple[int, int]]:
    """Disjoint pairs that are worth much, by exchanging partners, from several random matchings."""
    found: list[tuple[float, list[tuple[int, int]]]] = []
    orders = np.tile(np.arange(len(worth)), (_MATCHINGS, 1))
    for start in stream(Purpose.INFORMATION, 0).permuted(orders, axis=1):
        pairs, improved = [(int(a), int(b)) for a, b in start.reshape(-1, 2)], True
        while improved:
            improved = False
            for i, j in zip(*np.triu_indices(len(pairs), 1), strict=True):
                (a, b), (c, d) = pairs[i], pairs[j]
                gains = (
                    worth[a, b] + worth[c, d],
                    worth[a, c] + worth[b, d],
                    worth[a, d] + worth[b, c],
                )
                if max(gains) > gains[0] * (1.0 + 1e-9):
                    pairs[i], pairs[j] = (
                        ((a, c), (b, d)) if gains[1] >= gains[2] else ((a, d), (b, c))
                    )
                    improved = True
        found.append((sum(worth[pair] for pair in pairs), pairs))
    return max(found)[1]
