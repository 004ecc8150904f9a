"""Our lower bounds on risks: what no channel and learner can beat, with explicit constants. In nats.

The class is a star: U is uniform on N labels, and a leaf differs from U by a Hadamard column ``H_k``, times
an amplitude a (the class ``hadamard-star``). A bound holds for some truth of the star. It is the best of many
amplitudes. Channels are pure eps-private, one message per user, with public coins or without. *Interactive*
channels may depend on earlier messages; *fixed* ones do not. docs/proofs.md has the proofs.
``num_hypotheses`` is K, ``horizon`` is T.
"""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.channels.accounting import MOST_ROUNDS
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.hypotheses.families import star_amplitude

_CENTRE_AND_LEAF = 0.75 * math.log(4.0 / 3.0)
"""Jensen-Shannon divergence of U and ``U (1 + H_k)``: 0.21576 nats."""

_TWO_LEAVES = 0.5 * math.log(2.0)
"""Jensen-Shannon divergence of ``U (1 + H_j)`` and ``U (1 + H_k)``: 0.34657 nats."""

_CROSSING = 1.5936242600400401
"""Solution of ``x/2 = 1 - e^-x``: beyond it the inequality of Bretagnolle and Huber is sharper."""

_LEAST_DEVIATION = 1e-5
"""Least u at which :func:`_reverse_share` and :func:`_forward_share` are computed, lest rounding shows."""

_LARGEST_DEVIATION = 1.0 - 1e-12
"""Largest u at which the two shares are computed; they rise with u."""

_LARGEST_FLAT_AMPLITUDE = 1.0 - 1e-9
"""Largest amplitude of the star for TV, so that ``a tanh(eps/2)`` is below 1 in floats."""

_NEAR_BEST = np.geomspace(1.0 / 16.0, 16.0, 2001)
"""Multiples of the best amplitude for large T among which the best one is looked for."""

_LARGEST_EPSILON = 300.0
"""Largest eps for which bounds are computed."""

_SUMMED = 64
"""Number of rounds that are summed one by one; the rest is bounded from below by an integral."""


def interactive_kl_lower_bound(
    num_hypotheses: int, horizon: int, epsilon: float, amplitude: float | None = None
) -> float:
    """KL-risk that no interactive channel and learner can beat on ``hadamard-star``, for some truth.

    ``0.2157 a sum_{t<T} psi(t kappa / (K-1))``, where ``psi(x) = 1 - min(sqrt(x/2), sqrt(1 - e^-x))``,
    ``kappa = (a (e^{eps/2} - 1))^2 min(1, phi(u))``, ``phi(u) = (-log(1-u) - u) / u^2``, ``u = x / (1 + x)``
    and ``x = a (e^eps - 1) / 2``; of the best amplitude a unless it is given. For large T
    ``0.161 sqrt((K-1) T) / (e^{eps/2} - 1)``.
    """
    size, rounds = _checked_game(num_hypotheses, horizon, epsilon)
    if amplitude is None:
        amplitudes = _amplitudes(size, rounds, epsilon, "kl")
    else:
        amplitudes = np.array([validation.positive("amplitude (a)", amplitude, most=1.0)])

    deviation = _largest_deviation(amplitudes, epsilon)
    information = _kl_information(amplitudes, epsilon, _reverse_share(deviation))
    overlaps = _sum_of_psi(information / (size - 1), rounds)
    bounds = _CENTRE_AND_LEAF * amplitudes * overlaps
    return float(bounds.max())


def noninteractive_kl_lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """KL-risk that no fixed channel and learner can beat, for some class of size K and some truth.

    The larger of :func:`interactive_kl_lower_bound` and Fano's inequality for the K leaves of a star with
    K + 1 hypotheses: ``0.3465 a sum_{t<T} max(0, 1 - (t kappa / K + log 2) / log K)``,
    ``kappa = (a (e^{eps/2} - 1))^2 min(1, phi(u))``, ``phi(u) = ((1-u) log(1-u) + u) / u^2``, u as there.

    For ``K >= 3`` and ``T >= K log K / eps^2`` it is at least
    ``(log 2 / 4) (7/8 - log 2 / log K) sqrt(K T log K) / (e^{eps/2} - 1)``.
    """
    size, rounds = _checked_game(num_hypotheses, horizon, epsilon)
    amplitudes = _amplitudes(size, rounds, epsilon, "kl")
    deviation = _largest_deviation(amplitudes, epsilon)
    information = _kl_information(amplitudes, epsilon, _forward_share(deviation))
    errors = _sum_of_fano(information, size, rounds)
    by_fano = float((_TWO_LEAVES * amplitudes * errors).max())
    return max(by_fano, interactive_kl_lower_bound(size, rounds, epsilon))


def interactive_tv_lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Averaged TV-risk that no interactive channel and learner can beat on ``hadamard-star``, for some truth.

    With ``loss="tv"``: ``(a / (4T)) sum_{t<T} psi(t kappa / (K-1))``,
    ``kappa = (a sinh(eps/2))^2 phi(a tanh(eps/2))``, psi and phi as in :func:`interactive_kl_lower_bound`.
    For large T ``(3/16) sqrt((K-1) / T) / sinh(eps/2)``.
    """
    size, rounds = _checked_game(num_hypotheses, horizon, epsilon)
    amplitudes = np.minimum(_amplitudes(size, rounds, epsilon, "tv"), _LARGEST_FLAT_AMPLITUDE)
    deviation = amplitudes * math.tanh(epsilon / 2.0)
    information = _tv_information(amplitudes, epsilon, _reverse_share(deviation))
    overlaps = _sum_of_psi(information / (size - 1), rounds)
    bounds = amplitudes / 4.0 * overlaps / rounds
    return float(bounds.max())


def noninteractive_tv_lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Averaged TV-risk that no fixed channel and learner can beat, for some class of size K and some truth.

    The larger of :func:`interactive_tv_lower_bound` and Fano's inequality for the K leaves of a star with
    K + 1 hypotheses: ``(a / (4T)) sum_{t<T} max(0, 1 - (t kappa / K + log 2) / log K)``,
    ``kappa = (a sinh(eps/2))^2 phi(a tanh(eps/2))``, phi as in :func:`noninteractive_kl_lower_bound`.

    For ``K >= 3`` and ``T >= K log K / eps^2`` it is at least
    ``(1/8) (7/8 - log 2 / log K) sqrt(K log K / T) / sinh(eps/2)``.
    """
    size, rounds = _checked_game(num_hypotheses, horizon, epsilon)
    amplitudes = np.minimum(_amplitudes(size, rounds, epsilon, "tv"), _LARGEST_FLAT_AMPLITUDE)
    deviation = amplitudes * math.tanh(epsilon / 2.0)
    information = _tv_information(amplitudes, epsilon, _forward_share(deviation))
    errors = _sum_of_fano(information, size, rounds)
    by_fano = float((amplitudes / 4.0 * errors / rounds).max())
    return max(by_fano, interactive_tv_lower_bound(size, rounds, epsilon))


def _checked_game(num_hypotheses: int, horizon: int, epsilon: float) -> tuple[int, int]:
    """Check the arguments of a bound, and return K and T as integers."""
    size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2, most=MOST_ROUNDS)
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    validation.squarable("epsilon", epsilon, most=_LARGEST_EPSILON)
    return size, rounds


def _amplitudes(size: int, rounds: int, epsilon: float, loss: str) -> FloatArray:
    """Amplitudes a of the star to try, in (0, 1].

    In the class ``hadamard-star`` a leaf differs from the centre by a Hadamard column times a. Every
    amplitude gives a bound, so the largest may be taken.
    """
    best_for_large_horizon = star_amplitude(size, rounds, epsilon, loss)
    near_best = np.minimum(best_for_large_horizon * _NEAR_BEST, 1.0)
    return np.append(near_best, 1.0)


# -- What a message tells about the leaves -------------------------------------------------------------


def _kl_information(amplitudes: FloatArray, epsilon: float, shares: FloatArray) -> FloatArray:
    """Bound kappa on the sum over leaves of a message's KL from the centre's, on the star for KL.

    ``kappa = (a (e^{eps/2} - 1))^2 min(1, c)``, for amplitudes a and shares c of the chi-square divergence.
    """
    chi_squares = np.square(amplitudes * math.expm1(epsilon / 2.0))
    return chi_squares * np.minimum(1.0, shares)


def _tv_information(amplitudes: FloatArray, epsilon: float, shares: FloatArray) -> FloatArray:
    """Bound kappa on the sum over leaves of a message's KL from the centre's, on the star for TV.

    ``kappa = (a sinh(eps/2))^2 c``, for amplitudes a and shares c of the chi-square divergence.
    """
    chi_squares = np.square(amplitudes * math.sinh(epsilon / 2.0))
    return chi_squares * shares


def _largest_deviation(amplitudes: FloatArray, epsilon: float) -> FloatArray:
    """``u``: under a leaf of the star for KL, a message has at least 1 - u of its chance at the centre."""
    ratio = amplitudes * (math.expm1(epsilon) / 2.0)
    return ratio / (1.0 + ratio)


def _reverse_share(u: FloatArray) -> FloatArray:
    """``(-log(1-u) - u) / u^2``: the least c with ``x - log(1+x) <= c x^2`` for all ``x >= -u``."""
    v = np.clip(u, _LEAST_DEVIATION, _LARGEST_DEVIATION)
    return (-np.log1p(-v) - v) / np.square(v)


def _forward_share(u: FloatArray) -> FloatArray:
    """``((1-u) log(1-u) + u) / u^2``: the least c with ``(1+x) log(1+x) - x <= c x^2`` for ``x >= -u``."""
    v = np.clip(u, _LEAST_DEVIATION, _LARGEST_DEVIATION)
    return ((1.0 - v) * np.log1p(-v) + v) / np.square(v)


# -- Sums over the rounds ------------------------------------------------------------------------------


def _sum_of_fano(information: FloatArray, size: int, rounds: int) -> FloatArray:
    """``sum_{t<T} max(0, 1 - (t kappa / K + log 2) / log K)``: Fano's bounds on errors, summed.

    The terms fall by the same amount, so the sum of the positive ones is their number times their mean.

    Args:
        information: kappa, the information of a message summed over the leaves, for each amplitude.
        size: K.
        rounds: T.
    """
    first = 1.0 - math.log(2.0) / math.log(size)
    decrease = information / (size * math.log(size))
    num_positive = np.floor(first / np.maximum(decrease, np.finfo(np.float64).tiny)) + 1.0
    num_terms = np.minimum(rounds, num_positive)
    mean: FloatArray = first - decrease * (num_terms - 1.0) / 2.0
    return num_terms * mean


def _sum_of_psi(rate: FloatArray, rounds: int) -> FloatArray:
    """Lower bound on ``sum_{t<T} psi(rate t)``, with ``psi(x) = 1 - min(sqrt(x/2), sqrt(1 - e^-x))``.

    The first 64 terms are summed. As psi is convex, trapezoids are above it, so the other terms sum to at
    least the integral from 64 to T plus half of the difference of psi at these two ends.

    Args:
        rate: information of a round, for each amplitude.
        rounds: T.
    """
    head = min(rounds, _SUMMED)
    one_by_one: FloatArray = _psi(np.multiply.outer(np.arange(head), rate)).sum(axis=0)
    integral = rounds * _mean_psi(rate * rounds) - head * _mean_psi(rate * head)
    ends = (_psi(rate * head) - _psi(rate * rounds)) / 2.0
    return one_by_one + integral + ends


def _psi(x: FloatArray) -> FloatArray:
    """``psi(x) = 1 - min(sqrt(x/2), sqrt(1 - e^-x))``: lower bound on ``1 - TV`` of laws with a KL of x."""
    by_pinsker = np.sqrt(x / 2.0)
    by_bretagnolle_huber = np.sqrt(-np.expm1(-x))
    return 1.0 - np.minimum(by_pinsker, by_bretagnolle_huber)


def _mean_psi(x: FloatArray) -> FloatArray:
    """Mean on [0, x] of ``psi(x) = 1 - min(sqrt(x/2), sqrt(1 - e^-x))``.

    The first square root is the smaller one up to the crossing; there the mean is ``1 - (sqrt(2) / 3)
    sqrt(x)``.
    """
    start = np.minimum(x, _CROSSING)
    mean_of_start = 1.0 - math.sqrt(2.0) / 3.0 * np.sqrt(start)

    beyond = np.maximum(x, _CROSSING)
    integral_beyond = _huber_integral(beyond) - _huber_integral(start)
    mean_of_all = (start * mean_of_start + integral_beyond) / beyond
    return np.where(x <= _CROSSING, mean_of_start, mean_of_all)


def _huber_integral(x: FloatArray) -> FloatArray:
    """``2u - 2 log(1+u)`` with ``u = sqrt(1 - e^-x)``: an antiderivative of ``1 - sqrt(1 - e^-x)``."""
    u = np.sqrt(-np.expm1(-x))
    return 2.0 * u - 2.0 * np.log1p(u)
