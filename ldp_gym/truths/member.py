"""The truth of the paper: a member of the class."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.sampling import integers
from ldp_gym.truths.base import Truth, TruthView, pick


class Member(Truth):
    """One member of the class throughout an episode, drawn uniformly or given: ``p*_t = f_j(x_t)``.

    Args:
        num_hypotheses: K.
        member: its index; drawn for each episode when not given.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True
    num_episode_uniforms = 1  # even where the member is given: episodes of different truths share all else

    def __init__(self, num_hypotheses: int, member: int | None = None) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=1)
        self.member = None if member is None else validation.index("truth", member, self.num_hypotheses)

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.int64]:
        """The members' indices ``(B, 1)``."""
        drawn = integers(self.num_hypotheses, uniforms)
        return drawn if self.member is None else np.full_like(drawn, self.member)

    def distributions(self, view: TruthView) -> FloatArray:
        return pick(view.candidates, view.episode)

    def members(self, view: TruthView) -> IntArray:
        """The member of each episode."""
        return view.episode

    def __repr__(self) -> str:
        return "Member(drawn)" if self.member is None else f"Member({self.member})"
