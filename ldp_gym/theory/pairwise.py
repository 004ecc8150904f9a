"""Pairs of hypotheses: information of a message about a pair, blind pairs, and a lower bound on the risk.

*The floor.* For ``gamma >= 0`` let ``E_gamma(P, Q) = max_A P(A) - gamma Q(A)``, the hockey-stick divergence.
An event A of an eps-private message is a function ``phi(y)`` of the label, between lo and hi, where
``hi <= e^eps lo`` and ``1 - lo <= e^eps (1 - hi)``. At best it is hi where ``P > gamma Q`` and lo elsewhere:
``lo (1 - gamma) + (hi - lo) E_gamma(P, Q)``. That is linear in (lo, hi), hence largest at a corner: (0, 0),
(1, 1) or (b, a), ``a = 1 - b = e^eps / (1 + e^eps)``. So no message has a divergence above

    ``F(gamma) = max(0, 1 - gamma, (a - b) E_gamma(P, Q) + b (1 - gamma))``.

F is convex with ``F(0) = 1``, so it is itself the divergence of some pair of laws; so is every convex
function above it that ends in ``max(0, 1 - gamma)``, such as F interpolated between the points of a grid. By
Blackwell's theorem every message is a function, with noise, of that pair's, and step by step every
transcript, adaptive or not, is one of their products. The least expected KL of a round, ``E JS_w`` with w the
posterior, is concave in w, so it is no less on the transcript than on the product.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, uniform_distribution
from ldp_gym.theory.information import likelihood_ratios

_RATIO_STEP = 0.03
"""Distance, in logarithms, of the grid points of likelihood ratios, unless it takes too many or too few."""

_LEAST_RATIO_POINTS = 3
"""Least number of grid points on either side of a likelihood ratio of 1."""

_MOST_RATIO_POINTS = 16
"""Largest number of grid points on either side of a likelihood ratio of 1."""

_LARGEST_LOG_RATIO = 30.0
"""Log-likelihood ratio beyond which all counts as known."""

_NOTHING_LEFT = 1e-12
"""Share of the floor so far below which the cost of a round ends the sum."""

_PAIR_ROUNDING = 1e-11
"""Relative error by which a floor is lowered for rounding."""

_SAME_RATIO = 5e-10
"""Relative distance from their mean below which two likelihoods count as equal: rounding makes as much."""

_GRID_MARGIN = 1e-9
"""Relative distance by which the grid goes beyond the largest log-likelihood ratio, for rounding."""

_LONGEST_HORIZON = 10_000
"""Largest horizon of a floor: each round costs a convolution."""

_LARGEST_EPSILON = 20.0
"""Largest eps of a floor."""

_SAMPLES = 20_000
"""Number of real-valued messages to draw."""

_TINY = float(np.finfo(np.float64).tiny)
"""Least divisor."""


def pair_floor(p: FloatArray, q: FloatArray, horizon: int, epsilon: float) -> float:
    """Lower bound on the risk of every pure channel on two distributions, under a uniform truth.

    Adaptive channels are included. On disjoint supports it is exact, up to rounding. ``p`` and ``q`` are
    distributions ``(M,)``, the horizon is at most 10,000, and epsilon at most 20.

    Example:
        >>> round(pair_floor(np.array([0.5, 0.5]), np.array([0.2, 0.8]), 1000, 1.0), 2)
        3.59
    """
    first = validation.numbers("p", p)
    second = validation.numbers("q", q)
    if first.shape != second.shape:
        raise ValueError(
            f"p and q must be distributions over the same labels, got {first.shape} and {second.shape}"
        )
    p, q = game_arrays.one_context(np.stack([first, second]), 2, first.shape[-1])
    rounds = validation.whole("horizon (T)", horizon, least=1, most=_LONGEST_HORIZON)
    epsilon = validation.positive("epsilon", epsilon, most=_LARGEST_EPSILON)

    law = dominating_law(p, q, epsilon)
    if law.step == 0.0:
        # Messages tell nothing: both stay equally likely.
        return float(rounds * _divergence(p, q, np.array([0.5]))[0])
    return _sum_of_costs(p, q, law, rounds) * (1.0 - _PAIR_ROUNDING)


def _sum_of_costs(p: FloatArray, q: FloatArray, law: DominatingLaw, rounds: int) -> float:
    """Sum over the rounds of the least expected KL, if messages are draws of the dominating pair of laws.

    After some messages the log-likelihood ratio is ``step i`` for a whole number i, up to a limit on either
    side. For each i, ``affinities`` has the square root of the product of its probabilities under p and q:
    those are ``e^(step i / 2)`` and ``e^(-step i / 2)`` times as large.

    Args:
        p: the first distribution, ``(M,)``.
        q: the second distribution, ``(M,)``.
        law: log-likelihood ratio of one message.
        rounds: T.
    """
    steps_per_message = len(law.affinities) // 2
    limit = math.ceil(min(_LARGEST_LOG_RATIO / law.step, rounds * steps_per_message))
    steps = np.arange(-limit, limit + 1)
    posterior = 1.0 / (1.0 + np.exp(-law.step * steps))
    costs = np.cosh(law.step * steps / 2.0) * _divergence(p, q, posterior)

    affinities = (steps == 0).astype(np.float64)
    first = max(0, steps_per_message - limit)
    of_message = law.affinities[first : steps_per_message + limit + 1]
    total = 0.0
    for _ in range(rounds):
        cost = float(affinities @ costs)
        total += cost
        if cost <= _NOTHING_LEFT * total:
            break
        # Ratios beyond the limit are dropped, as if the truth were known there: the floor stays below.
        affinities = np.convolve(affinities, of_message, mode="same")
    return total


class DominatingLaw(NamedTuple):
    """Log-likelihood ratio of a pair of laws P, Q of which every private message is a function with noise.

    Attributes:
        step: distance of the grid of log-likelihood ratios; 0 if messages tell nothing.
        affinities: ``sqrt(P Q)`` at the points of the grid, ``(2 n + 1,)``; the ratio 1 is in the middle.
    """

    step: float
    affinities: FloatArray


def dominating_law(p: FloatArray, q: FloatArray, epsilon: float) -> DominatingLaw:
    """Return the pair of laws of which every eps-private message about p or q is a function with noise.

    Its hockey-stick divergences are, on a grid of ratios g, the largest that such a message can have:
    ``max(0, 1 - g, s E_g(p, q) + b (1 - g))`` with ``E_g(p, q) = sum_y max(p[y] - g q[y], 0)``,
    ``s = tanh(eps/2)`` and ``b = 1 / (1 + e^eps)``. The law of the ratio follows from their slopes.
    """
    signal = math.tanh(epsilon / 2.0)
    lie = 1.0 / (1.0 + math.exp(epsilon))
    largest_up = _largest_log_ratio(p, q, signal, lie)
    largest_down = _largest_log_ratio(q, p, signal, lie)
    largest = max(0.0, largest_up, largest_down)
    if largest <= 0.0:
        return DominatingLaw(0.0, np.ones(1))

    wanted_points = math.ceil(largest / _RATIO_STEP)
    points = int(np.clip(wanted_points, _LEAST_RATIO_POINTS, _MOST_RATIO_POINTS))
    step = largest * (1.0 + _GRID_MARGIN) / points
    steps = np.arange(-points - 1, points + 2)  # one more on either side, for the slopes

    # g - 1 in place of g: no difference of large terms, however near p and q are.
    excess = np.expm1(step * steps)
    hockey_sticks = np.maximum(p - q - excess[:, None] * q, 0.0).sum(axis=1)
    without_message = np.maximum(0.0, -excess)
    divergences = np.maximum(without_message, signal * hockey_sticks - lie * excess)
    slopes = np.diff(divergences) / np.diff(excess)
    masses_of_q = np.maximum(np.diff(slopes), 0.0)  # at the grid points inside
    return DominatingLaw(step, masses_of_q * np.exp(step * steps[1:-1] / 2.0))


def _largest_log_ratio(p: FloatArray, q: FloatArray, signal: float, lie: float) -> float:
    """Largest log-likelihood ratio of p against q of a private yes-or-no answer about the label.

    The question is whether the label is one of those where ``p / (p + q)`` is largest, for any number of
    them. The answer yes has the probability ``lie + signal mass``, where ``mass`` is that of these
    labels.
    """
    preference = p / np.maximum(p + q, _TINY)
    order = np.argsort(-preference, kind="stable")
    advantage = np.cumsum((p - q)[order])
    mass_of_q = np.cumsum(q[order])
    return float(np.log1p(signal * advantage / (lie + signal * mass_of_q)).max())


def _divergence(p: FloatArray, q: FloatArray, weights: FloatArray) -> FloatArray:
    """``w KL(p, m) + (1 - w) KL(q, m)`` with ``m = w p + (1 - w) q``, for weights w ``(n,)``."""
    from scipy.special import xlog1py  # imported here: it would double the time of `import ldp_gym`

    w = weights[:, None]
    mixed = w * p + (1.0 - w) * q
    relative = (p - q) / np.maximum(mixed, _TINY)
    excess_of_p = np.maximum((1.0 - w) * relative, -1.0)  # p / m - 1
    excess_of_q = np.maximum(-w * relative, -1.0)  # q / m - 1
    of_p = w * xlog1py(1.0 + excess_of_p, excess_of_p)
    of_q = (1.0 - w) * xlog1py(1.0 + excess_of_q, excess_of_q)
    return np.maximum((mixed * (of_p + of_q)).sum(axis=1), 0.0)


# -- What a channel tells about pairs ------------------------------------------------------------------


def pair_information(
    channel: Channel, candidates: FloatArray, among: BoolArray | None = None
) -> FloatArray:
    """The information of one message about which of two hypotheses is the truth, pair by pair, ``(K, K)``.

    In nats, if both are equally likely: the Jensen-Shannon divergence of their messages. 0 for a pair that
    the channel cannot tell apart. An adaptive channel acts on the posterior that knows only the pair; only
    pairs that are True in ``among``, ``(K, K)``, are then looked at. Exact where the messages can be listed;
    else over draws of the public coins, or of real-valued messages: then 0 is exact still.

    Example:
        >>> from ldp_gym.channels import Split
        >>> table = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
        >>> pair_information(Split(3, 3, 10), table).round(3).tolist()
        [[0.0, 0.0, 0.071], [0.0, 0.0, 0.071], [0.071, 0.071, 0.0]]
    """
    size = require_channel(channel).num_hypotheses
    table = game_arrays.one_context(candidates, size, channel.num_labels)
    if not channel.adaptive:
        prior = uniform_distribution(size)
        messages = likelihood_ratios(channel, table, prior, None, _SAMPLES, seed=0)
        return pair_divergences(messages.chances, messages.ratios)

    information = np.zeros((size, size))
    for j, k in combinations(range(size), 2):
        if among is not None and not among[j, k]:
            continue
        pair = [j, k]
        public = np.isin(np.arange(size), pair) / 2.0
        messages = likelihood_ratios(channel, table, public, public, _SAMPLES, seed=0)
        divergence = pair_divergences(messages.chances, messages.ratios[:, pair])[0, 1]
        information[j, k] = divergence
        information[k, j] = divergence
    return information


def pair_divergences(chances: FloatArray, ratios: FloatArray) -> FloatArray:
    """Jensen-Shannon divergences of all pairs of hypotheses, ``(K, K)``.

    Args:
        chances: probabilities of n messages under some law, ``(n,)``.
        ratios: likelihoods of the hypotheses relative to that law, ``(n, K)``.
    """
    from scipy.special import xlog1py  # imported here: it would double the time of `import ldp_gym`

    size = ratios.shape[1]
    divergences = np.zeros((size, size))
    for j in range(size):
        one = ratios[:, [j]]
        others = ratios[:, j + 1 :]
        middle = (one + others) / 2.0
        # The two ratios are middle (1 + offset) and middle (1 - offset): written with log(1 + offset),
        # no two large terms are subtracted, however small the offset is.
        offset = (one - middle) / np.maximum(middle, _TINY)
        offset[np.abs(offset) <= _SAME_RATIO] = 0.0
        terms = middle * (xlog1py(1.0 + offset, offset) + xlog1py(1.0 - offset, -offset)) / 2.0
        divergences[j, j + 1 :] = np.einsum("n,nk->k", chances, terms)
    return divergences + divergences.T


def blind_pairs(
    channel: Channel,
    tables: FloatArray,
    tolerance: float = 0.0,
    *,
    distance: float = 0.01,
    among: BoolArray | None = None,
) -> list[tuple[int, int]]:
    """The pairs of hypotheses ``(j, k)``, j < k, that differ and that no table lets the channel tell apart.

    Bayes' risk grows linearly in T if the truth is one of such a pair.

    Args:
        channel: the channel.
        tables: the class at one context, ``(K, M)``, or at several, ``(n, K, M)``.
        tolerance: largest information, in nats per message, that counts as none. Likelihoods of a message
            that differ by less than a relative 1e-9 always count as equal.
        distance: a pair counts if its total variation is above this in one of the tables.
        among: pairs to look at, True in a ``(K, K)`` array; all when not given.

    Example:
        >>> from ldp_gym.channels import HalfSpace, Vote
        >>> table = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
        >>> blind_pairs(Vote(3, 3, 10), table), blind_pairs(HalfSpace(3, 3, 10), table)
        ([(0, 1)], [])
    """
    size = require_channel(channel).num_hypotheses
    tables = game_arrays.candidates(tables, size, channel.num_labels)
    tables = tables.reshape(-1, size, channel.num_labels)
    tolerance = validation.nonnegative("tolerance", tolerance)
    distance = validation.nonnegative("distance", distance)

    differences = tables[:, :, None] - tables[:, None]
    total_variations = np.maximum(differences, 0.0).sum(axis=-1)
    differ = total_variations.max(axis=0) > distance
    blind = np.triu(differ, 1)
    if among is not None:
        if np.shape(among) != (size, size) or np.asarray(among).dtype != np.bool_:
            raise ValueError(f"among must be booleans of shape {(size, size)}, got {among!r}")
        blind &= among
    for table in tables:
        if not blind.any():
            break
        blind &= pair_information(channel, table, blind) <= tolerance
    return [(int(j), int(k)) for j, k in np.argwhere(blind)]
