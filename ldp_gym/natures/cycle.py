"""Given contexts, over and over."""

from __future__ import annotations

import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray
from ldp_gym.natures.base import NatureView
from ldp_gym.natures.pool import PoolNature


class Cycle(PoolNature):
    """The given contexts, again and again.

    Args:
        context_dim: d.
        contexts: ``(P, d)``, or where they are, as ``"module:object"``; ``pool_size`` standard normal ones
            when not given.
        pool_size: P.
        pool_seed: the seed of contexts that are not given.
    """

    def __init__(
        self,
        context_dim: int,
        contexts: npt.ArrayLike | None = None,
        pool_size: int = 32,
        pool_seed: int = 0,
    ) -> None:
        super().__init__(context_dim, contexts, pool_size, pool_seed)

    def contexts(self, view: NatureView) -> FloatArray:
        return self.pool[view.rounds % len(self.pool)]
