"""Mechanisms that are not a Channel: calls from labels to messages of any kind, and these as numbers."""

from __future__ import annotations

import contextlib
import io
import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import MechanismFailedError, summarize

_KINDS: dict[str, tuple[type, ...]] = {
    "number": (Real, np.bool_),
    "string": (str,),
    "bytes": (bytes, bytearray),
    "sequence": (tuple, list, np.ndarray),
    "set": (set, frozenset),
}
"""Kinds of messages, and the classes of each."""

_MOST_NUMBERS, _MOST_ELEMENTS, _ORDERED = 256, 256, 16
"""Limits on what is read of a message: numbers, elements of sets, and places of a set's order."""

_MISSING = -1e308
"""Stands for a number that a shorter message does not have."""


class Mechanism:
    """A callable from labels to messages, called within a time limit; what it prints is caught.

    ``messages`` are those of the last labels.

    Args:
        call: maps a label to a message; or labels ``(n,)`` to n messages if it is vectorized.
        vectorized: whether it is.
        time_limit: seconds for all calls together. A call that hangs is interrupted in the main thread of a
            system with alarms; elsewhere the time is looked at between calls.
    """

    def __init__(self, call: Callable[[Any], Any], vectorized: bool, time_limit: float) -> None:
        self._name = getattr(call, "__qualname__", None) or repr(call)
        self._call, self._vectorized, self._limit = call, vectorized, time_limit
        self._seconds_left, self._drawn, self._label, self._kind = time_limit, 0, 0, ""
        self._layout: Layout | None = None
        self.messages: Sequence[Any] = []

    def numbers(self, labels: IntArray) -> FloatArray:
        """The messages of labels ``(n,)`` as numbers ``(n, F)``; the first call decides about the columns."""
        self.messages = self._draw(labels)
        self._layout = self._layout or Layout(self.messages)
        return self._layout.matrix(self.messages)

    def name(self, column: int) -> str:
        """Name of a column of numbers."""
        assert self._layout is not None, "messages have been drawn"
        return self._layout.name(column)

    def _draw(self, labels: IntArray) -> Sequence[Any]:
        """The messages of labels ``(n,)``, all of one kind."""
        prints, start = _Prints(), time.monotonic()
        try:
            with (
                contextlib.redirect_stdout(prints),
                contextlib.redirect_stderr(prints),
                _alarm(self._seconds_left),
            ):
                messages = self._vector(labels) if self._vectorized else list(self._each(labels))
        except _TimeUp:
            raise MechanismFailedError(
                f"{self._name} took more than {self._limit:g} seconds, last for label {self._label}, and "
                f"{self._drawn:,} messages. Pass fewer trials, or a larger time_limit, unless it hangs"
            ) from None
        except (Exception, SystemExit) as error:  # whatever it raises
            raise MechanismFailedError(
                f"{self._name} failed for label {self._label} after {self._drawn:,} messages, with "
                f"{summarize(error)}. An error tells about the label too: return a message instead"
            ) from error
        self._seconds_left -= time.monotonic() - start
        if prints.first.strip():
            warnings.warn(
                f"{self._name} prints, for example {prints.first.strip()!r}: the audit does not read it",
                stacklevel=4,
            )
        self._check_kinds(messages, labels)
        return messages

    def _each(self, labels: IntArray) -> Iterator[Any]:
        end = time.monotonic() + self._seconds_left
        for self._label in labels.tolist():
            yield self._call(self._label)
            self._drawn += 1
            if time.monotonic() > end:
                raise _TimeUp

    def _vector(self, labels: IntArray) -> Sequence[Any]:
        messages = self._call(labels.copy())
        if not isinstance(messages, list | tuple | np.ndarray) or len(messages) != len(labels):
            size = len(messages) if isinstance(messages, Collection) else type(messages).__name__
            raise TypeError(f"{len(labels)} labels must give a list or array of as many messages, got {size}")
        self._drawn += len(labels)
        return list(messages)

    def _check_kinds(self, messages: Sequence[Any], labels: IntArray) -> None:
        for i in {type(message): i for i, message in enumerate(messages)}.values():
            found, label = kind_of(messages[i]), labels[i]
            if not found:
                what = validation.describe(messages[i])
                raise MechanismFailedError(
                    f"{self._name} returned {what} for label {label}; a message is a {', a '.join(_KINDS)}"
                )
            if found != (self._kind or found):
                raise MechanismFailedError(
                    f"{self._name} returned a {found} for label {label}, and a {self._kind} before: messages "
                    f"must be of one kind"
                )
            self._kind = found


class _TimeUp(BaseException):
    """The time limit is over; not an Exception, which a mechanism may catch."""


class _Prints(io.TextIOBase):
    """Stream that keeps the beginning of the first text that is written to it."""

    first = ""

    def write(self, text: str) -> int:
        if not self.first.strip():
            self.first = str(text)[:80]
        return len(text)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise :class:`_TimeUp` after some seconds, where alarms can be set."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise _TimeUp

    handler = signal.signal(signal.SIGALRM, ring)
    timer, start = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), 1.0), time.monotonic()
    try:
        yield
    finally:
        left = max(timer[0] - (time.monotonic() - start), 1e-3) if timer[0] else 0.0
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, left, timer[1])


def kind_of(message: object) -> str:
    """Kind of a message, or the empty string."""
    if isinstance(message, np.ndarray) and message.ndim == 0:
        return kind_of(message[()])
    return next((kind for kind, classes in _KINDS.items() if isinstance(message, classes)), "")


class Layout:
    """Columns of numbers for messages of one kind; some messages show how many, and the elements of sets."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._kind = kind_of(messages[0])
        self._elements: list[Any] = []
        if self._kind == "set":
            counts: dict[Any, int] = {}
            for message in messages:
                for element in message:
                    counts[element] = counts.get(element, 0) + 1
            self._elements = sorted(counts, key=lambda element: (-counts[element], repr(element)))
        self._places = {element: i for i, element in enumerate(self._elements)}
        array = self._array(messages)
        self._flat = array is None
        lengths = (len(self._numbers(message)) for message in messages)
        self.width = array.shape[1] if array is not None else min(max(lengths), 2 * _MOST_NUMBERS)

    def matrix(self, messages: Sequence[Any]) -> FloatArray:
        """Numbers ``(n, width)`` of n messages; shorter ones are filled up."""
        array = None if self._flat else self._array(messages)
        if array is not None and array.shape[1] == self.width:
            return array
        rows = np.full((len(messages), self.width), _MISSING)
        first = int(not self._flat and self._kind == "sequence")  # without the length
        for row, message in zip(rows, messages, strict=True):
            numbers = self._numbers(message)[first : first + self.width]
            row[: len(numbers)] = numbers
        return rows

    def name(self, column: int) -> str:
        """Name of a column, in words."""
        if self._kind == "number":
            return "the message"
        if not self._flat:
            return f"coordinate {column}"
        if self._kind == "set" and 0 < column <= self._listed:
            return f"(is {self._elements[column - 1]!r} in it)"
        if column == 0:
            return "its length"
        places = {"string": "character", "bytes": "bit", "set": "place in the order of the set"}
        first = 1 + (self._listed if self._kind == "set" else 0)
        return f"{places.get(self._kind, 'number')} {column - first}"

    @property
    def _listed(self) -> int:
        return min(len(self._elements), _MOST_ELEMENTS)

    def _array(self, messages: Sequence[Any]) -> FloatArray | None:
        """Numbers, or arrays and tuples of numbers of one shape, as rows; None for other messages."""
        if self._kind not in ("number", "sequence"):
            return None
        try:
            array = np.asarray(messages)
        except ValueError:  # of different lengths
            return None
        if array.dtype.kind not in "biuf":
            return None
        return array.astype(np.float64).reshape(len(messages), -1)

    def _numbers(self, message: Any) -> list[float]:
        """A message as numbers; its length first."""
        if self._kind == "set":
            listed = [0.0] * self._listed
            order = [self._places.get(element, -1) for element in message]
            for place in order:
                if 0 <= place < self._listed:
                    listed[place] = 1.0
            return [float(len(order)), *listed, *map(float, order[:_ORDERED])]
        return list(_flatten(message))


def _flatten(message: Any) -> Iterator[float]:
    """The numbers in a message of any kind, the length of a sequence before its parts."""
    kind = kind_of(message)
    if kind == "number":
        try:
            yield float(message)
        except OverflowError:
            yield math.inf if message > 0 else -math.inf
        return
    if kind == "bytes":
        message = bytes(message)
        yield from (
            float(8 * len(message)),
            *np.unpackbits(np.frombuffer(message, np.uint8)[: _MOST_NUMBERS // 8]),
        )
        return
    if kind in ("string", ""):
        message = str(message)
        yield from (float(len(message)), *map(ord, message[:_MOST_NUMBERS]))
        return
    yield float(len(message))
    for part in sorted(message, key=repr) if kind == "set" else message[:_MOST_NUMBERS]:
        yield from _flatten(part)
