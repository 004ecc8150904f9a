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

import numpy as np

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, uniform_distribution
from ldp_gym.theory.information import likelihood_ratios

_RATIO_POINTS, _RATIO_STEP = (3, 16), 0.03
"""Limits on the number of grid points on either side of a likelihood ratio of 1; their distance in logs."""

_LARGEST_LOG_RATIO = 30.0
"""Log-likelihood ratio beyond which all counts as known."""

_PAIR_ROUNDING = 1e-11
"""Relative error by which a floor is lowered for rounding."""

_SAME_RATIO = 5e-10
"""Relative distance from their mean below which two likelihoods count as equal: rounding makes as much."""

_SAMPLES = 20_000
"""Number of real-valued messages to draw."""


def pair_floor(p: FloatArray, q: FloatArray, horizon: int, epsilon: float) -> float:
    """Lower bound on the risk of every pure channel on two distributions, under a uniform truth.

    Adaptive channels are included. On disjoint supports it is exact, up to rounding. ``p`` and ``q`` are
    distributions ``(M,)``, the horizon is at most 10,000, and epsilon at most 20.

    Example:
        >>> round(pair_floor(np.array([0.5, 0.5]), np.array([0.2, 0.8]), 1000, 1.0), 2)
        3.59
    """
    pair = [validation.numbers("p", p), validation.numbers("q", q)]
    if pair[0].shape != pair[1].shape:
        raise ValueError(
            f"p and q must be distributions over the same labels, got {pair[0].shape} and {pair[1].shape}"
        )
    p, q = game_arrays.one_context(np.stack(pair), 2, pair[0].shape[-1])
    rounds = validation.whole("horizon (T)", horizon, least=1, most=10_000)
    epsilon = validation.positive("epsilon", epsilon, most=20.0)
    step, law = dominating_law(p, q, epsilon)
    if step == 0.0:  # messages tell nothing
        return float(rounds * _divergence(p, q, np.array([0.5]))[0])
    reach = math.ceil(min(_LARGEST_LOG_RATIO / step, rounds * (len(law) // 2)))
    places = np.arange(-reach, reach + 1)
    law = law[
        max(0, len(law) // 2 - reach) : len(law) // 2 + reach + 1
    ]  # no longer than what it moves
    # Masses sqrt(p q): those of p and q are e^(step i / 2) and e^(-step i / 2) times as large.
    masses, total = (places == 0).astype(np.float64), 0.0
    pays = np.cosh(step * places / 2.0) * _divergence(p, q, 1.0 / (1.0 + np.exp(-step * places)))
    for _ in range(rounds):
        paid = float(masses @ pays)
        total += paid
        if paid <= 1e-12 * total:
            break
        masses = np.convolve(masses, law, mode="same")  # what leaves the grid is known
    return total * (1.0 - _PAIR_ROUNDING)


def dominating_law(p: FloatArray, q: FloatArray, epsilon: float) -> tuple[float, FloatArray]:
    """A grid of log-likelihood ratios and the masses ``sqrt(p q)`` of a pair that dominates all messages."""
    signal, lie = math.tanh(epsilon / 2.0), 1.0 / (1.0 + math.exp(epsilon))
    # The largest ratio: of the answers to "is it one of the labels that p likes most, compared with q?"
    widest = 0.0
    for one, other in ((p, q), (q, p)):
        order = np.argsort(-one / np.maximum(one + other, np.finfo(np.float64).tiny), kind="stable")
        gained, second = np.cumsum((one - other)[order]), np.cumsum(other[order])
        widest = max(widest, float(np.log1p(signal * gained / (lie + signal * second)).max()))
    if widest <= 0.0:
        return 0.0, np.ones(1)
    points = int(np.clip(math.ceil(widest / _RATIO_STEP), *_RATIO_POINTS))
    step = widest * (1.0 + 1e-9) / points
    places = np.arange(-points - 1, points + 2)
    excess = np.expm1(
        step * places
    )  # gamma - 1: no difference of large terms, however near p and q are
    sticks = np.maximum(p - q - excess[:, None] * q, 0.0).sum(axis=1)
    profile = np.maximum(np.maximum(0.0, -excess), signal * sticks - lie * excess)
    slopes = np.diff(profile) / np.diff(excess)
    second = np.maximum(np.diff(slopes), 0.0)  # the masses of q at the grid points inside
    return step, second * np.exp(step * places[1:-1] / 2.0)


def _divergence(p: FloatArray, q: FloatArray, weights: FloatArray) -> FloatArray:
    """``w KL(p, m) + (1 - w) KL(q, m)`` with ``m = w p + (1 - w) q``, for every weight w."""
    from scipy.special import xlog1py  # imported here: it would double the time of `import ldp_gym`

    w = weights[:, None]
    mixed = w * p + (1.0 - w) * q
    off = (p - q) / np.maximum(mixed, np.finfo(np.float64).tiny)
    one, other = (
        np.maximum((1.0 - w) * off, -1.0),
        np.maximum(-w * off, -1.0),
    )  # p / m - 1 and q / m - 1
    told = mixed * (w * xlog1py(1.0 + one, one) + (1.0 - w) * xlog1py(1.0 + other, other))
    return np.maximum(told.sum(axis=1), 0.0)


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
        return pair_divergences(*likelihood_ratios(channel, table, prior, None, _SAMPLES, 0)[:2])
    information = np.zeros((size, size))
    for j, k in zip(*np.triu_indices(size, 1), strict=True):
        if among is None or among[j, k]:
            public = np.isin(np.arange(size), [j, k]) / 2.0
            chances, ratios, _ = likelihood_ratios(channel, table, public, public, _SAMPLES, 0)
            information[j, k] = information[k, j] = pair_divergences(chances, ratios[:, [j, k]])[
                0, 1
            ]
    return information


def pair_divergences(chances: FloatArray, ratios: FloatArray) -> FloatArray:
    """The Jensen-Shannon divergences of all pairs, from likelihood ratios ``(n, K)``."""
    from scipy.special import xlog1py

    size = ratios.shape[1]
    information = np.zeros((size, size))
    for j in range(size):
        middle = (ratios[:, [j]] + ratios[:, j + 1 :]) / 2.0
        off = (ratios[:, [j]] - middle) / np.maximum(middle, np.finfo(np.float64).tiny)
        off[np.abs(off) <= _SAME_RATIO] = 0.0
        # With r_j = m (1 + d) and r_k = m (1 - d); no difference of large terms, however small d is.
        told = middle * (xlog1py(1.0 + off, off) + xlog1py(1.0 - off, -off)) / 2.0
        information[j, j + 1 :] = np.einsum("n,nk->k", chances, told)
    return information + information.T


def blind_pairs(
    channel: Channel,
    tables: FloatArray,
    tolerance: float = 0.0,
    *,
    distance: float = 0.01,
    among: BoolArray | None = None,
) -> list[tuple[int, int]]:
    """The pairs of hypotheses ``(j, k)``, j < k, that differ and that no table lets the channel tell apart.

    Bayes pays for such a pair in every round, for ever.

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
    tables = game_arrays.candidates(tables, size, channel.num_labels).reshape(
        -1, size, channel.num_labels
    )
    apart = np.maximum(tables[:, :, None] - tables[:, None], 0.0).sum(axis=-1).max(axis=0)
    unknown = np.triu(apart > validation.nonnegative("distance", distance), 1)
    tolerance = validation.nonnegative("tolerance", tolerance)
    if among is not None:
        if np.shape(among) != (size, size) or np.asarray(among).dtype != np.bool_:
            raise ValueError(f"among must be booleans of shape {(size, size)}, got {among!r}")
        unknown &= among
    for table in tables:
        if not unknown.any():
            break
        unknown &= pair_information(channel, table, unknown) <= tolerance
    return [(int(j), int(k)) for j, k in np.argwhere(unknown)]
