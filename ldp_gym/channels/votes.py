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

from ldp_gym.core.arrays import FloatArray, IntArray, expectations, masses, mixture
from ldp_gym.core.sampling import categorical

_TIE = 1e-12
"""Probabilities that differ by less, relatively, are equal: the last bit must not decide who gets a vote."""

Result = TypeVar("Result", bound=npt.NDArray[Any])


def _once(function: Callable[[FloatArray], Result]) -> Callable[[FloatArray], Result]:
    """Keep a function's result for the last candidates that cannot change: those of a constant class."""
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
    shares = (candidates >= largest * (1.0 - _TIE)).astype(np.float64)
    shares /= np.add.reduce(shares, axis=-2, keepdims=True)
    return shares


@_once
def ballots(candidates: FloatArray) -> FloatArray:
    """How likely a label of hypothesis k votes for j: ``(..., K, K)``, ``[k, j]``."""
    return _count(candidates, votes(candidates))


@_once
def winners(candidates: FloatArray) -> IntArray:
    """The hypotheses ``(..., J)`` that labels vote for; others, where a context has fewer of them than J."""
    wins = votes(candidates).any(axis=-1)
    most = int(np.count_nonzero(wins, axis=-1).max())
    return np.argsort(~wins, axis=-1, kind="stable")[..., :most]


def ballots_for_winners(candidates: FloatArray) -> FloatArray:
    """How likely a label of hypothesis k votes for each of :func:`winners`, ``(..., K, J)``."""
    return _count(candidates, np.take_along_axis(votes(candidates), winners(candidates)[..., None], axis=-2))


def _count(candidates: FloatArray, shares: FloatArray) -> FloatArray:
    if candidates.ndim == 2:  # the same table for all: no batch whose shape could change the last bit
        return candidates @ shares.T
    return np.einsum("...km,...jm->...kj", candidates, shares)


def vote_shares(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """How likely a label of the mixture of weights ``(..., K)`` votes for each hypothesis, ``(..., K)``."""
    if _are_few(candidates):
        return mixture(weights, ballots(candidates))
    return expectations(votes(candidates), mixture(weights, candidates))


def expected_votes(candidates: FloatArray, values: FloatArray) -> FloatArray:
    """The expected value of a vote under each hypothesis, ``(..., K)``: ``values[j]`` for a vote for j."""
    if _are_few(candidates):
        return expectations(ballots(candidates), values)
    return expectations(candidates, mixture(values, votes(candidates)))


def _are_few(candidates: FloatArray) -> bool:
    """Whether one table of ballots serves all messages, with less work than the way over the labels."""
    return candidates.ndim == 2 and candidates.shape[0] <= candidates.shape[1]


def cast_votes(candidates: FloatArray, labels: IntArray, coins: FloatArray) -> IntArray:
    """The hypotheses that labels ``(...)`` vote for; private coins ``(...)`` decide where equals share."""
    return categorical(masses(votes(candidates), labels), coins)
