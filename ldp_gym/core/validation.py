"""What an argument must satisfy, and the error when it does not. ``game_arrays`` checks a game's arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import ArgumentTypeError

T = TypeVar("T")

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


def seeds(name: str, value: object, num_games: int) -> list[int | None]:
    """``value`` as a seed for each game: those from a first one on, a list of them, or none."""
    if value is None:
        return [None] * num_games
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        values = list_of(name, value, "seeds, one for each game")
        if len(values) != num_games:
            raise ValueError(f"{name} must be a list of {num_games}, one for each game, got {len(values)}")
        return [None if one is None else seed(name, one) for one in values]
    first = seed(name, value)
    return [first + game for game in range(num_games)]


def index(name: str, value: object, size: int) -> int:
    """``value`` as an index into ``size`` things."""
    number = whole(name, value, least=0)
    if number >= size:
        raise ValueError(f"{name} must lie in 0..{size - 1}, got {number}")
    return number


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


def share(name: str, value: object) -> float:
    """``value`` as a float in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {number}")
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


def _is_number(value: object) -> bool:
    """Whether a value may be a number: bools are none, nor are durations, integers to NumPy."""
    return not isinstance(value, bool | np.bool_ | np.timedelta64)


def _plain(number: int) -> str:
    return describe(number) if number.bit_length() > 256 else str(number)


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


def path(name: str, value: object) -> Path:
    """``value``, a text or a path, as a path."""
    if not isinstance(value, str | Path):
        raise ArgumentTypeError(f"{name} must be a path, got {describe(value)}")
    return Path(value)


# -- Lists and arrays ---------------------------------------------------------------------------------


def list_of(name: str, values: Any, what: str) -> list[Any]:
    """``values`` as a list: of a list, a tuple or an array of one axis; ``what`` they are is in the error."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and not np.ma.isMaskedArray(values):
        return list(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise ArgumentTypeError(f"{name} must be a list of {what}, got {describe(values)}")
    return list(values)


def texts(name: str, values: object, what: str) -> list[str]:
    """``values`` as a list of texts; ``what`` they are is in the error."""
    return [instance(name, value, str, f"a list of {what}") for value in list_of(name, values, what)]


def indices(name: str, values: object, size: int) -> IntArray:
    """``values`` as distinct or repeated indices into ``size`` things."""
    return np.array([index(name, value, size) for value in list_of(name, values, "indices")], dtype=np.int64)


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
