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
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.hypotheses.base import HypothesisClass, as_hypotheses
from ldp_gym.theory.floor import risk_floor
from ldp_gym.theory.pairwise import dominating_law, pair_divergences, pair_floor

Pair = tuple[int, int]

LARGEST_EPSILON = 20.0
"""Largest eps for which floors are computed."""

_NUM_CONTEXTS = 256
"""Number of contexts to draw where none are given."""

_NUM_MATCHINGS = 8
"""Number of random matchings that are improved."""

_SMALL_MULTIPLIERS = np.geomspace(0.02, 0.98, 40)
"""Values of the multiplier lam below 1."""

_LARGE_MULTIPLIERS = np.geomspace(1.0, 1000.0, 40)
"""Values of the multiplier lam from 1 on."""

_STEPS = 200
"""Largest number of steps towards the best p."""

_CONVERGED = 1e-6
"""Relative gap between B's bound and the sum that ends the steps towards the best p."""

_SHRINK = 0.99
"""Share to which the unknown information falls before lam is chosen anew."""

_UNKNOWN = 1e-12
"""Unknown information, above log B, that counts as none."""

_MARGIN = 1e-9
"""Relative decrease of a floor, for rounding."""

_TINY = 1e-300
"""Least divisor."""

_MOST_ROUNDS_OF_PAIRS = 10_000
"""Largest horizon of the floors of pairs; they are floors for more rounds too."""


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
    tables = _tables(members, contexts, seed)

    floors = {"information": _information_floor(tables, rounds, epsilon)}
    if members.constant:
        table = tables[0]
        floors["pairs"] = _pair_floors(table, rounds, epsilon, floors["information"])
        hypotheses_per_label = (table > 0.0).sum(axis=0)
        if (hypotheses_per_label <= 1).all():
            floors["disjoint supports"] = risk_floor(len(table), rounds, epsilon)

    method = max(floors, key=lambda name: floors[name])
    certified = members.constant or contexts is not None
    return ClassFloor(float(floors[method]), method, certified)


def _tables(members: HypothesisClass, contexts: npt.ArrayLike | None, seed: int) -> FloatArray:
    """The class at its contexts, ``(n, K, M)``: given ones, or drawn; one if it has none."""
    if members.constant:
        any_context = np.zeros(members.context_dim)
        return game_arrays.distributions(members(any_context))[None]
    if contexts is None:
        rng = stream(Purpose.INFORMATION, validation.seed("seed", seed))
        return members(rng.standard_normal((_NUM_CONTEXTS, members.context_dim)))
    return members(game_arrays.checked_contexts("contexts", contexts, members.context_dim))


# -- Information ---------------------------------------------------------------------------------------


def _information_floor(tables: FloatArray, rounds: int, epsilon: float) -> float:
    """The recursion of this module's third step, from the class at its contexts, ``(n, K, M)``.

    With one multiplier lam, the cost of a round is ``lam (unknown - log B)``. It is used for several rounds
    at once, until what is unknown has fallen by a hundredth; then the best lam is chosen anew.
    """
    contraction = math.tanh(epsilon / 2.0) ** 2
    most_per_message = capacity(epsilon)
    multipliers, log_bounds = _gibbs_bounds(tables, 1.0 / contraction)

    unknown = math.log(tables.shape[1])
    total = 0.0
    rounds_left = rounds
    while rounds_left:
        costs = multipliers * (unknown - log_bounds)
        best = int(costs.argmax())
        cost = float(costs[best])
        multiplier = float(multipliers[best])
        log_bound = log_bounds[best]
        if cost <= multiplier * _UNKNOWN:
            break

        if contraction * cost >= most_per_message:
            # Every message tells C(eps), so that the costs fall by the same amount.
            decrease = multiplier * most_per_message
            count = math.floor((1.0 - _SHRINK) * cost / decrease)
            count = min(rounds_left, max(1, count))
            total += count * cost - decrease * count * (count - 1) / 2.0
            unknown -= count * most_per_message
        else:
            # What is unknown, above log B, shrinks by the same factor in every round.
            log_kept = math.log1p(-min(contraction * multiplier, 1.0 - 1e-15))
            count = math.floor(math.log(_SHRINK) / log_kept)
            count = min(rounds_left, max(1, count))
            told = (unknown - log_bound) * -math.expm1(count * log_kept)
            total += told / contraction
            unknown -= told
        rounds_left -= count
    return total * (1.0 - _MARGIN)


def _gibbs_bounds(tables: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Values of lam, at most the largest, and upper bounds of ``log B`` there."""
    large = _LARGE_MULTIPLIERS[largest >= _LARGE_MULTIPLIERS]
    bounds_at_large = _concave_bounds(tables, large)
    bounds_at_small = np.minimum(
        _bounds_from_one(float(bounds_at_large[0]), tables.shape[1]), _bounds_from_pairs(tables)
    )
    multipliers = np.concatenate([_SMALL_MULTIPLIERS, large])
    bounds = np.concatenate([bounds_at_small, bounds_at_large])
    return multipliers, np.log(bounds) + _UNKNOWN / 2.0


def _bounds_from_one(bound_at_one: float, size: int) -> FloatArray:
    """Upper bounds of B for the multipliers below 1: ``n + (B_1 - n)^(1/lam)``, n the whole part of B_1."""
    whole = min(math.floor(bound_at_one), size)
    bounds: FloatArray = whole + (bound_at_one - whole) ** (1.0 / _SMALL_MULTIPLIERS)
    return bounds


def _bounds_from_pairs(tables: FloatArray) -> FloatArray:
    """Upper bounds of B for the multipliers below 1: the largest ``x + sum_{k != j} min(x, P_jk / x)``.

    ``P_jk = exp(-2 JS_jk / lam)``; the largest over j and x, at a corner: x is 1 or the root of a ``P_jk``.
    """
    divergences = _divergences(tables)
    bounds = np.empty(len(_SMALL_MULTIPLIERS))
    for index, multiplier in enumerate(_SMALL_MULTIPLIERS):
        products = np.exp(-2.0 * divergences * (1.0 / multiplier))
        np.fill_diagonal(products, 0.0)
        ones = np.ones((len(products), 1))
        corners = np.concatenate([ones, np.sqrt(products)], axis=1)[..., None]  # (j, corner, 1)
        other_terms = np.minimum(corners, products[:, None] / np.maximum(corners, _TINY))
        sums = corners[..., 0] + other_terms.sum(axis=-1)
        bounds[index] = sums.max()
    return bounds


def _concave_bounds(tables: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Upper bounds of B for multipliers of at least 1, rising: each starts from the best p of the last."""
    negentropies = negentropy(tables).mean(axis=0)  # E_x sum_y f_k log f_k
    p = tables.mean(axis=1)
    bounds = np.empty(len(multipliers))
    for index, multiplier in enumerate(multipliers):
        least = math.inf
        for _ in range(_STEPS):
            logs = np.log(np.where(p > 0.0, p, 1.0))
            cross_terms = np.tensordot(tables, logs, axes=([0, 2], [0, 1])) / len(tables)
            divergences = np.maximum(negentropies - cross_terms, 0.0)
            terms = np.exp(-divergences / multiplier)
            shares = terms / terms.sum()

            mixed = np.tensordot(shares, tables, axes=([0], [1]))
            ratios = np.divide(mixed, p, out=np.zeros_like(p), where=p > 0.0)
            excess = ratios.max(axis=1).mean() - 1.0
            bound = terms.sum() * (1.0 + max(excess, 0.0) / multiplier)
            least = min(least, bound)
            p = mixed
            if excess <= _CONVERGED:
                break
        bounds[index] = least
    return bounds


def _divergences(tables: FloatArray) -> FloatArray:
    """Jensen-Shannon divergences of all pairs, ``(K, K)``, rounded down: means over contexts."""
    likelihoods = np.swapaxes(tables, 1, 2).reshape(-1, tables.shape[1])
    chances = np.full(len(likelihoods), 1.0 / len(tables))
    return np.maximum(pair_divergences(chances, likelihoods) - 1e-15, 0.0)


# -- Pairs ---------------------------------------------------------------------------------------------


def _pair_floors(table: FloatArray, rounds: int, epsilon: float, least: float) -> float:
    """``(2/K)`` times the sum of the floors of the pairs of a matching; 0 if that is surely below ``least``.

    If the pair that holds the truth is told for free, its floor is what remains. With an odd K one hypothesis
    stays alone.
    """
    size = len(table)
    rounds = min(rounds, _MOST_ROUNDS_OF_PAIRS)
    divergences = _divergences(table[None])
    values = _pair_values(table, divergences, rounds, epsilon)
    pairs = [(j, k) for j, k in _matching(values) if max(j, k) < size]

    without_learning = rounds * sum(divergences[pair] for pair in pairs)
    if 2.0 / size * without_learning < least:
        return 0.0
    return 2.0 / size * sum(pair_floor(table[j], table[k], rounds, epsilon) for j, k in pairs)


def _pair_values(
    table: FloatArray, divergences: FloatArray, rounds: int, epsilon: float
) -> FloatArray:
    """Estimates ``(n, n)`` of the floors of all pairs, up to a factor, where n is K or, if odd, K + 1.

    ``JS_jk sum_t rho^t``, rho the Bhattacharyya coefficient of the most telling messages.
    """
    size = len(table)
    even_size = size + size % 2
    values = np.zeros((even_size, even_size))
    for j, k in combinations(range(size), 2):
        _, affinities = dominating_law(table[j], table[k], epsilon)
        decay = max(1.0 - float(affinities.sum()), 1e-12)  # 1 - rho
        sum_of_powers = -math.expm1(-rounds * decay) / decay
        values[j, k] = divergences[j, k] * sum_of_powers
        values[k, j] = values[j, k]
    return values


def _matching(values: FloatArray) -> list[Pair]:
    """Disjoint pairs with a large sum of values ``(n, n)``: the best of several improved random matchings."""
    unordered = np.tile(np.arange(len(values)), (_NUM_MATCHINGS, 1))
    orders = stream(Purpose.INFORMATION, 0).permuted(unordered, axis=1)
    matchings = [_improved_matching(values, order) for order in orders]
    totals = [sum(values[pair] for pair in matching) for matching in matchings]
    return max(zip(totals, matchings, strict=True))[1]


def _improved_matching(values: FloatArray, order: IntArray) -> list[Pair]:
    """The matching of neighbours in an order ``(n,)``, improved until no exchange of partners helps."""
    pairs = [(int(j), int(k)) for j, k in order.reshape(-1, 2)]
    improved = True
    while improved:
        improved = False
        for first, second in combinations(range(len(pairs)), 2):
            best = _best_partners(values, pairs[first], pairs[second])
            if best is not None:
                pairs[first], pairs[second] = best
                improved = True
    return pairs


def _best_partners(values: FloatArray, one: Pair, other: Pair) -> tuple[Pair, Pair] | None:
    """The best exchange of partners between two pairs; None if none of the two raises their value."""
    a, b = one
    c, d = other
    now = values[a, b] + values[c, d]
    first_exchange = values[a, c] + values[b, d]
    second_exchange = values[a, d] + values[b, c]
    if max(first_exchange, second_exchange) <= now * (1.0 + 1e-9):
        return None
    if first_exchange >= second_exchange:
        return (a, c), (b, d)
    return (a, d), (b, c)
