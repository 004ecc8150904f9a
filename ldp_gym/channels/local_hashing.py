"""Optimized local hashing (Wang et al. 2017): randomized response on a hash of the label."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Public
from ldp_gym.channels.listing import MOST_MESSAGES, NUM_DRAWS, MessageList, list_by_coins
from ldp_gym.channels.two_level import EvenChannel, LabelChannel, quadratic_losses
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.sampling import integers, least_prime


class LocalHashing(EvenChannel, LabelChannel):
    """The bucket of the label under a public random hash, or another (OLH, Wang et al. 2017).

    The hash is ``((a y + b) mod p) mod g`` with ``g = e^eps + 1``, rounded and at most M, and the
    least prime p of at least M and 257. The right bucket is named with probability
    ``e^eps / (e^eps + g - 1)``, each other with ``e^-eps`` times that. The message is
    ``(a - 1, b, bucket)``.

    Two labels share a bucket with :attr:`collision_probability`, a little less than the 1/g of a
    universal family (0.0588 at g = 16), so the estimator of Wang et al. is biased here, by up to
    0.005. :meth:`unbiased_losses` use the :attr:`agreement_rates` that make it unbiased.

    Example:
        K = 3, M = 3, eps = 1: g = 3 buckets. Under ``a = 1, b = 0`` label y is in bucket y, and
        naming bucket 0 is randomized response:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([0, 0, 0])
        >>> np.exp(LocalHashing(3, 3, 100).log_likelihood(message, table)).round(3).tolist()
        [0.43, 0.321, 0.248]

    Privacy: the hash does not depend on the label, and the right one of g buckets is named
    ``e^eps`` times likelier than another.

    When to use it: to compare with LDP libraries, or where a message must be three numbers. When
    not: ``subset-selection`` tells more (0.0397 against 0.0333 nats at M = 9, eps = 1.5), and both
    fade with M.

    The base measure of :meth:`log_density` is the law of the hash, times counting buckets.
    """

    num_uniforms = 4  # a, b, whether to name the right bucket, and which other
    num_public_coins = 2  # multiplier a and offset b of the hash

    @cached_property
    def num_buckets(self) -> int:
        """Number g of buckets of the hash."""
        return min(round(math.exp(min(self.epsilon, 30.0))) + 1, self.num_labels)

    @cached_property
    def prime(self) -> int:
        """Prime modulus p of the hash: at least 257, so that the buckets are about equal."""
        return least_prime(max(self.num_labels, 257))

    @property
    def message_space(self) -> gym.spaces.MultiDiscrete:
        """Space of messages: the two numbers of the hash, and a bucket."""
        return gym.spaces.MultiDiscrete([self.prime - 1, self.prime, self.num_buckets])

    @property
    def _log_fit(self) -> float:
        """Log probability of naming the right bucket."""
        return -math.log1p((self.num_buckets - 1) * math.exp(-self.epsilon))

    @property
    def collision_probability(self) -> float:
        """Probability that a random hash puts two given labels into one bucket.

        The hash makes two labels two different numbers below p, each pair equally often.
        """
        buckets = range(self.num_buckets)
        sizes = [(self.prime - 1 - bucket) // self.num_buckets + 1 for bucket in buckets]
        pairs_in_a_bucket = sum(size * (size - 1) for size in sizes)
        return pairs_in_a_bucket / (self.prime * (self.prime - 1))

    @property
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities that a message's bucket is that of the user's label, and of another."""
        right = math.exp(self._log_fit)
        wrong = (1.0 - right) / (self.num_buckets - 1)  # of one wrong bucket
        collides = self.collision_probability
        return right, collides * right + (1.0 - collides) * wrong

    def _buckets(
        self, multipliers: IntArray, offsets: IntArray, labels: IntArray
    ) -> npt.NDArray[Any]:
        """Return the buckets of labels under hashes ``((a y + b) mod p) mod g``, elementwise.

        ``multipliers`` are ``a - 1``, as in messages; ``offsets`` are b.
        """
        return ((multipliers + 1) * labels + offsets) % self.prime % self.num_buckets

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw messages ``(..., 3)``: a hash, and the label's bucket or another one."""
        multipliers = integers(self.prime - 1, uniforms[..., 0])
        offsets = integers(self.prime, uniforms[..., 1])
        right = self._buckets(multipliers, offsets, np.asarray(labels))

        truthful = uniforms[..., 2] < math.exp(self._log_fit)
        steps_to_another = 1 + integers(self.num_buckets - 1, uniforms[..., 3])
        wrong = (right + steps_to_another) % self.num_buckets
        named = np.where(truthful, right, wrong)
        return np.stack(np.broadcast_arrays(multipliers, offsets, named), axis=-1)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for the labels in the bucket that a message names, 0 for others."""
        messages = np.asarray(messages)
        multipliers = messages[..., 0, None]
        offsets = messages[..., 1, None]
        named = messages[..., 2, None]
        buckets = self._buckets(multipliers, offsets, np.arange(self.num_labels))
        return (buckets == named).astype(np.float64)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        They score the law of the named bucket, given the hash (:func:`quadratic_losses`).
        """
        messages = np.asarray(messages)
        chances = self._chances(messages, candidates, posterior)
        squares = np.zeros(chances.shape)
        for bucket in range(self.num_buckets):
            with_bucket = messages.copy()
            with_bucket[..., 2] = bucket
            squares += np.square(self._chances(with_bucket, candidates, posterior))
        return quadratic_losses(chances, math.exp(self._log_fit) * squares, self.epsilon)

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return one message ``(3,)`` for each bucket of the hash that public coins draw.

        Coins of shape ``(2, ...)`` draw several hashes; the result is then ``(..., g, 3)``.
        """
        multipliers = integers(self.prime - 1, coins[0])
        offsets = integers(self.prime, coins[1])
        return self._name_each_bucket(multipliers, offsets)

    def _name_each_bucket(self, multipliers: IntArray, offsets: IntArray) -> IntArray:
        """Return the messages ``(..., g, 3)`` of hashes ``(...)``, one for each bucket."""
        buckets = np.arange(self.num_buckets)
        numbers = np.broadcast_arrays(multipliers[..., None], offsets[..., None], buckets)
        return np.stack(numbers, axis=-1)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return bucket 0 of the hash ``h(y) = y``, which holds label 0 and not label 1."""
        return np.array([[0, 0, 0]])

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List all hashes, or random ones, with each of their buckets."""
        num_hashes = (self.prime - 1) * self.prime  # multipliers 1..p-1, offsets 0..p-1
        if num_hashes * self.num_buckets > 2 * MOST_MESSAGES:
            coins = np.random.default_rng(0).random((NUM_DRAWS, 2)).T
            messages = self.messages_given_coins(coins, candidates, posterior)
            return list_by_coins(messages, chances=None)
        multipliers, offsets = np.divmod(np.arange(num_hashes), self.prime)
        messages = self._name_each_bucket(multipliers, offsets)
        return list_by_coins(messages, uniform_distribution(num_hashes))
