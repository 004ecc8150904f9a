"""The laws of the noise that channels add, at unit scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldp_gym.core import sampling
from ldp_gym.core.arrays import FloatArray


@dataclass(frozen=True)
class NoiseLaw:
    """A symmetric law on the line.

    Attributes:
        draw: noise from uniforms, by inverse transform.
        log_kernel: the log density up to its constant.
        log_norm: the constant.
        variance: its variance.
        reach: how far the noise goes with probability at most ``e^-g``, as a function of g.
    """

    draw: Callable[[FloatArray], FloatArray]
    log_kernel: Callable[[FloatArray], FloatArray]
    log_norm: float
    variance: float
    reach: Callable[[float], float]


def _minus_abs(x: FloatArray) -> FloatArray:
    distance = np.abs(x)
    return np.negative(distance, out=distance)


def _minus_half_square(x: FloatArray) -> FloatArray:
    square = np.square(x)
    square *= -0.5
    return square


def _laplace_reach(g: float) -> float:
    return g


def _gauss_reach(g: float) -> float:
    return math.sqrt(2.0 * (g + math.log(2.0)))


LAPLACE = NoiseLaw(sampling.laplace, _minus_abs, -math.log(2.0), 2.0, _laplace_reach)
GAUSS = NoiseLaw(sampling.normal, _minus_half_square, -0.5 * math.log(2.0 * math.pi), 1.0, _gauss_reach)
