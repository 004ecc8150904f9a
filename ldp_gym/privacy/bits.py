"""Messages to the last bit: a number is a float64, and its 64 bits are its *code*."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray

Codes = npt.NDArray[np.uint64]


def coordinate(messages: FloatArray, j: int) -> Codes:
    """The bits ``(n,)`` of one coordinate of messages ``(n, F)``."""
    return np.ascontiguousarray(messages[:, j]).view(np.uint64)


def varying(messages: FloatArray) -> list[int]:
    """The coordinates of messages ``(n, F)`` that are not always the same."""
    bits = messages.view(np.uint64)
    return [int(j) for j in np.flatnonzero((bits != bits[:1]).any(axis=0))]


def changing(codes: Codes) -> list[int]:
    """The bits that are set in some codes ``(n,)`` and not in others."""
    change = int(np.bitwise_or.reduce(codes) ^ np.bitwise_and.reduce(codes))
    return [k for k in range(64) if change >> k & 1]


def fold(messages: FloatArray) -> Codes:
    """The bits of all coordinates, one over the other (exclusive or): of one that is not 0, its bits."""
    return np.bitwise_xor.reduce(messages.view(np.uint64), axis=1)


def fingerprints(messages: FloatArray) -> Codes:
    """One code for each message ``(n, F)``, by all of its bits."""
    return mix(messages.view(np.uint64).T)


def mix(columns: Iterable[Codes]) -> Codes:
    """One code for several ``(n,)``: different ones get different codes, but for one chance in 10^19."""
    mixed: Codes = np.zeros(1, dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)  # as in splitmix64
        mixed ^= mixed >> np.uint64(29)
    return mixed
