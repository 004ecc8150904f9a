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

_LARGEST_SHARE_TOLD = 1.0 - 1e-15
"""Largest share of the unknown information that a round is taken to tell: its complement has a logarithm."""

_DIVERGENCE_ROUNDING = 1e-15
"""Rounding error of a Jensen-Shannon divergence, by which it is lowered."""

_LEAST_DECAY = 1e-12
"""Least ``1 - rho`` of the Bhattacharyya coefficient rho of messages, so that it can be divided by."""

_IMPROVEMENT = 1e-9
"""Relative increase that an exchange of partners must bring, so that rounding does not exchange for ever."""

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

    The largest of up to three floors. *Information*: a message tells at most ``tanh(eps/2)^2`` of what its
    label tells about the truth, and what is not known of the truth costs. For a class without contexts also
    *pairs*: hypotheses are matched, the learner is told the truth's pair for free, and
    :func:`~ldp_gym.theory.pair_floor` bounds what remains; and on *disjoint supports*
    :func:`~ldp_gym.theory.risk_floor`. Not for delta > 0, users who are asked again, or contexts that depend
    on the past.

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

    information_floor = _information_floor(tables, rounds, epsilon)
    floors = {"information": information_floor}
    if members.constant:
        table = tables[0]
        floors["pairs"] = _pair_floors(table, rounds, epsilon, information_floor)
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


class _Rounds(NamedTuple):
    """Some rounds in a row, played with one multiplier.

    Attributes:
        num_rounds: number of rounds.
        cost: least risk of these rounds together.
        told: information about the truth that their messages tell, in nats.
    """

    num_rounds: int
    cost: float
    told: float


def _information_floor(tables: FloatArray, rounds: int, epsilon: float) -> float:
    """Floor of the contraction of information, from the class at its contexts, ``(n, K, M)``.

    With a multiplier lam, a round costs at least ``lam (unknown - log B)``, where ``unknown`` is what
    messages have not told of the truth, at first log K, and ``B = max_p sum_k exp(-KL(f_k, p) / lam)``.
    The messages of a round tell at most its cost times ``tanh(eps/2)^2``, and at most ``C(eps)``. One lam
    is used for several rounds, until what is unknown has fallen by a hundredth; then the best lam is
    chosen anew.
    """
    contraction = math.tanh(epsilon / 2.0) ** 2
    most_per_message = capacity(epsilon)
    multipliers, log_bounds = _gibbs_bounds(tables, 1.0 / contraction)

    unknown = math.log(tables.shape[1])
    total = 0.0
    rounds_left = rounds
    while rounds_left > 0:
        costs = multipliers * (unknown - log_bounds)
        best = int(costs.argmax())
        cost = float(costs[best])
        multiplier = float(multipliers[best])
        if cost <= multiplier * _UNKNOWN:
            break  # nothing is left to tell

        if contraction * cost >= most_per_message:
            played = _rounds_at_capacity(cost, multiplier, most_per_message, rounds_left)
        else:
            above_bound = unknown - log_bounds[best]
            played = _rounds_of_contraction(above_bound, multiplier, contraction, rounds_left)
        total += played.cost
        unknown -= played.told
        rounds_left -= played.num_rounds
    return total * (1.0 - _MARGIN)


def _rounds_at_capacity(
    cost: float, multiplier: float, most_per_message: float, rounds_left: int
) -> _Rounds:
    """Rounds whose messages tell ``C(eps)`` each, so that their costs fall by the same amount.

    Args:
        cost: cost of the first round.
        multiplier: lam.
        most_per_message: ``C(eps)``.
        rounds_left: largest number of rounds.
    """
    decrease = multiplier * most_per_message
    count = math.floor((1.0 - _SHRINK) * cost / decrease)
    count = min(rounds_left, max(1, count))
    total = count * cost - decrease * count * (count - 1) / 2.0
    return _Rounds(count, total, count * most_per_message)


def _rounds_of_contraction(
    above_bound: float, multiplier: float, contraction: float, rounds_left: int
) -> _Rounds:
    """Rounds whose messages tell a share of their costs, so that both shrink by the same factor.

    Args:
        above_bound: what is unknown before the first round, less log B.
        multiplier: lam.
        contraction: ``tanh(eps/2)^2``, the largest share of what a label tells that its message tells.
        rounds_left: largest number of rounds.
    """
    share_told = min(contraction * multiplier, _LARGEST_SHARE_TOLD)
    log_kept = math.log1p(-share_told)
    count = math.floor(math.log(_SHRINK) / log_kept)
    count = min(rounds_left, max(1, count))
    told = above_bound * -math.expm1(count * log_kept)
    return _Rounds(count, told / contraction, told)


def _gibbs_bounds(tables: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Multipliers lam, and upper bounds of ``log B`` there, with ``B = max_p sum_k exp(-KL(f_k, p) / lam)``.

    Args:
        tables: the class at its contexts, ``(n, K, M)``; KL is its mean over the contexts.
        largest: largest multiplier.
    """
    num_hypotheses = tables.shape[1]
    large = _LARGE_MULTIPLIERS[largest >= _LARGE_MULTIPLIERS]
    bounds_at_large = _concave_bounds(tables, large)
    bound_at_one = float(bounds_at_large[0])  # the multipliers rise from 1
    bounds_at_small = np.minimum(
        _bounds_from_one(bound_at_one, num_hypotheses), _bounds_from_pairs(tables)
    )
    multipliers = np.concatenate([_SMALL_MULTIPLIERS, large])
    bounds = np.concatenate([bounds_at_small, bounds_at_large])
    return multipliers, np.log(bounds) + _UNKNOWN / 2.0  # raised, for rounding


def _bounds_from_one(bound_at_one: float, num_hypotheses: int) -> FloatArray:
    """Upper bounds of ``B = max_p sum_k exp(-KL(f_k, p) / lam)`` at each lam below 1, from one at lam = 1.

    They are ``n + (B_1 - n)^(1/lam)``, where ``B_1`` is the bound at 1 and n its whole part: the terms are at
    most 1, and their powers ``lam`` sum to ``B_1`` at most.
    """
    whole = min(math.floor(bound_at_one), num_hypotheses)
    bounds: FloatArray = whole + (bound_at_one - whole) ** (1.0 / _SMALL_MULTIPLIERS)
    return bounds


def _bounds_from_pairs(tables: FloatArray) -> FloatArray:
    """Upper bounds of ``B = max_p sum_k exp(-KL(f_k, p) / lam)`` at each lam below 1, from pairs.

    The product of two terms j and k is at most ``P_jk = exp(-2 JS_jk / lam)``, with the Jensen-Shannon
    divergence of ``f_j`` and ``f_k``. So with a largest term j of size x, B is at most ``x + sum_{k != j}
    min(x, P_jk / x)``. Over x, that is largest at a corner: at 1 or the root of a ``P_jk``.
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
    """Upper bounds of ``B = max_p sum_k exp(-KL(f_k, p) / lam)`` at multipliers lam of at least 1, rising.

    The sum is concave in p there, so its value and slope at any p give a bound. Steps ``p <- sum_k v_k f_k``,
    with ``v_k`` the shares of its terms, lower the bound; each lam starts from the last p of the one before.

    Args:
        tables: the class at its contexts, ``(n, K, M)``; KL is its mean over the contexts.
        multipliers: the values of lam.
    """
    negentropies = negentropy(tables).mean(axis=0)  # E_x sum_y f_k log f_k
    p = tables.mean(axis=1)
    bounds = np.empty(len(multipliers))
    for index, multiplier in enumerate(multipliers):
        smallest_bound = math.inf
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
            smallest_bound = min(smallest_bound, bound)
            p = mixed
            if excess <= _CONVERGED:
                break
        bounds[index] = smallest_bound
    return bounds


def _divergences(tables: FloatArray) -> FloatArray:
    """Jensen-Shannon divergences of all pairs ``(K, K)``, rounded down: means over tables ``(n, K, M)``."""
    num_tables, num_hypotheses = tables.shape[:2]
    likelihoods = np.swapaxes(tables, 1, 2).reshape(-1, num_hypotheses)  # (n M, K)
    chances = np.full(len(likelihoods), 1.0 / num_tables)
    return np.maximum(pair_divergences(chances, likelihoods) - _DIVERGENCE_ROUNDING, 0.0)


# -- Pairs ---------------------------------------------------------------------------------------------


def _pair_floors(table: FloatArray, rounds: int, epsilon: float, floor_to_beat: float) -> float:
    """``(2/K)`` times the sum of the floors of the pairs of a matching of the hypotheses.

    If the learner is told for free which pair has the truth, the floor of this pair is what remains. With an
    odd K one hypothesis has no partner, and costs nothing.

    Args:
        table: the class, ``(K, M)``.
        rounds: T.
        epsilon: the privacy level.
        floor_to_beat: another floor; if this one is surely smaller, 0 is returned without computing it.
    """
    size = len(table)
    rounds = min(rounds, _MOST_ROUNDS_OF_PAIRS)
    divergences = _divergences(table[None])
    values = _pair_values(table, divergences, rounds, epsilon)
    pairs = [(j, k) for j, k in _matching(values) if max(j, k) < size]

    # A learner that never learns pays the divergence of its pair in every round: no floor is larger.
    without_learning = rounds * sum(divergences[pair] for pair in pairs)
    if 2.0 / size * without_learning < floor_to_beat:
        return 0.0
    floors = [pair_floor(table[j], table[k], rounds, epsilon) for j, k in pairs]
    return 2.0 / size * sum(floors)


def _pair_values(
    table: FloatArray, divergences: FloatArray, rounds: int, epsilon: float
) -> FloatArray:
    """Estimates ``(n, n)`` of the floors of all pairs, up to a factor, where n is K or, if odd, K + 1.

    They are ``JS_jk sum_t rho^t``, where rho is the Bhattacharyya coefficient of the most telling messages
    under the two hypotheses. A pair with the hypothesis that was added to an odd K has value 0.

    Args:
        table: the class, ``(K, M)``.
        divergences: Jensen-Shannon divergences ``JS_jk`` of all pairs, ``(K, K)``.
        rounds: T.
        epsilon: the privacy level.
    """
    size = len(table)
    even_size = size + size % 2
    values = np.zeros((even_size, even_size))
    for j, k in combinations(range(size), 2):
        _, affinities = dominating_law(table[j], table[k], epsilon)
        decay = max(1.0 - float(affinities.sum()), _LEAST_DECAY)  # 1 - rho
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
    _, best = max(zip(totals, matchings, strict=True))
    return best


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
    """The better exchange of partners between two pairs; None if neither raises the sum of their values."""
    a, b = one
    c, d = other
    now = values[a, b] + values[c, d]
    first_exchange = values[a, c] + values[b, d]
    second_exchange = values[a, d] + values[b, c]
    if max(first_exchange, second_exchange) <= now * (1.0 + _IMPROVEMENT):
        return None
    if first_exchange >= second_exchange:
        return (a, c), (b, d)
    return (a, d), (b, c)
