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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    "dict": (Mapping,),
}
"""Kinds of messages, and the classes of each."""

_MOST_PARTS = 256
"""Largest number of parts, bits or elements of a set that are read of a message."""

_MOST_PLACES = 16
"""Largest number of places that are read of the order of a set."""

_MISSING = -1e308
"""Stands for a number that a shorter message does not have."""

_PARTS = {"string": "character", "bytes": "bit", "set": "place in its order"}
"""Names of the parts of messages of a kind; those of other kinds are numbers."""

_LENGTH = "its length"
"""Name of the column with the lengths of messages."""


class Mechanism:
    """A callable from labels to messages, called within a time limit; what it prints is caught.

    A call that hangs is interrupted in the main thread of a system with alarms; elsewhere the time is looked
    at between calls.

    Args:
        call: the function from a label to a message, or from labels to messages.
        vectorized: whether it takes all labels at once.
        time_limit: seconds that all its calls may take.

    Attributes:
        messages: the messages of the last labels.
        layout: turns messages into numbers; None before the first call.
    """

    def __init__(self, call: Callable[[Any], Any], vectorized: bool, time_limit: float) -> None:
        self._name = getattr(call, "__qualname__", None) or repr(call)
        self._call = call
        self._vectorized = vectorized
        self._time_limit = time_limit
        self._seconds_left = time_limit
        self._num_drawn = 0
        self._label = 0
        self._kind = ""
        self.layout: Layout | None = None
        self.messages: Sequence[Any] = []

    def numbers(self, labels: IntArray) -> FloatArray:
        """Draw the messages of labels ``(n,)``, as numbers ``(n, F)``; the first call decides the columns."""
        prints = io.StringIO()
        start = time.monotonic()
        try:
            with contextlib.redirect_stdout(prints), _alarm(self._seconds_left):
                if self._vectorized:
                    self.messages = self._send_all(labels)
                else:
                    self.messages = list(self._send_one_by_one(labels))
        except _TimeUp:
            raise MechanismFailedError(
                f"{self._name} took more than {self._time_limit:g} seconds, last for label {self._label}, "
                f"and {self._num_drawn:,} messages. Pass fewer trials, or a larger time_limit, unless it "
                f"hangs"
            ) from None
        except (Exception, SystemExit) as error:  # whatever it raises
            raise MechanismFailedError(
                f"{self._name} failed for label {self._label} after {self._num_drawn:,} messages, with "
                f"{summarize(error)}. An error tells about the label too: return a message instead"
            ) from error
        self._seconds_left -= time.monotonic() - start

        printed = prints.getvalue()[:80].strip()
        if printed:
            warnings.warn(
                f"{self._name} prints, as {printed!r}: the audit does not read it", stacklevel=5
            )
        self._check_kinds(labels)
        if self.layout is None:
            self.layout = Layout(self.messages)
        return self.layout.matrix(self.messages)

    def _send_one_by_one(self, labels: IntArray) -> Iterator[Any]:
        """Yield the messages of labels, as long as there is time."""
        end = time.monotonic() + self._seconds_left
        for self._label in labels.tolist():
            yield self._call(self._label)
            self._num_drawn += 1
            if time.monotonic() > end:
                raise _TimeUp

    def _send_all(self, labels: IntArray) -> Sequence[Any]:
        """Get the messages of all labels by one call."""
        messages = self._call(labels.copy())
        is_sequence = isinstance(messages, list | tuple | np.ndarray)
        if not is_sequence or len(messages) != len(labels):
            size = len(messages) if isinstance(messages, Collection) else type(messages).__name__
            raise TypeError(
                f"{len(labels)} labels must give a list or array of as many messages, got {size}"
            )
        self._num_drawn += len(labels)
        return messages

    def _check_kinds(self, labels: IntArray) -> None:
        """Check that all messages are of one kind, that of the first."""
        place_by_type = {type(message): place for place, message in enumerate(self.messages)}
        for place in place_by_type.values():
            message = self.messages[place]
            kind = kind_of(message)
            if kind and kind == (self._kind or kind):
                self._kind = kind
                continue
            before = ""
            if kind:
                before = f", and a {self._kind} before: all must be of one kind"
            raise MechanismFailedError(
                f"{self._name} returned {validation.describe(message)} for label {labels[place]}{before}; "
                f"a message is a {', a '.join(_KINDS)}"
            )


class _TimeUp(BaseException):
    """The time limit is over; not an Exception, which a mechanism may catch."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise :class:`_TimeUp` after some seconds, where alarms can be set."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise _TimeUp

    handler = signal.signal(signal.SIGALRM, ring)
    earlier_seconds, earlier_interval = signal.setitimer(
        signal.ITIMER_REAL, max(seconds, 1e-3), 1.0
    )
    start = time.monotonic()
    try:
        yield
    finally:
        # An alarm that was set before rings when it would have.
        seconds_left = 0.0
        if earlier_seconds > 0.0:
            seconds_left = max(earlier_seconds - (time.monotonic() - start), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds_left, earlier_interval)


def kind_of(message: object) -> str:
    """Name the kind of a message; empty if it is none.

    Example:
        >>> kind_of("red"), kind_of(np.eye(2)), kind_of(None)
        ('string', 'sequence', '')
    """
    if isinstance(message, np.ndarray) and message.ndim == 0:
        return kind_of(message[()])
    for kind, classes in _KINDS.items():
        if isinstance(message, classes):
            return kind
    return ""


class Layout:
    """Named columns of numbers for messages of one kind, such as elements of sets and lengths.

    Args:
        messages: messages that show which columns are needed.

    Attributes:
        names: names of the columns.

    Example:
        >>> Layout(["ab", "c"]).names
        ['character 0', 'character 1', 'its length']
        >>> Layout([{"b": 2, "a": 1.5}]).names
        ["value of 'a'", "value of 'b'"]
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self._kind = kind_of(messages[0])
        self._keys = _common_keys(messages) if self._kind == "dict" else None
        self._elements: list[Any] = []
        if self._kind == "set":
            self._elements = _frequent_elements(messages)
        self._place_of = {element: place for place, element in enumerate(self._elements)}
        self.names = self._names(self._plain(messages))

    def _names(self, messages: Sequence[Any]) -> list[str]:
        """Names of the columns of plain messages."""
        if self._kind == "number":
            return ["the message"]
        array = self._array(messages)
        if array is not None:
            if self._keys is not None and array.shape[1] == len(self._keys):
                return [f"value of {key!r}" for key in self._keys]
            return [f"coordinate {i}" for i in range(array.shape[1])]

        widest = max(len(self._numbers(message)) for message in messages)
        width = min(widest, 2 * _MOST_PARTS)
        part = _PARTS.get(self._kind, "number")
        names = [f"({element!r} in it)" for element in self._elements]
        names += [f"{part} {i}" for i in range(width - len(names))]
        return [*names, _LENGTH]

    def matrix(self, messages: Sequence[Any]) -> FloatArray:
        """Numbers ``(n, F)`` of n messages; shorter ones are filled up."""
        plain = self._plain(messages)
        array = self._array(plain)
        width = len(self.names)
        has_lengths = self.names[-1] == _LENGTH
        if array is not None and array.shape[1] == width and not has_lengths:
            return array

        rows = np.full((len(messages), width), _MISSING)
        for row, message in zip(rows, plain, strict=True):
            numbers = self._numbers(message)[:width]
            row[: len(numbers)] = numbers
            if has_lengths:
                row[-1] = len(message)
        return rows

    def _plain(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Messages as they are; of dicts with the same keys the values, in the order of the keys."""
        if self._kind != "dict":
            return messages
        if self._keys is not None and all(set(message) == set(self._keys) for message in messages):
            return [[message[key] for key in self._keys] for message in messages]
        return [[part for item in _items(message) for part in item] for message in messages]

    def _array(self, messages: Sequence[Any]) -> FloatArray | None:
        """Numbers, or arrays and tuples of numbers of one shape, as rows; None for other messages."""
        if self._kind not in ("number", "sequence", "dict"):
            return None
        try:
            array = np.asarray(messages)
        except ValueError:  # of different lengths
            return None
        if array.dtype.kind not in "biuf":
            return None
        return array.astype(np.float64).reshape(len(messages), -1)

    def _numbers(self, message: Any) -> list[float]:
        """The numbers of one message, without its length."""
        if self._kind == "set":
            places = [self._place_of.get(element, -1) for element in message]
            is_element = [0.0] * len(self._elements)
            for place in places:
                if place >= 0:
                    is_element[place] = 1.0
            return [*is_element, *map(float, places[:_MOST_PLACES])]
        numbers = list(_flatten(message))
        if self._kind == "number":
            return numbers
        return numbers[1:]


def _common_keys(messages: Sequence[Mapping[Any, Any]]) -> list[Any] | None:
    """Keys that all dicts have, sorted; None if they have different ones."""
    keys = set(messages[0])
    if any(set(message) != keys for message in messages):
        return None
    return sorted(keys, key=repr)


def _items(message: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Keys and values of a dict in the order of its keys, as in canonical JSON."""
    return sorted(message.items(), key=lambda item: repr(item[0]))


def _frequent_elements(messages: Sequence[Any]) -> list[Any]:
    """Elements of sets, the most frequent first."""
    counts = Counter(chain.from_iterable(messages))
    order = sorted(counts, key=lambda element: (-counts[element], repr(element)))
    return order[:_MOST_PARTS]


def _as_float(number: Any) -> float:
    """A number as a float; infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _flatten(message: Any) -> Iterator[float]:
    """Yield the numbers in a message of any kind, the length of a sequence before its parts."""
    kind = kind_of(message)
    if kind == "number":
        yield _as_float(message)
        return
    if kind not in ("sequence", "set", "bytes", "dict"):
        text = str(message)
        yield float(len(text))
        yield from map(ord, text[:_MOST_PARTS])
        return

    yield float(len(message))
    if kind == "bytes":
        first_bytes = np.frombuffer(bytes(message), np.uint8)[: _MOST_PARTS // 8]
        yield from np.unpackbits(first_bytes).tolist()
        return
    if kind == "sequence":
        parts = message[:_MOST_PARTS]
    elif kind == "set":
        parts = sorted(message, key=repr)
    else:
        parts = chain.from_iterable(_items(message))
    for part in parts:
        yield from _flatten(part)
