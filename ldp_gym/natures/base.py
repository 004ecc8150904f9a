"""Who picks the contexts, and what a nature may look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.registry import Registry

NATURES: Registry[Nature] = Registry("nature", group="ldp_gym.natures")

Information = Callable[[FloatArray], Callable[[FloatArray], FloatArray]]
"""What a message tells about the truth, in nats, under the game's channel: from candidates ``(..., P, K, M)``
to a function from posteriors ``(B, K)`` to ``(B, P)``. The engine hands it in: natures know no channels."""


@dataclass(frozen=True)
class NatureView:
    """What Nature may look at when it picks the contexts of n rounds of B episodes.

    Attributes:
        uniforms: ``(B, n, num_uniforms)``.
        rounds: which rounds these are, counted from 0, ``(B, n)``.
        previous: the context before the first of them, ``(B, d)``; anything in round 0.
        hypotheses: the class, from contexts ``(..., d)`` to candidates ``(..., K, M)``.
        posterior: the public posterior ``(B, K)``, for an adaptive nature alone; then n is 1.
        rounds_left: how many rounds are to be played, from this one on, for an adaptive nature alone.
        prepared: what :meth:`Nature.prepare` made, for an adaptive nature alone.
        truth: the truth's distributions ``(B, P, M)`` in this round at P other contexts, from contexts
            ``(1, P, d)`` and candidates ``(B or 1, P, K, M)``; for a nature that leaks the truth alone.
        episode: what a truth has drawn for the episodes, for a nature that it brings along alone.
    """

    uniforms: FloatArray
    rounds: IntArray
    previous: FloatArray
    hypotheses: Callable[[FloatArray], FloatArray]
    posterior: FloatArray | None = None
    rounds_left: int | None = None
    prepared: Any = None
    truth: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    episode: npt.NDArray[Any] | None = None


class Nature(ABC):
    """A rule for the contexts, as a pure function of uniforms and of what came before.

    Args:
        context_dim: d.

    Attributes:
        num_contexts: how many contexts there are to pick from, if that is known.
        adaptive: whether the next context depends on the public posterior; then rounds are asked for one
            at a time.
        leaks_truth: whether the contexts depend on the truth other than through the public transcript, so
            that they tell about it.
    """

    num_contexts: int | None = None
    adaptive: ClassVar[bool] = False
    leaks_truth: ClassVar[bool] = False

    def __init__(self, context_dim: int) -> None:
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)

    @property
    @abstractmethod
    def num_uniforms(self) -> int:
        """How many uniforms one context takes."""

    def prepare(self, hypotheses: Callable[[FloatArray], FloatArray], information: Information) -> Any:
        """What an adaptive nature works out once for a class; :attr:`NatureView.prepared` in every round.

        Args:
            hypotheses: the class, from contexts ``(..., d)`` to candidates ``(..., K, M)``.
            information: what a message would tell at candidates, as a function of the posterior.
        """
        return None

    @abstractmethod
    def contexts(self, view: NatureView) -> FloatArray:
        """The contexts ``(B, n, d)`` of n rounds of B episodes."""

    def check_horizon(self, horizon: int) -> None:  # noqa: B027 - a nature without an end has nothing to check
        """Raise a ValueError if there are no contexts for so many rounds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.context_dim})"
