"""Types of batch-first arrays, and the few operations that the whole package shares.

Every array has any number of leading axes ``...`` (none for one game, ``(B,)`` for games in lock step,
``(B, n)`` for a block of a tape) and broadcasts over them. The *candidates* ``f_1(x_t), ..., f_K(x_t)``
have shape ``(..., K, M)``; a class that ignores its context passes its ``(K, M)`` table as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Messages = npt.NDArray[Any]

Result = TypeVar("Result")

ZERO = np.zeros(())
"""Zero as an array: NumPy combines small arrays with it faster than with a Python float."""


def at(array: npt.NDArray[Any], *index: IntArray | slice) -> npt.NDArray[Any]:
    """Index the trailing axes elementwise, broadcasting over the leading ones.

    ``at(candidates, j, y)`` is the array of ``candidates[..., j, y]`` where ``j`` and ``y`` have the
    leading axes' shape, or one that broadcasts with it. Slices may stand at the end.
    """
    leading = array.ndim - len(index)
    grid = tuple(
        np.arange(size).reshape(-1, *[1] * (leading - 1 - axis))
        for axis, size in enumerate(array.shape[:leading])
    )
    return array[(*grid, *index)]


def per_table(work: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function of candidates, its only array: the result for the last table ``(K, M)`` is kept.

    A class without contexts hands over the same table, which is read-only, in every round.
    """
    kept: dict[tuple[int, ...], tuple[Any, ...]] = {}

    @wraps(work)
    def look_up(*arguments: Any) -> Result:
        table = next(argument for argument in arguments if isinstance(argument, np.ndarray))
        owner = (
            table.base if isinstance(table.base, np.ndarray) else table
        )  # a view's owner may change it
        if table.ndim != 2 or table.flags.writeable or owner.flags.writeable:
            return work(*arguments)
        found = kept.get(key := tuple(map(id, arguments)))
        if found is None:
            others = [
                argument for argument in arguments if argument is not table
            ]  # their ids stay theirs
            found = work(*arguments), others, ref(table, lambda _: kept.clear())
            kept.clear()
            kept[key] = found
        return found[0]

    return look_up


def masses(candidates: FloatArray, labels: IntArray) -> FloatArray:
    """Probabilities ``(..., K)`` of the labels ``(...)``: ``f_1[y], ..., f_K[y]``."""
    if candidates.ndim == 2:
        return candidates.take(labels, axis=1).transpose(*range(1, labels.ndim + 1), 0)
    return at(np.swapaxes(candidates, -1, -2), labels, slice(None))


def one_hot(values: FloatArray, index: IntArray, size: int) -> FloatArray:
    """Rows ``(..., size)`` with the values ``(...)`` at the given index, and 0 elsewhere."""
    rows = np.zeros((*values.shape, size))
    rows.reshape(-1)[np.arange(0, rows.size, size) + index.reshape(-1)] = values.reshape(-1)
    return rows


def uniform_distribution(*shape: int) -> FloatArray:
    """Uniform distributions of this shape, along the last axis."""
    return np.full(shape, 1.0 / shape[-1])


_SMALL_ARRAY = 4096
"""Size below which NumPy's overhead per call costs more than its work; decides which of two forms is used."""


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    """``sum_y a[y] b[y]`` along the last axis, for losses.

    The last bit may depend on the shape of a batch: never use it to decide a label or a message.
    """
    if b.size < _SMALL_ARRAY:
        return np.vecdot(a, b)
    if a.ndim == b.ndim > 1 and a.shape[-2] == 1:  # the same a in all rounds: a matrix product
        return np.matmul(a, np.swapaxes(b, -1, -2))[..., 0, :]
    return np.einsum("...m,...m->...", a, b)


def row_sums(array: FloatArray) -> FloatArray:
    """Sums along the last axis; the last bit may depend on the batch, as in :func:`inner`."""
    ones = _ones(array.shape[-1])  # a product with them takes a fraction of a reduction's time
    return array @ ones if array.size >= _SMALL_ARRAY else array.dot(ones)


@lru_cache(maxsize=8)
def _ones(length: int) -> FloatArray:
    return np.ones(length)


def least(array: FloatArray) -> float:
    """Smallest number of an array; NaN if it holds one."""
    if array.size < _SMALL_ARRAY:
        return array.item(array.argmin())
    return float(np.minimum.reduce(array, axis=None))


def has_zero(array: FloatArray) -> bool:
    """Tell if an entry of a nonnegative array is zero."""
    return array.size > 0 and not least(array) > 0.0


def at_round(array: npt.NDArray[Any], t: int) -> npt.NDArray[Any]:
    """Round ``t`` of an array ``(B, n, ...)`` whose round axis is 1 long where nothing changes."""
    return array[:, t] if array.shape[1] > 1 else array[:, 0]


def mixture(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """The mixture ``sum_j w_j f_j``: weights ``(..., K)`` and candidates ``(..., K, M)`` to ``(..., M)``."""
    if candidates.ndim > 2:
        return np.einsum("...k,...km->...m", weights, candidates)
    return _products(candidates.T, weights)


def expectations(candidates: FloatArray, values: FloatArray) -> FloatArray:
    """``sum_y f_k[y] v[y]`` of every hypothesis, ``(..., K)``, for values ``(..., M)``."""
    if candidates.ndim == 2:
        return _products(candidates, values)
    # Side by side in memory, the labels are summed up in the same order in every batch.
    return np.einsum("...km,...m->...k", candidates, np.ascontiguousarray(values))


FEW_ROUNDS = 32
"""Rounds of a game up to which a product must not depend on the other rows of a batch."""

LONG_ROW = 4096
"""Number of neighbours in memory from which few rounds are worked on one by one."""


def _products(matrix: FloatArray, vectors: FloatArray) -> FloatArray:
    """``matrix @ v`` of every vector ``(..., n)``."""
    if vectors.ndim < 2 or vectors.shape[-2] <= FEW_ROUNDS:
        if matrix.shape[int(matrix.flags.c_contiguous)] >= LONG_ROW:
            each = np.ascontiguousarray(vectors).reshape(-1, matrix.shape[1])
            products = np.empty((len(each), len(matrix)))
            for vector, product in zip(each, products, strict=True):
                np.einsum("kn,n->k", matrix, vector, out=product)
            return products.reshape(*vectors.shape[:-1], len(matrix))
        # The summed axis is never the fastest one, so that sums run in the order of the numbers.
        columns = matrix.T if matrix.T.flags.c_contiguous else _columns(matrix)
        return np.einsum("nk,n...->k...", columns, vectors.T).T
    # Elementwise work follows, along the rounds: they are side by side in memory.
    return np.swapaxes(matrix @ np.swapaxes(vectors, -1, -2), -1, -2)


@per_table
def _columns(matrix: FloatArray) -> FloatArray:
    return np.ascontiguousarray(matrix.T)


def sums_in_order(array: FloatArray) -> FloatArray:
    """Sums along the last axis, which stays with length 1, by halves.

    Every operation is elementwise: unlike a reduction's, the last bit does not depend on the batch.
    """
    while (size := array.shape[-1]) > 1:
        half = size // 2
        folded = array[..., :half] + array[..., half : 2 * half]
        if size % 2:
            folded[..., :1] += array[..., -1:]
        array = folded
    return array


_VANISHES = -745.2
"""Exponent below which exp is 0 in floats, and three times slower than at minus infinity."""


def softmax(log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None) -> FloatArray:
    """Weights ``(..., K)`` that sum to one, from log weights up to a constant."""
    weights = relative_weights(log_weights, axis, out)
    weights /= np.add.reduce(weights, axis=axis, keepdims=True)
    return weights


def relative_weights(
    log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None
) -> FloatArray:
    """Weights ``(..., K)`` from log weights, scaled so that the largest is 1."""
    relative = np.subtract(
        log_weights, np.maximum.reduce(log_weights, axis=axis, keepdims=True), out=out
    )
    np.copyto(relative, -np.inf, where=relative < _VANISHES)
    return np.exp(relative, out=relative)
