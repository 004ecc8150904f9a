"""The contract of an environment's own part: who the agent is, what it sees and does, and what it is paid.

An environment is a :class:`Role`: one or more seats, an :class:`Observation`, :class:`Actions` and a reward.
Everything else (the games, their batches, seeds, resets and losses) is the same for all environments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import EllipsisType
from typing import Any, ClassVar

import gymnasium as gym
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.playback import Observer, Playback
from ldp_gym.engine.seats import Moves, Seat


class Observation(Observer, ABC):
    """Observation of an agent in each of B games; subclasses follow the games as observers.

    Attributes:
        space: the space of one game's observation.
    """

    reads_candidates = False
    space: gym.Space[Any]

    @abstractmethod
    def observe(self, game: int | EllipsisType = ...) -> Any:
        """Copies of the current observations, of one game or of all."""


class Actions(ABC):
    """Actions of one game, or of a batch of games.

    Attributes:
        space: the space of one game's action.
        placeholder: an action in place of one that is not played, as its game begins again.
    """

    space: gym.Space[Any]
    placeholder: float = 0.0

    @abstractmethod
    def read(self, action: npt.ArrayLike) -> npt.NDArray[Any]:
        """The action of one game or the actions of a batch as an array, checked."""


class Role(Observer, ABC):
    """The part of an environment that is its own, for B games.

    Args:
        playback: the games; its fields are what an observation and a reward are made of.
        rules: the arguments of the environment.

    Attributes:
        seats: the seats that the agent plays; the rules play the others.
        observation: what the agent sees.
    """

    seats: ClassVar[frozenset[Seat]]
    reads_candidates = False
    observation: Observation

    def __init__(self, playback: Playback, rules: Any) -> None:
        self.playback = playback
        self.rules = rules

    def ready(self) -> None:
        """Work out what the next observations and rewards need, whenever a round has begun."""

    @abstractmethod
    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        """The actions of one game, ``()``, or of a batch ``(B,)``."""

    @abstractmethod
    def moves(self, actions: npt.NDArray[Any]) -> Moves:
        """The moves in the agent's seats that checked actions ``(B, ...)`` stand for."""

    @abstractmethod
    def rewards(self, losses: FloatArray) -> FloatArray:
        """Return the rewards ``(B,)`` of a round whose losses in KL are ``(B,)``.

        The round is played, and the playback has not gone on: its ``weights`` are the posterior before
        this round's message.
        """

    def end_info(self) -> dict[str, npt.NDArray[Any]]:
        """Info ``(B,)`` that is shown only when an episode ends; by default nothing."""
        return {}
