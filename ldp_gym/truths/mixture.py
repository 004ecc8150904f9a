"""A mixture of members: in the convex hull of the class, and rarely in the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.truths.base import Truth, TruthView


class Mixture(Truth):
    """A mixture of members, ``p*_t = sum_j w_j f_j(x_t)``, with weights that stay fixed in an episode.

    Args:
        num_hypotheses: K.
        num_members: how many members are mixed; which ones is drawn for each episode.
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
        self.num_hypotheses = num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=1)
        self._members = None if members is None else validation.indices("members", members, num_hypotheses)
        if num_members is None:
            num_members = 2 if self._members is None else len(self._members)
        self.num_members = validation.whole("num_members", num_members, least=1)
        if self._members is not None and len(self._members) != self.num_members:
            raise ValueError(f"num_members={num_members} contradicts members={members}")
        if self.num_members > num_hypotheses:
            raise ValueError(f"num_members must be at most K = {num_hypotheses}, got {self.num_members}")
        self._weights = None
        if weights is not None:
            self._weights = game_arrays.row("row of weights", weights, self.num_members, "member")
        # One per hypothesis, to draw the members, and one per member, for its weight.
        self.num_episode_uniforms = num_hypotheses + self.num_members

    def draw_episode(self, uniforms: FloatArray) -> npt.NDArray[np.float64]:
        """The weights of all hypotheses, ``(B, K)``."""
        lots, gaps = np.split(uniforms, [self.num_hypotheses], axis=-1)
        members = lots.argsort(axis=-1)[:, : self.num_members]
        if self._members is not None:
            members = np.broadcast_to(self._members, members.shape)
        # Exponential variables over their sum are uniform on the simplex.
        weights = -np.log(gaps)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        if self._weights is not None:
            weights = np.broadcast_to(self._weights, weights.shape)
        drawn = np.zeros((len(uniforms), self.num_hypotheses))
        np.add.at(drawn, (np.arange(len(uniforms))[:, None], members), weights)  # a member may come twice
        return drawn

    def distributions(self, view: TruthView) -> FloatArray:
        return mixture(view.episode[:, None], view.candidates)

    def __repr__(self) -> str:
        return f"Mixture(num_members={self.num_members})"
