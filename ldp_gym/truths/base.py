"""The contract of a truth, and simple truths: a member, a fixed row, a function of the context."""

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
    """Base of the rules that say which distribution a round's label is drawn from.

    A truth is a pure function of the context, the round and uniforms.

    Attributes:
        needs_contexts: True if the distributions depend on the contexts other than through the
            candidates. If False, contexts that no party looks at are not drawn.
        constant: True if the distributions stay the same in an episode in which the candidates do;
            then they are computed once.
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
        """Draw what stays fixed in an episode, ``(B, ...)``, from ``num_episode_uniforms`` each."""
        return uniforms

    @abstractmethod
    def distributions(self, view: TruthView) -> FloatArray:
        """Return the labels' distributions, ``(B, n, M)``, or ``(B, 1, M)`` if all rounds agree."""

    def members(self, view: TruthView) -> IntArray:
        """Return the index of the true hypothesis, ``(B, n or 1)``; -1 outside the class."""
        return np.full((len(view.episode), 1), NO_MEMBER)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def pick(candidates: FloatArray, members: IntArray) -> FloatArray:
    """Return the distributions ``(B, n, M)`` of members, one per round or one per episode.

    Args:
        candidates: ``(B or 1, n or 1, K, M)``.
        members: their indices, ``(B, n)`` or ``(B, 1)``.
    """
    changes_by_round = members.shape[1] > 1
    if changes_by_round:
        return np.take_along_axis(candidates, members[..., None, None], axis=-2)[..., 0, :]

    member_of_episode = members[:, 0]
    if len(candidates) > 1:
        episodes = np.arange(len(members))
        return candidates[episodes, :, member_of_episode]
    return candidates[0, :, member_of_episode]  # all episodes share the candidates


class Member(Truth):
    """A hypothesis of the class, the same throughout an episode: ``p*_t = f_j(x_t)``.

    Args:
        num_hypotheses: K.
        member: its index; drawn for each episode when not given.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True
    # Also where the member is given: episodes of different truths share everything else.
    num_episode_uniforms = 1

    def __init__(self, num_hypotheses: int, member: int | None = None) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=1)
        if member is not None:
            member = validation.index("truth", member, self.num_hypotheses)
        self.member = member

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the members' indices ``(B, 1)``."""
        drawn = integers(self.num_hypotheses, uniforms)
        if self.member is None:
            return drawn
        return np.full_like(drawn, self.member)

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the member's distributions, ``(B, n, M)``."""
        return pick(view.candidates, view.episode)

    def members(self, view: TruthView) -> IntArray:
        """Return the member's index, ``(B, 1)``."""
        return view.episode

    def __repr__(self) -> str:
        return "Member(drawn)" if self.member is None else f"Member({self.member})"


class Fixed(Truth):
    """One distribution ``p*`` in every round, whatever the context.

    Args:
        num_labels: M.
        row: M probabilities.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    def __init__(self, num_labels: int, row: npt.ArrayLike) -> None:
        try:
            self.row = game_arrays.row("truth", row, num_labels)
        except ValueError as error:
            # Somebody may have passed logged labels, which are a list of numbers too.
            advice = (
                'to replay logged labels: truth="replay", truth_kwargs={"contexts": X, "labels": y}'
            )
            raise ValueError(f"{error}; {advice}") from error

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the distribution for all rounds together, ``(B, 1, M)``."""
        return np.broadcast_to(self.row, (len(view.episode), 1, len(self.row)))


class Function(Truth):
    """A function of the context, ``p*_t = g(x_t)``, which need not be in the class.

    Args:
        num_labels: M.
        context_dim: d.
        function: maps one context ``(d,)`` to a distribution ``(M,)``. One that maps a batch
            ``(..., d)`` to ``(..., M)`` in the same way is called on whole batches, which is
            faster.
    """

    def __init__(
        self, num_labels: int, context_dim: int, function: Callable[[FloatArray], Any]
    ) -> None:
        self._function = batched_function(function, context_dim, num_labels, "the truth")

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the function's checked distributions at the contexts, ``(B, n, M)``."""
        assert view.contexts is not None, "a truth that needs contexts gets them"
        return game_arrays.distributions(self._function(view.contexts), "the truth")


def as_truth(
    source: object,
    hypotheses: HypothesisClass,
    horizon: int,
    options: Mapping[str, Any] | None = None,
) -> Truth:
    """Make a truth from the rule ``truth``.

    Args:
        source: an index, a name, a row of M probabilities, a callable, a fitted classifier or a
            Truth.
        hypotheses: the class of the game.
        horizon: T.
        options: further options of a named truth.
    """
    if isinstance(source, str):
        return _named_truth(source, hypotheses, horizon, options or {})
    if options:
        raise TypeError(
            f"truth_kwargs {sorted(options)} go with a named truth, not with {describe(source)}"
        )
    if isinstance(source, Truth):
        return source
    if isinstance(source, Integral) and not isinstance(source, bool):
        return Member(hypotheses.num_hypotheses, int(source))

    num_labels = hypotheses.num_labels
    context_dim = hypotheses.context_dim
    if hasattr(source, "predict_proba"):
        _check_classes(source, hypotheses)
        return Function(num_labels, context_dim, partial(probabilities_of, source))
    if callable(source) and not isinstance(source, type):
        return Function(num_labels, context_dim, source)
    if isinstance(source, list | tuple | np.ndarray) or hasattr(source, "__array__"):
        return Fixed(num_labels, source)
    raise TypeError(
        f"truth must be an index, a name, a row of M = {num_labels} probabilities, a callable from "
        f"contexts, a fitted classifier or a Truth (made, not its class); got {describe(source)}"
    )


def _named_truth(
    name: str, hypotheses: HypothesisClass, horizon: int, options: Mapping[str, Any]
) -> Truth:
    """Make a registered truth, or one that an address names."""
    game_parameters = {
        "num_hypotheses": hypotheses.num_hypotheses,
        "num_labels": hypotheses.num_labels,
        "context_dim": hypotheses.context_dim,
        "classes": hypotheses.classes,
        "horizon": horizon,
    }
    made = TRUTHS.build(name, game_parameters, options)
    return validation.instance(f"the truth {name!r}", made, Truth, "a Truth (made, not its class)")


def _check_classes(classifier: object, hypotheses: HypothesisClass) -> None:
    """Refuse a classifier of other classes than those of the hypotheses, if these have names."""
    classes: Any = getattr(classifier, "classes_", None)
    if hypotheses.classes is not None and not np.array_equal(classes, hypotheses.classes):
        raise ValueError(
            f"the truth must be fitted on the classes of the hypotheses, {hypotheses.classes}; it "
            f"has {classes}"
        )
