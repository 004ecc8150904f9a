"""Mechanisms from labels to messages of any kind, called with care, and their messages as numbers."""

from __future__ import annotations

import contextlib
import io
import math
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
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

_MOST, _ORDERED = 256, 16
"""Limits on what is read of a message: parts, bits or elements of a set, and places of a set's order."""

_MISSING = -1e308
"""Stands for a number that a shorter message does not have."""


class Mechanism:
    """A callable from labels to messages, called within a time limit; what it prints is caught.

    A call that hangs is interrupted in the main thread of a system with alarms; elsewhere the time is looked
    at between calls. ``messages`` are those of the last labels; ``layout`` turns them into numbers.
    """

    def __init__(self, call: Callable[[Any], Any], vectorized: bool, time_limit: float) -> None:
        self._name = getattr(call, "__qualname__", None) or repr(call)
        self._call, self._vectorized, self._limit = call, vectorized, time_limit
        self._seconds_left, self._drawn, self._label, self._kind = time_limit, 0, 0, ""
        self.layout: Layout | None = None
        self.messages: Sequence[Any] = []

    def numbers(self, labels: IntArray) -> FloatArray:
        """The messages of labels ``(n,)`` as numbers ``(n, F)``; the first call decides about the columns."""
        prints, start = io.StringIO(), time.monotonic()
        try:
            with contextlib.redirect_stdout(prints), _alarm(self._seconds_left):
                self.messages = (
                    self._vector(labels) if self._vectorized else list(self._each(labels))
                )
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
        if first := prints.getvalue()[:80].strip():
            warnings.warn(
                f"{self._name} prints, as {first!r}: the audit does not read it", stacklevel=4
            )
        self._check_kinds(labels)
        self.layout = self.layout or Layout(self.messages)
        return self.layout.matrix(self.messages)

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
            raise TypeError(
                f"{len(labels)} labels must give a list or array of as many messages, got {size}"
            )
        self._drawn += len(labels)
        return messages  # type: ignore[return-value]

    def _check_kinds(self, labels: IntArray) -> None:
        for i in {type(message): i for i, message in enumerate(self.messages)}.values():
            found = kind_of(self.messages[i])
            if not found or found != (self._kind or found):
                got = f"{self._name} returned {validation.describe(self.messages[i])} for label {labels[i]}"
                before = f", and a {self._kind} before: all must be of one kind" if found else ""
                raise MechanismFailedError(f"{got}{before}; a message is a {', a '.join(_KINDS)}")
            self._kind = found


class _TimeUp(BaseException):
    """The time limit is over; not an Exception, which a mechanism may catch."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise :class:`_TimeUp` after some seconds, where alarms can be set."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
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
    """Named columns of numbers for messages of one kind, such as elements of sets and lengths."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._kind, elements = kind_of(messages[0]), []
        if self._kind == "set":
            counts = Counter(chain.from_iterable(messages))
            elements = sorted(counts, key=lambda element: (-counts[element], repr(element)))[:_MOST]
        self._places = {element: i for i, element in enumerate(elements)}
        array = self._array(messages)
        if self._kind == "number":
            self.names = ["the message"]
            return
        if array is not None:
            self.names = [f"coordinate {i}" for i in range(array.shape[1])]
            return
        width = min(max(len(self._numbers(message)) for message in messages), 2 * _MOST)
        parts = {"string": "character", "bytes": "bit", "set": "place in its order"}.get(
            self._kind, "number"
        )
        self.names = [f"({element!r} in it)" for element in elements]
        self.names += [f"{parts} {i}" for i in range(width - len(elements))] + ["its length"]

    def matrix(self, messages: Sequence[Any]) -> FloatArray:
        """Numbers ``(n, F)`` of n messages; shorter ones are filled up."""
        array, width = self._array(messages), len(self.names)
        if array is not None and array.shape[1] == width and self.names[-1] != "its length":
            return array
        rows = np.full((len(messages), width), _MISSING)
        for row, message in zip(rows, messages, strict=True):
            numbers = self._numbers(message)[:width]
            row[: len(numbers)] = numbers
            if self.names[-1] == "its length":
                row[-1] = len(message)
        return rows

    def _array(self, messages: Sequence[Any]) -> FloatArray | None:
        """Numbers, or arrays and tuples of numbers of one shape, as rows; None for other messages."""
        if self._kind not in ("number", "sequence"):
            return None
        try:
            array = np.asarray(messages)
        except ValueError:  # of different lengths
            return None
        return (
            array.astype(np.float64).reshape(len(messages), -1)
            if array.dtype.kind in "biuf"
            else None
        )

    def _numbers(self, message: Any) -> list[float]:
        if self._kind == "set":
            order = [self._places.get(element, -1) for element in message]
            listed = [0.0] * len(self._places)
            for place in order:
                if place >= 0:
                    listed[place] = 1.0
            return [*listed, *map(float, order[:_ORDERED])]
        return list(_flatten(message))[self._kind != "number" :]


def _flatten(message: Any) -> Iterator[float]:
    """The numbers in a message of any kind, the length of a sequence before its parts."""
    kind = kind_of(message)
    if kind == "number":
        try:
            yield float(message)
        except OverflowError:
            yield math.inf if message > 0 else -math.inf
        return
    message = message if kind in ("sequence", "set", "bytes") else str(message)
    yield float(len(message))
    if kind == "bytes":
        yield from np.unpackbits(np.frombuffer(bytes(message), np.uint8)[: _MOST // 8]).tolist()
    elif kind in ("sequence", "set"):
        for part in sorted(message, key=repr) if kind == "set" else message[:_MOST]:
            yield from _flatten(part)
    else:
        yield from map(ord, message[:_MOST])
