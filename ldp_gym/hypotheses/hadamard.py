"""Class of the lower bound (Appendix A)."""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.core import validation
from ldp_gym.hypotheses.base import Table


class Hadamard(Table):
    """The lower bound's class, Appendix A, eq. (16): pairs that no private channel tells apart.

    ``num_hypotheses = 2K`` for K pairs; ``M = N``, the power of two with ``N/2 <= K <= N - 1``. Pair i uses
    column i + 1 of the Sylvester-Hadamard matrix (column 1 is all ones)::

        p_{i,1} = (1 - H_{i+1}) / N,    p_{i,2} = p_{i,1} + a H_{i+1} / N

    Args:
        num_hypotheses: 2K, even.
        context_dim: d; the contexts have no effect.
        epsilon: the privacy level that the gap is made for.
        horizon: the horizon T that the gap is made for.
        gap: ``a`` in [0, 1]; from epsilon and the horizon when not given.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        context_dim: int = 1,
        epsilon: float = 1.0,
        horizon: int = 1000,
        gap: float | None = None,
    ) -> None:
        from scipy.linalg import hadamard as sylvester_matrix  # imported here: it takes a while

        num_hypotheses = validation.whole("num_hypotheses (2K, for K pairs)", num_hypotheses, least=2)
        if num_hypotheses % 2:
            raise ValueError(
                f"the Hadamard class comes in pairs: num_hypotheses must be even, got {num_hypotheses}"
            )
        pairs = num_hypotheses // 2
        if gap is None:
            gap = hadamard_gap(num_hypotheses, horizon, epsilon)
        validation.fits_memory("num_hypotheses", num_hypotheses, 2 * num_hypotheses, "the table")
        self.gap = validation.real("gap (a)", gap)
        if not 0.0 <= self.gap <= 1.0:
            raise ValueError(
                f"the Hadamard class needs a gap a in [0, 1], got {self.gap:.6g}: "
                f"raise the horizon to at least {hadamard_horizon(num_hypotheses, epsilon):.0f}"
            )
        order = 1 << pairs.bit_length()
        columns = sylvester_matrix(order)[1 : pairs + 1]
        first = (1.0 - columns) / order
        second = first + self.gap * columns / order
        super().__init__(np.stack([first, second], axis=1).reshape(num_hypotheses, order), context_dim)


def _distinguishability(epsilon: float) -> float:
    """``min{(e^eps - 1)^2, 1} e^eps``, infinite beyond the floats."""
    epsilon = validation.positive("epsilon", epsilon)
    if epsilon < 1e-150:
        raise ValueError(f"epsilon must be at least 1e-150, so that its square is a float; got {epsilon}")
    return min(math.expm1(min(epsilon, 1.0)) ** 2, 1.0) * (math.exp(epsilon) if epsilon < 700.0 else math.inf)


def hadamard_gap(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``a`` of Appendix A, eq. (16), for a class of ``num_hypotheses = 2K`` (K pairs)."""
    rounds = validation.whole("horizon (T)", horizon, least=1, most=10**150)
    pairs = validation.whole("num_hypotheses (2K)", num_hypotheses, least=2) / 2.0
    return math.sqrt(pairs / (9.0 * rounds * _distinguishability(epsilon)))


def hadamard_horizon(num_hypotheses: int, epsilon: float) -> float:
    """The least horizon of Theorem 3: below it the gap would exceed 1."""
    pairs = validation.whole("num_hypotheses (2K)", num_hypotheses, least=2) / 2.0
    return math.ceil(pairs / (9.0 * _distinguishability(epsilon)))
