"""A random half-space of the labels, and one private bit that says on which side the label lies.

Label y is the point ``u_y = (f_2(x)[y] - f_1(x)[y], ..., f_K(x)[y] - f_1(x)[y])``. A plane through the origin
is a *contrast* of the hypotheses: coefficients c that sum to 0. They are ``L^-T g``, g standard normal, where
``L L^T = A = sum_y u_y u_y^T / tau_y``, and tau are the Lewis weights, ``tau_y = |L^-1 u_y|``, a fixed point.
docs/theory.md proves, for mixtures f, p of the hypotheses and S the positive side,

    ``E (f(S) - p(S))^2 >= 2 TV(f, p)^2 / (pi (K - 1))``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ldp_gym.channels.base import AdaptiveChannel, Public
from ldp_gym.channels.bit import TIE, BitChannel, label_sides
from ldp_gym.core import validation
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    sums_in_order,
    uniform_distribution,
)
from ldp_gym.core.sampling import normal

_LEWIS_STEPS = 8
"""Number of fixed-point steps for the Lewis weights; each halves their error, in logarithms."""

_DEPENDENT = 1e-12
"""Share of a hypothesis' squared length below which it lies in the span of those before it."""

_ROUNDED = 1e-18
"""Squared length, in probability, below which a hypothesis is the first one up to rounding."""

_TURNS = 3
"""Number of steps that turn the plane of the adaptive channel."""

_TABLES_AT_ONCE = 256
"""Number of tables that are worked on together: they fit into a processor's cache."""


class HalfSpace(BitChannel):
    """A random contrast of the hypotheses: does it favour the label?

    Public coins draw a contrast: coefficients c of the hypotheses that sum to 0, normal in a geometry (Lewis
    weights) in which a third hypothesis cannot hide the difference of two others. The user answers whether
    ``sum_k c_k f_k(x)[y]`` is positive, flipped with probability ``1 / (e^eps + 1)``; where the sum is 0, a
    private coin answers. The message is the contrast, scaled to a largest coefficient of 1, with negative
    coefficients for the hypotheses that like labels of the answered side.

    Example:
        K = 3, eps = 1 (flip probability 0.269). Hypotheses 1 and 2 differ in labels 0 and 1 only, and the
        third likes both of these better than either, so ``split`` never tells 1 from 2. The contrast
        (1, -1, 0) does: label 0 is on its positive side, label 1 on the other, and label 2, on neither,
        tosses a coin. The probability of the answer "positive" under each hypothesis:

        >>> table = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
        >>> np.exp(HalfSpace(3, 3, 100).log_likelihood(np.array([-1.0, 1.0, 0.0]), table)).round(3).tolist()
        [0.546, 0.454, 0.5]

    Privacy: the contrast does not depend on the label. Given the contrast, an answer has probability
    ``e^eps / (e^eps + 1)`` or ``1 / (e^eps + 1)``, or 1/2 on the plane, so the ratio for two labels is at
    most ``e^eps``.

    When to use it: users answer all at once, and nothing is known of class and contexts: it is never blind,
    and Bayes' averaged TV is at most :func:`ldp_gym.theory.half_space_tv_bound`, whatever M. ``turned=0.5``
    pays less on random tables. When not: ``designed`` pays less where its limits allow it, an adaptive
    channel where users can wait for each other, and above eps = 2 one bit is too little.

    The arguments that are not listed here are those of every :class:`Channel`.

    Args:
        turned: probability, in [0, 1), of turning the plane to where the hypotheses differ most on average
            (:func:`turn_contrast`). A public coin decides, so that a share ``1 - turned`` of what the theorem
            promises is left.
    """

    def __init__(self, *sizes: int, turned: float = 0.0, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.turned = validation.probability_below_one("turned", turned)

    @property
    def num_public_coins(self) -> int:
        """One uniform for each hypothesis but the first; one more decides about turning, if there is any."""
        return self.num_hypotheses - (self.turned == 0.0)

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        contrast = self._plane(coins[..., : self.num_hypotheses - 1], candidates)
        if self.turned == 0.0:
            return contrast
        turned = turn_contrast(contrast, candidates, uniform_distribution(self.num_hypotheses), steps=1)
        return np.where(coins[..., -1:] < self.turned, turned, contrast)

    def _plane(self, coins: FloatArray, candidates: FloatArray) -> FloatArray:
        """The contrasts ``(..., K)`` of random planes."""
        if candidates.ndim == 2:
            factor = _kept_factor(np.ascontiguousarray(candidates).tobytes(), candidates.shape)
        else:
            factor = _lewis_factor(candidates.reshape(-1, *candidates.shape[-2:]))
        # As many leading axes as the coins have: what is broadcast stands behind the axis of hypotheses.
        shape = (1,) * (coins.ndim + 1 - candidates.ndim) + candidates.shape[:-2]
        noise = np.moveaxis(normal(coins), -1, 0)
        noise = noise.reshape(len(noise), *(1,) * (len(shape) + 1 - noise.ndim), *noise.shape[1:])
        lower = factor.lower.reshape(*factor.lower.shape[:2], *shape)
        solution = _solve_transposed(lower, factor.inverse.reshape(-1, *shape), noise)
        return _scaled(np.moveaxis(solution, 0, -1))


class AdaptiveHalfSpace(AdaptiveChannel, HalfSpace):
    """A contrast of the likely hypotheses: does it favour the label?

    The contrast of ``half-space`` is turned three times. A step takes the labels on the positive side, and
    replaces each coefficient by how far the hypothesis' probability of them is above the mean, times its
    public weight. The user answers as there, with flip probability ``1 / (e^eps + 1)``.

    Example:
        K = 3, posterior (0.6, 0.25, 0.15). The contrast (1, -1, 0) has label 0 on its positive side, with
        probabilities (0.6, 0.3, 0.1), 0.45 on average. A step turns it to (1, -0.42, -0.58), which has
        label 1 on that side too: the answers (0.9, 0.7, 0.2) tell the likely hypotheses apart better.

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> contrast, posterior = np.array([1.0, -1.0, 0.0]), np.array([0.6, 0.25, 0.15])
        >>> turn_contrast(contrast, table, posterior, steps=1).round(2).tolist()
        [1.0, -0.42, -0.58]

    Privacy: the contrast depends on public things only. Given the contrast, the answer is that of
    ``half-space``: its ratio for two labels is at most ``e^eps``.

    When to use it: users can wait for each other; the first choice up to about eps = 1. It is never blind: no
    step lowers the variance of the true answer under the public posterior, so under a uniform truth the
    theorem of ``half-space`` holds with the same constant (docs/theory.md). When not: on disjoint
    supports, where turning changes nothing, and at eps of 2 and more; there ``adaptive-groups`` tells more.
    """

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        weights = self._public_weights(posterior)
        weights = weights / sums_in_order(weights)
        return turn_contrast(self._plane(coins, candidates), candidates, weights, _TURNS)


def turn_contrast(
    contrast: FloatArray, candidates: FloatArray, weights: FloatArray, steps: int
) -> FloatArray:
    """Contrasts whose answers differ more between hypotheses of the given weights ``(..., K)``.

    Let ``V(S) = sum_k w_k (f_k(S) - f(S))^2`` with ``f = sum_k w_k f_k``: how much the answers about a set S
    of labels differ. A step replaces S by the set S' of the labels y with
    ``sum_k w_k (f_k(S) - f(S)) f_k[y] > 0``, which maximises the covariance of ``f_k(S)`` and ``f_k(S')``. At
    S the covariance is V(S), so at S' it is at least that, and by Cauchy and Schwarz ``V(S') >= V(S)``.
    """
    likeliest = weights.argmax(axis=-1)[..., None]
    for _ in range(steps):
        answers = sums_in_order(candidates * label_sides(contrast, candidates)[..., None, :])[..., 0]
        reference = np.broadcast_to(likeliest, (*answers.shape[:-1], 1))
        answers -= np.take_along_axis(answers, reference, axis=-1)  # small differences keep their digits
        turned = weights * (answers - sums_in_order(weights * answers))
        largest = np.abs(turned).max(axis=-1, keepdims=True)
        contrast = np.where(largest > 0.0, turned / np.where(largest > 0.0, largest, 1.0), contrast)
    return contrast


def _scaled(coefficients: FloatArray) -> FloatArray:
    """Contrasts ``(..., K)``: coefficients of all hypotheses but the first, completed and scaled."""
    first = -sums_in_order(coefficients)
    contrast = np.concatenate([first, coefficients], axis=-1)
    largest = np.abs(contrast).max(axis=-1, keepdims=True)
    return contrast / np.where(largest > 0.0, largest, 1.0)


# -- The geometry, for tables (K, M, B): all is elementwise along the batch, so that no bit depends on it ----


class LewisFactor(NamedTuple):
    """The lower triangular L below its diagonal, ``(K - 1, K - 1, B)``, and 1 over its diagonal.

    The inverse is 0 for a hypothesis in the span of those before it, whose coefficient is 0 then.
    """

    lower: FloatArray
    inverse: FloatArray


@lru_cache(maxsize=16)
def _kept_factor(table: bytes, shape: tuple[int, int]) -> LewisFactor:
    return _lewis_factor(np.frombuffer(table).reshape(1, *shape))


def _solve_transposed(lower: FloatArray, inverse: FloatArray, noise: FloatArray) -> FloatArray:
    """``L^-T g`` by substitution from the last hypothesis on, ``(K - 1, ...)``."""
    solution = np.broadcast_to(noise, np.broadcast_shapes(inverse.shape, noise.shape)).copy()
    for j in reversed(range(len(solution))):
        solution[j] *= inverse[j]
        solution[:j] -= lower[j, :j] * solution[j]
    return solution


def _lewis_factor(tables: FloatArray) -> LewisFactor:
    """The triangular factor of A for tables ``(B, K, M)``."""
    parts = [
        _factor_chunk(tables[start : start + _TABLES_AT_ONCE])
        for start in range(0, len(tables), _TABLES_AT_ONCE)
    ]
    return LewisFactor(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))


def _factor_chunk(tables: FloatArray) -> LewisFactor:
    columns = np.ascontiguousarray(np.moveaxis(tables, 0, -1))
    points = columns[1:] - columns[:1]
    # A label that all like equally, up to rounding, has no say.
    points[:, np.abs(points).max(axis=0) <= TIE * columns.max(axis=0)] = 0.0
    weights = np.sqrt(sum(np.square(row) for row in points))
    factor, weights = _triangular(points, weights)
    independent = factor.inverse > 0.0  # decided once: a basis that changed would spoil the steps before
    for _ in range(_LEWIS_STEPS):
        factor, weights = _triangular(points, weights, independent)
    return factor


def _triangular(
    points: FloatArray, weights: FloatArray, independent: BoolArray | None = None
) -> tuple[LewisFactor, FloatArray]:
    """The factor of ``A = sum_y u_y u_y^T / tau_y`` for weights ``(M, B)``, and ``|L^-1 u_y|``, ``(M, B)``.

    By Gram and Schmidt on ``u_y / sqrt(tau_y)``: A itself has half of the digits of small distances.
    """
    roots = np.sqrt(weights)
    rest = points * np.divide(1.0, roots, where=roots > 0.0, out=np.zeros_like(roots))
    size, squares = len(points), np.zeros_like(weights)
    lower, inverse = np.zeros((size, size, points.shape[-1])), np.zeros((size, points.shape[-1]))
    lengths = _sum_labels(np.square(rest))
    for k in range(size):
        length = _sum_labels(np.square(rest[k]))
        least = np.maximum(_DEPENDENT * lengths[k], _ROUNDED)
        used = length > least if independent is None else independent[k] & (length > 0.0)
        inverse[k, used] = 1.0 / np.sqrt(length[used])
        rest[k] *= inverse[k]
        squares += np.square(rest[k])
        lower[k + 1 :, k] = _sum_labels(rest[k + 1 :] * rest[k])
        rest[k + 1 :] -= lower[k + 1 :, k, None] * rest[k]
    return LewisFactor(lower, inverse), roots * np.sqrt(squares)


def _sum_labels(terms: FloatArray) -> FloatArray:
    """Sums ``(..., B)`` over the labels of ``(..., M, B)``, by halves."""
    while (size := terms.shape[-2]) > 1:
        half = size // 2
        folded = terms[..., :half, :] + terms[..., half : 2 * half, :]
        if size % 2:
            folded[..., 0, :] += terms[..., -1, :]
        terms = folded
    return terms[..., 0, :]
