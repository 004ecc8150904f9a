"""Noise scales and the privacy of additive noise: the paper's formulas, and tighter accounting.

A vector of K numbers is revealed with independent noise. Between two labels coordinate j moves by
at most ``shift_j`` in units of its noise scale. Laplace noise is accounted numerically by privacy
loss distributions (``dp-accounting``, in the extra ``privacy``), Gaussian noise in closed form
(Balle and Wang 2018).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra

_POINTS = 500
"""Number of steps of the largest shift's privacy loss: the bounds agree to four digits."""

_LARGEST_ACCOUNTED_EPSILON = 50.0
"""Largest eps of the numerical accounting; above it the closed forms are used."""

MOST_ROUNDS = 10**150
"""Largest T of a formula: floats can still take its square."""


class DeltaBounds(NamedTuple):
    """Lower and upper bound on the least delta at a given eps."""

    lower: float
    upper: float


# -- The paper's scales and offsets


def vector_noise_scale(num_hypotheses: int, horizon: int, epsilon: float, delta: float) -> float:
    """Return Algorithm 1's Laplace scale ``(2 sqrt(2K ln(1/delta)) + sqrt(K eps)) log(KT) / eps``.

    It is that of eq. (8), for K = ``num_hypotheses`` and T = ``horizon``.
    """
    log_kt = log_range(num_hypotheses, horizon)
    return advanced_composition(num_hypotheses, epsilon, delta) * log_kt / epsilon


def advanced_composition(num_coordinates: int, epsilon: float, delta: float) -> float:
    """Return eps times the Laplace scale that hides K coordinates of range 1 in the paper.

    It is ``2 sqrt(2K ln(1/delta)) + sqrt(K eps)``, by advanced composition.
    """
    log_inverse_delta = -math.log(validation.fraction("delta", delta))
    num_coordinates = validation.whole("num_coordinates (K)", num_coordinates, least=1)
    epsilon = validation.positive("epsilon", epsilon)
    term_of_delta = 2.0 * math.sqrt(2.0 * num_coordinates * log_inverse_delta)
    term_of_epsilon = math.sqrt(num_coordinates * epsilon)
    return term_of_delta + term_of_epsilon


def single_noise_scale(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Return Algorithm 2's Laplace scale ``log(KT) / eps``, Section 5, eq. (12)."""
    return log_range(num_hypotheses, horizon) / validation.positive("epsilon", epsilon)


def offset(
    num_hypotheses: int, horizon: int, noise_scale: float, gamma: float | None = None
) -> float:
    """Return the offset ``c'(gamma)``: the noise scale times ``gamma + log K + log T``.

    With probability ``1 - e^-gamma`` no Laplace noise of the game exceeds it (eqs. (9) and (13)).
    """
    noise_scale = validation.positive("noise_scale", noise_scale)
    return noise_scale * (resolved_gamma(gamma, horizon) + log_range(num_hypotheses, horizon))


def log_range(num_hypotheses: int, horizon: int) -> float:
    """Return ``log(KT)``, the largest range of a clipped log-likelihood in nats."""
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    horizon = validation.whole("horizon (T)", horizon, least=2, most=MOST_ROUNDS)
    return math.log(num_hypotheses) + math.log(horizon)


def resolved_gamma(gamma: float | None, horizon: int) -> float:
    """Return gamma, which sets the offset of losses: ``log T`` when it is None.

    With probability ``1 - e^-gamma`` no noise of the game exceeds the offset.
    """
    rounds = validation.whole("horizon (T)", horizon, least=2, most=MOST_ROUNDS)
    if gamma is None:
        return math.log(rounds)
    return validation.positive("gamma", gamma)


# -- Laplace


@lru_cache(maxsize=256)
def laplace_vector_scale(num_coordinates: int, epsilon: float, delta: float) -> float:
    """Return the least Laplace scale that makes K coordinates of range 1 (eps, delta)-private.

    The scale is the least that three ways of accounting allow: pure composition, K / eps; the
    paper's advanced composition; and numerical accounting, by bisection to a relative 1e-6 from
    above.
    """
    of_pure_composition = num_coordinates
    of_advanced_composition = advanced_composition(num_coordinates, epsilon, delta)
    sufficient = min(of_pure_composition, of_advanced_composition) / epsilon
    if epsilon > _LARGEST_ACCOUNTED_EPSILON:
        return sufficient  # the numerical accounting would be too slow

    # Even a single coordinate that moves by one range, a shift of 1 / scale, has
    # delta = 1 - e^((eps - shift) / 2), so that no smaller scale than this is enough.
    insufficient = min(sufficient, 1.0 / (epsilon - 2.0 * math.log1p(-delta)))
    while sufficient > insufficient * (1.0 + 1e-6):
        middle = math.sqrt(insufficient * sufficient)
        shifts = np.full(num_coordinates, 1.0 / middle)
        if _laplace_delta(shifts, epsilon, pessimistic=True) <= delta:
            sufficient = middle
        else:
            insufficient = middle
    return sufficient


def laplace_delta(shifts: FloatArray, epsilon: float) -> DeltaBounds:
    """Bound the least delta of Laplace noise of scale 1 on coordinates that move by ``shifts``.

    Args:
        shifts: largest change of each coordinate between two labels, ``(K,)``.
        epsilon: eps.
    """
    shifts = validation.numbers("shifts", shifts)
    epsilon = validation.nonnegative("epsilon", epsilon)
    if shifts.ndim != 1 or not ((shifts >= 0.0) & (shifts < np.inf)).all():  # NaN too
        raise ValueError(
            f"shifts must be K nonnegative, finite numbers, got {validation.describe(shifts)}"
        )
    return DeltaBounds(
        lower=_laplace_delta(shifts, epsilon, pessimistic=False),
        upper=_laplace_delta(shifts, epsilon, pessimistic=True),
    )


def _laplace_delta(shifts: FloatArray, epsilon: float, *, pessimistic: bool) -> float:
    """Return a bound on the least delta of Laplace noise: an upper one if ``pessimistic``.

    Args:
        shifts: largest change of each coordinate in noise scales, ``(K,)``.
        epsilon: eps.
        pessimistic: whether privacy losses are rounded up, else down.
    """
    moving = np.sort(shifts[shifts > 0.0])
    if moving.sum() <= epsilon:
        return 0.0  # pure composition
    with extra("privacy", "accounting for vectors of Laplace noise"):
        from dp_accounting.pld import privacy_loss_distribution

    # Privacy losses of coordinates add up; equal shifts are composed at once.
    largest_shift = moving[-1]
    composed = None
    different_shifts, counts = np.unique(moving, return_counts=True)
    for shift, count in zip(different_shifts, counts, strict=True):
        losses = privacy_loss_distribution.from_laplace_mechanism(
            1.0 / shift,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=largest_shift / _POINTS,
            use_connect_dots=pessimistic,
        )
        if count > 1:
            losses = losses.self_compose(int(count))
        if composed is None:
            composed = losses
        else:
            composed = composed.compose(losses)
    assert composed is not None
    return float(composed.get_delta_for_epsilon(epsilon))


# -- Gaussian


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Return the least delta of Gaussian noise of variance 1 on a vector that moves by ``shift``.

    ``Phi(shift / 2 - eps / shift) - e^eps Phi(-shift / 2 - eps / shift)``, Balle and Wang (2018),
    Theorem 5.
    """
    from scipy.special import log_ndtr

    shift = validation.nonnegative("shift", shift)
    epsilon = validation.nonnegative("epsilon", epsilon)
    if shift == 0.0:
        return 0.0
    log_first = log_ndtr(shift / 2.0 - epsilon / shift)
    log_second = epsilon + log_ndtr(-shift / 2.0 - epsilon / shift)
    # The difference of the two terms, in logarithms; rounding must not make it negative.
    log_ratio = min(log_second - log_first, 0.0)
    return float(math.exp(log_first) * -math.expm1(log_ratio))


@lru_cache(maxsize=256)
def gaussian_vector_scale(num_coordinates: int, epsilon: float, delta: float) -> float:
    """Return the least standard deviation that makes K coordinates of range 1 (eps, delta)-private.

    The analytic Gaussian mechanism: K coordinates of range 1 move by at most sqrt(K).
    """
    from scipy.optimize import brentq

    validation.whole("num_coordinates (K)", num_coordinates, least=1)
    validation.positive("epsilon", epsilon, most=1e15)
    validation.fraction("delta", delta)

    def excess_delta(log_scale: float) -> float:
        """Return by how much the delta of a noise scale is larger than the given delta."""
        shift = math.sqrt(num_coordinates) * math.exp(-log_scale)
        return gaussian_delta(shift, epsilon) - delta

    log_scale = brentq(excess_delta, -20.0, 40.0, xtol=1e-13)
    return math.exp(log_scale) * (1.0 + 1e-12)  # rounded up
