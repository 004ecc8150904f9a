"""One bit per message."""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.channels.scaled import ScaledChannel
from ldp_gym.numerics.arrays import FloatArray


class OneBit(ScaledChannel):
    """The log-likelihood of one random hypothesis, rounded to one random bit (Duchi et al. 2018).

    A value t in [-1, 1] becomes +C or -C, so that its mean is t.

    ``C = (e^eps + 1) / (e^eps - 1)``, and +C has probability ``(1 + t / C) / 2``.

    Privacy: that probability lies between ``1 / (e^eps + 1)`` and ``e^eps / (e^eps + 1)``. Use it instead of
    ``laplace-single`` at eps up to about 2: half of its variance at small eps.
    """

    _num_coins = 1

    @property
    def _bit(self) -> float:
        """C."""
        return 1.0 / math.tanh(self.epsilon / 2.0)

    @property
    def mean_square(self) -> float:
        """``C^2``, whatever the value."""
        return self._bit**2

    def randomize(self, values: FloatArray, coins: FloatArray) -> FloatArray:
        up = coins[..., 0] < (1.0 + np.clip(values, -1.0, 1.0) / self._bit) / 2.0
        return np.where(up, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        return (1.0 + np.sign(reports) * np.clip(values, -1.0, 1.0) / self._bit) / 2.0

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([-self._bit, self._bit]), np.ones(2)
