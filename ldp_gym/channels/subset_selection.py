"""Subset selection and unary encoding: a random set of names that tends to hold the user's."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.listing import MessageList, all_subsets, complete_list, draw_windows
from ldp_gym.channels.two_level import EvenChannel, LabelChannel
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages


class SubsetChannel(EvenChannel):
    """Base of the channels that send a random set of w out of N names.

    A set is ``e^eps`` times likelier if it holds the user's name. By default w is N / (e^eps + 1),
    rounded, as Ye and Barg (2018) choose it to estimate a distribution. The base measure of
    :meth:`log_density` counts sets.
    """

    @property
    def num_names(self) -> int:
        """Number N of names that a set is drawn from: here the labels."""
        return self.num_labels

    @property
    def size(self) -> int:
        """Number w of names in a set: ``N / (e^eps + 1)``, rounded, at least 1."""
        growth = math.exp(min(self.epsilon, 700.0))  # kept below overflow
        return max(1, round(self.num_names / (1.0 + growth)))

    @property
    def holding(self) -> float:
        """Probability that the set holds the name: ``e^eps w / (e^eps w + N - w)``."""
        return 1.0 / (1.0 + (self.num_names / self.size - 1.0) * math.exp(-self.epsilon))

    @cached_property
    def _log_fit(self) -> float:
        """Log probability of one set that holds the name."""
        return math.log(self.holding) - log_binomial(self.num_names - 1, self.size - 1)

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: one for whether the set holds the name, and one for every name."""
        return 1 + self.num_names

    @abstractmethod
    def _write(self, sets: FloatArray) -> Messages:
        """Convert sets ``(..., N)``, zeros and ones, to messages."""

    @abstractmethod
    def _read(self, messages: Messages) -> FloatArray:
        """Convert messages to sets ``(..., N)``, zeros and ones: the inverse of :meth:`_write`."""

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages that are sets of w names."""
        sets = self._read(messages)
        is_set = (self._write(sets) == messages).all(axis=-1)
        return is_set & (sets.sum(axis=-1) == self.size)

    def _draw(self, names: IntArray, uniforms: FloatArray) -> FloatArray:
        """Draw sets ``(..., N)``, zeros and ones, for users' names ``(...)``.

        The first uniform decides whether the set holds the user's name. Each name has another one,
        and the w names with the smallest are in the set; the user's name is put first or last.
        """
        holds = uniforms[..., 0] < self.holding
        own_key = np.where(holds, -1.0, 2.0)
        is_own = np.arange(self.num_names) == names[..., None]
        keys = np.where(is_own, own_key[..., None], uniforms[..., 1:])
        largest_in_set = np.partition(keys, self.size - 1, axis=-1)[..., self.size - 1, None]
        return (keys <= largest_in_set).astype(np.float64)

    @property
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities that the set holds the user's name, and that it holds another name."""
        return self.holding, (self.size - self.holding) / (self.num_names - 1)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: N, which put the names in order on a circle."""
        return self.num_names

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return the N sets of w names that are neighbours on the circle, ``(N, *message_shape)``.

        The coins ``(N,)`` put the names in order on the circle.
        """
        return self._write(draw_windows(coins, np.array(self.size)))

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List all sets of w names if they are few.

        Otherwise list those that are neighbours on circles in random order.
        """
        sets = all_subsets(self.num_names, self.size)
        if sets is None:
            return self._list_by_draws(candidates, posterior)
        return complete_list(self._write(sets))


def log_binomial(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient n over k.

    By Stirling's formula: differences of ``lgamma`` lose digits at large n.

    Example:
        >>> round(log_binomial(5, 2), 12) == round(math.log(10), 12)
        True
    """
    if k in (0, n):
        return 0.0
    entropy = k * math.log(n / k) - (n - k) * math.log1p(-k / n)
    root = 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))
    remainder = _stirling_remainder(n) - _stirling_remainder(k) - _stirling_remainder(n - k)
    return entropy + root + remainder


def _stirling_remainder(n: int) -> float:
    """Return ``log n! - (n + 1/2) log n + n - log(2 pi) / 2``, the error of Stirling's formula."""
    if n < 16:  # n! is an exact float
        log_factorial = math.log(math.factorial(n))
        return log_factorial - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    # Its asymptotic series in 1/n.
    square = 1.0 / (n * n)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / n


class SubsetSelection(SubsetChannel, LabelChannel):
    """A random set of labels that probably holds the label (Ye and Barg 2018).

    The message is a set of ``w = M / (e^eps + 1)`` labels, rounded, as M zeros and ones. It holds
    the user's label with probability ``e^eps w / (e^eps w + M - w)``; all other labels are alike.

    Example:
        K = 3, M = 3, eps = 1: w = 1, which is randomized response. At M = 6, w = 2 and the set
        holds the label with probability ``2 e / (2 e + 4) = 0.576``.

        >>> channel = SubsetSelection(3, 6, 100)
        >>> channel.size, round(channel.holding, 3)
        (2, 0.576)

    Privacy: a set has one probability if it holds the label and ``e^-eps`` times that if it does
        not.

    When to use it: up to about a hundred labels, a distribution to estimate, or unbiased losses.
    When not: its signal fades as M grows; channels that ask about hypotheses do not see M.
    """

    @property
    def message_space(self) -> gym.spaces.MultiBinary:
        """Space of messages: M zeros and ones, 1 for a label in the set."""
        return gym.spaces.MultiBinary(self.num_labels)

    def _write(self, sets: FloatArray) -> Messages:
        """Convert sets ``(..., M)``, zeros and ones, to messages of whole numbers."""
        return sets.astype(np.int8)

    def _read(self, messages: Messages) -> FloatArray:
        """Convert messages ``(..., M)`` to sets of zeros and ones as floats."""
        return messages.astype(np.float64)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw a set of labels that tends to hold the user's."""
        return self._write(self._draw(np.asarray(labels), uniforms))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for the labels in a message's set, 0 for others."""
        return self._read(messages)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the set of the first w labels; every set attains the worst ratio."""
        return (np.arange(self.num_labels) < self.size).astype(np.int8)[None]


class UnaryEncoding(LabelChannel):
    """A noisy bit for every label (OUE, Wang et al. 2017).

    The message is M independent bits: 1 with probability 1/2 for the user's label and
    ``1 / (e^eps + 1)`` for the others. Given how many bits are 1, which says nothing about the
    label, it is subset selection.

    Example:
        K = 3, M = 3, eps = 1: its bit is 1 with probability 0.5, another with 0.269. The message
        (1, 0, 0) has probability ``0.5 * 0.731^2 = 0.267`` from label 0 and
        ``0.5 * 0.269 * 0.731 = 0.098`` from others.

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([1, 0, 0])
        >>> np.exp(UnaryEncoding(3, 3, 100).log_density(message, table)).round(3).tolist()
        [0.267, 0.098, 0.098]

    Privacy: a vector has ``e^eps`` times the probability from a label whose bit is 1 than from one
    whose bit is 0; the other bits cancel.

    When to use it: to compare with LDP libraries. When not: it is never better than
    ``subset-selection`` with the best of the sizes.

    The base measure of :meth:`log_density` counts vectors.
    """

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: one for each label's bit."""
        return self.num_labels

    @property
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities that the bit of the user's label is 1, and that of another label."""
        return 0.5, math.exp(self._log_zero - self.epsilon)

    @property
    def message_space(self) -> gym.spaces.MultiBinary:
        """Space of messages: a noisy bit for each label."""
        return gym.spaces.MultiBinary(self.num_labels)

    @property
    def _log_zero(self) -> float:
        """Log probability that the bit of a label other than the user's is 0."""
        return -math.log1p(math.exp(-self.epsilon))

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw messages ``(..., M)``: a bit for each label, whose rate is larger for the user's."""
        rate_of_own, rate_of_others = self.agreement_rates
        is_own = np.arange(self.num_labels) == np.asarray(labels)[..., None]
        bits = uniforms < np.where(is_own, rate_of_own, rate_of_others)
        return bits.astype(np.int8)

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """Return the log probability of messages from a label whose bit is 1, ``(..., 1)``."""
        other_ones = messages.sum(axis=-1, keepdims=True, dtype=np.float64) - 1.0
        return math.log(0.5) + (self.num_labels - 1) * self._log_zero - other_ones * self.epsilon

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the bits of a message: a label with bit 1 agrees with it."""
        return messages.astype(np.float64)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the message whose first bit is its only 1; other bits do not change the ratio."""
        return (np.arange(self.num_labels) == 0).astype(np.int8)[None]

    @property
    def num_public_coins(self) -> int:
        """Number of public coins, 2 M: half of them draw the number of ones, half a circle."""
        return 2 * self.num_labels

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return the messages ``(n, M)`` that are possible when the coins ``(2 M,)`` are drawn.

        The first half of the coins draws the number of ones, which has the same law for all labels,
        as in a message from label 0. The other half puts the labels in order on a circle, and the
        ones are neighbours there.
        """
        size_coins, circle_coins = np.split(coins, 2)
        size = np.count_nonzero(self.encode(np.array(0), candidates, size_coins))
        windows = draw_windows(circle_coins, np.array(size)).astype(np.int8)
        if size in (0, self.num_labels):
            return windows[:1]  # all windows are the same set
        return windows
