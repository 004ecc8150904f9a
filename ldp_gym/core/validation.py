"""Checks of arguments of public calls: return the value in its plain type, or raise an error.

:mod:`ldp_gym.core.game_arrays` checks the arrays of a game.
"""

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

from ldp_gym.core.arrays import FloatArray, IntArray

T = TypeVar("T")

_LARGEST_COUNT = 2**63 - 1
"""Largest count that can index an array."""

_MOST_NUMBERS = 2**30
"""Largest number of floats that one object may keep in memory: 8 GiB."""

_FLOAT = np.dtype(np.float64)
"""Type of all arrays of the package that hold real numbers."""

_SHORT = Repr()
"""Representation of values in errors: long ones are cut in the middle."""

_SHORT.maxother = 80
_SHORT.maxstring = 80
_SHORT.maxlist = 4
_SHORT.maxtuple = 4
_SHORT.maxdict = 4
_SHORT.maxarray = 4


def shorten(value: object) -> str:
    """Return a representation of a value on one line, at most about 80 characters long.

    Example:
        >>> shorten([1, 2, 3, 4, 5, 6])
        '[1, 2, 3, 4, ...]'
    """
    return " ".join(_SHORT.repr(value).split())


def describe(value: object) -> str:
    """Return a short representation of a value with its type, for an error.

    Example:
        >>> describe("one")
        "'one' of type str"
    """
    return f"{shorten(value)} of type {type(value).__name__}"


def whole(name: str, value: object, *, least: int, most: int = _LARGEST_COUNT) -> int:
    """Check that a value is a whole number in ``least..most``, and return it as an int.

    Example:
        >>> whole("horizon", 100, least=2)
        100
        >>> whole("horizon", 1, least=2)
        Traceback (most recent call last):
        ...
        ValueError: horizon must be at least 2, got 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {describe(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {_SHORT.repr(number)}")
    if number > most:
        raise ValueError(f"{name} must be at most {_SHORT.repr(most)}, got {_SHORT.repr(number)}")
    return number


def index(name: str, value: object, size: int) -> int:
    """Check that a value is an index into a sequence of the given size, and return it as an int."""
    return whole(name, value, least=0, most=size - 1)


def seed(name: str, value: object) -> int:
    """Check that a value is a seed, a nonnegative whole number, and return it as an int."""
    return whole(name, value, least=0, most=2**10_000)


def seeds(name: str, value: object, num_games: int) -> list[int | None]:
    """Return one seed for each game.

    Args:
        name: name of the argument in errors.
        value: the seed of the first game, which is counted up; or a list of seeds; or None.
        num_games: number of games.

    Example:
        >>> seeds("seed", 7, num_games=3)
        [7, 8, 9]
        >>> seeds("seed", None, num_games=3)
        [None, None, None]
    """
    if value is None:
        return [None] * num_games
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        values = list_of(name, value, "seeds, one for each game")
        if len(values) != num_games:
            raise ValueError(
                f"{name} must be a list of {num_games}, one for each game, got {len(values)}"
            )
        return [_seed_or_none(name, item) for item in values]
    first = seed(name, value)
    return [first + game for game in range(num_games)]


def _seed_or_none(name: str, value: object) -> int | None:
    """Check that a value is a seed or None, and return it."""
    if value is None:
        return None
    return seed(name, value)


def real(name: str, value: object) -> float:
    """Check that a value is a real number other than NaN, and return it as a float.

    A number that is too large for a float becomes infinity.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {describe(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN")
    return number


def positive(name: str, value: object, *, most: float = sys.float_info.max) -> float:
    """Check that a value is a finite number in (0, most], and return it as a float."""
    if most == sys.float_info.max:
        limit = "finite"
    else:
        limit = f"at most {most:g}"
    return _real_where(lambda x: 0.0 < x <= most, name, value, f"be positive and {limit}")


def squarable(name: str, value: object, *, most: float = sys.float_info.max) -> float:
    """Check that a value is in (0, most], and that ``1 / value**2`` is a float too."""
    number = positive(name, value, most=most)
    if number < 1e-150:
        raise ValueError(
            f"{name} must be at least 1e-150, so that its square is a float; got {number}"
        )
    return number


def nonnegative(name: str, value: object) -> float:
    """Check that a value is a finite number, zero or above, and return it as a float."""
    return _real_where(lambda x: 0.0 <= x < math.inf, name, value, "be nonnegative and finite")


def fraction(name: str, value: object) -> float:
    """Check that a value lies strictly between 0 and 1, and return it as a float."""
    return _real_where(lambda x: 0.0 < x < 1.0, name, value, "lie in (0, 1)")


def probability_below_one(name: str, value: object) -> float:
    """Check that a value is at least 0 and below 1, and return it as a float."""
    return _real_where(lambda x: 0.0 <= x < 1.0, name, value, "lie in [0, 1)")


def probability(name: str, value: object) -> float:
    """Check that a value lies between 0 and 1, ends included, and return it as a float."""
    return _real_where(lambda x: 0.0 <= x <= 1.0, name, value, "lie in [0, 1]")


def _real_where(is_valid: Callable[[float], bool], name: str, value: object, must: str) -> float:
    """Check that a real number fulfils a condition, and return it as a float.

    Args:
        is_valid: the condition.
        name: name of the number in errors.
        value: the number.
        must: the condition in words that follow "must" in the error: "be positive", say.
    """
    number = real(name, value)
    if not is_valid(number):
        raise ValueError(f"{name} must {must}, got {number}")
    return number


def fits_memory(name: str, count: int, numbers_each: int, what: str) -> None:
    """Refuse a count of objects that need too much memory.

    Args:
        name: name of the count in errors.
        count: number of objects.
        numbers_each: number of floats that one object needs.
        what: name of the objects in errors.
    """
    needed = count * numbers_each
    if needed > _MOST_NUMBERS:
        raise ValueError(
            f"{name}={count:,} would keep {needed:.3g} numbers of {what} in memory, at most "
            f"{_MOST_NUMBERS:.3g} are allowed; take at most "
            f"{name}={_MOST_NUMBERS // numbers_each:,}"
        )


def flag(name: str, value: object) -> bool:
    """Check that a value is True or False; strings such as "False" are rejected."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return bool(value)


def options_dict(name: str, value: object) -> dict[str, Any]:
    """Check that a value is a dict of options by name, and return a copy; empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a dict of options by name, got {describe(value)}")
    return dict(value)


def choice(name: str, value: object, known: Sequence[str]) -> str:
    """Check that a value is one of the known words, and return it."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {_SHORT.repr(value)}")
    return value


def instance(name: str, value: object, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """Check that a value is an instance of a class, which ``what`` describes in the error."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, got {describe(value)}")
    return value


def function(name: str, value: Any, what: str) -> Any:
    """Check that a value is None or a callable, whose purpose ``what`` gives in the error."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function {what}, got {describe(value)}")
    return value


def text(name: str, value: object) -> str:
    """Check that a value is a str, and return it."""
    return instance(name, value, str, "a text")


def path(name: str, value: object) -> Path:
    """Return a str or a path as a path."""
    return Path(instance(name, value, (str, Path), "a path"))  # type: ignore[arg-type]


def list_of(name: str, values: Any, what: str) -> list[Any]:
    """Return a list, tuple or 1-D array as a list; ``what`` names its items in errors."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"{name} must be a list of {what}, got {describe(values)}")
    return list(values)


def texts(name: str, values: object, what: str) -> list[str]:
    """Check that values are a list of str, and return them; ``what`` names the items in errors."""
    return [
        instance(name, value, str, f"a list of {what}") for value in list_of(name, values, what)
    ]


def indices(name: str, values: object, size: int) -> IntArray:
    """Check that values are indices into a sequence of the given size, distinct or repeated."""
    return np.array(
        [index(name, value, size) for value in list_of(name, values, "indices")], dtype=np.int64
    )


def numbers(name: str, values: Any, *, booleans: bool = False) -> FloatArray:
    """Convert nested lists, a data frame, a tensor or any array of numbers to an array of floats.

    A NumPy array of floats is returned unchanged. Whatever a user hands over or user code returns
    is converted here, or refused.

    Args:
        name: name of the values in errors.
        values: the numbers.
        booleans: whether True and False stand for 1 and 0, as in the features of a classifier.

    Example:
        >>> numbers("weights", [[1, 2], [3, 4]]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        >>> numbers("weights", ["a"])
        Traceback (most recent call last):
        ...
        ValueError: weights must be numbers, got <U1 such as ['a']
    """
    if type(values) is np.ndarray and values.dtype == _FLOAT:
        return values
    if np.ma.isMaskedArray(values):
        raise ValueError(
            f"{name} must be numbers, got a masked array: fill it first, with .filled(value)"
        )
    try:
        array = np.asarray(values)
    except Exception as error:  # the __array__ method of an object may raise anything
        raise ValueError(f"{name} must form a rectangular array of numbers: {error}") from error
    if array.dtype == object:
        array = _unpacked(array, booleans)
    allowed_kinds = "iufb" if booleans else "iuf"
    if array.dtype.kind not in allowed_kinds:
        first = _SHORT.repr(array.ravel()[:1].tolist())
        raise ValueError(f"{name} must be numbers, got {array.dtype} such as {first}")
    return array.astype(np.float64, copy=False)


def _unpacked(array: npt.NDArray[Any], booleans: bool) -> npt.NDArray[Any]:
    """Convert an array of Python objects to floats if all are real numbers.

    If it holds booleans that are not allowed, it becomes an array of booleans, and if it holds
    other objects, it stays as it is: the caller refuses both by their types.
    """
    entries = array.ravel()
    if not all(isinstance(entry, Real) for entry in entries):
        return array
    holds_booleans = any(isinstance(entry, bool) for entry in entries)
    if holds_booleans and not booleans:
        return array.astype(np.bool_)
    return array.astype(np.float64)
