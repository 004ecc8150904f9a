"""Types of batch-first arrays, and the few operations that the whole package shares.

Every array has any number of leading axes ``...`` (none for one game, ``(B,)`` for games in lock
step, ``(B, n)`` for a block of a tape) and broadcasts over them. The *candidates*
``f_1(x_t), ..., f_K(x_t)`` have shape ``(..., K, M)``; a class that ignores its context passes its
``(K, M)`` table as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar
from weakref import ref

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Messages = npt.NDArray[Any]

Result = TypeVar("Result")

# glibc hands large freed blocks back to the kernel, and every next block pays for fresh pages, up to
# two thirds of the time. Once an array this large was freed, it keeps those of the same size or
# less (31 MiB).
np.empty(31 * 2**20, dtype=np.uint8)

ZERO = np.zeros(())
"""Zero as an array: NumPy combines small arrays with it faster than with a Python float."""

_SMALL_ARRAY = 4096
"""Size below which NumPy's overhead per call costs more than its work."""

FEW_ROUNDS = 32
"""Rounds of a game up to which a product must not depend on the other rows of a batch."""

LONG_ROW = 4096
"""Number of neighbours in memory from which few rounds are worked on one by one."""

_UNDERFLOW = -745.2
"""Exponent below which exp is 0 in floats, and three times slower than at minus infinity."""


def at(array: npt.NDArray[Any], *index: IntArray | slice) -> npt.NDArray[Any]:
    """Pick entries along the trailing axes, one index for each position of the leading axes.

    ``at(candidates, j, y)`` has the entry ``candidates[g, j[g], y[g]]`` at every position g of the
    leading axes, with which the shapes of ``j`` and ``y`` broadcast. The last indices may be
    slices.

    Example:
        >>> rows = np.array([[10, 11, 12], [20, 21, 22]])
        >>> at(rows, np.array([2, 0])).tolist()
        [12, 20]
    """
    leading = array.ndim - len(index)
    grid = tuple(
        np.arange(size).reshape(-1, *[1] * (leading - 1 - axis))
        for axis, size in enumerate(array.shape[:leading])
    )
    return array[(*grid, *index)]


class _Kept(NamedTuple):
    """Result for a table, and what its key in a dict of results depends on."""

    result: Any
    other_arguments: list[Any]
    table: ref[npt.NDArray[Any]]


def per_table(work: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function so that it keeps its result for the last table of candidates ``(K, M)``.

    The candidates must be its only array. A class without contexts hands over the same read-only
    table in every round, and the work is then done once.
    """
    results: dict[tuple[int, ...], _Kept] = {}

    def forget(_: ref[npt.NDArray[Any]]) -> None:
        """Drop the result when its table is garbage collected."""
        results.clear()

    @wraps(work)
    def look_up(*arguments: Any) -> Result:
        """Return the result that is kept for these arguments, or work it out."""
        table = next(argument for argument in arguments if isinstance(argument, np.ndarray))

        # A view is read-only in earnest if the array that owns its memory is.
        owner = table.base if isinstance(table.base, np.ndarray) else table
        if table.ndim != 2 or table.flags.writeable or owner.flags.writeable:
            return work(*arguments)

        key = tuple(map(id, arguments))
        kept = results.get(key)
        if kept is None:
            # While the other arguments are referred to, no new object can take their ids.
            others = [argument for argument in arguments if argument is not table]
            kept = _Kept(work(*arguments), others, ref(table, forget))
            results.clear()
            results[key] = kept
        return kept.result

    return look_up


def masses(candidates: FloatArray, labels: IntArray) -> FloatArray:
    """Return the probabilities ``f_1[y], ..., f_K[y]`` of labels y ``(...)``, as ``(..., K)``.

    Example:
        >>> table = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
        >>> masses(table, np.array([2, 0])).tolist()
        [[0.2, 0.8], [0.5, 0.1]]
    """
    if candidates.ndim == 2:
        by_hypothesis = candidates.take(labels, axis=1)
        return by_hypothesis.transpose(*range(1, labels.ndim + 1), 0)
    return at(np.swapaxes(candidates, -1, -2), labels, slice(None))


def one_hot(values: FloatArray, index: IntArray, size: int) -> FloatArray:
    """Return rows ``(..., size)`` with the values ``(...)`` at the given index, and 0 elsewhere.

    Example:
        >>> one_hot(np.array([5.0, 7.0]), np.array([2, 0]), size=3).tolist()
        [[0.0, 0.0, 5.0], [7.0, 0.0, 0.0]]
    """
    rows = np.zeros((*values.shape, size))
    row_starts = np.arange(0, rows.size, size)
    rows.reshape(-1)[row_starts + index.reshape(-1)] = values.reshape(-1)
    return rows


def uniform_distribution(*shape: int) -> FloatArray:
    """Return uniform distributions along the last axis of an array of this shape."""
    return np.full(shape, 1.0 / shape[-1])


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the sums ``sum_y a[y] b[y]`` along the last axis of two arrays.

    The last bit may depend on the shape of a batch, so a label or a message may not depend on it.
    """
    one_row_each = a.ndim == b.ndim == 2 and len(a) == len(b) == 1
    if one_row_each:  # the case of one game, where the call itself is what takes time
        return a.dot(b[0])
    if b.size < _SMALL_ARRAY:
        return np.vecdot(a, b)
    same_a_in_all_rounds = a.ndim == b.ndim > 1 and a.shape[-2] == 1
    if same_a_in_all_rounds:
        return np.matmul(a, np.swapaxes(b, -1, -2))[..., 0, :]
    return np.einsum("...m,...m->...", a, b)


def row_sums(array: FloatArray) -> FloatArray:
    """Return the sums along the last axis; the last bit may depend on the shape of the batch."""
    # A product with ones takes a fraction of the time of a reduction.
    ones = _ones(array.shape[-1])
    if array.size >= _SMALL_ARRAY:
        return array @ ones
    return array.dot(ones)


@lru_cache(maxsize=8)
def _ones(length: int) -> FloatArray:
    """Return ones ``(length,)``."""
    return np.ones(length)


def least(array: FloatArray) -> float:
    """Return the smallest number of an array; NaN if it holds one."""
    if array.size < _SMALL_ARRAY:
        return array.item(array.argmin())
    return float(np.minimum.reduce(array, axis=None))


def has_zero(array: FloatArray) -> bool:
    """Tell if an entry of a nonnegative array is zero."""
    return array.size > 0 and not least(array) > 0.0


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array that refuses to be written to, to show to user code."""
    view = array.view()
    view.flags.writeable = False
    return view


def at_round(array: npt.NDArray[Any], t: int) -> npt.NDArray[Any]:
    """Return round t of an array ``(B, n, ...)``, or ``(B, 1, ...)`` if all rounds share it."""
    if array.shape[1] == 1:
        return array[:, 0]
    return array[:, t]


def mixture(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """Return the mixture ``sum_j w_j f_j``, ``(..., M)``, with weights ``(..., K)``.

    Example:
        >>> table = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
        >>> mixture(np.array([0.75, 0.25]), table).tolist()
        [0.375, 0.5, 0.125]
    """
    if candidates.ndim > 2:
        return np.einsum("...k,...km->...m", weights, candidates)
    return _products(candidates.T, weights)


def expectations(candidates: FloatArray, values: FloatArray) -> FloatArray:
    """Return the expectations ``sum_y f_k[y] v[y]``, ``(..., K)``, of values v ``(..., M)``.

    Example:
        >>> table = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
        >>> expectations(table, np.array([1.0, 2.0, 3.0])).tolist()
        [1.5, 2.5]
    """
    if candidates.ndim == 2:
        return _products(candidates, values)
    # Side by side in memory, the labels are summed up in the same order in every batch.
    return np.einsum("...km,...m->...k", candidates, np.ascontiguousarray(values))


def _products(matrix: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the products ``(..., k)`` of a matrix ``(k, n)`` with vectors ``(..., n)``.

    The fastest of three ways is taken. With few vectors the last bit of a product does not depend
    on the other vectors of the batch.
    """
    if vectors.ndim >= 2 and vectors.shape[-2] > FEW_ROUNDS:
        # Elementwise work follows, along the rounds: they are side by side in memory.
        return np.swapaxes(matrix @ np.swapaxes(vectors, -1, -2), -1, -2)

    if matrix.flags.c_contiguous:
        neighbours_in_memory = matrix.shape[1]
    else:
        neighbours_in_memory = matrix.shape[0]
    if neighbours_in_memory >= LONG_ROW:
        return _products_one_by_one(matrix, vectors)

    # The summed axis is never the fastest one, so that sums run in the order of the numbers.
    columns = matrix.T
    if not columns.flags.c_contiguous:
        columns = _columns(matrix)
    return np.einsum("nk,n...->k...", columns, vectors.T).T


def _products_one_by_one(matrix: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the products ``(..., k)`` of a matrix ``(k, n)`` with vectors, one by one."""
    rows = np.ascontiguousarray(vectors).reshape(-1, matrix.shape[1])
    products = np.empty((len(rows), len(matrix)))
    for vector, product in zip(rows, products, strict=True):
        np.einsum("kn,n->k", matrix, vector, out=product)
    return products.reshape(*vectors.shape[:-1], len(matrix))


@per_table
def _columns(matrix: FloatArray) -> FloatArray:
    """Return the transpose of a matrix ``(k, n)``, with its rows side by side in memory."""
    return np.ascontiguousarray(matrix.T)


def sums_in_order(array: FloatArray) -> FloatArray:
    """Return the sums along the last axis, which stays with length 1, added up by halves.

    Every operation is elementwise: unlike a reduction's, the last bit does not depend on the batch.

    Example:
        >>> sums_in_order(np.array([[1.0, 2.0, 4.0], [10.0, 20.0, 40.0]])).tolist()
        [[7.0], [70.0]]
    """
    size = array.shape[-1]
    while size > 1:
        half = size // 2
        folded = array[..., :half] + array[..., half : 2 * half]
        if size % 2:
            folded[..., :1] += array[..., -1:]
        array = folded
        size = half
    return array


def softmax(log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None) -> FloatArray:
    """Return weights ``(..., K)`` that sum to one, from log weights up to a constant.

    Example:
        >>> softmax(np.log(np.array([1.0, 3.0])) - 1000.0).round(12).tolist()
        [0.25, 0.75]
    """
    weights = relative_weights(log_weights, axis, out)
    weights /= np.add.reduce(weights, axis=axis, keepdims=True)
    return weights


def relative_weights(
    log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None
) -> FloatArray:
    """Return weights ``(..., K)``, scaled so that the largest is 1, from log weights.

    Example:
        >>> relative_weights(np.array([-1000.0, -1001.0])).round(3).tolist()
        [1.0, 0.368]
    """
    largest = np.maximum.reduce(log_weights, axis=axis, keepdims=True)
    relative = np.subtract(log_weights, largest, out=out)
    np.copyto(relative, -np.inf, where=relative < _UNDERFLOW)
    return np.exp(relative, out=relative)
