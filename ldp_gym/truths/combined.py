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
    """A mixture of members, ``p*_t = sum_j w_j f_j(x_t)``, with the same weights in all rounds.

    Args:
        num_hypotheses: K.
        num_members: number of members in the mixture, which are drawn for each episode.
        members: their indices, if they are not to be drawn.
        weights: one per member, nonnegative and summing to one; drawn uniformly from the simplex
            for each episode when not given.
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
        num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=1)
        self.num_hypotheses = num_hypotheses
        self._members = None
        if members is not None:
            self._members = validation.indices("members", members, num_hypotheses)
        if num_members is None:
            num_members = 2
            if self._members is not None:
                num_members = len(self._members)
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
        """Draw the weights of all hypotheses in B episodes, ``(B, K)``; 0 outside the mixture."""
        member_uniforms, weight_uniforms = np.split(uniforms, [self.num_hypotheses], axis=-1)
        members = member_uniforms.argsort(axis=-1)[:, : self.num_members]
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)

        # Exponential variables over their sum are uniform on the simplex.
        exponentials = -np.log(weight_uniforms)
        weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
        if self._weights is not None:
            weights = np.broadcast_to(self._weights, weights.shape)

        # A member that is given twice has the sum of its weights.
        mixed = np.zeros((len(uniforms), self.num_hypotheses))
        episodes = np.arange(len(uniforms))[:, None]
        np.add.at(mixed, (episodes, members), weights)
        return mixed

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the mixtures of the candidates, ``(B, n, M)``."""
        return mixture(view.episode[:, None], view.candidates)

    def members(self, view: TruthView) -> IntArray:
        """Return the only hypothesis of the mixture, ``(B, 1)``; -1 if there are several."""
        is_mixed = np.count_nonzero(view.episode, axis=-1) > 1
        heaviest = view.episode.argmax(axis=-1)
        return np.where(is_mixed, NO_MEMBER, heaviest)[:, None]

    def __repr__(self) -> str:
        return f"Mixture(num_members={self.num_members})"


class Contaminated(Member):
    """A member whose labels come from another distribution with probability rho.

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
        if other is None:
            other = uniform_distribution(num_labels)
        self.other = game_arrays.row("other", other, num_labels)

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the member's distributions, mixed with g in the share rho, ``(B, n, M)``."""
        return (1.0 - self.rho) * super().distributions(view) + self.rho * self.other

    def members(self, view: TruthView) -> IntArray:
        """Return the member, ``(B, 1)``, if no labels come from g; else -1, outside the class."""
        if self.rho == 0.0:
            return super().members(view)
        return np.full_like(view.episode, NO_MEMBER)

    def __repr__(self) -> str:
        return f"Contaminated(rho={self.rho:g})"


class Switching(Truth):
    """A member that changes to another one at some rounds: ``p*_t = f_{j(t)}(x_t)``.

    Args:
        num_hypotheses: K.
        horizon: T.
        num_switches: number of switches; their rounds are drawn for each episode, uniformly among
            all but the first.
        switches: the rounds, counted from 0, in which a new member begins, if they are not to be
            drawn.
        members: the members in their order, one more than switches; drawn for each episode when not
            given.
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
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        self.horizon = validation.whole("horizon (T)", horizon, least=1)
        self._switches = self._checked_switches(switches)
        if num_switches is None:
            num_switches = 1
            if self._switches is not None:
                num_switches = len(self._switches)
        self.num_switches = validation.whole("num_switches", num_switches, least=0)
        if self._switches is not None and len(self._switches) != self.num_switches:
            raise ValueError(f"num_switches={num_switches} contradicts switches={switches}")
        if self.num_switches >= self.horizon:
            raise ValueError(
                f"num_switches must be below the horizon {self.horizon}, got {self.num_switches}"
            )
        self._members = self._checked_members(members)
        self.num_episode_uniforms = 2 * self.num_switches + 1  # one per switch, and one per member

    def _checked_switches(self, switches: Sequence[int] | None) -> IntArray | None:
        """Check that the switches increase and none is in round 0; None if they are drawn."""
        if switches is None:
            return None
        rounds = validation.indices("switches", switches, self.horizon)
        if (np.diff(rounds, prepend=0) <= 0).any():
            raise ValueError(
                f"switches must increase and lie in 1..{self.horizon - 1}, got {list(switches)}"
            )
        return rounds

    def _checked_members(self, members: Sequence[int] | None) -> IntArray | None:
        """Check that there is one member more than switches; None if the members are drawn."""
        if members is None:
            return None
        indices = validation.indices("members", members, self.num_hypotheses)
        if len(indices) != self.num_switches + 1:
            raise ValueError(
                f"members must be one more than the {self.num_switches} switches, got "
                f"{len(indices)}"
            )
        return indices

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """Draw the rounds of the S switches and then the members, ``(B, 2 S + 1)``."""
        switch_uniforms, member_uniforms = np.split(uniforms, [self.num_switches], axis=-1)
        switches = _distinct(switch_uniforms, self.horizon - 1) + 1  # never in round 0
        if self._switches is not None:
            switches = np.broadcast_to(self._switches, switches.shape)

        # A member differs from the one before: steps of 1 .. K - 1 around a circle of K.
        first = integers(self.num_hypotheses, member_uniforms[:, :1])
        steps = 1 + integers(self.num_hypotheses - 1, member_uniforms[:, 1:])
        members = np.concatenate([first, steps], axis=-1).cumsum(axis=-1) % self.num_hypotheses
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)
        return np.concatenate([switches, members], axis=-1)

    def distributions(self, view: TruthView) -> FloatArray:
        """Return the distributions of each round's member, ``(B, n, M)``."""
        return pick(view.candidates, self.members(view))

    def members(self, view: TruthView) -> IntArray:
        """Return the member of each round, ``(B, n)``: one further for each switch so far."""
        switches, members = np.split(view.episode, [self.num_switches], axis=-1)
        switches_so_far = (view.rounds[..., None] >= switches[:, None]).sum(axis=-1)
        return np.take_along_axis(members, switches_so_far, axis=-1)

    def __repr__(self) -> str:
        return f"Switching(num_switches={self.num_switches})"


def _distinct(uniforms: FloatArray, bound: int) -> IntArray:
    """Draw sorted sets ``(B, S)`` of distinct integers below ``bound``, from uniforms ``(B, S)``.

    By Floyd's algorithm, which makes all sets equally likely: the i-th draw is below
    ``bound - S + i + 1``, and if that number has been drawn already, the largest such number is
    taken, which cannot have been.
    """
    size = uniforms.shape[-1]
    drawn = np.empty(uniforms.shape, dtype=np.int64)
    for i in range(size):
        largest = bound - size + i
        number = integers(largest + 1, uniforms[:, i])
        is_repeated = (drawn[:, :i] == number[:, None]).any(axis=-1)
        drawn[:, i] = np.where(is_repeated, largest, number)
    return np.sort(drawn, axis=-1)
