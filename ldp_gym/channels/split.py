"""A random half of the hypotheses against the rest."""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.comparison import Division
from ldp_gym.numerics.arrays import (
    FloatArray,
)


class Split(Division):
    """A random half of the hypotheses against the rest (Comparison; non-adaptive).

    Use it when M is large and nothing is known of the truth: the bit depends on the label only through which
    half likes it better, so labels can be refined without end.
    """

    @property
    def _num_coins(self) -> int:
        return self.num_hypotheses - 1

    @property
    def _side_size(self) -> int:
        """How many join the first hypothesis in A."""
        return (self.num_hypotheses - 1) // 2

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        if not self._side_size:
            return np.broadcast_to([1.0, -1.0], (*coins.shape[:-1], 2))
        last = np.partition(coins, self._side_size - 1, axis=-1)[..., self._side_size - 1, None]
        others = np.copysign(1.0, last - coins)
        return np.concatenate([np.ones((*coins.shape[:-1], 1)), others], axis=-1)

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        first = 1.0 / (self._side_size + 1)
        second = 1.0 / (self.num_hypotheses - self._side_size - 1)
        return sides * ((first + second) / 2.0) + (first - second) / 2.0  # `first` on A, `-second` on B
