"""What a prediction costs: the KL divergence in nats, and the total variation."""

from __future__ import annotations

import numpy as np

from ldp_gym.arrays import FloatArray


def kl(p: FloatArray, q: FloatArray) -> FloatArray:
    """``KL(p, q) = sum_y p[y] log(p[y] / q[y])`` in nats along the last axis; inf where q misses p.

    Example:
        >>> float(kl(np.array([0.5, 0.5]), np.array([0.25, 0.75])).round(6))
        0.143841
        >>> kl(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [0.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = _excess(p, q)
        missed = np.isnan(divergence)
        if missed.any():  # 0 log 0, where both are zero: such a label costs nothing
            p, q = (side[missed] for side in np.broadcast_arrays(p, q))
            divergence = np.array(divergence)
            divergence[missed] = _excess(p, np.where(p > 0.0, q, 1.0))
    return np.maximum(divergence, 0.0)


def _excess(p: FloatArray, q: FloatArray) -> FloatArray:
    """The cross-entropy of p and q above the entropy of p; NaN where a label has neither."""
    excess: FloatArray = negentropy(p) - np.einsum("...m,...m->...", p, np.log(q))
    return excess


def negentropy(p: FloatArray) -> FloatArray:
    """``sum_y p[y] log p[y]`` along the last axis."""
    total: FloatArray = np.einsum("...m,...m->...", p, np.log(np.where(p > 0.0, p, 1.0)))
    return total


def tv(p: FloatArray, q: FloatArray) -> FloatArray:
    """``|p - q|_TV = sum_y max(p[y] - q[y], 0)`` along the last axis.

    Example:
        >>> float(tv(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
        0.25
    """
    excess = np.subtract(p, q)
    np.maximum(excess, 0.0, out=excess)
    total: FloatArray = np.einsum("...m->...", excess)
    return total
