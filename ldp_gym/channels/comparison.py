"""Comparisons: one private bit that says which of two sides of hypotheses likes the label better.

Public coins draw two sides A and B. The bit ``mean_{j in A} f_j(x)[y] > mean_{j in B} f_j(x)[y]`` goes
through randomized response; where both means are equal a private coin decides. The message is -1 on the side
that won, +1 on the other and 0 elsewhere. The signs are not losses: the truth need not win more often than
others. What is scored is how well a hypothesis predicts the answer.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import AdaptiveChannel, Public
from ldp_gym.channels.listing import (
    MOST_ORDERED,
    NUM_DRAWS,
    MessageList,
    all_orders,
    all_subsets,
    list_by_coins,
)
from ldp_gym.channels.two_level import EvenChannel, quadratic_losses
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    masses,
    mixture,
    uniform_distribution,
)
from ldp_gym.core.sampling import categorical, integers

_EQUAL_SIDES = 1e-12
"""Mean probabilities that differ by less are ties: the last bit must not decide."""

UNLIKELY = 1e-12
"""Least public weight of a hypothesis."""

_HALF = 0.5 - 1e-9
"""Half of the posterior, less the rounding of its sums."""


class BitChannel(EvenChannel):
    """One private bit about a public contrast of the hypotheses, coefficients ``(..., K)`` in [-1, 1].

    The message is the contrast, with a sign such that hypotheses that like the answer are negative.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def message_space(self) -> gym.spaces.Box:
        """Coefficients of the hypotheses, negative for those that like the answer."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    @property
    def num_uniforms(self) -> int:
        """The public coins, and one for the answer."""
        return self.num_public_coins + 1

    @property
    def _log_fit(self) -> float:
        """The log probability of the true answer."""
        return -math.log1p(math.exp(-self.epsilon))

    def _answers(self, side: FloatArray, coin: FloatArray) -> BoolArray:
        """Noisy answers to "is the side 1?"; the private coin decides where it is 1/2."""
        truthful = coin < math.exp(self._log_fit)
        return np.where(side == 0.5, coin < 0.5, (side > 0.5) == truthful)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        chances = self._chances(messages, candidates, posterior)
        squares = math.exp(self._log_fit) * (np.square(chances) + np.square(1.0 - chances))
        return quadratic_losses(chances, squares, self.epsilon)


class Comparison(BitChannel):
    """A bit about two sides of hypotheses: -1 on the side that won, +1 on the other, 0 elsewhere.

    The base measure of :meth:`log_density` is the law of the sides, times counting the two answers. Side A is
    the one with the lowest hypothesis, so that a message has one reading.
    """

    @abstractmethod
    def _sides(self, coins: FloatArray, posterior: Public) -> FloatArray:
        """The sides that public coins draw: +1 on A, -1 on B, 0 elsewhere, ``(..., K)``."""

    @abstractmethod
    def _all_sides(self, posterior: Public) -> tuple[FloatArray, FloatArray] | None:
        """All sides ``(n, K)`` and their probabilities ``(n,)``, unless there are too many."""

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Public = None
    ) -> Messages:
        sides = self._sides(uniforms[..., :-1], posterior)
        liked = masses(candidates, np.asarray(labels))
        prefers = _preference(np.einsum("...k,...k->...", self._contrast(sides, posterior), liked))
        return np.where(self._answers(prefers, uniforms[..., -1])[..., None], -sides, sides)

    @abstractmethod
    def _contrast(self, sides: FloatArray, posterior: Public) -> FloatArray:
        """Coefficients ``(..., K)`` whose product with masses is the mean over A less the mean over B."""

    def agreement(self, messages: Messages, candidates: FloatArray, posterior: Public = None) -> FloatArray:
        """1 for a label that the side that won likes better, 1/2 where both like it equally."""
        # The winning side has -1 in a message, and +1 in a contrast.
        return _preference(mixture(self._contrast(-messages, posterior), candidates))

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """All sides with both answers; some random sides where there are too many."""
        sides, chances = self._all_sides(posterior) or (self._draw_sides(NUM_DRAWS, posterior), None)
        return list_by_coins(np.stack([sides, -sides], axis=1), chances)

    def _draw_sides(self, count: int, posterior: Public) -> FloatArray:
        """Random sides, the same ones each time."""
        return self._sides(np.random.default_rng(0).random((count, self.num_public_coins)), posterior)

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Both answers about the sides."""
        sides = self._sides(coins, posterior)
        return np.stack([sides, -sides])

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """A few hundred random sides with both answers: where no label ties, a ratio is eps or 0."""
        sides = np.unique(self._draw_sides(200, posterior), axis=0)
        return np.concatenate([sides, -sides])


def _preference(differences: FloatArray) -> FloatArray:
    """1 where the first mean is larger, 0 where the second is, 1/2 where they are equal."""
    larger, as_large = differences > _EQUAL_SIDES, differences >= -_EQUAL_SIDES
    return 0.5 * np.add(larger, as_large, dtype=np.float64)


class Split(Comparison):
    """A random half of the hypotheses against the rest: which side likes the label better?

    Public coins draw a half A of the hypotheses; B is the rest. The bit "A gives my label a larger mean
    probability than B" is flipped with probability ``1 / (e^eps + 1)``; the message is -1 on the side that
    won and +1 on the other.

    Example:
        K = 3, eps = 1 (flip probability 0.269), A = {1}, B = {2, 3}. The means are (0.6, 0.3, 0.1) and
        (0.2, 0.25, 0.55), so labels 0 and 1 speak for A. The probability of "A won" under each hypothesis:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> np.exp(Split(3, 3, 100).log_likelihood(np.array([-1.0, 1.0, 1.0]), table)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the sides do not depend on the label. Given the sides, a message has probability
    ``e^eps / (e^eps + 1)`` or ``1 / (e^eps + 1)``, so the ratio for two labels is at most ``e^eps``.

    When to use it: eps up to about 1, and any M. Above eps = 1 one bit is too little; ``wheel`` says more.

    When not: it can be blind. Where a third hypothesis dominates two labels, both always count for the same
    side, and two hypotheses that differ only in these labels are never told apart. On the table
    ``[[.2, 0, .8], [0, .2, .8], [.5, .5, 0]]`` with five rows ``[.04 - .005i, .04 - .005i, .92 + .01i]``
    (i = 0..4), truth 0, eps = 1, Bayes pays 150 / 566 nats in 1,000 / 4,000 rounds, and goes on paying.
    ``half-space`` is never blind.
    """

    @property
    def num_public_coins(self) -> int:
        return self.num_hypotheses

    @property
    def _half(self) -> int:
        return self.num_hypotheses // 2

    def _sides(self, coins: FloatArray, posterior: Public) -> FloatArray:
        last = np.partition(coins, self._half - 1, axis=-1)[..., self._half - 1, None]
        sides = np.copysign(1.0, last - coins)
        return sides * sides[..., :1]

    def _all_sides(self, posterior: Public) -> tuple[FloatArray, FloatArray] | None:
        halves = all_subsets(self.num_hypotheses, self._half)
        if halves is None:
            return None
        sides = 2.0 * halves - 1.0
        sides, counts = np.unique(sides * sides[:, :1], axis=0, return_counts=True)
        return sides, counts / len(halves)

    def _contrast(self, sides: FloatArray, posterior: Public) -> FloatArray:
        if self.num_hypotheses == 2 * self._half:
            return sides / self._half
        members = (self.num_hypotheses + np.einsum("...k->...", sides)[..., None]) / 2.0  # of side A
        return sides / np.where(sides > 0.0, members, self.num_hypotheses - members)


class AdaptiveSplit(AdaptiveChannel, Comparison):
    """Two sides of about equal posterior: which side likes the label better?

    The hypotheses are put in a public random order and cut where half of the public posterior is reached. The
    user compares the posterior-weighted mean probabilities of the label and answers with one bit, flipped
    with probability ``1 / (e^eps + 1)``. In the end the likeliest hypothesis stands against all others.

    Example:
        K = 3, eps = 1, posterior (0.5, 0.3, 0.2): hypothesis 1 has half and stands against {2, 3}, whose
        weighted mean is (0.22, 0.28, 0.5). The probability of "1 won" under each hypothesis:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message, posterior = np.array([-1.0, 1.0, 1.0]), np.array([0.5, 0.3, 0.2])
        >>> np.exp(AdaptiveSplit(3, 3, 100).log_likelihood(message, table, posterior)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: posterior and sides are public, and the bit is randomized response, as in :class:`Split`.

    When to use it: rounds may depend on earlier messages, and eps is small (0.5) or K is large (above 100).
    When not: at eps above 1, where ``adaptive-groups`` says more than a bit.
    """

    @property
    def num_public_coins(self) -> int:
        return self.num_hypotheses

    def _sides(self, coins: FloatArray, posterior: Public) -> FloatArray:
        posterior = self._public(posterior)
        # A hypothesis that has half goes first and has its side for itself.
        order = np.where(posterior >= 0.5, -1.0, coins).argsort(axis=-1)
        rows = np.arange(0, order.size, order.shape[-1])
        places = order + rows.reshape(*order.shape[:-1], 1)  # indices into the flat array
        if posterior.shape != coins.shape:
            posterior = np.broadcast_to(posterior, coins.shape)
        weights = posterior.reshape(-1)[places]
        centres = np.add.accumulate(weights, axis=-1)
        weights *= 0.5
        centres -= weights
        first = centres < _HALF
        first[..., 0], first[..., -1] = True, False  # neither side is empty
        sides = np.empty(coins.shape, dtype=np.bool_)
        sides.reshape(-1)[places] = first
        return np.where(sides == sides[..., :1], 1.0, -1.0)

    def _all_sides(self, posterior: Public) -> tuple[FloatArray, FloatArray] | None:
        if self.num_hypotheses > MOST_ORDERED:
            return None
        orders = all_orders(self.num_hypotheses).astype(np.float64)  # coins that come in every order
        sides, counts = np.unique(self._sides(orders, posterior), axis=0, return_counts=True)
        return sides, counts / len(orders)

    def _contrast(self, sides: FloatArray, posterior: Public) -> FloatArray:
        posterior = self._public(posterior)
        weights, first = np.maximum(posterior, UNLIKELY), sides > 0.0
        of_first = np.where(first, weights, 0.0)
        total_first = np.add.reduce(of_first, axis=-1, keepdims=True)
        total_second = np.add.reduce(weights - of_first, axis=-1, keepdims=True)
        return sides * weights / np.where(first, total_first, total_second)


class Pair(Comparison):
    """One hypothesis against another, the lower against the higher."""

    @property
    def num_public_coins(self) -> int:
        return 2

    def _contrast(self, sides: FloatArray, posterior: Public) -> FloatArray:
        return sides

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """All pairs with both answers."""
        sides = self._pairs()
        return np.concatenate([sides, -sides])

    def _pairs(self) -> FloatArray:
        """The sides of all pairs, ``(n, K)``."""
        return pair_sides(*np.triu_indices(self.num_hypotheses, 1), self.num_hypotheses)


class Scheffe(Pair):
    """A random pair of hypotheses: which of the two likes the label better?

    Public coins draw a pair. The user says which of the two gives the label the larger probability, a bit
    that is flipped with probability ``1 / (e^eps + 1)`` (Gopi et al. 2020). The message is -1 for the winner,
    +1 for the loser and 0 for the others.

    Example:
        K = 3, eps = 1, the pair {1, 3}: labels 0 and 1 speak for 1. The probability that 1 wins:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> np.exp(Scheffe(3, 3, 100).log_likelihood(np.array([-1.0, 0.0, 1.0]), table)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the pair does not depend on the label, and the bit is randomized response, ratio at most
    ``e^eps``.

    When to use it: hypothesis selection as in the literature. It is never blind: every pair is compared with
    probability ``2 / (K (K - 1))``. When not: for large K, where ``split`` asks about all in every round.
    """

    def _sides(self, coins: FloatArray, posterior: Public) -> FloatArray:
        one = integers(self.num_hypotheses, coins[..., 0])
        other = integers(self.num_hypotheses - 1, coins[..., 1])
        return pair_sides(one, other + (other >= one), self.num_hypotheses)

    def _all_sides(self, posterior: Public) -> tuple[FloatArray, FloatArray] | None:
        sides = self._pairs()
        return sides, uniform_distribution(len(sides))


class AdaptiveScheffe(AdaptiveChannel, Pair):
    """A pair of hypotheses that are both still likely: which one likes the label better?

    The pair is drawn from the public posterior, one after the other without replacement. The answer is a bit,
    flipped with probability ``1 / (e^eps + 1)``.

    Example:
        K = 3, posterior (0.5, 0.3, 0.2): the pair {1, 2} is drawn with probability
        ``0.5 * 0.3 / 0.5 + 0.3 * 0.5 / 0.7 = 0.514``; given the pair, messages are those of :class:`Scheffe`.

    Privacy: posterior and pair are public; the bit is randomized response, ratio at most ``e^eps``.

    When to use it: never blind, and about as good as ``adaptive-split`` for small K. When not: for large K
    ``adaptive-split`` learns faster.
    """

    def _sides(self, coins: FloatArray, posterior: Public) -> FloatArray:
        posterior = self._public(posterior)
        weights = np.broadcast_to(np.maximum(posterior, UNLIKELY), (*coins.shape[:-1], self.num_hypotheses))
        one = categorical(weights, coins[..., 0])
        others = np.where(np.arange(self.num_hypotheses) == one[..., None], 0.0, weights)
        return pair_sides(one, categorical(others, coins[..., 1]), self.num_hypotheses)

    def _all_sides(self, posterior: Public) -> tuple[FloatArray, FloatArray] | None:
        weights = np.maximum(self._public(posterior), UNLIKELY)
        others = (1.0 - np.eye(self.num_hypotheses)) @ weights  # without the cancellation of 1 - w
        one, other = np.triu_indices(self.num_hypotheses, 1)
        chances = weights[one] * weights[other] * (1.0 / others[one] + 1.0 / others[other])
        return self._pairs(), chances / weights.sum()


def pair_sides(one: IntArray, other: IntArray, num_hypotheses: int) -> FloatArray:
    """The sides of a pair: +1 on the lower, -1 on the higher."""
    hypotheses = np.arange(num_hypotheses)
    lower, higher = np.minimum(one, other)[..., None], np.maximum(one, other)[..., None]
    return (hypotheses == lower).astype(np.float64) - (hypotheses == higher)
