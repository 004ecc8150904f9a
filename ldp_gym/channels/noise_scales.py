"""The paper's Laplace scales and offsets."""

from __future__ import annotations

import math

from ldp_gym.core import validation

MOST_ROUNDS = 10**150
"""In a formula: floats can still take the square."""


def vector_noise_scale(num_hypotheses: int, horizon: int, epsilon: float, delta: float) -> float:
    """Algorithm 1's Laplace scale, ``(2 sqrt(2K ln(1/delta)) + sqrt(K eps)) log(KT) / eps``, eq. (8)."""
    log_kt, epsilon = log_range(num_hypotheses, horizon), validation.positive("epsilon", epsilon)
    return advanced_composition(num_hypotheses, epsilon, delta) * log_kt / epsilon


def advanced_composition(num_coordinates: int, epsilon: float, delta: float) -> float:
    """``2 sqrt(2K ln(1/delta)) + sqrt(K eps)``: eps times the scale that hides K coordinates of range 1."""
    num_coordinates = validation.whole("num_coordinates", num_coordinates, least=1)
    epsilon = validation.positive("epsilon", epsilon)
    log_delta = -math.log(validation.fraction("delta", delta))
    return 2.0 * math.sqrt(2.0 * num_coordinates * log_delta) + math.sqrt(num_coordinates * epsilon)


def single_noise_scale(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """Algorithm 2's Laplace scale, ``log(KT) / eps``, Section 5, eq. (12)."""
    return log_range(num_hypotheses, horizon) / validation.positive("epsilon", epsilon)


def offset(num_hypotheses: int, horizon: int, noise_scale: float, gamma: float | None = None) -> float:
    """``c'(gamma)``: the noise scale times ``gamma + log K + log T``, eqs. (9) and (13)."""
    noise_scale = validation.positive("noise_scale", noise_scale)
    return noise_scale * (resolved_gamma(gamma, horizon) + log_range(num_hypotheses, horizon))


def log_range(num_hypotheses: int, horizon: int) -> float:
    """``log(KT)``, the range of a clipped log-likelihood."""
    num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    horizon = validation.whole("horizon (T)", horizon, least=2, most=MOST_ROUNDS)
    return math.log(num_hypotheses) + math.log(horizon)


def resolved_gamma(gamma: float | None, horizon: int) -> float:
    """``gamma`` as given, or log T."""
    rounds = validation.whole("horizon (T)", horizon, least=2, most=MOST_ROUNDS)
    return math.log(rounds) if gamma is None else validation.positive("gamma", gamma)
