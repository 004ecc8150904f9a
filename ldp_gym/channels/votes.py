"""Votes: every label is for the hypothesis that gives it the largest probability; equals share its vote.

What follows from a fixed class alone is worked out once, not again for each message.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldp_gym.numerics.arrays import FloatArray, IntArray, masses
from ldp_gym.numerics.sampling import categorical

_TIE = 1e-12
"""Probabilities that differ by less, relatively, are equal: the last bit must not decide who gets a vote."""

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
def votes(candidates: FloatArray) -> FloatArray:
    """Which share of a label's vote each hypothesis has, ``(..., K, M)``: one has all, or equals share it.

    With a private coin a user casts the vote for one of those who share it.

    Example:
        >>> votes(np.array([[0.6, 0.2, 0.2], [0.6, 0.1, 0.3]])).tolist()
        [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    """
    largest = np.maximum.reduce(candidates, axis=-2, keepdims=True)
    winners = (candidates >= largest * (1.0 - _TIE)).astype(np.float64)
    winners /= np.add.reduce(winners, axis=-2, keepdims=True)
    return winners


@_once
def ballots(candidates: FloatArray) -> FloatArray:
    """How likely a label of hypothesis k votes for j: ``(..., K, K)``, ``[k, j]``."""
    if candidates.ndim == 2:  # the same table for all: no batch whose shape could change the last bit
        return candidates @ votes(candidates).T
    return np.einsum("...km,...jm->...kj", candidates, votes(candidates))


def cast(candidates: FloatArray, labels: IntArray, coins: FloatArray) -> IntArray:
    """The hypotheses that labels ``(...)`` vote for; private coins ``(...)`` decide where equals share."""
    return categorical(masses(votes(candidates), labels), coins)
