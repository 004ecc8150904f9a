"""Batch-first arrays: the types, and the few operations the whole package shares.

Every array has any number of leading axes ``...`` (none for one game, ``(B,)`` for games in lock step,
``(B, n)`` for a stretch of a tape) and broadcasts over them. The *candidates* ``f_1(x_t), ..., f_K(x_t)``
have shape ``(..., K, M)``; a class that ignores its context passes its ``(K, M)`` table as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Messages = npt.NDArray[Any]


def at(array: npt.NDArray[Any], *index: IntArray | slice) -> npt.NDArray[Any]:
    """Index the trailing axes elementwise, broadcasting over the leading ones.

    ``at(candidates, j, y)`` is the array of ``candidates[..., j, y]`` where ``j`` and ``y`` have the
    leading axes' shape, or one that broadcasts with it. Slices may stand at the end.

    Example:
        >>> table = np.array([[0.1, 0.9], [0.6, 0.4]])
        >>> at(table, np.array([0, 1, 1]), np.array([1, 0, 1])).tolist()
        [0.9, 0.6, 0.4]
        >>> at(np.stack([table, table + 1]), np.array([1, 0]), slice(None)).tolist()
        [[0.6, 0.4], [1.1, 1.9]]
    """
    leading = array.ndim - len(index)
    grid = tuple(
        np.arange(size).reshape(-1, *[1] * (leading - 1 - axis))
        for axis, size in enumerate(array.shape[:leading])
    )
    return array[(*grid, *index)]


def masses(candidates: FloatArray, labels: IntArray) -> FloatArray:
    """What each hypothesis gives to the labels ``(...)``: ``f_1[y], ..., f_K[y]``, shape ``(..., K)``."""
    return at(np.swapaxes(candidates, -1, -2), labels, slice(None))


_SHORT = 4096
"""Below so many numbers NumPy's overhead counts, above it its speed: the two functions below pick by it."""


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    """``sum_y a[y] b[y]`` along the last axis, for what is charged.

    What decides a label or a message must not depend on the shape of a batch, and this may in the last bit.
    """
    product: FloatArray = np.vecdot(a, b) if b.size < _SHORT else np.einsum("...m,...m->...", a, b)
    return product


def row_sums(array: FloatArray) -> FloatArray:
    """Sums along the last axis, with the same reservation as :func:`inner`."""
    if array.size >= _SHORT:
        total: FloatArray = np.einsum("...m->...", array)
        return total
    return array.dot(_ones(array.shape[-1]))  # a third of what a reduction costs


@lru_cache(maxsize=8)
def _ones(length: int) -> FloatArray:
    return np.ones(length)


def has_zero(array: FloatArray) -> bool:
    """Whether an entry of a nonnegative array is zero."""
    if array.size >= _SHORT:
        return not bool(np.minimum.reduce(array, axis=None) > 0.0)
    return int(np.count_nonzero(array)) < array.size


def at_round(array: npt.NDArray[Any], t: int) -> npt.NDArray[Any]:
    """Round ``t`` of an array ``(B, n, ...)`` whose round axis is 1 long where nothing changes."""
    return array[:, t] if array.shape[1] > 1 else array[:, 0]


def mixture(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """The mixture ``sum_j w_j f_j``: weights ``(..., K)`` and candidates ``(..., K, M)`` to ``(..., M)``."""
    if candidates.ndim > 2:
        mixed: FloatArray = np.einsum("...k,...km->...m", weights, candidates)
        return mixed
    if weights.ndim < 2 or weights.shape[-2] == 1:
        return _rows_times(weights, candidates)
    # Labels before rounds in memory: what follows is elementwise in them, and long rows are faster.
    return np.swapaxes(candidates.T @ np.swapaxes(weights, -1, -2), -1, -2)


def expectations(candidates: FloatArray, values: FloatArray) -> FloatArray:
    """``sum_y f_k[y] v[y]`` of every hypothesis, ``(..., K)``, for values ``(..., M)``."""
    if candidates.ndim == 2:
        return _rows_times(values, candidates.T)
    return np.einsum("...km,...m->...k", candidates, values)


def _rows_times(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """``rows @ matrix`` as one product, however many leading axes: NumPy would take many small ones."""
    return (rows.reshape(-1, rows.shape[-1]) @ matrix).reshape(*rows.shape[:-1], matrix.shape[-1])
