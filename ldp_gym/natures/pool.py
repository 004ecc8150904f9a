"""What the natures that pick from a pool share."""

from __future__ import annotations

import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.registry import resolve
from ldp_gym.core.streams import Purpose, stream
from ldp_gym.natures.base import Nature


class PoolNature(Nature):
    """A nature that picks its contexts from a pool.

    Args:
        context_dim: d.
        pool: the contexts ``(P, d)``, or where they are, as ``"module:object"``; ``pool_size`` standard
            normal ones when not given.
        pool_size: P.
        pool_seed: the seed of a pool that is not given.
    """

    num_uniforms = 0

    def __init__(
        self,
        context_dim: int,
        pool: npt.ArrayLike | None = None,
        pool_size: int = 32,
        pool_seed: int = 0,
    ) -> None:
        super().__init__(context_dim)
        size = validation.whole("pool_size", pool_size, least=1)
        seed = validation.seed("pool_seed", pool_seed)
        if pool is None:
            validation.fits_memory("pool_size", size, self.context_dim, "contexts")
            rng = stream(Purpose.POOL, seed)
            pool = rng.standard_normal((size, self.context_dim))
        self.pool = game_arrays.contexts(
            "the contexts to pick from", resolve(pool, "contexts"), self.context_dim
        )
        self.num_contexts = len(self.pool)
