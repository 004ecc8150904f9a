"""A random half of the hypotheses against the rest."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from ldp_gym.channels.comparison import Division
from ldp_gym.channels.listing import MOST_MESSAGES
from ldp_gym.numerics.arrays import FloatArray


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
        if math.comb(self.num_hypotheses, self._half) > MOST_MESSAGES:
            return None
        chosen = np.array(list(combinations(range(self.num_hypotheses), self._half)))
        sides = -np.ones((len(chosen), self.num_hypotheses))
        np.put_along_axis(sides, chosen, 1.0, axis=-1)
        sides, counts = np.unique(sides * sides[:, :1], axis=0, return_counts=True)
        return sides, counts / len(chosen)

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        if self.num_hypotheses == 2 * self._half:
            return sides / self._half
        members = (self.num_hypotheses + np.einsum("...k->...", sides)[..., None]) / 2.0  # of side A
        return sides / np.where(sides > 0.0, members, self.num_hypotheses - members)
