"""Truths made of several members: mixtures, contaminated members, and members that switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, mixture, uniform_distribution
from ldp_gym.core.sampling import integers
from ldp_gym.truths.base import NO_MEMBER, Member, Truth, TruthView, pick


class Mixture(Truth):
    """A mixture of members, ``p*_t = sum_j w_j f_j(x_t)``, with weights that stay fixed in an episode.

    Args:
        num_hypotheses: K.
        num_members: number of members in the mixture, drawn for each episode.
        members: their indices instead.
        weights: one per member, nonnegative and summing to one; drawn uniformly from the simplex for each
            episode when not given.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    def __init__(
        self,
        num_hypotheses: int,
        num_members: int | None = None,
        members: Sequence[int] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.num_hypotheses = num_hypotheses = validation.whole(
            "num_hypotheses (K)", num_hypotheses, least=1
        )
        self._members = (
            None if members is None else validation.indices("members", members, num_hypotheses)
        )
        if num_members is None:
            num_members = 2 if self._members is None else len(self._members)
        self.num_members = validation.whole("num_members", num_members, least=1)
        if self._members is not None and len(self._members) != self.num_members:
            raise ValueError(f"num_members={num_members} contradicts members={members}")
        if self.num_members > num_hypotheses:
            raise ValueError(
                f"num_members must be at most K = {num_hypotheses}, got {self.num_members}"
            )
        self._weights = None
        if weights is not None:
            self._weights = game_arrays.row("row of weights", weights, self.num_members, "member")
        # One uniform per hypothesis, to draw the members, and one per member, for its weight.
        self.num_episode_uniforms = num_hypotheses + self.num_members

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.float64]:
        """Draw the weights of all hypotheses, ``(B, K)``."""
        order, gaps = np.split(uniforms, [self.num_hypotheses], axis=-1)
        members = order.argsort(axis=-1)[:, : self.num_members]
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)
        # Exponential variables over their sum are uniform on the simplex.
        weights = -np.log(gaps)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        if self._weights is not None:
            weights = np.broadcast_to(self._weights, weights.shape)
        drawn = np.zeros((len(uniforms), self.num_hypotheses))
        np.add.at(
            drawn, (np.arange(len(uniforms))[:, None], members), weights
        )  # a member may come twice
        return drawn

    def distributions(self, view: TruthView) -> FloatArray:
        return mixture(view.episode[:, None], view.candidates)

    def members(self, view: TruthView) -> IntArray:
        """The only member with weight, or -1."""
        mixed = np.count_nonzero(view.episode, axis=-1) > 1
        return np.where(mixed, NO_MEMBER, view.episode.argmax(axis=-1))[:, None]

    def __repr__(self) -> str:
        return f"Mixture(num_members={self.num_members})"


class Contaminated(Member):
    """A member, but with probability rho the label comes from another distribution.

    ``p*_t = (1 - rho) f_j(x_t) + rho g``.

    Args:
        num_hypotheses: K.
        num_labels: M.
        rho: share of labels from g, in [0, 1].
        other: g, a row of M probabilities; uniform over the labels when not given.
        member: j; drawn for each episode when not given.
    """

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        rho: float = 0.1,
        other: npt.ArrayLike | None = None,
        member: int | None = None,
    ) -> None:
        super().__init__(num_hypotheses, member)
        self.rho = validation.probability("rho", rho)
        num_labels = validation.whole("num_labels (M)", num_labels, least=1)
        row = uniform_distribution(num_labels) if other is None else other
        self.other = game_arrays.row("other", row, num_labels)

    def distributions(self, view: TruthView) -> FloatArray:
        return (1.0 - self.rho) * super().distributions(view) + self.rho * self.other

    def members(self, view: TruthView) -> IntArray:
        """The member if rho is 0, or -1."""
        return super().members(view) if self.rho == 0.0 else np.full_like(view.episode, NO_MEMBER)

    def __repr__(self) -> str:
        return f"Contaminated(rho={self.rho:g})"


class Switching(Truth):
    """A member that changes to another one now and then: ``p*_t = f_{j(t)}(x_t)``.

    Args:
        num_hypotheses: K.
        horizon: T.
        num_switches: number of switches; their rounds are drawn for each episode, uniformly after the first.
        switches: the rounds, counted from 0, in which a new member begins, instead.
        members: the members in their order, one more than switches; drawn for each episode when not given.
    """

    needs_contexts: ClassVar[bool] = False

    def __init__(
        self,
        num_hypotheses: int,
        horizon: int,
        num_switches: int | None = None,
        switches: Sequence[int] | None = None,
        members: Sequence[int] | None = None,
    ) -> None:
        self.num_hypotheses = num_hypotheses = validation.whole(
            "num_hypotheses (K)", num_hypotheses, least=2
        )
        self.horizon = horizon = validation.whole("horizon (T)", horizon, least=1)
        self._switches = None
        if switches is not None:
            self._switches = validation.indices("switches", switches, horizon)
            if (np.diff(self._switches, prepend=0) <= 0).any():
                raise ValueError(
                    f"switches must increase and lie in 1..{horizon - 1}, got {list(switches)}"
                )
        if num_switches is None:
            num_switches = 1 if self._switches is None else len(self._switches)
        self.num_switches = validation.whole("num_switches", num_switches, least=0)
        if self._switches is not None and len(self._switches) != self.num_switches:
            raise ValueError(f"num_switches={num_switches} contradicts switches={switches}")
        if self.num_switches >= horizon:
            raise ValueError(
                f"num_switches must be below the horizon {horizon}, got {self.num_switches}"
            )
        self.num_episode_uniforms = 2 * self.num_switches + 1  # one per switch, and one per member
        self._members = (
            None if members is None else validation.indices("members", members, num_hypotheses)
        )
        if self._members is not None and len(self._members) != self.num_switches + 1:
            raise ValueError(
                f"members must be one more than the {self.num_switches} switches, got {len(self._members)}"
            )

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the rounds of the switches and then the members, ``(B, 2 S + 1)``."""
        of_rounds, of_members = np.split(uniforms, [self.num_switches], axis=-1)
        switches = _distinct(of_rounds, self.horizon - 1) + 1
        if self._switches is not None:
            switches = np.broadcast_to(self._switches, switches.shape)
        first = integers(self.num_hypotheses, of_members[:, :1])
        # Each next member differs from the one before: a step of 1 .. K - 1 around the circle.
        steps = 1 + integers(self.num_hypotheses - 1, of_members[:, 1:])
        members = np.cumsum(np.concatenate([first, steps], axis=-1), axis=-1) % self.num_hypotheses
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)
        return np.concatenate([switches, members], axis=-1)

    def distributions(self, view: TruthView) -> FloatArray:
        return pick(view.candidates, self.members(view))

    def members(self, view: TruthView) -> IntArray:
        switches, members = np.split(view.episode, [self.num_switches], axis=-1)
        passed = (view.rounds[..., None] >= switches[:, None]).sum(axis=-1)
        return np.take_along_axis(members, passed, axis=-1)

    def __repr__(self) -> str:
        return f"Switching(num_switches={self.num_switches})"


def _distinct(uniforms: FloatArray, bound: int) -> IntArray:
    """Sorted distinct integers below ``bound``, uniform over all sets: Floyd's draws, one uniform each."""
    drawn = np.empty(uniforms.shape, dtype=np.int64)
    count = uniforms.shape[-1]
    for i in range(count):
        last = bound - count + i
        number = integers(last + 1, uniforms[:, i])
        taken = (drawn[:, :i] == number[:, None]).any(axis=-1)
        drawn[:, i] = np.where(taken, last, number)
    return np.sort(drawn, axis=-1)
