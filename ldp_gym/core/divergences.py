"""Divergences of a prediction from the truth's distribution, and the entropy that they need."""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import ZERO, FloatArray, expectations, has_zero, inner, mixture, row_sums


def kl(p: FloatArray, q: FloatArray, negentropy_p: FloatArray | None = None) -> FloatArray:
    """Return ``KL(p, q) = sum_y p[y] log(p[y] / q[y])`` in nats along the last axis.

    It is inf where q is 0 and p is not.

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
        # A label that only q excludes costs inf; one that p excludes costs nothing.
        with np.errstate(divide="ignore"):
            log_q = np.where(p > 0.0, np.log(q), 0.0)
    else:
        log_q = np.log(q)
    return np.maximum(negentropy_p - inner(p, log_q), ZERO)


def kl_to_each(p: FloatArray, candidates: FloatArray, negentropy_p: FloatArray) -> FloatArray:
    """Return the divergences ``KL(p, f_k)`` from p to each hypothesis, in nats, ``(..., K)``.

    Args:
        p: the truth, ``(..., M)``.
        candidates: the hypotheses' distributions ``f_k``, ``(..., K, M)``.
        negentropy_p: ``sum_y p[y] log p[y]``, ``(...)``.

    Example:
        >>> p, table = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> kl_to_each(p, table, negentropy(p)).round(3).tolist()
        [0.0, inf, 0.693]
    """
    if not has_zero(candidates):
        mean_logs = expectations(np.log(candidates), p)
        return np.maximum(negentropy_p[..., None] - mean_logs, ZERO)

    # A hypothesis that excludes a label of the truth has an infinite divergence; for the others the
    # excluded labels do not count.
    zeros = candidates == 0.0
    divergences = kl_to_each(p, np.where(zeros, 1.0, candidates), negentropy_p)
    excluded_mass = expectations(zeros.astype(np.float64), p)
    divergences[excluded_mass > 0.0] = np.inf
    return divergences


def negentropy(p: FloatArray) -> FloatArray:
    """Return minus the entropy, ``sum_y p[y] log p[y]``, along the last axis; 0 log 0 is 0.

    Example:
        >>> float(negentropy(np.array([0.5, 0.5, 0.0])).round(4))
        -0.6931
    """
    positive = np.where(p > 0.0, p, 1.0) if has_zero(p) else p
    return inner(p, np.log(positive))


def mixture_loss(
    weights: FloatArray, candidates: FloatArray, negentropies: FloatArray
) -> FloatArray:
    """Return the expected KL loss of the mixture if the truth is drawn from its weights, ``(...)``.

    It is ``sum_k w_k KL(f_k, sum_j w_j f_j)``.

    Args:
        weights: ``(..., K)``.
        candidates: ``(..., K, M)``.
        negentropies: :func:`negentropy` of the candidates, ``(..., K)``.

    Example:
        >>> table = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> float(mixture_loss(np.array([0.5, 0.5]), table, negentropy(table)).round(4))
        0.6931
    """
    return mean_loss(weights, mixture(weights, candidates), negentropies)


def mean_loss(weights: FloatArray, mean: FloatArray, negentropies: FloatArray) -> FloatArray:
    """Return :func:`mixture_loss` where the mixture ``(..., M)`` is known already.

    Example:
        >>> table = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> halves = np.array([0.5, 0.5])
        >>> float(mean_loss(halves, halves @ table, negentropy(table)).round(4))
        0.6931
    """
    mean_negentropy = np.einsum("...k,...k->...", weights, negentropies)
    return mean_negentropy - negentropy(mean)


def tv(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the total variation ``sum_y max(p[y] - q[y], 0)`` along the last axis.

    Example:
        >>> float(tv(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])))
        0.5
    """
    shared = np.minimum(p, q)  # a maximum with 0 would take three times as long
    return row_sums(np.subtract(p, shared, out=shared))


def squared_hellinger(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the squared Hellinger distance along the last axis.

    It is ``(1/2) sum_y (sqrt(p[y]) - sqrt(q[y]))^2``.

    Example:
        >>> squared_hellinger(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [0.0, 1.0]
    """
    difference = np.sqrt(p) - np.sqrt(q)
    return inner(difference, difference) / 2.0


def chi_square(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the chi-square divergence ``sum_y (p[y] - q[y])^2 / q[y]`` along the last axis.

    It is inf where q is 0 and p is not.

    Example:
        >>> p = np.array([1.0, 0.0])
        >>> chi_square(p, np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 0.0, inf]
    """
    difference = p - q
    # A label that only q excludes costs inf; one that both exclude costs nothing.
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.divide(difference, q, out=np.zeros(difference.shape), where=difference != 0.0)
        return inner(difference, ratio)
