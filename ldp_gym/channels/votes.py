"""Votes: every label is for the hypothesis that gives it the largest probability, the first of equals.

What follows from a fixed class alone is worked out once, not again for each message.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldp_gym.numerics.arrays import FloatArray, IntArray

Result = TypeVar("Result", bound=npt.NDArray[Any])


def _once(function: Callable[[FloatArray], Result]) -> Callable[[FloatArray], Result]:
    """Keep what a function says of the last candidates that cannot change: those of a constant class."""
    kept: tuple[Callable[[], FloatArray | None], Result] | None = None

    @wraps(function)
    def remembered(candidates: FloatArray) -> Result:
        nonlocal kept
        known = kept
        if known is not None and known[0]() is candidates:
            return known[1]
        result = function(candidates)
        if candidates.flags.owndata and not candidates.flags.writeable:
            result.flags.writeable = False
            kept = (weakref.ref(candidates), result)
        return result

    return remembered


@_once
def votes(candidates: FloatArray) -> IntArray:
    """``v(y) = argmax_j f_j[y]`` of all labels, ``(..., M)``."""
    return candidates.argmax(axis=-2)


@_once
def ballots(candidates: FloatArray) -> FloatArray:
    """How a label of each hypothesis votes: ``sum_{y: v(y) = j} f_k[y]``, ``(..., K, K)``."""
    size = candidates.shape[-2]
    if candidates.ndim == 2:  # one table for all: K M steps instead of K^2 M
        return np.stack([np.bincount(votes(candidates), masses, size) for masses in candidates])
    chosen = (votes(candidates)[..., None, :] == np.arange(size)[:, None]).astype(np.float64)
    return np.einsum("...km,...jm->...kj", candidates, chosen)


def held_by_vote(held: FloatArray, candidates: FloatArray) -> FloatArray:
    """What ``held (..., K)`` says of the hypothesis that each label votes for, ``(..., M)``."""
    chosen = votes(candidates)
    return np.take_along_axis(held, np.broadcast_to(chosen, (*held.shape[:-1], chosen.shape[-1])), axis=-1)
