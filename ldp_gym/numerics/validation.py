"""One place for what an argument must satisfy, and for the error when it does not."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.numerics.arrays import FloatArray

ROW_TOLERANCE = 1e-5
"""How far a hypothesis' probabilities may be from summing to one before they are refused."""


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


def render_mode(mode: str | None, known: list[str]) -> str | None:
    """``mode`` as one of the ``known`` render modes, or None."""
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode must be None or one of {', '.join(known)}, got {mode!r}")
    return mode


def distributions(values: npt.ArrayLike) -> FloatArray:
    """Hypotheses' ``values`` as distributions along the last axis, normalised to the last bit.

    Raises:
        ValueError: saying which hypothesis (the axis before the last) is wrong, how, and by how much.
    """
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"probabilities must form a rectangular array of numbers: {error}") from error
    if table.ndim == 0 or table.size == 0:
        raise ValueError(f"probabilities need at least one label, got shape {table.shape}")
    total = np.add.reduce(table, axis=-1, keepdims=True)
    # Comparisons that NaN fails too; only a failure pays for finding the culprit.
    if not (table.min() >= 0.0 and np.abs(total - 1.0).max() <= ROW_TOLERANCE):
        fault = fault_of_distributions(table, ROW_TOLERANCE)
        raise ValueError(f"hypothesis{fault}; every hypothesis is a distribution over the labels")
    normalised: FloatArray = table / total
    normalised[normalised < np.finfo(np.float64).tiny] = 0.0  # too small for its reciprocal to be a float
    return normalised


def fault_of_distributions(table: FloatArray, tolerance: float) -> str:
    """The first row ``(..., M)`` that is no distribution, by its last index, and why."""
    for wrong, what in ((np.isnan(table), "NaN"), (table < 0.0, "negative")):
        if wrong.any():
            *row, label = (int(i) for i in np.argwhere(wrong)[0])
            return f"{_which(row)} has a {what} probability at label {label}: {table[(*row, label)]}"
    total = np.asarray(table.sum(axis=-1))
    row = [int(i) for i in np.argwhere(~(np.abs(total - 1.0) <= tolerance))[0]]
    off = float(total[tuple(row)])
    return f"{_which(row)} sums to {off:.9g}, off one by {off - 1.0:+.3g} (allowed: {tolerance:g})"


def _which(row: list[int]) -> str:
    return f" {row[-1]}" if row else ""
