"""The contract of a truth, and the simple truths: a member, a fixed row, a function of the context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.registry import Registry
from ldp_gym.core.sampling import integers
from ldp_gym.core.validation import describe
from ldp_gym.hypotheses.base import HypothesisClass, batched_function, probabilities_of
from ldp_gym.natures.base import Nature

TRUTHS: Registry[Truth] = Registry("truth", group="ldp_gym.truths")

NO_MEMBER = -1
"""Index that stands for a truth outside the class."""


@dataclass(frozen=True)
class TruthView:
    """Inputs of a truth in n rounds of B episodes: everything but the messages.

    Attributes:
        episode: the result of :meth:`Truth.draw_episode` when the episodes began, ``(B, ...)``.
        uniforms: ``(B, n, num_uniforms)``.
        rounds: indices of these rounds, from 0, ``(B, n)``.
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
        needs_contexts: True if the distributions depend on the contexts other than through the candidates;
            False spares the work of drawing contexts that nobody sees.
        constant: True if they stay the same in an episode in which the candidates do; then they are worked
            out once.
        num_rounds: largest number of rounds; None where there is no end.
        nature: the nature that a truth with its own contexts brings along; None for any other.
        num_uniforms: number of uniforms per round, after the context's.
        num_episode_uniforms: number of uniforms drawn once, when an episode begins.
    """

    needs_contexts: ClassVar[bool] = True
    constant: ClassVar[bool] = False
    num_rounds: int | None = None
    nature: Nature | None = None
    num_uniforms: int = 0
    num_episode_uniforms: int = 0

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[Any]:
        """Draw what stays fixed in B episodes, ``(B, ...)``, from uniforms ``(B, num_episode_uniforms)``."""
        return uniforms

    @abstractmethod
    def distributions(self, view: TruthView) -> FloatArray:
        """Distributions of the labels, ``(B, n, M)``; a round axis of 1 where all n rounds share it."""

    def members(self, view: TruthView) -> IntArray:
        """Index of the hypothesis that equals the truth, ``(B, n)`` or ``(B, 1)``; -1 outside the class."""
        return np.full((len(view.episode), 1), NO_MEMBER)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def pick(candidates: FloatArray, members: IntArray) -> FloatArray:
    """Distributions ``(B, n, M)`` of one member per round ``(B, n)`` or per episode ``(B, 1)``."""
    if members.shape[1] == 1:  # the same in all rounds of an episode
        return candidates[np.arange(len(members)) if len(candidates) > 1 else 0, :, members[:, 0]]
    return np.take_along_axis(candidates, members[..., None, None], axis=-2)[..., 0, :]


class Member(Truth):
    """One member of the class throughout an episode, drawn uniformly or given: ``p*_t = f_j(x_t)``.

    Args:
        num_hypotheses: K.
        member: its index; drawn for each episode when not given.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True
    num_episode_uniforms = (
        1  # even where the member is given: episodes of different truths share all else
    )

    def __init__(self, num_hypotheses: int, member: int | None = None) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=1)
        self.member = (
            None if member is None else validation.index("truth", member, self.num_hypotheses)
        )

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the members' indices ``(B, 1)``."""
        drawn = integers(self.num_hypotheses, uniforms)
        return drawn if self.member is None else np.full_like(drawn, self.member)

    def distributions(self, view: TruthView) -> FloatArray:
        return pick(view.candidates, view.episode)

    def members(self, view: TruthView) -> IntArray:
        return view.episode

    def __repr__(self) -> str:
        return "Member(drawn)" if self.member is None else f"Member({self.member})"


class Fixed(Truth):
    """The row ``p*`` in every round, whatever the context.

    Args:
        num_labels: M.
        row: M probabilities.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    def __init__(self, num_labels: int, row: npt.ArrayLike) -> None:
        try:
            self.row = game_arrays.row("truth", row, num_labels)
        except ValueError as error:  # logged labels look alike
            advice = (
                'to replay logged labels: truth="replay", truth_kwargs={"contexts": X, "labels": y}'
            )
            raise ValueError(f"{error}; {advice}") from error

    def distributions(self, view: TruthView) -> FloatArray:
        return np.broadcast_to(self.row, (len(view.episode), 1, len(self.row)))


class Function(Truth):
    """``p*_t = g(x_t)``, which need not be in the class.

    Args:
        num_labels: M.
        context_dim: d.
        function: maps one context ``(d,)`` to a distribution ``(M,)``. One that maps a batch ``(..., d)`` to
            ``(..., M)`` in the same way is called on whole batches, which is faster.
    """

    def __init__(
        self, num_labels: int, context_dim: int, function: Callable[[FloatArray], Any]
    ) -> None:
        self._function = batched_function(function, context_dim, num_labels, "the truth")

    def distributions(self, view: TruthView) -> FloatArray:
        assert view.contexts is not None, "a truth that needs contexts gets them"
        return game_arrays.distributions(self._function(view.contexts), "the truth")


def as_truth(
    source: object,
    hypotheses: HypothesisClass,
    horizon: int,
    options: Mapping[str, Any] | None = None,
) -> Truth:
    """Make a truth from the rule ``truth``, with the options of a named one."""
    num_labels, context_dim = hypotheses.num_labels, hypotheses.context_dim
    if isinstance(source, str):
        of_class = ("num_hypotheses", "num_labels", "context_dim", "classes")
        game_parameters = {name: getattr(hypotheses, name) for name in of_class} | {
            "horizon": horizon
        }
        made = TRUTHS.build(source, game_parameters, options or {})
        return validation.instance(
            f"the truth {source!r}", made, Truth, "a Truth (made, not its class)"
        )
    if options:
        raise TypeError(
            f"truth_kwargs {sorted(options)} go with a named truth, not with {describe(source)}"
        )
    if isinstance(source, Truth):
        return source
    if isinstance(source, Integral) and not isinstance(source, bool):
        return Member(hypotheses.num_hypotheses, int(source))
    if hasattr(source, "predict_proba"):
        classes: Any = getattr(source, "classes_", None)
        if hypotheses.classes is not None and not np.array_equal(classes, hypotheses.classes):
            raise ValueError(
                f"the truth must be fitted on the classes of the hypotheses, {hypotheses.classes}; it has "
                f"{classes}"
            )
        return Function(num_labels, context_dim, partial(probabilities_of, source))
    if callable(source) and not isinstance(source, type):
        return Function(num_labels, context_dim, source)
    if isinstance(source, list | tuple | np.ndarray) or hasattr(source, "__array__"):
        return Fixed(num_labels, source)
    raise TypeError(
        f"truth must be an index, a name, a row of M = {num_labels} probabilities, a callable from contexts, "
        f"a fitted classifier or a Truth (made, not its class); got {describe(source)}"
    )
