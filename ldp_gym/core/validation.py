"""Checks of the arguments of public calls; each returns the value in its plain type or says what is wrong.

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

from ldp_gym.core.arrays import FloatArray, IntArray

T = TypeVar("T")

_LARGEST_COUNT, _MOST_NUMBERS = 2**63 - 1, 2**30
"""Largest count that can index an array, and most numbers that one object may keep in memory: 8 GiB."""

_FLOAT = np.dtype(np.float64)

_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 80
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxarray = 4


def shorten(value: object) -> str:
    """Show a value in a few words."""
    return " ".join(_SHORT.repr(value).split())


def describe(value: object) -> str:
    """Show a value in an error, in a few words, with its type."""
    return f"{shorten(value)} of type {type(value).__name__}"


def whole(name: str, value: object, *, least: int, most: int = _LARGEST_COUNT) -> int:
    """``value`` as an int in ``least..most``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {describe(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {_SHORT.repr(number)}")
    if number > most:
        raise ValueError(f"{name} must be at most {_SHORT.repr(most)}, got {_SHORT.repr(number)}")
    return number


def index(name: str, value: object, size: int) -> int:
    """``value`` as an index into a sequence of the given size."""
    return whole(name, value, least=0, most=size - 1)


def seed(name: str, value: object) -> int:
    """``value`` as a seed: a nonnegative int of any size."""
    return whole(name, value, least=0, most=2**10_000)


def seeds(name: str, value: object, num_games: int) -> list[int | None]:
    """``value`` as a seed for each game: a first one that is counted up, a list of seeds, or None."""
    if value is None:
        return [None] * num_games
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        values = list_of(name, value, "seeds, one for each game")
        if len(values) != num_games:
            raise ValueError(
                f"{name} must be a list of {num_games}, one for each game, got {len(values)}"
            )
        return [None if one is None else seed(name, one) for one in values]
    first = seed(name, value)
    return [first + game for game in range(num_games)]


def real(name: str, value: object) -> float:
    """``value`` as a float other than NaN; infinite if it is too large for a float."""
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
    """``value`` as a finite float above zero, at most ``most``."""
    limit = "finite" if most == sys.float_info.max else f"at most {most:g}"
    return _real_where(lambda x: 0.0 < x <= most, name, value, f"be positive and {limit}")


def squarable(name: str, value: object, *, most: float = sys.float_info.max) -> float:
    """``value`` as a positive float, at most ``most``, whose square and its inverse are floats too."""
    number = positive(name, value, most=most)
    if number < 1e-150:
        raise ValueError(
            f"{name} must be at least 1e-150, so that its square is a float; got {number}"
        )
    return number


def nonnegative(name: str, value: object) -> float:
    """``value`` as a finite float, zero or above."""
    return _real_where(lambda x: 0.0 <= x < math.inf, name, value, "be nonnegative and finite")


def fraction(name: str, value: object) -> float:
    """``value`` as a float in (0, 1)."""
    return _real_where(lambda x: 0.0 < x < 1.0, name, value, "lie in (0, 1)")


def probability_below_one(name: str, value: object) -> float:
    """``value`` as a float in [0, 1)."""
    return _real_where(lambda x: 0.0 <= x < 1.0, name, value, "lie in [0, 1)")


def probability(name: str, value: object) -> float:
    """``value`` as a float in [0, 1]."""
    return _real_where(lambda x: 0.0 <= x <= 1.0, name, value, "lie in [0, 1]")


def _real_where(sound: Callable[[float], bool], name: str, value: object, must: str) -> float:
    number = real(name, value)
    if not sound(number):
        raise ValueError(f"{name} must {must}, got {number}")
    return number


def fits_memory(name: str, count: int, numbers_each: int, what: str) -> None:
    """Refuse a count of objects, ``what``, that would not fit into memory with ``numbers_each`` floats."""
    if count * numbers_each > _MOST_NUMBERS:
        raise ValueError(
            f"{name}={count:,} would keep {count * numbers_each:.3g} numbers of {what} in memory, at "
            f"most {_MOST_NUMBERS:.3g} are allowed; take at most {name}={_MOST_NUMBERS // numbers_each:,}"
        )


def flag(name: str, value: object) -> bool:
    """``value`` as a bool; strings such as "False" are rejected."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return bool(value)


def options_dict(name: str, value: object) -> dict[str, Any]:
    """``value`` as a dict of options by name; empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a dict of options by name, got {describe(value)}")
    return dict(value)


def choice(name: str, value: object, known: Sequence[str]) -> str:
    """``value`` as one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {_SHORT.repr(value)}")
    return value


def instance(name: str, value: object, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """``value`` as an instance of a class, which ``what`` describes in the error."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, got {describe(value)}")
    return value


def function(name: str, value: Any, what: str) -> Any:
    """``value`` as None or a callable, whose purpose ``what`` gives in the error."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function {what}, got {describe(value)}")
    return value


def text(name: str, value: object) -> str:
    """``value`` as a str."""
    return instance(name, value, str, "a text")


def path(name: str, value: object) -> Path:
    """``value``, a str or a path, as a path."""
    return Path(instance(name, value, (str, Path), "a path"))  # type: ignore[arg-type]


def list_of(name: str, values: Any, what: str) -> list[Any]:
    """``values``, a list, a tuple or an array of one axis, as a list of ``what``."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"{name} must be a list of {what}, got {describe(values)}")
    return list(values)


def texts(name: str, values: object, what: str) -> list[str]:
    """``values`` as a list of str, which are ``what``."""
    return [
        instance(name, value, str, f"a list of {what}") for value in list_of(name, values, what)
    ]


def indices(name: str, values: object, size: int) -> IntArray:
    """``values`` as indices, distinct or repeated, into a sequence of the given size."""
    return np.array(
        [index(name, value, size) for value in list_of(name, values, "indices")], dtype=np.int64
    )


def numbers(name: str, values: Any, *, booleans: bool = False) -> FloatArray:
    """``values``, nested lists or a data frame, as an array of floats; one of floats is returned as it is.

    With ``booleans`` True and False stand for 1 and 0, as in the features of a classifier.
    """
    if type(values) is np.ndarray and values.dtype == _FLOAT:
        return values
    if np.ma.isMaskedArray(values):
        raise ValueError(
            f"{name} must be numbers, got a masked array: fill it first, with .filled(value)"
        )
    try:
        array = np.asarray(values)
    except Exception as error:  # whatever the __array__ of an object raises
        raise ValueError(f"{name} must form a rectangular array of numbers: {error}") from error
    if array.dtype == object and all(isinstance(value, Real) for value in array.ravel()):
        flags = any(isinstance(value, bool) for value in array.ravel())
        array = array.astype(np.bool_ if flags and not booleans else np.float64)
    if array.dtype.kind not in ("iufb" if booleans else "iuf"):
        first = _SHORT.repr(array.ravel()[:1].tolist())
        raise ValueError(f"{name} must be numbers, got {array.dtype} such as {first}")
    return array.astype(np.float64, copy=False)
