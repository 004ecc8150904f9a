"""What the natures that pick from a pool share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_gym.natures.base import Nature
from ldp_gym.numerics import validation

_LARGEST = 1e100
"""Contexts beyond it would overflow in the classes."""


class Pooled(Nature):
    """A nature that picks its contexts from a pool.

    Args:
        context_dim: d.
        pool: the contexts ``(P, d)``; ``pool_size`` standard normal ones when not given.
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
        if pool is None:
            size = validation.whole("pool_size", pool_size, least=1)
            rng = np.random.default_rng(validation.whole("pool_seed", pool_seed, least=0))
            pool = rng.standard_normal((size, self.context_dim))
        try:
            self.pool = np.array(pool, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a pool is an array of numbers, (P, d), got {pool!r}") from error
        if self.pool.ndim != 2 or self.pool.shape[1] != self.context_dim or not len(self.pool):
            raise ValueError(f"a pool has shape (P, d) with d={self.context_dim}, got {self.pool.shape}")
        sound = np.abs(self.pool) <= _LARGEST
        if not sound.all():
            raise ValueError(f"a pool must be finite and within {_LARGEST:g}, got {self.pool[~sound][0]}")
        self.pool.flags.writeable = False
