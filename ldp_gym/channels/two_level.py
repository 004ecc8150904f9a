"""Messages that fit a label or do not: two densities, e^eps apart.

Most pure channels are of this kind, and the best ones are (Kairouz, Oh and Viswanath 2016). Message z has the
density ``L(z)`` from a label that it fits, and ``e^-eps L(z)`` from any other.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray, Messages, expectations


class TwoLevelChannel(Channel):
    """A channel that is known by what its messages fit, :meth:`agreement`, and by their density if they do.

    Privacy: a density takes two values, ``e^eps`` apart, so the logarithm of any ratio is at most eps.
    """

    @abstractmethod
    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The chance that messages fit each label, ``(..., M)``: 0 or 1, unless a private coin decides."""

    @abstractmethod
    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray | float:
        """``log L(z)``, ``(..., 1)`` or a number."""

    def _chances(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        """The chance ``c_k(z)`` that messages fit a label of each hypothesis, ``(..., K)``."""
        return expectations(candidates, self.agreement(messages, candidates, posterior))

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        agreement = self.agreement(messages, candidates, posterior)
        return log_mixture(agreement, self._log_fits(messages, candidates, posterior), self.epsilon)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        chances = self._chances(messages, candidates, posterior)
        return log_mixture(chances, self._log_fits(messages, candidates, posterior), self.epsilon)


def log_mixture(chance: FloatArray, log_fits: FloatArray | float, epsilon: float) -> FloatArray:
    """The log density of a message that fits with the given chance.

    ``log_fits`` is that of a message that fits; one that does not has ``e^-eps`` times its density.
    """
    chance, ratio = np.minimum(np.maximum(chance, 0.0), 1.0), math.exp(-epsilon)
    if epsilon < 700.0:
        density: FloatArray = np.multiply(chance, 1.0 - ratio, out=chance)
        density += ratio
        return np.log(density, out=density) + log_fits
    with np.errstate(divide="ignore"):  # the same, where floats run out of digits for e^-eps
        return np.logaddexp(np.log(chance), np.log1p(-chance) - epsilon) + log_fits
