"""One bit per message."""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.channels.scaled import ScaledChannel
from ldp_gym.numerics.arrays import FloatArray, Messages
from ldp_gym.numerics.sampling import integers


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
        up = coins[..., 0] < (1.0 + values / self._bit) / 2.0
        return np.where(up, self._bit, -self._bit)

    def report_density(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        return (1.0 + np.sign(reports) * values / self._bit) / 2.0

    def report_agreement(self, reports: FloatArray, values: FloatArray) -> FloatArray:
        """All of it at the end of [-1, 1] that the bit says, none at the other."""
        return (1.0 + np.sign(reports) * values) / 2.0

    @property
    def num_public_coins(self) -> int:
        """The coordinate."""
        return 1

    def is_possible(
        self, message: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> bool:
        """Whether one coordinate is revealed, with one of its reports."""
        revealed = np.flatnonzero(message)
        if len(revealed) != 1 or not super().is_possible(message, candidates, posterior):
            return False
        coin = (revealed + 0.5) / self.num_hypotheses
        reports = self.messages_given_coins(coin, candidates, posterior)[:, revealed[0]]
        return bool(np.isclose(message[revealed], reports, rtol=1e-9, atol=1e-12).any())

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Messages:
        """Both bits of the coordinate, or the one report where it has no range."""
        coordinate = integers(self.num_hypotheses, coins[0])
        centre, half, _ = self._scales_at(coordinate, candidates, self.clipping.cells(candidates))
        reports = centre + half * np.array([-self._bit, self._bit] if half > 0.0 else [0.0])
        return self._reveal(reports, np.full(len(reports), coordinate))

    def pieces(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([-self._bit, self._bit]), np.ones(2)
