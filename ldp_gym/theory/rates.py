"""Our bounds with explicit constants, in nats: upper bounds for particular channels, and lower bounds.

Every truth is a member, every user sends one eps-private message (delta = 0), and public coins are allowed;
contexts may be chosen by anyone, even by someone who knows the truth, before the coins of their round.
*Interactive* means that a channel may depend on earlier messages (sequentially interactive). docs/proofs.md
has the proofs. ``num_hypotheses`` is K, ``horizon`` is T, and ``s = tanh(eps/2)``.

An upper bound also takes:

- ``epsilon``: T numbers, if every user has their own, fixed before the label: ``T / s^2`` becomes
  ``sum_t 1 / s_t^2``;
- ``prior``: positive weights ``(K,)`` that the posterior starts from; the bound is that of the worst truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.accounting import MOST_ROUNDS
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.hypotheses.families import star_amplitude


def _rounds(horizon: int) -> int:
    return validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)


def _signal(epsilon: object) -> float:
    """Signal of a private bit, ``s = tanh(eps/2)``."""
    return math.tanh(validation.squarable("epsilon", epsilon) / 2.0)


def _root_noise(epsilon: npt.ArrayLike, rounds: int) -> float:
    """Norm of the noise of all rounds, ``sqrt(sum_t 1 / s_t^2)``, with ``s_t = tanh(eps_t/2)``."""
    if np.ndim(epsilon) == 0:
        return math.sqrt(rounds) / _signal(epsilon)
    levels = validation.numbers("epsilon", epsilon)
    if levels.shape != (rounds,):
        raise ValueError(
            f"epsilon must be one number, or one for each of {rounds} users; got shape {levels.shape}"
        )
    return math.hypot(*(1.0 / _signal(level) for level in levels))


def _worst_odds(num_hypotheses: int, prior: npt.ArrayLike | None) -> tuple[float, float]:
    """``sum_k sqrt(pi_k / pi_*)`` and ``1 / pi_*`` for the worst truth; both are K for the uniform prior."""
    size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2, most=MOST_ROUNDS)
    if prior is None:
        return float(size), float(size)
    weights = game_arrays.row("prior", prior, size, place="hypothesis")
    if not weights.min() > 0.0:
        raise ValueError(
            f"prior must be positive, got {weights.min()}: such a truth is never found"
        )
    return float(np.sqrt(weights / weights.min()).sum()), float(1.0 / weights.min())


def _kl_per_tv(ratio: float) -> float:
    """``g(R) = R log R / (R - 1)``: the largest ``KL(f, p) / TV(f, p)`` where ``f <= R p``."""
    return ratio * math.log(ratio) / (ratio - 1.0)


def _rounds_for(squares: float, alpha: float) -> int:
    """Least T at which ``sqrt(squares / T) <= alpha``."""
    alpha = validation.positive("alpha", alpha)
    if math.sqrt(squares) / alpha > math.sqrt(MOST_ROUNDS):
        raise ValueError(
            f"alpha={alpha:g} takes more than {float(MOST_ROUNDS):g} rounds; raise alpha or eps"
        )
    return max(1, math.ceil(squares / alpha**2))


# -- Upper bounds: channels that read earlier messages -------------------------------------------------


def interactive_tv_bound(
    num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike, *, prior: npt.ArrayLike | None = None
) -> float:
    """``sqrt(2 (K-1) / T) / s``: averaged TV-risk of the posterior at rate 1/2 on ``challenge`` (Theorem 1).

    For one eps, T times its square bounds ``sum_t E TV_t^2``. With a prior, K is ``sum_k sqrt(pi_k / pi_*)``.
    """
    rounds = _rounds(horizon)
    squares = 2.0 * (_worst_odds(num_hypotheses, prior)[0] - 1.0)
    return math.sqrt(squares) * _root_noise(epsilon, rounds) / rounds


def interactive_sample_size(num_hypotheses: int, alpha: float, epsilon: float) -> int:
    """``2 (K-1) / (alpha s)^2``, rounded up: rounds to an averaged TV-risk of alpha, by Theorem 1."""
    return _rounds_for(
        2.0 * (_worst_odds(num_hypotheses, None)[0] - 1.0) / _signal(epsilon) ** 2, alpha
    )


def interactive_kl_bound(
    num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike, *, prior: npt.ArrayLike | None = None
) -> float:
    """``min(2 sqrt(pi (K-1) T), g(K) sqrt(2 (K-1) T)) / s``: KL-risk of the posterior at rate 1/2.

    The first is Theorem 2's (``challenge`` with ``question="all"``), the second follows from Theorem 1
    (``question="one"``), with ``g(K) = K log K / (K-1)``, and is smaller up to K = 9. Under a uniform truth,
    and contexts that know no more of it than the transcript does, Bayes' rule pays at most 1/sqrt(2) of it.
    """
    odds, _ = _worst_odds(num_hypotheses, prior)
    factor = min(2.0 * math.sqrt(math.pi), math.sqrt(2.0) * _kl_per_tv(odds))
    return factor * math.sqrt(odds - 1.0) * _root_noise(epsilon, _rounds(horizon))


# -- Upper bounds: half-space, without interaction -----------------------------------------------------


def half_space_tv_bound(
    num_hypotheses: int,
    horizon: int,
    epsilon: npt.ArrayLike,
    *,
    prior: npt.ArrayLike | None = None,
    failure: float | None = None,
) -> float:
    """``sqrt(pi (K-1) log K / (4T)) / s``: averaged TV-risk of Bayes on ``half-space``.

    For one eps, T times its square bounds ``sum_t E TV_t^2``. A prior makes ``log K`` ``log(1/pi_*)``. With
    ``failure``, the TV of an episode itself is within the bound, at all T at once, with probability
    1 - failure: ``log K`` becomes ``2 log K + 4 log(1 / failure)``, by Ville's inequality. For exact Lewis
    weights: docs/proofs.md says what the channel's few steps cost.
    """
    rounds = _rounds(horizon)
    squares = _half_space_squares(num_hypotheses, prior, failure)
    return math.sqrt(squares) * _root_noise(epsilon, rounds) / rounds


def half_space_sample_size(num_hypotheses: int, alpha: float, epsilon: float) -> int:
    """``pi (K-1) log K / (4 alpha^2 s^2)``, rounded up: rounds to an averaged TV-risk of alpha."""
    return _rounds_for(
        _half_space_squares(num_hypotheses, None, None) / _signal(epsilon) ** 2, alpha
    )


def half_space_kl_bound(
    num_hypotheses: int, horizon: int, epsilon: npt.ArrayLike, *, prior: npt.ArrayLike | None = None
) -> float:
    """``g(K) sqrt(pi T (K-1) log K / 4) / s``: KL-risk of plain Bayes on ``half-space``, without smoothing.

    ``g(K) = K log K / (K-1)``. With a prior, ``1/pi_*`` replaces K in g and in ``log K``.
    """
    root = math.sqrt(_half_space_squares(num_hypotheses, prior, None))
    return (
        _kl_per_tv(_worst_odds(num_hypotheses, prior)[1])
        * root
        * _root_noise(epsilon, _rounds(horizon))
    )


def _half_space_squares(
    num_hypotheses: int, prior: npt.ArrayLike | None, failure: float | None
) -> float:
    """Bound on ``sum_t s_t^2 TV_t^2`` of Bayes on ``half-space``."""
    surprise = math.log(_worst_odds(num_hypotheses, prior)[1])
    if failure is not None:
        surprise = 2.0 * surprise - 4.0 * math.log(validation.fraction("failure", failure))
    return math.pi * (num_hypotheses - 1) * surprise / 4.0


# -- Lower bounds --------------------------------------------------------------------------------------

_STAR_DIVERGENCE = 0.75 * math.log(4.0 / 3.0)
"""Jensen-Shannon divergence of a uniform U and ``U (1 + H)``, with H = +-1: 0.2158 nats."""

_CROSSING = 1.5936242600400401
"""Solution of ``x/2 = 1 - e^-x``: beyond it the inequality of Bretagnolle and Huber is sharper."""

_SHARES = 1e-5, 1.0 - 1e-12
"""Limits of u in the two shares, which rise with u: below the first, rounding would show."""

_SUMMED = 64
"""Number of rounds that are summed one by one; the rest is bounded from below by an integral."""


def interactive_lower_bound(
    num_hypotheses: int, horizon: int, epsilon: float, amplitude: float | None = None
) -> float:
    """KL-risk that no interactive channel and learner can beat on ``hadamard-star``, for some truth.

    ``0.2158 a sum_{t<T} psi(t kappa / (K-1))``, where ``psi(x) = 1 - min(sqrt(x/2), sqrt(1 - e^-x))``,
    ``kappa = (a (e^{eps/2} - 1))^2 phi(u)``, ``phi(u) = min(1, (-log(1-u) - u) / u^2)``, ``u = x / (1 + x)``
    and ``x = a (e^eps - 1) / 2``; of the best amplitude a unless it is given. For large T
    ``0.161 sqrt((K-1) T) / (e^{eps/2} - 1)``.
    """

    def bound(a: FloatArray, size: int, rounds: int) -> FloatArray:
        kappa = _star_information(a, epsilon, _reverse_share)
        return _STAR_DIVERGENCE * a * _sum_of_psi(kappa / (size - 1), rounds)

    return _best_amplitude(bound, num_hypotheses, horizon, epsilon, "kl", amplitude)


def noninteractive_lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Lower bound on the KL-risk of channels that ignore earlier messages, for some class of K and truth.

    The larger of :func:`interactive_lower_bound` and Fano's inequality for the K leaves of a star with
    K + 1 hypotheses: ``(a/2) log 2 sum_{t<T} max(0, 1 - (t kappa / K + log 2) / log K)``,
    ``kappa = (a (e^{eps/2} - 1))^2 ((1-u) log(1-u) + u) / u^2``, u as there.
    """

    def bound(a: FloatArray, size: int, rounds: int) -> FloatArray:
        slope = _star_information(a, epsilon, _forward_share) / (size * math.log(size))
        start = 1.0 - math.log(2.0) / math.log(size)
        counted = np.minimum(
            rounds, np.floor(start / np.maximum(slope, 1e-300)) + 1.0
        )  # terms above 0
        return 0.5 * math.log(2.0) * a * counted * (start - slope * (counted - 1.0) / 2.0)

    interactive = interactive_lower_bound(num_hypotheses, horizon, epsilon)
    return max(interactive, _best_amplitude(bound, num_hypotheses, horizon, epsilon, "kl"))


def tv_lower_bound(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Averaged TV-risk that no interactive channel and learner can beat on ``hadamard-star``, for some truth.

    With ``loss="tv"``: ``(a / (4T)) sum_{t<T} psi(t kappa / (K-1))``, ``kappa = a^2 sinh^2(eps/2) phi(a s)``
    with psi and phi of :func:`interactive_lower_bound`, but phi not cut at 1. The best of many amplitudes a;
    for large T ``(3/16) sqrt((K-1) / T) / sinh(eps/2)``.
    """

    def bound(a: FloatArray, size: int, rounds: int) -> FloatArray:
        a = np.minimum(a, 1.0 - 1e-9)  # so that a s is below 1 in floats
        kappa = np.square(a * math.sinh(epsilon / 2.0)) * _reverse_share(
            a * math.tanh(epsilon / 2.0)
        )
        return a / 4.0 * _sum_of_psi(kappa / (size - 1), rounds) / rounds

    return _best_amplitude(bound, num_hypotheses, horizon, epsilon, "tv")


def _best_amplitude(
    bound: Callable[[FloatArray, int, int], FloatArray],
    num_hypotheses: int,
    horizon: int,
    epsilon: float,
    loss: str,
    amplitude: float | None = None,
) -> float:
    """The largest of a bound's values at many amplitudes, or that at a given one; each is a bound."""
    rounds = _rounds(horizon)
    size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2, most=MOST_ROUNDS)
    validation.squarable("epsilon", epsilon, most=300.0)
    if amplitude is not None:
        tried = np.array([validation.positive("amplitude (a)", amplitude, most=1.0)])
    else:
        near = star_amplitude(size, rounds, epsilon, loss) * np.geomspace(1.0 / 16.0, 16.0, 2001)
        tried = np.append(np.minimum(near, 1.0), 1.0)
    return float(bound(tried, size, rounds).max())


def _star_information(
    amplitudes: FloatArray, epsilon: float, share: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """``kappa``: most that a message tells about the leaves of a star, summed over them."""
    ratio = amplitudes * (math.expm1(epsilon) / 2.0)
    return np.square(amplitudes * math.expm1(epsilon / 2.0)) * np.minimum(
        1.0, share(ratio / (1.0 + ratio))
    )


def _reverse_share(u: FloatArray) -> FloatArray:
    """``(-log(1-u) - u) / u^2``: the least c with ``x - log(1+x) <= c x^2`` for all ``x >= -u``."""
    v = np.clip(u, *_SHARES)
    return (-np.log1p(-v) - v) / np.square(v)


def _forward_share(u: FloatArray) -> FloatArray:
    """``((1-u) log(1-u) + u) / u^2``: the least c with ``(1+x) log(1+x) - x <= c x^2`` for ``x >= -u``."""
    v = np.clip(u, *_SHARES)
    return ((1.0 - v) * np.log1p(-v) + v) / np.square(v)


def _sum_of_psi(rate: FloatArray, rounds: int) -> FloatArray:
    """Lower bound on ``sum_{t<T} psi(rate t)``: as psi is convex, trapezia are above its integral."""
    head = min(rounds, _SUMMED)
    first: FloatArray = _psi(np.multiply.outer(np.arange(head), rate)).sum(axis=0)
    rest = rounds * _mean_psi(rate * rounds) - head * _mean_psi(rate * head)
    return first + rest + (_psi(rate * head) - _psi(rate * rounds)) / 2.0


def _psi(x: FloatArray) -> FloatArray:
    """``max(1 - sqrt(x/2), 1 - sqrt(1 - e^-x))``: least ``1 - TV`` of laws with a KL of x."""
    return 1.0 - np.minimum(np.sqrt(x / 2.0), np.sqrt(-np.expm1(-x)))


def _mean_psi(x: FloatArray) -> FloatArray:
    """The mean of psi on [0, x]; ``2u - 2 log(1+u)`` with ``u = sqrt(1 - e^-x)`` is its second integral."""

    def second(v: FloatArray) -> FloatArray:
        u = np.sqrt(-np.expm1(-v))
        return 2.0 * u - 2.0 * np.log1p(u)

    start = np.minimum(x, _CROSSING)
    mean = 1.0 - math.sqrt(2.0) / 3.0 * np.sqrt(start)
    beyond = np.maximum(x, _CROSSING)
    return np.where(x <= _CROSSING, mean, (start * mean + second(beyond) - second(start)) / beyond)
