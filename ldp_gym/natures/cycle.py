"""A pool, over and over."""

from __future__ import annotations

from ldp_gym.natures.base import NatureView
from ldp_gym.natures.pool import Pooled
from ldp_gym.numerics.arrays import FloatArray


class Cycle(Pooled):
    """The pool from its beginning, over and over."""

    def contexts(self, stretch: NatureView) -> FloatArray:
        return self.pool[stretch.rounds % len(self.pool)]
