"""What labels are drawn from: the contract of a truth, and what it may look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.registry import Registry
from ldp_gym.natures.base import Nature

TRUTHS: Registry[Truth] = Registry("truth", group="ldp_gym.truths")

NO_MEMBER = -1
"""In place of a hypothesis' index, where the truth is no member of the class."""


@dataclass(frozen=True)
class TruthView:
    """What a truth may look at in n rounds of B episodes: all but the messages.

    Attributes:
        episode: what :meth:`Truth.draw_episode` made when the episodes began, ``(B, ...)``.
        uniforms: ``(B, n, num_uniforms)``.
        rounds: which rounds these are, counted from 0, ``(B, n)``.
        contexts: ``(B, n, d)``; None if nothing needs them (see :attr:`Truth.needs_contexts`).
        candidates: ``(B or 1, n or 1, K, M)``.
    """

    episode: npt.NDArray[Any]
    uniforms: FloatArray
    rounds: IntArray
    contexts: FloatArray | None
    candidates: FloatArray


class Truth(ABC):
    """A distribution-valued function of the context and the round, as a pure function of uniforms.

    Attributes:
        needs_contexts: whether the distributions depend on the contexts other than through the candidates. A
            truth that says that they do not spares the work of drawing contexts that nobody sees.
        constant: whether they stay the same in an episode in which the candidates do; then they are worked
            out once.
        num_rounds: how many rounds there are at most; None where there is no end.
        nature: who picks the contexts, for a truth that brings its contexts along; None for any other.
        num_uniforms: how many uniforms one round takes, after the context's.
        num_episode_uniforms: how many are drawn once, when an episode begins.
    """

    needs_contexts: ClassVar[bool] = True
    constant: ClassVar[bool] = False
    num_rounds: int | None = None
    nature: Nature | None = None
    num_uniforms: int = 0
    num_episode_uniforms: int = 0

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[Any]:
        """What stays fixed in B episodes, ``(B, ...)``, from uniforms ``(B, num_episode_uniforms)``."""
        return uniforms

    @abstractmethod
    def distributions(self, view: TruthView) -> FloatArray:
        """What labels are drawn from, ``(B, n, M)``; a round axis of 1 where all n rounds share it."""

    def members(self, view: TruthView) -> IntArray:
        """Which hypothesis that is, ``(B, n)`` or ``(B, 1)``; -1 where it is none."""
        return np.full((len(view.episode), 1), NO_MEMBER)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def pick(candidates: FloatArray, members: IntArray) -> FloatArray:
    """The distributions ``(B, n, M)`` of one member per round ``(B, n)`` or per episode ``(B, 1)``."""
    return np.take_along_axis(candidates, members[..., None, None], axis=-2)[..., 0, :]
