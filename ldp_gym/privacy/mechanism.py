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

_MOST_ORDERED = 16
"""Largest number of elements of a set whose order is read."""

_LONGEST_PRINT = 80
"""Largest number of characters of a mechanism's output that a warning shows."""

_LEAST_ALARM = 1e-3
"""Least number of seconds until an alarm: 0 would mean that there is none."""

_BITS_PER_BYTE = 8
"""Number of bits in a byte."""

_MISSING = -1e308
"""Stands for a number that a shorter message does not have."""

_PARTS = {"string": "character", "bytes": "bit", "set": "place in its order"}
"""Names of the parts of messages of a kind; those of other kinds are numbers."""

_LENGTH_NAME = "its length"
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
        output = io.StringIO()
        start = time.monotonic()
        try:
            with contextlib.redirect_stdout(output), _alarm(self._seconds_left):
                if self._vectorized:
                    self.messages = self._send_all(labels)
                else:
                    self.messages = self._send_one_by_one(labels)
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

        printed = output.getvalue()[:_LONGEST_PRINT].strip()
        if printed:
            warnings.warn(
                f"{self._name} prints, as {printed!r}: the audit does not read it", stacklevel=5
            )
        self._check_kinds(labels)
        if self.layout is None:
            self.layout = Layout(self.messages)
        return self.layout.matrix(self.messages)

    def _send_one_by_one(self, labels: IntArray) -> list[Any]:
        """Get the messages of labels by a call for each, within the time that is left.

        Keeps the current label and the number of messages, for the error if a call fails.
        """
        end = time.monotonic() + self._seconds_left
        messages = []
        for label in labels.tolist():
            self._label = label
            messages.append(self._call(label))
            self._num_drawn += 1
            if time.monotonic() > end:
                raise _TimeUp
        return messages

    def _send_all(self, labels: IntArray) -> Sequence[Any]:
        """Get the messages of all labels by one call."""
        messages = self._call(labels.copy())
        is_sequence = isinstance(messages, list | tuple | np.ndarray)
        if not is_sequence or len(messages) != len(labels):
            size: int | str = type(messages).__name__
            if isinstance(messages, Collection):
                size = len(messages)
            raise TypeError(
                f"{len(labels)} labels must give a list or array of as many messages, got {size}"
            )
        self._num_drawn += len(labels)
        return messages

    def _check_kinds(self, labels: IntArray) -> None:
        """Check that all messages are of one kind, that of the first."""
        # One message of each type is enough: its kind depends on nothing else.
        index_by_type = {type(message): index for index, message in enumerate(self.messages)}
        for index in index_by_type.values():
            message = self.messages[index]
            kind = kind_of(message)
            is_first = self._kind == ""
            if kind and (is_first or kind == self._kind):
                self._kind = kind
                continue
            before = ""
            if kind:
                before = f", and a {self._kind} before: all must be of one kind"
            raise MechanismFailedError(
                f"{self._name} returned {validation.describe(message)} for label {labels[index]}{before}; "
                f"a message is a {', a '.join(_KINDS)}"
            )


class _TimeUp(BaseException):
    """The time limit is over; not an Exception, which a mechanism may catch."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise :class:`_TimeUp` after some seconds, where alarms can be set: in the main thread of Unix.

    It is raised again every second after, in case the mechanism swallows it.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise _TimeUp

    earlier_handler = signal.signal(signal.SIGALRM, stop)
    earlier_seconds, earlier_interval = signal.setitimer(
        signal.ITIMER_REAL, max(seconds, _LEAST_ALARM), 1.0
    )
    start = time.monotonic()
    try:
        yield
    finally:
        # An alarm that was set before goes off when it would have; 0 seconds mean that there was none.
        seconds_left = 0.0
        if earlier_seconds > 0.0:
            elapsed = time.monotonic() - start
            seconds_left = max(earlier_seconds - elapsed, _LEAST_ALARM)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier_handler)
        signal.setitimer(signal.ITIMER_REAL, seconds_left, earlier_interval)


def kind_of(message: object) -> str:
    """Name the kind of a message; empty if an object cannot be a message.

    Example:
        >>> kind_of("red"), kind_of(np.eye(2)), kind_of(None)
        ('string', 'sequence', '')
    """
    if isinstance(message, np.ndarray) and message.ndim == 0:
        return kind_of(message[()])  # the number in it
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
        self._keys: list[Any] | None = None
        if self._kind == "dict":
            self._keys = _common_keys(messages)
        self._elements: list[Any] = []
        if self._kind == "set":
            self._elements = _frequent_elements(messages)
        self._index_of = {element: index for index, element in enumerate(self._elements)}
        self.names = self._names(self._without_keys(messages))

    def _names(self, messages: Sequence[Any]) -> list[str]:
        """Names of the columns of messages, of which dicts are lists already (``_without_keys``)."""
        if self._kind == "number":
            return ["the message"]
        array = self._array(messages)
        if array is not None:
            num_columns = array.shape[1]
            if self._keys is not None and num_columns == len(self._keys):
                return [f"value of {key!r}" for key in self._keys]
            return [f"coordinate {i}" for i in range(num_columns)]

        most_numbers = max(len(self._numbers(message)) for message in messages)
        num_columns = min(most_numbers, 2 * _MOST_PARTS)
        part = _PARTS.get(self._kind, "number")
        names = [f"({element!r} in it)" for element in self._elements]
        names += [f"{part} {i}" for i in range(num_columns - len(names))]
        return [*names, _LENGTH_NAME]

    def matrix(self, messages: Sequence[Any]) -> FloatArray:
        """Numbers ``(n, F)`` of n messages; those that a shorter message lacks are replaced by -1e308."""
        without_keys = self._without_keys(messages)
        array = self._array(without_keys)
        num_columns = len(self.names)
        has_lengths = self.names[-1] == _LENGTH_NAME
        if array is not None and array.shape[1] == num_columns and not has_lengths:
            return array

        rows = np.full((len(messages), num_columns), _MISSING)
        for row, message in zip(rows, without_keys, strict=True):
            numbers = self._numbers(message)[:num_columns]
            row[: len(numbers)] = numbers
            if has_lengths:
                row[-1] = len(message)
        return rows

    def _without_keys(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Messages as they are, but dicts as lists.

        Dicts that all have the keys of the first messages become their values, in the order of the keys; any
        others become keys and values in turn.
        """
        if self._kind != "dict":
            return messages
        if self._keys is not None and all(set(message) == set(self._keys) for message in messages):
            return [[message[key] for key in self._keys] for message in messages]
        return [list(chain.from_iterable(_items(message))) for message in messages]

    def _array(self, messages: Sequence[Any]) -> FloatArray | None:
        """Numbers, or arrays and tuples of numbers of one shape, as rows; None for other messages."""
        if self._kind not in ("number", "sequence", "dict"):
            return None
        try:
            array = np.asarray(messages)
        except ValueError:  # of different lengths
            return None
        is_numeric = array.dtype.kind in "biuf"  # bool, signed and unsigned integers, floats
        if not is_numeric:
            return None
        return array.astype(np.float64).reshape(len(messages), -1)

    def _numbers(self, message: Any) -> list[float]:
        """The numbers of one message, without its length.

        Of a set they say which frequent elements are in it (1 or 0), then the order of its first elements, as
        their ranks among the frequent ones (-1 if an element is not frequent).
        """
        if self._kind == "set":
            order = [self._index_of.get(element, -1) for element in message]
            is_in_set = [0.0] * len(self._elements)
            for index in order:
                if index >= 0:
                    is_in_set[index] = 1.0
            return [*is_in_set, *map(float, order[:_MOST_ORDERED])]
        numbers = list(_flatten(message))
        if self._kind == "number":
            return numbers
        return numbers[1:]  # the first is the length


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
    """A number as a float; infinite, with its sign, if it is too large for a float."""
    try:
        return float(number)
    except OverflowError:
        if number > 0:
            return math.inf
        return -math.inf


def _flatten(message: Any) -> Iterator[float]:
    """Yield the numbers in a message of any kind, the length of all but a number before its parts.

    Objects of no kind, which may lie in a sequence or a dict, are read as their text.
    """
    kind = kind_of(message)
    if kind == "number":
        yield _as_float(message)
        return
    if kind not in ("sequence", "set", "bytes", "dict"):
        characters = str(message)
        yield float(len(characters))
        yield from map(ord, characters[:_MOST_PARTS])
        return

    yield float(len(message))
    if kind == "bytes":
        most_bytes = _MOST_PARTS // _BITS_PER_BYTE
        first_bytes = np.frombuffer(bytes(message), np.uint8)[:most_bytes]
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
