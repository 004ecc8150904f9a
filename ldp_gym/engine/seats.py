"""The seats of a game: who makes a turn of a round, and what is played there from outside."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ldp_gym.core.arrays import FloatArray


class Seat(Enum):
    """A turn of a round, in the order of play; the user's answer follows.

    A seat is played by a party of the rules, or from outside, by the actions of an environment. From inside,
    the learner's seat is played by Bayes: it predicts the mean of the exact posterior.
    """

    NATURE = "nature"
    """Picks the context."""

    LEARNER = "learner"
    """Predicts. Predictions never change what happens."""

    DESIGNER = "designer"
    """Picks the question that the channel asks, if the channel is one that asks."""


class Moves(NamedTuple):
    """Actions from outside in a round of B games; None for a seat that the rules play."""

    contexts: FloatArray | None = None
    """Nature's contexts ``(B, d)``."""

    candidates: FloatArray | None = None
    """The candidates ``(B, K, M)`` at these contexts, if they are known already."""

    questions: FloatArray | None = None
    """The designer's contrasts ``(B, K)``."""

    predictions: FloatArray | None = None
    """The learner's distributions ``(B, M)``."""
