"""A random pair of hypotheses."""

from __future__ import annotations

from ldp_gym.channels.comparison import Pair, _pair
from ldp_gym.numerics.arrays import (
    FloatArray,
)
from ldp_gym.numerics.sampling import integers


class Scheffe(Pair):
    """A random pair of hypotheses, as in Scheffe's test (Gopi et al. 2020; non-adaptive).

    Use it for hypothesis selection as the literature has it; ``split`` uses every hypothesis in every round.
    """

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        one = integers(self.num_hypotheses, coins[..., 0])
        other = integers(self.num_hypotheses - 1, coins[..., 1])
        return _pair(one, other + (other >= one), self.num_hypotheses)
