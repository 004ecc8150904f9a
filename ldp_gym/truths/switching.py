"""A member that gives way to another: a truth that moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.sampling import integers
from ldp_gym.truths.base import Truth, TruthView, pick


class Switching(Truth):
    """A member that changes to another one now and then: ``p*_t = f_{j(t)}(x_t)``.

    Args:
        num_hypotheses: K.
        horizon: T.
        num_switches: how many; when is drawn for each episode, uniformly among the rounds after the first.
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
        self.num_hypotheses = num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        self.horizon = horizon = validation.whole("horizon (T)", horizon, least=1)
        self._switches = None if switches is None else _increasing(switches, horizon)
        if num_switches is None:
            num_switches = 1 if self._switches is None else len(self._switches)
        self.num_switches = validation.whole("num_switches", num_switches, least=0)
        if self._switches is not None and len(self._switches) != self.num_switches:
            raise ValueError(f"num_switches={num_switches} contradicts switches={switches}")
        if self.num_switches >= horizon:
            raise ValueError(f"num_switches must be below the horizon {horizon}, got {self.num_switches}")
        self.num_episode_uniforms = 2 * self.num_switches + 1  # one per switch, and one per member
        self._members = None if members is None else validation.indices("members", members, num_hypotheses)
        if self._members is not None and len(self._members) != self.num_switches + 1:
            raise ValueError(
                f"members must be one more than the {self.num_switches} switches, got {len(self._members)}"
            )

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """The rounds of the switches and then the members, ``(B, 2 S + 1)``."""
        when, who = np.split(uniforms, [self.num_switches], axis=-1)
        switches = _distinct(when, self.horizon - 1) + 1
        if self._switches is not None:
            switches = np.broadcast_to(self._switches, switches.shape)
        first = integers(self.num_hypotheses, who[:, :1])
        # Each next member is another than the one before: a step of 1 .. K - 1 around the circle.
        steps = 1 + integers(self.num_hypotheses - 1, who[:, 1:])
        members = np.cumsum(np.concatenate([first, steps], axis=-1), axis=-1) % self.num_hypotheses
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)
        return np.concatenate([switches, members], axis=-1)

    def distributions(self, view: TruthView) -> FloatArray:
        return pick(view.candidates, self.members(view))

    def members(self, view: TruthView) -> IntArray:
        """The member of each round, ``(B, n)``."""
        switches, members = np.split(view.episode, [self.num_switches], axis=-1)
        passed = (view.rounds[..., None] >= switches[:, None]).sum(axis=-1)
        return np.take_along_axis(members, passed, axis=-1)

    def __repr__(self) -> str:
        return f"Switching(num_switches={self.num_switches})"


def _increasing(switches: Sequence[int], horizon: int) -> IntArray:
    given = validation.list_of("switches", switches, "rounds")
    rounds = np.array([validation.whole("switches", t, least=1) for t in given], dtype=np.int64)
    if len(rounds) and (rounds.max() >= horizon or (np.diff(rounds) <= 0).any()):
        raise ValueError(f"switches must increase and lie in 1..{horizon - 1}, got {list(switches)}")
    return rounds


def _distinct(uniforms: FloatArray, bound: int) -> IntArray:
    """Sorted distinct integers in ``0 .. bound - 1``, all sets alike: Floyd's draws, one uniform each."""
    drawn = np.empty(uniforms.shape, dtype=np.int64)
    count = uniforms.shape[-1]
    for i in range(count):
        last = bound - count + i
        number = integers(last + 1, uniforms[:, i])
        taken = (drawn[:, :i] == number[:, None]).any(axis=-1)
        drawn[:, i] = np.where(taken, last, number)
    return np.sort(drawn, axis=-1)
