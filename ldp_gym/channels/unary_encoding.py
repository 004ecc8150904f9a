"""Optimized unary encoding (Wang et al. 2017): a bit per label, each flipped on its own."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Posterior
from ldp_gym.channels.listing import (
    MOST_MESSAGES,
    MessageList,
    complete_list,
    draw_windows,
    list_windows,
    num_circles,
)
from ldp_gym.channels.two_level import LabelChannel, quadratic_losses
from ldp_gym.core.arrays import FloatArray, IntArray, Messages


class UnaryEncoding(LabelChannel):
    """A noisy bit for every label (OUE, Wang et al. 2017).

    A bit is 1 with probability 1/2 for the user's own label and ``1 / (e^eps + 1)`` for the others, each on
    its own. The message is the M bits. Given how many bits are 1 it is subset selection with sets of that
    size, and the number says nothing about the label.

    Example:
        K = 3, M = 3, eps = 1: the own bit is 1 with probability 0.5, another with 0.269. The message (1, 0,
        0) has probability ``0.5 * 0.731^2 = 0.267`` from label 0 and ``0.5 * 0.269 * 0.731 = 0.098`` from
        others.

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> np.exp(UnaryEncoding(3, 3, 100).log_density(np.array([1, 0, 0]), table)).round(3).tolist()
        [0.267, 0.098, 0.098]

    Privacy: a vector has ``e^eps`` times the probability from a label whose bit is 1 than from one whose bit
    is 0; the other bits cancel.

    When to use it: to compare with LDP libraries. When not: it is never better than ``subset-selection`` with
    the best of the sizes.

    The base measure of :meth:`log_density` counts vectors.
    """

    @property
    def num_uniforms(self) -> int:
        """One for each bit."""
        return self.num_labels

    @property
    def agreement_rates(self) -> tuple[float, float]:
        return 0.5, math.exp(self._log_zero - self.epsilon)

    @property
    def message_space(self) -> gym.spaces.MultiBinary:
        """The bits."""
        return gym.spaces.MultiBinary(self.num_labels)

    @property
    def _log_zero(self) -> float:
        """``log (1 - q)``, of a bit of another label that is 0."""
        return -math.log1p(math.exp(-self.epsilon))

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Posterior = None
    ) -> Messages:
        own = np.arange(self.num_labels) == np.asarray(labels)[..., None]
        return (uniforms < np.where(own, 0.5, math.exp(self._log_zero - self.epsilon))).astype(np.int8)

    def _log_fits(self, messages: Messages, candidates: FloatArray, posterior: Posterior) -> FloatArray:
        """The log probability of messages from a label whose bit is 1, ``(..., 1)``."""
        others = messages.sum(axis=-1, keepdims=True, dtype=np.float64) - 1.0
        return math.log(0.5) + (self.num_labels - 1) * self._log_zero - others * self.epsilon

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Posterior = None
    ) -> FloatArray:
        return messages.astype(np.float64)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Posterior = None
    ) -> FloatArray:
        """The squared distance of the bits from what each hypothesis expects, up to constants."""
        held = self._chances(messages, candidates, posterior)
        # With q of others' bits the mean is q + (1/2 - q) f_k, and 1/2 - q = (1 - e^-eps) / (2 (1 + e^-eps)).
        squares = 0.5 * math.exp(self._log_zero) * np.square(candidates).sum(axis=-1)
        return quadratic_losses(held, squares, self.epsilon)

    def worst_case_messages(self, candidates: FloatArray, posterior: Posterior = None) -> Messages:
        """Only the first bit is 1: the ratio does not depend on the other bits."""
        return (np.arange(self.num_labels) == 0).astype(np.int8)[None]

    @property
    def num_public_coins(self) -> int:
        """M for the number of ones, which says nothing about the label, and M for the labels' places."""
        return 2 * self.num_labels

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Posterior = None
    ) -> Messages:
        """Windows of labels on a random circle, as in subset selection."""
        bits, coins = np.split(coins, 2)
        likely = np.full(self.num_labels, math.exp(self._log_zero - self.epsilon))
        likely[0] = 0.5
        size = np.count_nonzero(bits < likely)
        windows = draw_windows(coins, np.array(size)).astype(np.int8)
        return windows if 0 < size < self.num_labels else windows[:1]

    def list_messages(self, candidates: FloatArray, posterior: Posterior = None) -> MessageList:
        """All vectors, if they are few; else those of random numbers of ones."""
        labels = self.num_labels
        if 2**labels <= MOST_MESSAGES:
            numbers = np.arange(2**labels)
            return complete_list(((numbers[:, None] >> np.arange(labels)) & 1).astype(np.int8))
        draws = num_circles(labels)
        rng, q = np.random.default_rng(1), math.exp(self._log_zero - self.epsilon)
        sizes = rng.binomial(labels - 1, q, size=draws) + rng.integers(2, size=draws)
        # The windows of a draw stand for a probability of one.
        inside = sizes / labels
        with np.errstate(divide="ignore"):
            log_window = np.logaddexp(np.log(inside), np.log1p(-inside) - self.epsilon)
        log_fits = math.log(0.5) + (labels - 1) * self._log_zero - (sizes - 1) * self.epsilon
        listed = list_windows(labels, sizes, -(log_window + log_fits))
        return listed._replace(messages=listed.messages.astype(np.int8))
