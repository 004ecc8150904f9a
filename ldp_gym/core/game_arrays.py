"""Checks of arrays: distributions, candidates, posteriors, predictions, labels, contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, least, row_sums
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.validation import describe, numbers

_Name = str | Callable[[list[int]], str]

ROW_TOLERANCE = 1e-5
"""Largest distance by which the sum of a hypothesis' probabilities may miss 1."""

PREDICTION_TOLERANCE = 1e-4
"""Largest distance by which the sum of a prediction may miss 1, before it is renormalised."""

HALF_TOLERANCE = 2.0 * float(np.finfo(np.float16).eps)
"""Largest distance by which the sum of a prediction in half precision may miss 1."""

_LARGEST_CONTEXT = 1e100
"""Largest coordinate of a context, so that classes do not overflow."""

_SUM_ROUNDING = 1e-12
"""Distance of a sum from 1 that counts as rounding."""


def distributions(
    values: npt.ArrayLike,
    name: _Name = "hypothesis",
    argument: str = "probabilities",
    place: str = "label",
) -> FloatArray:
    """Check and normalise distributions ``(..., M)``.

    The texts are for errors, such as "hypothesis 1 has a negative probability at label 0".

    Args:
        values: nonnegative numbers that sum to one, up to :data:`ROW_TOLERANCE`.
        name: name of a row, such as "hypothesis", to which its last index is added, or a function
            that names a row by its indices.
        argument: name of the whole array, such as "probabilities".
        place: name of an entry of a row, such as "label".

    Example:
        >>> distributions([[0.5, 0.5], [0.9, 0.1]]).tolist()
        [[0.5, 0.5], [0.9, 0.1]]
        >>> distributions([0.5, 0.6], "truth")
        Traceback (most recent call last):
        ...
        ValueError: the truth sums to 1.1, off one by +0.1 (allowed: 1e-05); probabilities are ...
    """
    table, total = _rows(values, argument, name, place)
    normalised: FloatArray = table / total[..., None]
    # Such tiny entries become 0, so that one over a positive probability is a finite float.
    reciprocal_overflows = normalised < np.finfo(np.float64).tiny
    normalised[reciprocal_overflows] = 0.0
    return normalised


def checked_table(
    values: npt.ArrayLike, argument: str = "table", name: str = "hypothesis"
) -> FloatArray:
    """Check and normalise a table of distributions ``(K, M)``."""
    rows = distributions(values, name, argument)
    if rows.ndim != 2:
        raise ValueError(f"a {argument} has shape (K, M), got {rows.shape}")
    return rows


def row(name: str, values: npt.ArrayLike, length: int, place: str = "label") -> FloatArray:
    """Check and normalise one distribution ``(length,)``; the result is read-only."""
    probabilities = numbers(name, values)
    if probabilities.shape != (length,):
        raise ValueError(
            f"{name} must be {length} probabilities that sum to one, got shape "
            f"{probabilities.shape}"
        )
    normalised: FloatArray = distributions(probabilities, name, place=place)
    normalised.flags.writeable = False
    return normalised


def _rows(
    values: npt.ArrayLike, argument: str, name: _Name, place: str = "label"
) -> tuple[FloatArray, FloatArray]:
    """Check distributions ``(..., M)``, and return them unchanged with their sums ``(...)``.

    The names are for errors: ``argument`` of the array, ``name`` of a row, ``place`` of an entry.
    """
    rows = numbers(argument, values)
    if rows.ndim == 0 or rows.size == 0:
        raise ValueError(f"{argument} must have at least one {place}, got shape {rows.shape}")

    def name_row(indices: list[int]) -> str:
        """Return the name of the row with these indices."""
        if callable(name):
            return name(indices)
        if indices:
            return f"{name} {indices[-1]}"
        return f"the {name}"

    advice = "probabilities are nonnegative and sum to one"
    return rows, row_totals(rows, ROW_TOLERANCE, name_row, advice, place)


def labels(values: object, num_labels: int) -> IntArray:
    """Check users' labels ``(...)``, which are indices ``0..M-1``."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"labels must be whole numbers in 0..{num_labels - 1}, got {describe(values)}"
        )
    wrong = (array < 0) | (array >= num_labels)
    if wrong.any():
        raise ValueError(f"labels must lie in 0..{num_labels - 1}, got {array[wrong][0]}")
    return array.astype(np.int64, copy=False)


def checked_contexts(name: str, values: Any, context_dim: int) -> FloatArray:
    """Check contexts ``(n, d)``, or ``(n,)`` if d is 1; returns a read-only copy ``(n, d)``."""
    contexts = np.array(numbers(name, values, booleans=True))
    if contexts.ndim == 1 and context_dim == 1:
        contexts = contexts[:, None]
    if contexts.ndim != 2 or contexts.shape[1] != context_dim or not len(contexts):
        raise ValueError(
            f"{name} must have shape (n, d) with d = {context_dim}, got {contexts.shape}"
        )

    wrong = ~(np.abs(contexts) <= _LARGEST_CONTEXT)  # NaN too
    if wrong.any():
        first_row = int(np.argwhere(wrong)[0, 0])
        raise ValueError(
            f"{name} must be finite and within {_LARGEST_CONTEXT:g}, got {contexts[wrong][0]} in "
            f"row {first_row}"
        )
    contexts.flags.writeable = False
    return contexts


def candidates(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Check candidates ``(..., K, M)``, and return them unchanged."""
    rows, _ = _rows(values, "candidates", "hypothesis")
    if rows.shape[-2:] != (num_hypotheses, num_labels):
        raise ValueError(
            f"candidates must have shape (..., {num_hypotheses}, {num_labels}), got {rows.shape}"
        )
    return rows


def one_context(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Check and normalise the candidates ``(K, M)`` at one context."""
    rows = distributions(values, argument="candidates")
    expected = (num_hypotheses, num_labels)
    if rows.shape != expected:
        raise ValueError(f"expected one context, candidates of shape {expected}; got {rows.shape}")
    return rows


def posteriors(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """Check posteriors ``(..., K)``, and return them unchanged."""
    weights, _ = _rows(values, "posterior", "posterior", "hypothesis")
    if weights.shape[-1] != num_hypotheses:
        raise ValueError(
            f"a posterior has shape (..., K) with K = {num_hypotheses}, got {weights.shape}"
        )
    return weights


def one_posterior(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """Check one posterior ``(K,)``, and return it unchanged."""
    weights = posteriors(values, num_hypotheses)
    if weights.ndim != 1:
        raise ValueError(
            f"expected one posterior, of shape ({num_hypotheses},), got {weights.shape}"
        )
    return weights


def returned_floats(
    source: object, what: str, values: npt.ArrayLike, shape: tuple[int, ...]
) -> FloatArray:
    """Convert what a part of a game returned to floats, and check its shape.

    The numbers are converted or refused by :func:`ldp_gym.core.validation.numbers`. A user's part
    may write to its array again, so its floats are copied, unless they are read-only.

    Args:
        source: the part that returned them.
        what: name of the numbers, for errors.
        values: the numbers.
        shape: the shape that they must have.
    """
    try:
        array = numbers(what, values)
    except ValueError as error:
        raise ValueError(f"{source!r} must give {what} as an array of floats: {error}") from error
    if array.shape != shape:
        raise ValueError(
            f"{source!r} must give {what} as an array of floats, of shape {shape}, got "
            f"{array.shape}"
        )
    if is_builtin(type(source)) or not array.flags.writeable:
        return array
    return array.copy()


def prediction_floats(name: str, values: npt.ArrayLike) -> FloatArray:
    """Convert predictions ``(..., M)`` to floats; rows in half precision are renormalised.

    Half precision keeps three digits, so a sum may miss 1 by :data:`HALF_TOLERANCE` there. A row
    that misses it by more is left unchanged, for :func:`predictions` to refuse.

    Example:
        >>> prediction_floats("an action", np.array([0.25, 0.7505], dtype=np.float16)).sum().item()
        1.0
    """
    floats = numbers(name, values)
    if floats is values or floats.ndim == 0:
        return floats
    # By name, because a tensor's type is not NumPy's.
    in_half_precision = str(getattr(values, "dtype", "")).endswith("float16")
    if not in_half_precision:
        return floats
    totals = floats.sum(axis=-1, keepdims=True)
    rounded = np.abs(totals - 1.0) <= HALF_TOLERANCE
    return np.where(rounded, floats / totals, floats)


def predictions(
    values: FloatArray,
    name_row: Callable[[list[int]], str],
    advice: str,
) -> FloatArray:
    """Check predictions ``(..., M)``, and renormalise them if their sums differ from 1.

    ``name_row`` names a row in errors by its indices; ``advice`` is the last part of an error.
    """
    totals, largest_error = _checked_totals(values, PREDICTION_TOLERANCE, name_row, advice)
    if largest_error < _SUM_ROUNDING:
        return values
    return np.divide(values, totals[..., None])


def row_totals(
    table: FloatArray,
    tolerance: float,
    name_row: Callable[[list[int]], str],
    advice: str,
    place: str = "label",
) -> FloatArray:
    """Return the sums ``(...)`` of rows ``(..., M)`` that must be nonnegative and sum to one.

    Args:
        table: the rows, ``(..., M)``.
        tolerance: largest distance between a sum and 1.
        name_row: name in errors of the row with the given indices.
        advice: last part of an error, which says what to do.
        place: name of an entry of a row in errors.

    Raises:
        ValueError: for the first row with a NaN, a negative entry or a wrong sum.
    """
    totals, _ = _checked_totals(table, tolerance, name_row, advice, place)
    return totals


def _checked_totals(
    table: FloatArray,
    tolerance: float,
    name_row: Callable[[list[int]], str],
    advice: str,
    place: str = "label",
) -> tuple[FloatArray, float]:
    """Return the checked sums of :func:`row_totals`, and the largest distance of one from 1."""
    total = row_sums(table)
    largest_error = _off_one(total)
    # NaN fails these comparisons too. The wrong row is looked for only after a failure.
    if least(table) >= 0.0 and largest_error <= tolerance:
        return total, largest_error
    _refuse_entries(np.isnan(table), "NaN", table, name_row, advice, place)
    _refuse_entries(table < 0.0, "negative", table, name_row, advice, place)

    wrong_sum = ~(np.abs(total - 1.0) <= tolerance)
    row = [int(i) for i in np.argwhere(wrong_sum)[0]]
    value = float(total[tuple(row)])
    raise ValueError(
        f"{name_row(row)} sums to {value:.9g}, off one by {value - 1.0:+.3g} "
        f"(allowed: {tolerance:g}); {advice}"
    )


def _refuse_entries(
    wrong: BoolArray,
    what: str,
    table: FloatArray,
    name_row: Callable[[list[int]], str],
    advice: str,
    place: str,
) -> None:
    """Raise a ValueError that names the first wrong entry of rows ``(..., M)``, if there is one."""
    if not wrong.any():
        return
    *row, column = (int(i) for i in np.argwhere(wrong)[0])
    value = table[(*row, column)]
    raise ValueError(
        f"{name_row(row)} has a {what} probability at {place} {column}: {value}; {advice}"
    )


def _off_one(total: FloatArray) -> float:
    """Return the largest distance between 1 and any of the sums ``(...)``; NaN if one is NaN."""
    if total.ndim == 0:
        return abs(float(total) - 1.0)
    return float(np.abs(total - 1.0).max())
