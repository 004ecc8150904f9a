"""Checks of a game's arrays: distributions, candidates, posteriors, predictions, labels, contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray, IntArray, least, row_sums
from ldp_gym.core.validation import describe, numbers

_Name = str | Callable[[list[int]], str]

ROW_TOLERANCE = 1e-5
"""Largest distance by which the sum of a hypothesis' probabilities may miss 1."""

PREDICTION_TOLERANCE = 1e-4
"""Largest distance by which the sum of a prediction may miss 1, before it is renormalised."""

_LARGEST_CONTEXT, _SUM_ROUNDING = 1e100, 1e-12
"""Largest coordinate of a context, lest classes overflow; error of a sum that counts as rounding."""


def distributions(
    values: npt.ArrayLike,
    name: _Name = "hypothesis",
    argument: str = "probabilities",
    place: str = "label",
) -> FloatArray:
    """``values`` as distributions ``(..., M)``, normalised to the last bit.

    In errors ``argument`` names the array, ``name`` a row by its last index or all, ``place`` its entries.
    """
    table, total = _rows(values, argument, name, place)
    normalised: FloatArray = table / total[..., None]
    normalised[normalised < np.finfo(np.float64).tiny] = (
        0.0  # too small for its reciprocal to be a float
    )
    return normalised


def checked_table(
    values: npt.ArrayLike, argument: str = "table", name: str = "hypothesis"
) -> FloatArray:
    """Table ``(K, M)`` of distributions, normalised to the last bit."""
    rows = distributions(values, name, argument)
    if rows.ndim != 2:
        raise ValueError(f"a {argument} has shape (K, M), got {rows.shape}")
    return rows


def row(name: str, values: npt.ArrayLike, length: int, place: str = "label") -> FloatArray:
    """``values`` as one distribution of the given length, read-only."""
    found = numbers(name, values)
    if found.shape != (length,):
        raise ValueError(
            f"{name} must be {length} probabilities that sum to one, got shape {found.shape}"
        )
    normalised: FloatArray = distributions(found, name, place=place)
    normalised.flags.writeable = False
    return normalised


def _rows(
    values: npt.ArrayLike, argument: str, name: _Name, place: str = "label"
) -> tuple[FloatArray, FloatArray]:
    """Distributions ``(..., M)`` as they are, and their sums ``(...)``."""
    rows = numbers(argument, values)
    if rows.ndim == 0 or rows.size == 0:
        raise ValueError(f"{argument} must have at least one {place}, got shape {rows.shape}")
    advice = "probabilities are nonnegative and sum to one"
    before = name if callable(name) else lambda row: f"{name} {row[-1]}" if row else f"the {name}"
    return rows, row_totals(rows, ROW_TOLERANCE, before, advice, place)


def labels(values: object, num_labels: int) -> IntArray:
    """Users' labels ``(...)`` as indices ``0..M-1``."""
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
    """``values`` as finite contexts ``(n, d)``, read-only; a list of numbers where d is 1."""
    found = np.array(numbers(name, values, booleans=True))
    if found.ndim == 1 and context_dim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] != context_dim or not len(found):
        raise ValueError(f"{name} must have shape (n, d) with d = {context_dim}, got {found.shape}")
    wrong = ~(np.abs(found) <= _LARGEST_CONTEXT)
    if wrong.any():
        place = int(np.argwhere(wrong)[0, 0])
        raise ValueError(
            f"{name} must be finite and within {_LARGEST_CONTEXT:g}, got {found[wrong][0]} in row {place}"
        )
    found.flags.writeable = False
    return found


def candidates(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Candidates ``(..., K, M)``, checked and left as they are."""
    rows, _ = _rows(values, "candidates", "hypothesis")
    if rows.shape[-2:] != (num_hypotheses, num_labels):
        raise ValueError(
            f"candidates must have shape (..., {num_hypotheses}, {num_labels}), got {rows.shape}"
        )
    return rows


def one_context(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Candidates ``(K, M)`` at one context, normalised to the last bit."""
    rows, expected = distributions(values, argument="candidates"), (num_hypotheses, num_labels)
    if rows.shape != expected:
        raise ValueError(f"expected one context, candidates of shape {expected}; got {rows.shape}")
    return rows


def posteriors(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """Posterior ``(..., K)``, checked and left as it is."""
    weights, _ = _rows(values, "posterior", "posterior", "hypothesis")
    if weights.shape[-1] != num_hypotheses:
        raise ValueError(
            f"a posterior has shape (..., K) with K = {num_hypotheses}, got {weights.shape}"
        )
    return weights


def one_posterior(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """Posterior ``(K,)``, checked and left as it is."""
    weights = posteriors(values, num_hypotheses)
    if weights.ndim != 1:
        raise ValueError(
            f"expected one posterior, of shape ({num_hypotheses},), got {weights.shape}"
        )
    return weights


def predictions(
    values: FloatArray,
    name_row: Callable[[list[int]], str],
    advice: str,
    tolerance: float = PREDICTION_TOLERANCE,
) -> FloatArray:
    """Predictions ``(..., M)``, checked by :func:`row_totals` and renormalised."""
    total = row_totals(values, tolerance, name_row, advice)
    if _off_one(total) < _SUM_ROUNDING:
        return values
    return np.divide(values, total[..., None])


def row_totals(
    table: FloatArray,
    tolerance: float,
    name_row: Callable[[list[int]], str],
    advice: str,
    place: str = "label",
) -> FloatArray:
    """Sums of the rows ``(..., M)``, which must be nonnegative and sum to one, up to the tolerance.

    An error names the first wrong row by its index, a ``place`` in it, what is wrong, and the advice.
    """
    total = row_sums(table)
    # NaN fails these comparisons too; the culprit is looked for only after a failure.
    if least(table) >= 0.0 and _off_one(total) <= tolerance:
        return total
    for wrong, what in ((np.isnan(table), "NaN"), (table < 0.0, "negative")):
        if wrong.any():
            *row, at = (int(i) for i in np.argwhere(wrong)[0])
            value = table[(*row, at)]
            raise ValueError(
                f"{name_row(row)} has a {what} probability at {place} {at}: {value}; {advice}"
            )
    row = [int(i) for i in np.argwhere(~(np.abs(total - 1.0) <= tolerance))[0]]
    off = float(total[tuple(row)])
    raise ValueError(
        f"{name_row(row)} sums to {off:.9g}, off one by {off - 1.0:+.3g} (allowed: {tolerance:g}); {advice}"
    )


def _off_one(total: FloatArray) -> float:
    """Largest distance between 1 and any of the sums ``(...)``; NaN if one is NaN."""
    return float(np.abs(total - 1.0).max()) if total.ndim else abs(float(total) - 1.0)
