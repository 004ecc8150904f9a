"""A random half of the hypotheses against the rest."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.comparison import Division
from ldp_gym.channels.listing import all_subsets
from ldp_gym.core.arrays import FloatArray


class Split(Division):
    """Compares a random half of the hypotheses with the rest: which one likes the label better?

    Use it when M is large and nothing is known of the truth: the bit depends on the label only through which
    half likes it better, so labels can be refined without end.
    """

    @property
    def _num_coins(self) -> int:
        return self.num_hypotheses

    @property
    def _half(self) -> int:
        """How many are on the smaller side."""
        return self.num_hypotheses // 2

    def _can_compare(self, losers: int, winners: int) -> bool:
        return super()._can_compare(losers, winners) and min(losers, winners) == self._half

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        last = np.partition(coins, self._half - 1, axis=-1)[..., self._half - 1, None]
        sides = np.copysign(1.0, last - coins)
        return sides * sides[..., :1]

    def _all_sides(self, posterior: FloatArray | None) -> tuple[FloatArray, FloatArray] | None:
        halves = all_subsets(self.num_hypotheses, self._half)
        if halves is None:
            return None
        sides = 2.0 * halves - 1.0
        sides, counts = np.unique(sides * sides[:, :1], axis=0, return_counts=True)
        return sides, counts / len(halves)

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        if self.num_hypotheses == 2 * self._half:
            return sides / self._half
        members = (self.num_hypotheses + np.einsum("...k->...", sides)[..., None]) / 2.0  # of side A
        return sides / np.where(sides > 0.0, members, self.num_hypotheses - members)
