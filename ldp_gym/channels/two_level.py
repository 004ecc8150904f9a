"""Two-level channels: a message fits a label or does not, with two densities a factor e^eps apart."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from ldp_gym.channels.base import Channel, Public
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, expectations


class TwoLevelChannel(Channel):
    """A channel whose message z has density ``L(z)`` from a label that it fits, ``e^-eps L(z)`` from others.

    Privacy: the logarithm of any ratio of two such densities is at most eps. The best pure channels are of
    this kind (Kairouz, Oh and Viswanath 2016).
    """

    @abstractmethod
    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """The chance that messages fit each label, ``(..., M)``: 0 or 1, unless a private coin decides."""

    @abstractmethod
    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray | float:
        """``log L(z)``, ``(..., 1)``, or a number where it is the same for all messages."""

    def _chances(self, messages: Messages, candidates: FloatArray, posterior: Public) -> FloatArray:
        """The chance ``c_k(z)`` that messages fit a label of each hypothesis, ``(..., K)``."""
        return expectations(candidates, self.agreement(messages, candidates, posterior))

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        agreement = self.agreement(messages, candidates, posterior)
        return log_mixture(agreement, self._log_fits(messages, candidates, posterior), self.epsilon)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        chances = self._chances(messages, candidates, posterior)
        return log_mixture(chances, self._log_fits(messages, candidates, posterior), self.epsilon)


class EvenChannel(TwoLevelChannel):
    """A two-level channel with the same ``L(z)`` for all messages."""

    @property
    @abstractmethod
    def _log_fit(self) -> float:
        """Log density of a message from a label that it fits."""

    def _log_fits(self, messages: Messages, candidates: FloatArray, posterior: Public) -> float:
        return self._log_fit


class LabelChannel(TwoLevelChannel):
    """A channel that treats all labels alike.

    A message agrees with the user's own label with one probability a, and with any other with another, b.
    """

    @property
    @abstractmethod
    def agreement_rates(self) -> tuple[float, float]:
        """The probabilities a and b that a message agrees with the user's own label, and with another."""

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """The quadratic score, up to a constant ``(a - b) sum_y f_k[y]^2 - 2 c_k(z)``.

        Any two labels agree with a message together with the same probability, and a label with itself
        more often: under L, by ``(a - b) / (1 - e^-eps)``.
        """
        own, other = self.agreement_rates
        squares = (own - other) * np.square(candidates).sum(axis=-1)
        return squares - 2.0 * self._chances(messages, candidates, posterior)

    def unbiased_losses(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.unbiased_losses`; the channel matrix, inverted by hand.

        ``(agreement - b) / (a - b)`` is on average 1 for the user's own label and 0 for any other.
        """
        own, other = self.agreement_rates
        agreement = self.agreement(messages, candidates, posterior)
        losses = Clipping(self.horizon).label_losses(candidates)
        return expectations(losses, (agreement - other) / (own - other))


def log_mixture(chance: FloatArray, log_fits: FloatArray | float, epsilon: float) -> FloatArray:
    """The log density of a message that fits with the given chance, and has log density ``log_fits`` then."""
    chance, ratio = np.minimum(np.maximum(chance, 0.0), 1.0), math.exp(-epsilon)
    if epsilon < 700.0:
        density: FloatArray = np.multiply(chance, 1.0 - ratio, out=chance)
        density += ratio
        return np.log(density, out=density) + log_fits
    with np.errstate(divide="ignore"):  # the same, where floats run out of digits for e^-eps
        return np.logaddexp(np.log(chance), np.log1p(-chance) - epsilon) + log_fits


def quadratic_losses(chances: FloatArray, squares: FloatArray, epsilon: float) -> FloatArray:
    """The quadratic score of each hypothesis, ``(..., K)``: a proper and bounded loss.

    The likelihood of k is ``P_k(z) = L(z) (e^-eps + (1 - e^-eps) c_k(z))``. Under the law P the score
    ``sum_z' P_k(z')^2 / L(z') - 2 P_k(z) / L(z)`` has the expectation ``sum_z (P_k(z) - P(z))^2 / L(z)``, up
    to what does not depend on k: the least at ``P_k = P``. For every label probabilities sum to one, so
    ``sum_z L(z) c_k(z)`` is the same for all k, and up to a factor and a constant the score is
    ``(1 - e^-eps) sum_z' L(z') c_k(z')^2 - 2 c_k(z)``. ``squares`` is the sum, ``chances`` is ``c_k(z)``.
    """
    return -math.expm1(-epsilon) * squares - 2.0 * chances


def capacity(epsilon: float) -> float:
    """``C(eps) = D - 1 - log D`` with ``D = eps / (1 - e^-eps)``: the most one eps-LDP message can tell.

    No eps-LDP message, however chosen, even interactively, carries more nats about the truth.

    Example:
        >>> round(capacity(1.0), 4)
        0.1233
    """
    excess = _excess(epsilon)
    if excess > 1e-2:
        return excess - math.log1p(excess)
    return sum((-1) ** n * excess**n / n for n in range(2, 9))


def best_share(epsilon: float) -> float:
    """``r* = (D - 1) / (e^eps - 1)``: fraction of labels that an optimal message covers.

    Example:
        >>> round(best_share(1.0), 4)
        0.3387
    """
    excess = _excess(epsilon)
    if epsilon < 1e-9:
        return 0.5  # the limit, to the last digit
    return excess / math.expm1(epsilon) if epsilon < 700.0 else 0.0


def _excess(epsilon: float) -> float:
    """``D - 1``, without the cancellation."""
    half = validation.positive("epsilon", epsilon) / 2.0
    return half / math.tanh(half) - 1.0 + half if half > 1e-9 else half
