"""Ways to look at a message: each sorts messages into cells, in which labels can be counted.

A *view* is a name and the number of each message's cell, ``(n,)``; -1 stands for a message like no other,
from which nothing can be learned. Where a view is itself a small number (last bits, a digit), its cells keep
that number: a label may have been written there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.privacy.bits import Codes, coordinate, fingerprints, fold, mix, varying

View = tuple[str, IntArray]

_MOST_COORDINATES = 8
"""Of so many coordinates all views are taken; trees look at the others too."""

_MANY_VALUES = 64
"""A coordinate with more values than this is looked at as a real number."""

_BINS = (32, 1024)
_DECIMALS = (2, 4)


def views(messages: FloatArray, situations: IntArray, num_labels: int) -> Iterator[View]:
    """All views of messages ``(n, F)`` that were sent in the given situations ``(n,)``."""
    whole = fingerprints(messages)
    yield "the whole message", _number(whole)
    yield "the whole message in its situation", _number(mix([whole, situations.astype(np.uint64)]))
    yield "the situation", situations
    columns = varying(messages)
    if len(columns) > 1:
        yield from _views_of_all(messages)
        yield from _views_of_number("all coordinates, folded", fold(messages), num_labels)
    for j in columns[:_MOST_COORDINATES]:
        yield from _views_of_number(f"coordinate {j}", coordinate(messages, j), num_labels)


def _views_of_all(messages: FloatArray) -> Iterator[View]:
    order = np.argsort(messages, axis=1, kind="stable").astype(np.uint64)
    bits = messages.view(np.uint64)
    yield "the order of the coordinates", _number(mix(order.T))
    yield "the least and the largest coordinate", _number(mix([order[:, 0], order[:, -1]]))
    yield "the signs of the coordinates", _number(mix((bits >> np.uint64(63)).T))
    yield "which coordinates are 0", _number(mix((messages == 0.0).astype(np.uint64).T))
    yield "the sizes of the coordinates", _number(mix((bits >> np.uint64(52)).T))


def _views_of_number(name: str, codes: Codes, num_labels: int) -> Iterator[View]:
    """Views of float64 numbers by their bits ``(n,)``: the value, and as a real number its parts."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    yield f"the value of {name}", _without_single(places, counts)
    if len(values) <= _MANY_VALUES:
        return
    numbers = np.nan_to_num(codes.view(np.float64))
    yield f"the size of {name}", _number(codes >> np.uint64(52))
    ranks = np.argsort(np.argsort(numbers, kind="stable"))
    ranks[counts[places] > 3] = -1  # repeated values have a view of their own
    for bins in _BINS:
        yield f"the place of {name} among {bins}", np.where(ranks >= 0, ranks * bins // len(ranks), -1)
    for last in sorted({(num_labels - 1).bit_length(), 8}):
        yield f"the last {last} bits of {name}", (codes & np.uint64(2**last - 1)).astype(np.int64)
    digits = codes & np.uint64(2**52 - 1)
    for base in sorted({10, num_labels}):
        yield f"the digits of {name} modulo {base}", (digits % np.uint64(base)).astype(np.int64)
    for place in _DECIMALS:
        decimals = np.floor(np.abs(numbers).clip(max=1e15) * 10.0**place) % 10.0
        yield f"decimal {place} of {name}", decimals.astype(np.int64)


def _number(codes: Codes) -> IntArray:
    """Number the codes ``(n,)`` that occur more than once; -1 for the others."""
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return _without_single(places, counts)


def _without_single(places: IntArray, counts: IntArray) -> IntArray:
    several = counts > 1
    return np.where(several, np.cumsum(several) - 1, -1)[places]
