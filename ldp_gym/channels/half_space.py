"""A random half-space of the labels, and one private bit that says on which side the label lies.

Label y is the point ``u_y = (f_2(x)[y] - f_1(x)[y], ..., f_K(x)[y] - f_1(x)[y])``. A plane through
the origin is a *contrast* of the hypotheses: coefficients c that sum to 0. They are ``L^-T g``, g
standard normal, where ``L L^T = A = sum_y u_y u_y^T / tau_y``, and tau are the Lewis weights,
``tau_y = |L^-1 u_y|``, a fixed point. docs/proofs.md proves, for mixtures f, p of the hypotheses
and S the positive side,

    ``E (f(S) - p(S))^2 >= 2 TV(f, p)^2 / (pi d)``,

where d is the rank of the differences ``f_k - f_1``, at most ``min(K, M) - 1``. The bounds on the
TV-risk (Theorem 3) and on the KL-risk (Theorem 4 of docs/theory.md) follow. In floats a hypothesis
within :data:`SAME` of the span of others counts as one of the span, which costs at most
``2 SAME (1 + sqrt(pi d / 2))`` of the TV. The u_y are in the coordinates of a basis, so that at
most ``d + 1`` coefficients are not 0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.bit import BitChannel, Terms, differences, label_sides
from ldp_gym.core import validation
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    at,
    sums_in_order,
    uniform_distribution,
)
from ldp_gym.core.sampling import normal

_LEWIS_STEPS = 8
"""Number of fixed-point steps for the Lewis weights; each halves their error, in logarithms."""

SAME = 1e-8
"""Total variation from the span of the others within which a hypothesis counts as part of it."""

_APART = 1e-3
"""Least distance of a basis row from the span of earlier ones, over the largest difference."""

_NEARLY_LARGEST = 0.7
"""Share of the largest distance from the span at which a row is taken into a basis."""

_NUMBERS_AT_ONCE = 2**19
"""Size of the tables, in numbers, that are worked on together, so that calls cost little."""


class HalfSpace(BitChannel):
    """A random contrast of the hypotheses: does it favour the label?

    Public coins draw a contrast: coefficients c of the hypotheses that sum to 0, normal in a
    geometry (Lewis weights) in which a third hypothesis cannot hide the difference of two others.
    The user answers whether ``sum_k c_k f_k(x)[y]`` is positive, flipped with probability
    ``1 / (e^eps + 1)``; where the sum is 0, a private coin answers. The message is the contrast,
    scaled to a largest coefficient of 1, with negative coefficients for the hypotheses that like
    labels of the answered side.

    Example:
        K = 3, eps = 1 (flip probability 0.269). Hypotheses 1 and 2 differ in labels 0 and 1 only,
        and the third likes both of these better than either, so ``split`` never tells 1 from 2. The
        contrast (1, -1, 0) does: label 0 is on its positive side, label 1 on the other, and label
        2, on neither, tosses a coin. The probability of the answer "positive" under each
        hypothesis:

        >>> table = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
        >>> message = np.array([-1.0, 1.0, 0.0])
        >>> np.exp(HalfSpace(3, 3, 100).log_likelihood(message, table)).round(3).tolist()
        [0.546, 0.454, 0.5]

    Privacy: the contrast does not depend on the label. Given the contrast, an answer has
    probability ``e^eps / (e^eps + 1)`` or ``1 / (e^eps + 1)``, or 1/2 on the plane, so the ratio
    for two labels is at most ``e^eps``.

    When to use it: users answer all at once, and nothing is known of class and contexts: it is
    never blind, and Bayes' averaged TV is at most :func:`ldp_gym.theory.half_space_tv_bound`,
    whatever M, but for the little that rounding and stopping at eight Lewis steps cost
    (docs/proofs.md). Its KL-risk, averaged over a uniform truth, is at most
    :func:`ldp_gym.theory.half_space_kl_bound` (Theorem 4 of docs/theory.md). A new table takes time
    of order ``M min(K, M)^2``, seconds where both are 500; min(K, M) is at most 32,768.
    ``turned=0.5`` pays less on random tables. When not: an adaptive channel pays less where users
    can wait for each other, and above eps = 2 one bit is too little.

    The arguments that are not listed here are those of every :class:`Channel`.

    Args:
        turned: probability, in [0, 1), of turning the plane to where the hypotheses differ most on
            average (:func:`turn_contrast`). A public coin decides, so that the theorem's bound on
            the sum of TV^2 grows by the factor ``1 / (1 - turned)``.
    """

    def __init__(self, *sizes: int, turned: float = 0.0, **options: Any) -> None:
        super().__init__(*sizes, **options)
        validation.fits_memory("min(K, M) - 1", self._dimensions, self._dimensions, "a basis")
        self.turned = validation.probability_below_one("turned", turned)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: one per dimension, and one to decide about turning."""
        return self._dimensions + (self.turned > 0.0)

    @property
    def _dimensions(self) -> int:
        """Largest rank of the hypotheses' differences: ``min(K, M) - 1``."""
        return min(self.num_hypotheses, self.num_labels) - 1

    def _terms(self, candidates: FloatArray) -> Terms:
        """Return the differences from the first hypothesis: they keep their digits."""
        return differences(candidates)

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrasts ``(..., K)`` that public coins draw, turned or not."""
        contrast = self._plane(coins[..., : self._dimensions], candidates)
        if self.turned == 0.0:
            return contrast
        weights = uniform_distribution(self.num_hypotheses)
        turned = turn_contrast(contrast, candidates, differences(candidates), weights)
        return np.where(coins[..., -1:] < self.turned, turned, contrast)

    def _plane(self, coins: FloatArray, candidates: FloatArray) -> FloatArray:
        """Return the contrasts ``(..., K)`` of random planes, for uniforms ``(..., n)``.

        The coefficients of the hypotheses of a basis are ``L^-T g``, for normal numbers g and the
        triangular factor L of the table's geometry (:class:`LewisFactor`). The first hypothesis
        gets minus their sum, and the others 0. A contrast is scaled to a largest coefficient of 1.
        """
        if candidates.ndim == 2:
            factor = _kept_factor(np.ascontiguousarray(candidates).tobytes(), candidates.shape)
        else:
            factor = _lewis_factor(candidates.reshape(-1, *candidates.shape[-2:]))

        # The axis of the n dimensions comes first from here on. Behind it, the tables' and the
        # coins' leading axes broadcast, so that both need the same number of them.
        leading_axes = max(coins.ndim - 1, candidates.ndim - 2)
        tables = _with_axes(candidates.shape[:-2], leading_axes)
        noise = np.moveaxis(normal(coins), -1, 0)
        noise = noise.reshape(len(noise), *_with_axes(coins.shape[:-1], leading_axes))
        lower = factor.lower.reshape(*factor.lower.shape[:2], *tables)
        inverse = factor.inverse.reshape(-1, *tables)
        basis = factor.basis.reshape(-1, *tables)
        coefficients = _solve_transposed(lower, inverse, noise)

        # A basis of fewer than n hypotheses is filled up with the index K: an extra row, dropped
        # afterwards, takes these coefficients.
        contrast = np.zeros((self.num_hypotheses + 1, *coefficients.shape[1:]))
        np.put_along_axis(contrast, basis, coefficients, axis=0)
        contrast[0] = -sums_in_order(np.moveaxis(coefficients, 0, -1))[..., 0]
        contrast = np.moveaxis(contrast[:-1], 0, -1)

        largest = np.abs(contrast).max(axis=-1, keepdims=True)
        return contrast / np.where(largest > 0.0, largest, 1.0)


def _with_axes(shape: tuple[int, ...], number: int) -> tuple[int, ...]:
    """Return a shape with ones in front, so that it has the given number of axes.

    Example:
        >>> _with_axes((5,), 3)
        (1, 1, 5)
    """
    return (1,) * (number - len(shape)) + shape


def turn_contrast(
    contrast: FloatArray, candidates: FloatArray, terms: Terms, weights: FloatArray
) -> FloatArray:
    """Turn contrasts so that the answers of hypotheses differ more on average.

    ``V(S) = sum_k w_k (f_k(S) - f(S))^2`` with ``f = sum_k w_k f_k`` measures how much the answers
    about a set S of labels differ. S is replaced by the set S' of the labels y with
    ``sum_k w_k (f_k(S) - f(S)) f_k[y] > 0``, which maximises the covariance of ``f_k(S)`` and
    ``f_k(S')``. At S the covariance is V(S), so at S' it is at least that, and by Cauchy and
    Schwarz ``V(S') >= V(S)``.

    Args:
        contrast: the contrasts, ``(..., K)``; S has the labels on their positive sides.
        candidates: ``(..., K, M)``.
        terms: the :func:`differences` of the candidates.
        weights: w, ``(..., K)``.

    Example:
        K = 3, weights (0.6, 0.25, 0.15). The contrast (1, -1, 0) has label 0 on its positive side,
        with probabilities (0.6, 0.3, 0.1), 0.45 on average. It is turned to (1, -0.42, -0.58),
        which has label 1 on that side too: the answers (0.9, 0.7, 0.2) tell the likely hypotheses
        apart better.

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> contrast = np.array([1.0, -1.0, 0.0])
        >>> weights = np.array([0.6, 0.25, 0.15])
        >>> turn_contrast(contrast, table, differences(table), weights).round(2).tolist()
        [1.0, -0.42, -0.58]
    """
    sides = label_sides(contrast, terms.values, terms.sizes)
    answers = sums_in_order(candidates * sides[..., None, :])[..., 0]  # f_k(S)

    # Differences from the likeliest hypothesis: where all nearly agree, they keep their digits.
    likeliest = np.broadcast_to(weights.argmax(axis=-1), answers.shape[:-1])
    answers -= at(answers, likeliest)[..., None]
    mean_answer = sums_in_order(weights * answers)
    turned = weights * (answers - mean_answer)

    largest = np.abs(turned).max(axis=-1, keepdims=True)
    answers_differ = largest > 0.0
    return np.where(answers_differ, turned / np.where(answers_differ, largest, 1.0), contrast)


# -- The geometry of tables (K, M, B): elementwise along the batch, so that no bit depends on it


class LewisFactor(NamedTuple):
    """Geometry of B tables: the triangular factor L of A, in the coordinates of a basis.

    ``A = sum_y u_y u_y^T / tau_y``, where ``u_y`` has the differences ``f_k[y] - f_1[y]`` of the
    hypotheses k of the basis, and tau are the Lewis weights. A basis has at most n hypotheses.

    Attributes:
        lower: L below its diagonal, ``(n, n, B)``.
        inverse: 1 over the diagonal of L, ``(n, B)``; 0 where the basis has ended.
        basis: the hypotheses of the basis, counted from 0, ``(n, B)``; K where it has ended.
    """

    lower: FloatArray
    inverse: FloatArray
    basis: IntArray


class _Triangle(NamedTuple):
    """Triangular factor of ``A = sum_y u_y u_y^T / tau_y``, for B tables.

    Attributes:
        lower: L below its diagonal, ``(d, d, B)``.
        inverse: 1 over the diagonal of L, ``(d, B)``; 0 for rows that are not used.
        norms: ``|L^-1 u_y|``, ``(M, B)``: the next Lewis weights.
        distances: total variation of each row from the span of those before it, ``(d, B)``; zeros
            unless they were measured.
    """

    lower: FloatArray
    inverse: FloatArray
    norms: FloatArray
    distances: FloatArray


@lru_cache(maxsize=16)
def _kept_factor(table: bytes, shape: tuple[int, int]) -> LewisFactor:
    """Return the geometry of one table, given as the bytes of its numbers, a key for the cache."""
    return _lewis_factor(np.frombuffer(table).reshape(1, *shape))


def _solve_transposed(lower: FloatArray, inverse: FloatArray, noise: FloatArray) -> FloatArray:
    """Return ``L^-T g``, ``(n, ...)``, for numbers g ``(n, ...)``, by back substitution.

    Args:
        lower: L below its diagonal, ``(n, n, ...)``.
        inverse: 1 over the diagonal of L, ``(n, ...)``.
        noise: g, ``(n, ...)``.
    """
    solution = np.broadcast_to(noise, np.broadcast_shapes(inverse.shape, noise.shape)).copy()
    for j in reversed(range(len(solution))):
        solution[j] *= inverse[j]
        solution[:j] -= lower[j, :j] * solution[j]
    return solution


def _lewis_factor(tables: FloatArray) -> LewisFactor:
    """Return the geometry of tables ``(B, K, M)``, a few tables at a time to save memory."""
    at_once = max(1, _NUMBERS_AT_ONCE // tables[0].size)
    starts = range(0, len(tables), at_once)
    factors = [_factor_chunk(tables[start : start + at_once]) for start in starts]
    return LewisFactor(
        lower=np.concatenate([factor.lower for factor in factors], axis=-1),
        inverse=np.concatenate([factor.inverse for factor in factors], axis=-1),
        basis=np.concatenate([factor.basis for factor in factors], axis=-1),
    )


def _factor_chunk(tables: FloatArray) -> LewisFactor:
    """Return the geometry of tables ``(B, K, M)``, with Lewis weights by fixed-point iteration.

    The first hypotheses are the basis, unless one of them is nearly in the span of those before it;
    for such tables a basis is looked for.
    """
    differences_of_tables = differences(tables).values[:, 1:]
    points = np.ascontiguousarray(np.moveaxis(differences_of_tables, 0, -1))  # u, (K - 1, M, B)
    lengths = np.sqrt(sum(np.square(row) for row in points))  # |u_y|, (M, B)

    size = min(len(points), len(lengths) - 1)
    basis = np.repeat(np.arange(size)[:, None], len(tables), axis=1)
    used = np.ones(basis.shape, dtype=np.bool_)
    triangle = _triangular(points[:size], lengths, used, measure_distances=True)
    weights = triangle.norms
    largest_distance = np.maximum.reduce(0.5 * _sum_labels(np.abs(points)), axis=0)
    is_near = triangle.distances <= np.maximum(_APART * largest_distance, SAME)
    is_bad = is_near.any(axis=0)

    if is_bad.any():
        # From here on the points are those of the basis of each table.
        basis[:, is_bad] = _find_basis(points[..., is_bad], lengths[:, is_bad])
        used = basis < len(points)
        rows = np.where(used, basis, 0)
        points = np.take_along_axis(points, rows[:, None], axis=0)
        # These start far from the fixed point, and take twice as many steps.
        new_weights = lengths[:, is_bad]
        for _ in range(1 + _LEWIS_STEPS):
            new_weights = _triangular(points[..., is_bad], new_weights, used[:, is_bad]).norms
        weights[:, is_bad] = new_weights

    for _ in range(_LEWIS_STEPS):
        triangle = _triangular(points[:size], weights, used)
        weights = triangle.norms
    return LewisFactor(triangle.lower, triangle.inverse, basis + 1)


def _find_basis(points: FloatArray, weights: FloatArray) -> IntArray:
    """Find rows of points ``(K - 1, M, B)`` from whose span all others are within :data:`SAME`.

    By Gram and Schmidt on ``u_y / sqrt(w_y)``: the next row is the first whose total variation from
    the span is nearly the largest. Returns the rows' indices ``(d, B)``; K - 1 where the basis has
    ended.
    """
    roots = np.sqrt(weights)
    remainders = points * _reciprocals(roots)
    max_size = min(len(points), len(roots) - 1)
    basis = np.full((max_size, points.shape[-1]), len(points))
    for chosen in basis:
        distances = 0.5 * _sum_labels(np.abs(remainders) * roots)
        largest = np.maximum.reduce(distances, axis=0)
        goes_on = largest > SAME
        if not goes_on.any():
            break
        row = (distances >= _NEARLY_LARGEST * largest).argmax(axis=0)
        chosen[goes_on] = row[goes_on]

        # Take the direction of the chosen row out of all rows.
        unit = np.take_along_axis(remainders, row[None, None], axis=0)[0]
        unit *= goes_on * _reciprocals(np.sqrt(_sum_labels(np.square(unit))))
        remainders -= _sum_labels(remainders * unit)[:, None] * unit
        np.put_along_axis(remainders, row[None, None], 0.0, axis=0)
    return basis


def _triangular(
    points: FloatArray,
    weights: FloatArray,
    used: BoolArray,
    *,
    measure_distances: bool = False,
) -> _Triangle:
    """Factor ``A = sum_y u_y u_y^T / tau_y`` for points u ``(d, M, B)`` and weights tau ``(M, B)``.

    By Gram and Schmidt on ``u_y / sqrt(tau_y)``: A itself has half of the digits of small
    distances. Rows that are not ``used`` ``(d, B)`` count as 0. Distances are measured on request:
    they take a tenth of the time.
    """
    roots = np.sqrt(weights)
    remainders = points * _reciprocals(roots)
    size = len(points)
    num_tables = points.shape[-1]
    lower = np.zeros((size, size, num_tables))
    inverse = np.zeros((size, num_tables))
    distances = np.zeros((size, num_tables))
    squares = np.zeros_like(weights)
    for k in range(size):
        if measure_distances:
            distances[k] = 0.5 * _sum_labels(np.abs(remainders[k]) * roots)
        length = np.sqrt(_sum_labels(np.square(remainders[k])))
        inverse[k] = used[k] * _reciprocals(length)
        remainders[k] *= inverse[k]
        squares += np.square(remainders[k])
        lower[k + 1 :, k] = _sum_labels(remainders[k + 1 :] * remainders[k])
        remainders[k + 1 :] -= lower[k + 1 :, k, None] * remainders[k]
    return _Triangle(lower, inverse, roots * np.sqrt(squares), distances)


def _reciprocals(lengths: FloatArray) -> FloatArray:
    """Return 1 over each length; 0 for 0."""
    return np.divide(1.0, lengths, where=lengths > 0.0, out=np.zeros_like(lengths))


def _sum_labels(terms: FloatArray) -> FloatArray:
    """Return the sums ``(..., B)`` over the labels of ``(..., M, B)``, by halves."""
    return sums_in_order(np.swapaxes(terms, -1, -2))[..., 0]
