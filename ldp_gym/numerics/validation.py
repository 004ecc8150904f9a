"""One place for what an argument must satisfy, and for the error when it does not."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldp_gym.errors import ArgumentTypeError
from ldp_gym.numerics.arrays import FloatArray, IntArray, least, row_sums

T = TypeVar("T")

ROW_TOLERANCE = 1e-5
"""How far a hypothesis' probabilities may be from summing to one before they are refused."""

PREDICTION_TOLERANCE = 1e-4
"""How far a prediction may be from summing to one; within it, the prediction is renormalised."""

_LARGEST_CONTEXT = 1e100
"""Contexts beyond it would overflow in the classes."""

_ROUNDING = 1e-12
"""How far from one a sum may be by rounding alone."""


_LARGEST_COUNT = 2**63 - 1
"""No count is larger than what an array can be indexed with."""

_MOST_NUMBERS = 2**30
"""How many numbers one thing may keep in memory: 8 GiB."""

_FLOAT = np.dtype(np.float64)

_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 80
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxarray = 4


# -- Numbers ------------------------------------------------------------------------------------------


def describe(value: object) -> str:
    """A value as an error shows it: never long, whatever it is.

    Example:
        >>> describe("1"), describe(10**400), describe(True)
        ("'1' of type str", 'a whole number of about 401 digits', 'True of type bool')
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of about {math.floor(value.bit_length() * math.log10(2.0)) + 1} digits"
    return f"{_SHORT.repr(value)} of type {type(value).__name__}"


def whole(name: str, value: object, *, least: int, most: int = _LARGEST_COUNT) -> int:
    """``value`` as an int, at least ``least`` and at most ``most``."""
    if not _is_number(value) or not isinstance(value, Integral):
        raise ArgumentTypeError(f"{name} must be a whole number, got {describe(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {_plain(number)}")
    if number > most:
        raise ValueError(f"{name} must be at most {_plain(most)}, got {_plain(number)}")
    return number


def seed(name: str, value: object) -> int:
    """``value`` as a seed: a whole number, as large as you like."""
    return whole(name, value, least=0, most=2**100_000)


def real(name: str, value: object) -> float:
    """``value`` as a float, not NaN."""
    if not _is_number(value) or not isinstance(value, Real):
        raise ArgumentTypeError(f"{name} must be a number, got {describe(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must be a float, got {describe(value)}, which is beyond them") from error
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN")
    return number


def _is_number(value: object) -> bool:
    """Whether a value may be a number: bools are none, nor are durations, integers to NumPy."""
    return not isinstance(value, bool | np.bool_ | np.timedelta64)


def _plain(number: int) -> str:
    return describe(number) if number.bit_length() > 256 else str(number)


def positive(name: str, value: object, *, most: float = sys.float_info.max) -> float:
    """``value`` as a finite float above zero, at most ``most``."""
    number = real(name, value)
    if not 0.0 < number <= most:
        limit = "finite" if most == sys.float_info.max else f"at most {most:g}"
        raise ValueError(f"{name} must be positive and {limit}, got {number}")
    return number


def nonnegative(name: str, value: object) -> float:
    """``value`` as a finite float, zero or above."""
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be nonnegative and finite, got {number}")
    return number


def fits_memory(name: str, count: int, numbers_each: int, what: str) -> None:
    """Refuse a count of things that keep so many numbers each, before memory ends.

    Args:
        name: the argument.
        count: its value.
        numbers_each: how many numbers one of them keeps.
        what: what these are, in the error.
    """
    if count * numbers_each > _MOST_NUMBERS:
        raise ValueError(
            f"{name}={count:,} would keep {count * numbers_each:.3g} numbers of {what} in memory, at "
            f"most {_MOST_NUMBERS:.3g} are allowed; take at most {name}={_MOST_NUMBERS // numbers_each:,}"
        )


# -- Flags, names and objects --------------------------------------------------------------------------


def flag(name: str, value: object) -> bool:
    """``value`` as a bool: the text "False", say, is none."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{name} must be True or False, got {describe(value)}")
    return bool(value)


def options(name: str, value: object) -> dict[str, Any]:
    """``value`` as a dict of options by their names; none for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} must be a dict of options, got {describe(value)}")
    for key in value:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{name} must have the options' names as keys, got {describe(key)}")
    return dict(value)


def choice(name: str, value: object, known: Sequence[str]) -> str:
    """``value`` as one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {_SHORT.repr(value)}")
    return value


def instance(name: str, value: object, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """``value``, which must be of the given class; ``what`` says in the error what that is."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name} must be {what}, got {describe(value)}")
    return value


def function(name: str, value: Any, what: str) -> Any:
    """``value``, which must be None or something to call; ``what`` says in the error what for."""
    if value is not None and not callable(value):
        raise ArgumentTypeError(f"{name} must be a function {what}, got {describe(value)}")
    return value


def text(name: str, value: object) -> str:
    """``value``, which must be a text."""
    return instance(name, value, str, "a text")


def texts(name: str, values: object, what: str) -> list[str]:
    """``values`` as a list of texts; ``what`` they are is in the error."""
    return [instance(name, value, str, f"a list of {what}") for value in listed(name, values, what)]


def path(name: str, value: object) -> Path:
    """``value``, a text or a path, as a path."""
    if not isinstance(value, str | Path):
        raise ArgumentTypeError(f"{name} must be a path, got {describe(value)}")
    return Path(value)


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
    return np.array([index(name, value, size) for value in listed(name, values, "indices")], dtype=np.int64)


def listed(name: str, values: Any, what: str) -> list[Any]:
    """``values`` as a list: of a list, a tuple or an array of one axis; ``what`` they are is in the error."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and not np.ma.isMaskedArray(values):
        return list(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise ArgumentTypeError(f"{name} must be a list of {what}, got {describe(values)}")
    return list(values)


def share(name: str, value: object) -> float:
    """``value`` as a float in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {number}")
    return number


def row(name: str, values: npt.ArrayLike, length: int) -> FloatArray:
    """``values`` as one distribution over ``length`` things."""
    found = numeric(name, values)
    if found.shape != (length,):
        raise ValueError(f"{name} must be {length} probabilities that sum to one, got shape {found.shape}")
    normalised: FloatArray = distributions(found, name)
    normalised.flags.writeable = False
    return normalised


def contexts(name: str, values: Any, context_dim: int) -> FloatArray:
    """``values`` as finite contexts ``(n, d)``; a list of numbers where d is 1."""
    found = numeric(name, values, booleans=True)
    if found.ndim == 1 and context_dim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] != context_dim or not len(found):
        raise ValueError(f"{name} must have shape (n, d) with d = {context_dim}, got {found.shape}")
    sound = np.abs(found) <= _LARGEST_CONTEXT
    if not sound.all():
        where = tuple(int(i) for i in np.argwhere(~sound)[0])
        raise ValueError(
            f"{name} must be finite and within {_LARGEST_CONTEXT:g}, got {found[where]} in row {where[0]}"
        )
    found.flags.writeable = False
    return found


def numeric(name: str, values: Any, *, booleans: bool = False) -> FloatArray:
    """``values`` as a new array of floats (see :func:`numbers`)."""
    return np.array(numbers(name, values, booleans=booleans), dtype=np.float64)


def numbers(name: str, values: Any, *, booleans: bool = False) -> FloatArray:
    """``values`` as an array of floats, the same one if it is one: the one place that says what numbers are.

    Args:
        name: the argument.
        values: an array, nested lists, a data frame.
        booleans: whether True and False may stand for 1 and 0, as in the features of a classifier.

    Raises:
        ValueError: for text, bytes, dates, durations, complex numbers, booleans, missing or masked values,
            rows of different lengths, and objects that are no numbers.
    """
    if type(values) is np.ndarray and values.dtype == _FLOAT:
        return values
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name} must be numbers, got a masked array: fill it first, with .filled(value)")
    try:
        array = np.asarray(values)
    except Exception as error:  # whatever somebody's __array__ raises
        raise ValueError(f"{name} must form a rectangular array of numbers: {error}") from error
    if array.dtype == object:
        elements = [_element(name, value, booleans) for value in array.ravel()]
        array = np.array(elements, dtype=np.float64).reshape(array.shape)
    if array.dtype.kind not in ("iufb" if booleans else "iuf"):
        first = _SHORT.repr(array.ravel()[:1].tolist())
        raise ValueError(f"{name} must be numbers, got {array.dtype} such as {first}")
    return array.astype(np.float64, copy=False)


def _element(name: str, value: object, booleans: bool) -> float:
    """A float out of an array of objects."""
    if not isinstance(value, Real) or not (_is_number(value) or (booleans and isinstance(value, bool))):
        raise ValueError(f"{name} must be numbers, got {describe(value)} among them")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must be floats, got {describe(value)}, which is beyond them") from error


def render_mode(mode: str | None, known: list[str]) -> str | None:
    """``mode`` as one of the ``known`` render modes, or None."""
    if mode is not None and (not isinstance(mode, str) or mode not in known):
        raise ValueError(f"render_mode must be None or one of {', '.join(known)}, got {_SHORT.repr(mode)}")
    return mode


def distributions(
    values: npt.ArrayLike, name: str = "hypothesis", argument: str = "probabilities"
) -> FloatArray:
    """``values`` as distributions along the last axis, normalised to the last bit.

    Args:
        values: ``(..., M)``.
        name: what to call a row in an error; the index of the axis before the last stands behind it.
        argument: what to call all of them.

    Raises:
        ValueError: saying which hypothesis (the axis before the last) is wrong, how, and by how much.
    """
    table, total = _rows(values, argument, name)
    normalised: FloatArray = table / total[..., None]
    normalised[normalised < np.finfo(np.float64).tiny] = 0.0  # too small for its reciprocal to be a float
    return normalised


def table(values: npt.ArrayLike, argument: str = "table", name: str = "hypothesis") -> FloatArray:
    """A table ``(K, M)`` of distributions, each called ``name`` in an error, normalised to the last bit."""
    rows = distributions(values, name, argument)
    if rows.ndim != 2:
        raise ValueError(f"a {argument} has shape (K, M), got {rows.shape}")
    return rows


def _rows(
    values: npt.ArrayLike, argument: str, name: str, place: str = "label"
) -> tuple[FloatArray, FloatArray]:
    """Distributions ``(..., M)`` as they are, and their sums ``(...)``."""
    rows = numbers(argument, values)
    if rows.ndim == 0 or rows.size == 0:
        raise ValueError(f"{argument} must have at least one {place}, got shape {rows.shape}")
    advice = "probabilities are nonnegative and sum to one"
    return rows, row_totals(
        rows, ROW_TOLERANCE, lambda row: f"{name} {row[-1]}" if row else f"the {name}", advice, place
    )


def labels(values: object, num_labels: int) -> IntArray:
    """Users' labels ``(...)`` as indices ``0..M-1``.

    Raises:
        TypeError: if they are no whole numbers.
        ValueError: naming the first that is no label.
    """
    try:
        array = np.asarray(values)
    except Exception as error:  # whatever somebody's __array__ raises
        raise ValueError(f"labels must form an array of whole numbers: {error}") from error
    if array.dtype.kind not in "iu" or np.ma.isMaskedArray(values):
        raise ArgumentTypeError(
            f"labels must be whole numbers in 0..{num_labels - 1}, got {describe(values)}"
        )
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


def posterior(values: npt.ArrayLike, num_hypotheses: int) -> FloatArray:
    """A posterior ``(..., K)``, checked and left as it is.

    Raises:
        ValueError: saying what is wrong with it, and by how much.
    """
    weights, _ = _rows(values, "posterior", "posterior", "hypothesis")
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


def predictions(
    values: FloatArray,
    name_row: Callable[[list[int]], str],
    advice: str,
    tolerance: float = PREDICTION_TOLERANCE,
) -> FloatArray:
    """Predictions ``(..., M)`` as they are charged: checked, and renormalised where they are off.

    Args:
        values: what was predicted.
        name_row: what to call a prediction, from its index, in the error.
        advice: what to do instead, in the error.
        tolerance: how far from one a sum may be.

    Raises:
        ValueError: saying which prediction is wrong, how, and by how much.
    """
    total = row_totals(values, tolerance, name_row, advice)
    if _off_one(total) < _ROUNDING:
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
    total = row_sums(table)
    # Comparisons that NaN fails too; only a failure pays for finding the culprit.
    if least(table) >= 0.0 and _off_one(total) <= tolerance:
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


def _off_one(total: FloatArray) -> float:
    """How far from one the sums ``(...)`` are at most; NaN if one is."""
    return float(np.abs(total - 1.0).max()) if total.ndim else abs(float(total) - 1.0)
