"""Optimized unary encoding (Wang et al. 2017): a bit per label, each flipped on its own."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.listing import (
    MOST_MESSAGES,
    MessageList,
    complete_list,
    draw_windows,
    list_windows,
    num_circles,
)
from ldp_gym.channels.two_level import LabelChannel
from ldp_gym.core.arrays import FloatArray, IntArray, Messages


class UnaryEncoding(LabelChannel):
    """A noisy bit for every label (OUE, Wang et al. 2017).

    The message is M independent bits: 1 with probability 1/2 for the user's own label and ``1 / (e^eps + 1)``
    for the others. Given how many bits are 1, which says nothing about the label, it is subset selection.

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
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Public = None
    ) -> Messages:
        own = np.arange(self.num_labels) == np.asarray(labels)[..., None]
        return (uniforms < np.where(own, *self.agreement_rates)).astype(np.int8)

    def _log_fits(self, messages: Messages, candidates: FloatArray, posterior: Public) -> FloatArray:
        """The log probability of messages from a label whose bit is 1, ``(..., 1)``."""
        others = messages.sum(axis=-1, keepdims=True, dtype=np.float64) - 1.0
        return math.log(0.5) + (self.num_labels - 1) * self._log_zero - others * self.epsilon

    def agreement(self, messages: Messages, candidates: FloatArray, posterior: Public = None) -> FloatArray:
        return messages.astype(np.float64)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Only the first bit is 1: the ratio does not depend on the other bits."""
        return (np.arange(self.num_labels) == 0).astype(np.int8)[None]

    @property
    def num_public_coins(self) -> int:
        """M for the number of ones, which says nothing about the label, and M for the labels' places."""
        return 2 * self.num_labels

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Windows of labels on a random circle, as in subset selection."""
        bits, coins = np.split(coins, 2)
        size = np.count_nonzero(bits < np.where(np.arange(self.num_labels) == 0, *self.agreement_rates))
        windows = draw_windows(coins, np.array(size)).astype(np.int8)
        return windows if 0 < size < self.num_labels else windows[:1]

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """All vectors, if they are few; else those of random numbers of ones."""
        labels = self.num_labels
        if 2**labels <= MOST_MESSAGES:
            return complete_list(((np.arange(2**labels)[:, None] >> np.arange(labels)) & 1).astype(np.int8))
        draws = num_circles(labels)
        rng = np.random.default_rng(1)
        sizes = rng.binomial(labels - 1, self.agreement_rates[1], size=draws) + rng.integers(2, size=draws)
        # The windows of a draw stand for a probability of one.
        inside = sizes / labels
        with np.errstate(divide="ignore"):
            log_window = np.logaddexp(np.log(inside), np.log1p(-inside) - self.epsilon)
        log_fits = math.log(0.5) + (labels - 1) * self._log_zero - (sizes - 1) * self.epsilon
        listed = list_windows(labels, sizes, -(log_window + log_fits))
        return listed._replace(messages=listed.messages.astype(np.int8))
