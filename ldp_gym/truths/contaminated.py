"""A member whose labels are now and then replaced: a little outside the class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, uniform_distribution
from ldp_gym.truths.base import NO_MEMBER, TruthView
from ldp_gym.truths.member import Member


class Contaminated(Member):
    """A member, but with probability rho the label comes from another distribution.

    ``p*_t = (1 - rho) f_j(x_t) + rho g``.

    Args:
        num_hypotheses: K.
        num_labels: M.
        rho: the share of labels from g, in [0, 1].
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
        self.rho = validation.share("rho", rho)
        num_labels = validation.whole("num_labels (M)", num_labels, least=1)
        validation.fits_memory("num_labels", num_labels, 1, "a distribution")
        self.other = game_arrays.row(
            "other", uniform_distribution(num_labels) if other is None else other, num_labels
        )

    def distributions(self, view: TruthView) -> FloatArray:
        return (1.0 - self.rho) * super().distributions(view) + self.rho * self.other

    def members(self, view: TruthView) -> IntArray:
        """None, unless nothing is replaced."""
        return super().members(view) if self.rho == 0.0 else np.full_like(view.episode, NO_MEMBER)

    def __repr__(self) -> str:
        return f"Contaminated(rho={self.rho:g})"
