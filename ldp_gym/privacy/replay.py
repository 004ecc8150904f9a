"""A generator that draws from given uniforms, as NumPy's own does from its random bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import ChannelFailedError

_SUPPORTED = ("random", "uniform", "integers", "laplace", "logistic")


class ReplayGenerator(np.random.Generator):
    """What stands in for ``rng`` in a channel's own ``privatize``, so that an audit can choose its noise.

    It knows NumPy's formulas for what is drawn by inverse transform, Laplace noise among it, to the last bit
    of a logarithm. What NumPy draws in another way (normal and exponential noise, by the ziggurat) cannot be
    chosen.

    Args:
        uniforms: ``(n, U)``; None to draw them, and to count how many are taken.
        rng: where they are drawn then.

    Attributes:
        taken: how many uniforms per row were taken.
    """

    def __init__(self, uniforms: FloatArray | None, rng: np.random.Generator) -> None:
        super().__init__(np.random.PCG64(0))
        self._given, self._rng, self.taken = uniforms, rng, 0

    def __getattribute__(self, name: str) -> Any:
        inherited = name in vars(np.random.Generator) and not name.startswith("_")
        if inherited and name not in _SUPPORTED:
            raise ChannelFailedError(f"it draws with rng.{name}, whose noise cannot be followed")
        return super().__getattribute__(name)

    def _take(self, size: Any) -> FloatArray:
        """Uniforms of a shape whose first axis are the rows."""
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size or ())
        rows = None if self._given is None else len(self._given)
        if not shape or (rows is not None and shape[0] != rows):
            raise ChannelFailedError(f"it draws numbers of shape {shape}, not one row per label")
        each = math.prod(shape[1:])
        start, self.taken = self.taken, self.taken + each
        if self._given is None:
            return self._rng.random(shape)
        return self._given[:, start : self.taken].reshape(shape)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """``U``."""
        drawn = self._take(np.shape(out) if size is None and out is not None else size)
        if out is None:
            return drawn
        out[...] = drawn
        return out

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """``low + (high - low) U``."""
        return low + (high - low) * self._take(self._size(size, low, high))

    def integers(  # type: ignore[override]  # NumPy has one signature per type of number
        self, low: Any, high: Any = None, size: Any = None, **_: Any
    ) -> Any:
        """A whole number; which uniform makes which does not matter, as it is no noise."""
        low, high = (0, low) if high is None else (low, high)
        return low + np.floor((np.asarray(high) - low) * self._take(size)).astype(np.int64)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """``loc - scale log(2 - 2U)`` for U of at least 1/2, else ``loc + scale log(2U)``."""
        u = self._take(self._size(size, loc, scale))
        upper = u >= 0.5
        return np.where(upper, loc - scale * np.log(2.0 - u - u), loc + scale * np.log(u + u))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """``loc + scale log(U / (1 - U))``."""
        u = self._take(self._size(size, loc, scale))
        return loc + scale * np.log(u / (1.0 - u))

    @staticmethod
    def _size(size: Any, *parameters: Any) -> Any:
        return np.broadcast_shapes(*map(np.shape, parameters)) if size is None else size
