"""A random pair of hypotheses."""

from __future__ import annotations

from ldp_gym.channels.comparison import Pair, pair_sides
from ldp_gym.core.arrays import FloatArray, uniform_distribution
from ldp_gym.core.sampling import integers


class Scheffe(Pair):
    """Compares two random hypotheses: which one likes the label better?

    Use it for hypothesis selection as Gopi et al. (2020) have it; ``split`` asks about every hypothesis.
    """

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        one = integers(self.num_hypotheses, coins[..., 0])
        other = integers(self.num_hypotheses - 1, coins[..., 1])
        return pair_sides(one, other + (other >= one), self.num_hypotheses)

    def _all_sides(self, posterior: FloatArray | None) -> tuple[FloatArray, FloatArray] | None:
        sides = self._pairs()
        return sides, uniform_distribution(len(sides))
