"""One place for what an argument must satisfy, and for the error when it does not."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.numerics.arrays import FloatArray, IntArray, row_sums

ROW_TOLERANCE = 1e-5
"""How far a hypothesis' probabilities may be from summing to one before they are refused."""

PREDICTION_TOLERANCE = 1e-4
"""How far a prediction may be from summing to one; within it, the prediction is renormalised."""

_LARGEST_CONTEXT = 1e100
"""Contexts beyond it would overflow in the classes."""

_ROUNDING = 1e-12
"""How far from one a sum may be by rounding alone."""


def whole(name: str, value: object, *, least: int) -> int:
    """``value`` as an int, at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r} of type {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """``value`` as a bool: the text "False", say, is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}")
    return bool(value)


def options(name: str, value: object) -> dict[str, Any]:
    """``value`` as a dict of options; none for None."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict of options, got {value!r} of type {type(value).__name__}")
    return dict(value or {})


def real(name: str, value: object) -> float:
    """``value`` as a float, not NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got NaN")
    return float(value)


def positive(name: str, value: object, *, most: float = sys.float_info.max) -> float:
    """``value`` as a finite float above zero, at most ``most``."""
    number = real(name, value)
    if not 0.0 < number <= most:
        limit = "finite" if most == sys.float_info.max else f"at most {most:g}"
        raise ValueError(f"{name} must be positive and {limit}, got {number}")
    return number


def fraction(name: str, value: object) -> float:
    """``value`` as a float in (0, 1)."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie in (0, 1), got {number}")
    return number


def probability_below_one(name: str, value: object) -> float:
    """``value`` as a float in [0, 1)."""
    number = real(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name} must lie in [0, 1), got {number}")
    return number


def index(name: str, value: object, size: int) -> int:
    """``value`` as an index into ``size`` things."""
    number = whole(name, value, least=0)
    if number >= size:
        raise ValueError(f"{name} must lie in 0..{size - 1}, got {number}")
    return number


def indices(name: str, values: object, size: int) -> IntArray:
    """``values`` as distinct or repeated indices into ``size`` things."""
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise TypeError(f"{name} must be a list of indices, got {values!r}")
    return np.array([index(name, value, size) for value in values], dtype=np.int64)


def share(name: str, value: object) -> float:
    """``value`` as a float in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {number}")
    return number


def row(name: str, values: npt.ArrayLike, length: int) -> FloatArray:
    """``values`` as one distribution over ``length`` things."""
    numbers = numeric(name, values)
    if numbers.shape != (length,):
        raise ValueError(f"{name} must be {length} probabilities that sum to one, got shape {numbers.shape}")
    normalised: FloatArray = distributions(numbers, name)
    normalised.flags.writeable = False
    return normalised


def contexts(name: str, values: Any, context_dim: int) -> FloatArray:
    """``values`` as finite contexts ``(n, d)``; a list of numbers where d is 1."""
    numbers = numeric(name, values)
    if numbers.ndim == 1 and context_dim == 1:
        numbers = numbers[:, None]
    if numbers.ndim != 2 or numbers.shape[1] != context_dim or not len(numbers):
        raise ValueError(f"{name} must have shape (n, d) with d = {context_dim}, got {numbers.shape}")
    sound = np.abs(numbers) <= _LARGEST_CONTEXT
    if not sound.all():
        where = tuple(int(i) for i in np.argwhere(~sound)[0])
        raise ValueError(
            f"{name} must be finite and within {_LARGEST_CONTEXT:g}, got {numbers[where]} in row {where[0]}"
        )
    numbers.flags.writeable = False
    return numbers


def numeric(name: str, values: Any) -> FloatArray:
    """``values`` as a new array of floats: real numbers, no text, dates or missing values of other kinds."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must form a rectangular array of numbers: {error}") from error
    if array.dtype == object:
        try:
            array = np.array(array.tolist(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} must be numbers, got {array.ravel()[:3].tolist()!r}: {error}"
            ) from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got {array.dtype} such as {array.ravel()[:1].tolist()!r}")
    return np.array(array, dtype=np.float64)


def render_mode(mode: str | None, known: list[str]) -> str | None:
    """``mode`` as one of the ``known`` render modes, or None."""
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode must be None or one of {', '.join(known)}, got {mode!r}")
    return mode


def distributions(values: npt.ArrayLike, name: str = "hypothesis") -> FloatArray:
    """``values`` as distributions along the last axis, normalised to the last bit.

    Args:
        values: ``(..., M)``.
        name: what to call a row in an error; the index of the axis before the last stands behind it.

    Raises:
        ValueError: saying which hypothesis (the axis before the last) is wrong, how, and by how much.
    """
    table, total = _rows(values, name)
    normalised: FloatArray = table / total[..., None]
    normalised[normalised < np.finfo(np.float64).tiny] = 0.0  # too small for its reciprocal to be a float
    return normalised


def _rows(values: npt.ArrayLike, name: str, place: str = "label") -> tuple[FloatArray, FloatArray]:
    """Distributions ``(..., M)`` as they are, and their sums ``(...)``."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"probabilities must form a rectangular array of numbers: {error}") from error
    if table.ndim == 0 or table.size == 0:
        raise ValueError(f"probabilities need at least one label, got shape {table.shape}")
    advice = "probabilities are nonnegative and sum to one"
    return table, row_totals(
        table, ROW_TOLERANCE, lambda row: f"{name} {row[-1]}" if row else f"the {name}", advice, place
    )


def labels(values: object, num_labels: int) -> IntArray:
    """Users' labels ``(...)`` as indices ``0..M-1``.

    Raises:
        TypeError: if they are no whole numbers.
        ValueError: naming the first that is no label.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"labels must be whole numbers in 0..{num_labels - 1}, got {values!r}")
    wrong = (array < 0) | (array >= num_labels)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f" at {list(place)}" if place else ""
        raise ValueError(f"labels must lie in 0..{num_labels - 1}, got {array[place]}{where}")
    return array.astype(np.int64, copy=False)


def candidates(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Candidates ``(..., K, M)``, checked and left as they are.

    Raises:
        ValueError: saying which hypothesis is wrong, how, and by how much.
    """
    table, _ = _rows(values, "hypothesis")
    if table.shape[-2:] != (num_hypotheses, num_labels):
        raise ValueError(
            f"candidates must have shape (..., {num_hypotheses}, {num_labels}), got {table.shape}"
        )
    return table


def one_context(values: npt.ArrayLike, num_hypotheses: int, num_labels: int) -> FloatArray:
    """Candidates ``(K, M)`` at one context, normalised to the last bit."""
    table, expected = distributions(values), (num_hypotheses, num_labels)
    if table.shape != expected:
        raise ValueError(f"expected one context, candidates of shape {expected}; got {table.shape}")
    return table


def posterior(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """A posterior ``(..., K)``, checked and left as it is.

    Raises:
        ValueError: saying what is wrong with it, and by how much.
    """
    weights, _ = _rows(values, "posterior", "hypothesis")
    if weights.shape[-1] != num_hypotheses:
        raise ValueError(
            f"a posterior has a weight for each of {num_hypotheses} hypotheses, shape "
            f"(..., {num_hypotheses}), got {weights.shape}"
        )
    return weights


def one_posterior(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """A posterior ``(K,)``, checked and left as it is."""
    weights = posterior(values, num_hypotheses)
    if weights.ndim != 1:
        raise ValueError(f"expected one posterior, of shape ({num_hypotheses},), got {weights.shape}")
    return weights


def predictions(values: FloatArray, name_row: Callable[[list[int]], str], advice: str) -> FloatArray:
    """Predictions ``(..., M)`` as they are charged: checked, and renormalised where they are off.

    Args:
        values: what was predicted.
        name_row: what to call a prediction, from its index, in the error.
        advice: what to do instead, in the error.

    Raises:
        ValueError: saying which prediction is wrong, how, and by how much.
    """
    total = row_totals(values, PREDICTION_TOLERANCE, name_row, advice)
    if np.abs(total - 1.0).max() < _ROUNDING:
        return values
    renormalised: FloatArray = np.divide(values, total[..., None])
    return renormalised


def row_totals(
    table: FloatArray,
    tolerance: float,
    name_row: Callable[[list[int]], str],
    advice: str,
    place: str = "label",
) -> FloatArray:
    """The sums of the rows ``(..., M)``, which are nonnegative and sum to one within the tolerance.

    Args:
        table: the rows.
        tolerance: how far from one a sum may be.
        name_row: what to call a row, from its index, in the error.
        advice: what to do instead, in the error.
        place: what the probabilities of a row belong to, in the error.

    Raises:
        ValueError: naming the first row that is no distribution, and why.
    """
    total = np.asarray(row_sums(table))
    # Comparisons that NaN fails too; only a failure pays for finding the culprit.
    if np.minimum.reduce(table, axis=None) >= 0.0 and np.abs(total - 1.0).max() <= tolerance:
        return total
    for wrong, what in ((np.isnan(table), "NaN"), (table < 0.0, "negative")):
        if wrong.any():
            *row, at = (int(i) for i in np.argwhere(wrong)[0])
            value = table[(*row, at)]
            raise ValueError(f"{name_row(row)} has a {what} probability at {place} {at}: {value}; {advice}")
    row = [int(i) for i in np.argwhere(~(np.abs(total - 1.0) <= tolerance))[0]]
    off = float(total[tuple(row)])
    raise ValueError(
        f"{name_row(row)} sums to {off:.9g}, off one by {off - 1.0:+.3g} (allowed: {tolerance:g}); {advice}"
    )
