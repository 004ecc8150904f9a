"""Two-level channels: the density of a message is one of two numbers, a factor e^eps apart."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from ldp_gym.channels.base import Channel, Public
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, expectations

_LARGEST_EXPONENT = 700.0
"""Exponent x up to which e^x and e^-x are ordinary floats."""


class TwoLevelChannel(Channel):
    """Base of the channels whose messages fit a label or do not.

    A message z has density ``L(z)`` from a label that it fits, and ``e^-eps L(z)`` from any other.

    Privacy: the logarithm of any ratio of two such densities is at most eps. The best pure channels
    are of this kind (Kairouz, Oh and Viswanath 2016).
    """

    @abstractmethod
    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the probability that messages fit each label, ``(..., M)``.

        It is 0 or 1, unless a private coin decides.
        """

    @abstractmethod
    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray | float:
        """Return ``log L(z)``, ``(..., 1)``, or one number if it is the same for all messages."""

    def _chances(self, messages: Messages, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the probability ``c_k(z)`` that messages fit a label of ``f_k``, ``(..., K)``."""
        return expectations(candidates, self.agreement(messages, candidates, posterior))

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the log density ``log q(z | y)`` of messages for all labels, ``(..., M)``.

        It is ``log L(z)`` for a label that message z fits, and ``log L(z) - eps`` for any other.
        """
        agreement = self.agreement(messages, candidates, posterior)
        log_fits = self._log_fits(messages, candidates, posterior)
        return log_mixture(agreement, log_fits, self.epsilon)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the hypotheses' log-likelihoods, ``(..., K)``.

        It is ``log(L(z) (e^-eps + (1 - e^-eps) c_k(z)))``, where ``c_k(z)`` is the probability that
        message z fits a label of ``f_k``, and ``L(z)`` its density from a label that it fits; from
        any other label the density is ``e^-eps L(z)``.
        """
        chances = self._chances(messages, candidates, posterior)
        log_fits = self._log_fits(messages, candidates, posterior)
        return log_mixture(chances, log_fits, self.epsilon)


class EvenChannel(TwoLevelChannel):
    """Base of the two-level channels with the same ``L(z)`` for all messages."""

    @property
    @abstractmethod
    def _log_fit(self) -> float:
        """Log density of a message from a label that it fits."""

    def _log_fits(self, messages: Messages, candidates: FloatArray, posterior: Public) -> float:
        """Return ``log L(z)``, one number for all messages."""
        return self._log_fit


class LabelChannel(TwoLevelChannel):
    """Base of the two-level channels that treat all labels alike.

    A message agrees with the user's label with probability a, and with any other label with
    probability b.
    """

    @property
    @abstractmethod
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities a and b that a message agrees with the user's label, and with another."""

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        It is ``(a - b) sum_y f_k[y]^2 - 2 c_k(z)``. A message agrees with the user's label with
        probability a, and with any other label with probability b (:attr:`agreement_rates`);
        ``c_k(z)`` is the probability that message z agrees with a label of ``f_k``.

        If labels have the distribution p, then on average ``c_k(z)`` is
        ``b + (a - b) sum_y f_k[y] p[y]``. So up to a constant the mean score is
        ``(a - b) sum_y (f_k[y] - p[y])^2``, which is least at ``f_k = p``.
        """
        rate_of_own, rate_of_other = self.agreement_rates
        squares = np.square(candidates).sum(axis=-1)
        chances = self._chances(messages, candidates, posterior)
        return (rate_of_own - rate_of_other) * squares - 2.0 * chances

    def unbiased_losses(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return unbiased estimates ``(..., K)`` of the clipped log-loss of the user's label.

        A message agrees with the user's label with probability a, and with any other with
        probability b (:attr:`agreement_rates`). So on average ``(agreement - b) / (a - b)`` is 1
        for the user's label and 0 for any other: an unbiased estimate of which label it is.
        """
        rate_of_own, rate_of_other = self.agreement_rates
        agreement = self.agreement(messages, candidates, posterior)
        indicators = (agreement - rate_of_other) / (rate_of_own - rate_of_other)
        losses = Clipping(self.horizon).label_losses(candidates)
        return expectations(losses, indicators)


def log_mixture(chance: FloatArray, log_fits: FloatArray | float, epsilon: float) -> FloatArray:
    """Return the log density ``log(c L + (1 - c) e^-eps L)`` of a message, elementwise.

    Args:
        chance: the probability c that the message fits the label, ``(...)``.
        log_fits: its log density ``log L`` if it fits; ``e^-eps L`` is its density if not.
        epsilon: eps.

    Example:
        >>> log_mixture(np.array([1.0, 0.5, 0.0]), 0.0, epsilon=2.0).round(3).tolist()
        [0.0, -0.566, -2.0]
    """
    chance = np.minimum(np.maximum(chance, 0.0), 1.0)  # sums of probabilities may exceed 1
    if epsilon < _LARGEST_EXPONENT:
        ratio = math.exp(-epsilon)
        density: FloatArray = np.multiply(chance, 1.0 - ratio, out=chance)
        density += ratio
        return np.log(density, out=density) + log_fits
    # The same formula where e^-eps is too small for a float.
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log(chance), np.log1p(-chance) - epsilon) + log_fits


def quadratic_losses(chances: FloatArray, squares: FloatArray, epsilon: float) -> FloatArray:
    """Return the quadratic score of each hypothesis, ``(..., K)``: a proper and bounded loss.

    The likelihood of k is ``P_k(z) = L(z) (e^-eps + (1 - e^-eps) c_k(z))``. Under the law P the
    score ``sum_z' P_k(z')^2 / L(z') - 2 P_k(z) / L(z)`` has the expectation
    ``sum_z (P_k(z) - P(z))^2 / L(z)``, up to what does not depend on k: the least at ``P_k = P``.
    For every label probabilities sum to one, so ``sum_z L(z) c_k(z)`` is the same for all k, and up
    to a factor and a constant the score is ``(1 - e^-eps) sum_z' L(z') c_k(z')^2 - 2 c_k(z)``.

    Args:
        chances: ``c_k(z)``, ``(..., K)``.
        squares: ``sum_z' L(z') c_k(z')^2``, ``(..., K)``.
        epsilon: eps.
    """
    return -math.expm1(-epsilon) * squares - 2.0 * chances


def capacity(epsilon: float) -> float:
    """Return the capacity of an eps-private message: the most nats that it can carry.

    ``C(eps) = D - 1 - log D`` with ``D = eps / (1 - e^-eps)``. It bounds the information about the
    truth in any message, also one that depends on earlier messages.

    Example:
        >>> round(capacity(1.0), 4)
        0.1233
    """
    excess = _excess(epsilon)
    if excess > 1e-2:
        return excess - math.log1p(excess)
    # The power series of x - log(1 + x), where the difference would lose digits.
    return sum((-1) ** n * excess**n / n for n in range(2, 9))


def best_share(epsilon: float) -> float:
    """Return the share of labels that a message with the most information fits.

    ``r* = (D - 1) / (e^eps - 1)`` with ``D = eps / (1 - e^-eps)``.

    Example:
        >>> round(best_share(1.0), 4)
        0.3387
    """
    excess = _excess(epsilon)
    if epsilon < 1e-9:
        return 0.5  # the limit, to the last digit
    if epsilon >= _LARGEST_EXPONENT:
        return 0.0  # too small for a float
    return excess / math.expm1(epsilon)


def _excess(epsilon: float) -> float:
    """Return ``D - 1 = eps / (1 - e^-eps) - 1``, without cancellation at small eps."""
    half = validation.positive("epsilon", epsilon) / 2.0
    if half <= 1e-9:
        return half  # the rest, eps^2 / 12, is below its last digit
    # eps / (1 - e^-eps) = h / tanh(h) + h with h = eps / 2.
    return half / math.tanh(half) - 1.0 + half
