"""Losses of a prediction: the KL divergence in nats, and the total variation."""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import ZERO, FloatArray, expectations, has_zero, inner, mixture, row_sums


def kl(p: FloatArray, q: FloatArray, negentropy_p: FloatArray | None = None) -> FloatArray:
    """``KL(p, q) = sum_y p[y] log(p[y] / q[y])`` in nats along the last axis; inf where q misses p.

    Args:
        p: the truth, ``(..., M)``.
        q: the prediction, ``(..., M)``.
        negentropy_p: :func:`negentropy` of p, where it is known.

    Example:
        >>> float(kl(np.array([0.5, 0.5]), np.array([0.25, 0.75])).round(6))
        0.143841
        >>> kl(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [0.0, inf]
    """
    if negentropy_p is None:
        negentropy_p = negentropy(p)
    if has_zero(q):
        with np.errstate(
            divide="ignore"
        ):  # a label that q misses costs inf; one that p misses too, nothing
            log_q = np.where(p > 0.0, np.log(q), 0.0)
    else:
        log_q = np.log(q)
    return np.maximum(negentropy_p - inner(p, log_q), ZERO)


def kl_to_each(p: FloatArray, candidates: FloatArray, negentropy_p: FloatArray) -> FloatArray:
    """``KL(p, f_k)`` of every hypothesis, ``(..., K)``, from p ``(..., M)`` and candidates ``(..., K, M)``.

    Example:
        >>> p, table = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> kl_to_each(p, table, negentropy(p)).round(3).tolist()
        [0.0, inf, 0.693]
    """
    if not has_zero(candidates):
        return np.maximum(negentropy_p[..., None] - expectations(np.log(candidates), p), ZERO)
    zeros = candidates == 0.0
    divergences = kl_to_each(p, np.where(zeros, 1.0, candidates), negentropy_p)
    divergences[expectations(zeros.astype(np.float64), p) > 0.0] = np.inf
    return divergences


def negentropy(p: FloatArray) -> FloatArray:
    """``sum_y p[y] log p[y]`` along the last axis."""
    return inner(p, np.log(np.where(p > 0.0, p, 1.0) if has_zero(p) else p))


def mixture_loss(
    weights: FloatArray, candidates: FloatArray, negentropies: FloatArray
) -> FloatArray:
    """Expected loss ``sum_k w_k KL(f_k, sum_j w_j f_j)`` of posterior means, from the negentropies of f_k."""
    return np.einsum("...k,...k->...", weights, negentropies) - negentropy(
        mixture(weights, candidates)
    )


def tv(p: FloatArray, q: FloatArray) -> FloatArray:
    """``|p - q|_TV = sum_y max(p[y] - q[y], 0)`` along the last axis."""
    shared = np.minimum(p, q)  # a maximum with 0 would take three times as long
    return row_sums(np.subtract(p, shared, out=shared))
