"""Comparisons: one private bit says which of two sides of hypotheses likes the label better.

Public coins draw two sides A and B. The bit ``mean_{j in A} f_j(x)[y] > mean_{j in B} f_j(x)[y]``
goes through randomized response; where both means are equal a private coin decides. The message is
-1 on the side that won, +1 on the other and 0 elsewhere. The signs are not losses: the truth need
not win more often than others. A hypothesis is scored by how well it predicts the answer.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.base import AdaptiveChannel, Public
from ldp_gym.channels.bit import BitChannel, Questions
from ldp_gym.channels.listing import MOST_ORDERED, all_orders, all_subsets
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.sampling import integers

_HALF = 0.5 - 1e-9
"""Share of the posterior on the first side, with a tolerance for the rounding of sums."""


class Split(BitChannel):
    """A random half of the hypotheses against the rest: which side likes the label better?

    Public coins draw a half A of the hypotheses; B is the rest. The bit "A gives my label a larger
    mean probability than B" is flipped with probability ``1 / (e^eps + 1)``; the message is -1 on
    the side that won and +1 on the other.

    Example:
        K = 3, eps = 1 (flip probability 0.269), A = {1}, B = {2, 3}. The means are (0.6, 0.3, 0.1)
        and (0.2, 0.25, 0.55), so labels 0 and 1 speak for A. The probability of "A won" under each
        hypothesis:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([-1.0, 1.0, 1.0])
        >>> np.exp(Split(3, 3, 100).log_likelihood(message, table)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the sides do not depend on the label. Given the sides, a message has probability
    ``e^eps / (e^eps + 1)`` or ``1 / (e^eps + 1)``, so the ratio for two labels is at most
    ``e^eps``.

    When to use it: eps up to about 1, and any M. Above eps = 1 one bit is too little; ``wheel``
    says more.

    When not: it can be blind. Where a third hypothesis dominates two labels, both always count for
    the same side, and two hypotheses that differ only in these labels are never told apart. On the
    table ``[[.2, 0, .8], [0, .2, .8], [.5, .5, 0]]`` with five rows
    ``[.04 - .005i, .04 - .005i, .92 + .01i]`` (i = 0..4), truth 0, eps = 1, Bayes pays 150 / 566
    nats in 1,000 / 4,000 rounds, and so on. ``half-space`` is never blind.
    """

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: K, which draw a half of the hypotheses."""
        return self.num_hypotheses

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages with entries -1 and +1, one side being a half."""
        size_of_a_side = (messages > 0.0).sum(axis=-1)
        is_half = np.isin(size_of_a_side, [self._half, self.num_hypotheses - self._half])
        return two_sided(messages) & is_half

    @property
    def _half(self) -> int:
        """Number of hypotheses in a half: K/2, rounded down."""
        return self.num_hypotheses // 2

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the sides ``(..., K)``, +1 or -1, that public coins ``(..., K)`` draw.

        The hypotheses with the smallest coins are the half on one side.
        """
        last_of_half = self._half - 1
        largest_of_half = np.partition(coins, last_of_half, axis=-1)[..., last_of_half, None]
        sides = np.copysign(1.0, largest_of_half - coins)
        # The first hypothesis is on the positive side, so that a message has one reading.
        return sides * sides[..., :1]

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """Return all divisions into a half and the rest, with probabilities; None if too many."""
        halves = all_subsets(self.num_hypotheses, self._half)
        if halves is None:
            return None
        sides = 2.0 * halves - 1.0
        # As in a message, the first hypothesis is on the positive side.
        questions, counts = np.unique(sides * sides[:, :1], axis=0, return_counts=True)
        return Questions(questions, counts / len(halves))

    def _contrast(self, questions: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrast ``(..., K)`` of the mean over side A and the mean over side B.

        The coefficients are 1 / |A| on side A, the positive one, and -1 / |B| on side B.
        """
        if self.num_hypotheses == 2 * self._half:
            return questions / self._half
        surplus = np.einsum("...k->...", questions)[..., None]  # |A| - |B|
        size_of_a = (self.num_hypotheses + surplus) / 2.0
        size_of_b = self.num_hypotheses - size_of_a
        return questions / np.where(questions > 0.0, size_of_a, size_of_b)


class AdaptiveSplit(AdaptiveChannel, BitChannel):
    """Two sides of about equal posterior: which side likes the label better?

    The hypotheses are put in a public random order and cut where half of the public posterior is
    reached. The user compares the posterior-weighted mean probabilities of the label and answers
    with one bit, flipped with probability ``1 / (e^eps + 1)``. A hypothesis that has half of it
    stands against all others.

    Example:
        K = 3, eps = 1, posterior (0.5, 0.3, 0.2): hypothesis 1 has half and stands against {2, 3},
        whose weighted mean is (0.22, 0.28, 0.5). The probability of "1 won" under each hypothesis:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([-1.0, 1.0, 1.0])
        >>> posterior = np.array([0.5, 0.3, 0.2])
        >>> channel = AdaptiveSplit(3, 3, 100)
        >>> np.exp(channel.log_likelihood(message, table, posterior)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: posterior and sides are public, and the bit is randomized response, as in
        :class:`Split`.

    When to use it: rounds may depend on earlier messages, and eps is small (0.5) or K is large
    (above 100). When not: at eps above 1, where ``adaptive-groups`` says more than a bit.
    """

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages with two sides."""
        return two_sided(messages)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: K, which put the hypotheses in order."""
        return self.num_hypotheses

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the sides ``(..., K)``, +1 or -1, that public coins ``(..., K)`` draw.

        In the order of their coins the hypotheses divide [0, 1] into intervals as long as their
        weights in the public posterior. Those whose intervals have their middle below 1/2 are on
        one side.
        """
        posterior = self._public(posterior)
        # A hypothesis that has half of the posterior goes first, and is alone on its side.
        order = np.where(posterior >= 0.5, -1.0, coins).argsort(axis=-1)
        row_starts = np.arange(0, order.size, order.shape[-1])
        flat_index = order + row_starts.reshape(*order.shape[:-1], 1)
        if posterior.shape != coins.shape:
            posterior = np.broadcast_to(posterior, coins.shape)
        weights = posterior.reshape(-1)[flat_index]

        middles = np.add.accumulate(weights, axis=-1)
        weights *= 0.5
        middles -= weights
        on_first_side = middles < _HALF
        on_first_side[..., 0] = True  # neither side is empty
        on_first_side[..., -1] = False

        sides = np.empty(coins.shape, dtype=np.bool_)
        sides.reshape(-1)[flat_index] = on_first_side
        # The first hypothesis is on the positive side, so that a message has one reading.
        return np.where(sides == sides[..., :1], 1.0, -1.0)

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """Return the sides of all orders, with probabilities; None for many hypotheses."""
        if self.num_hypotheses > MOST_ORDERED:
            return None
        coins = all_orders(self.num_hypotheses).astype(np.float64)  # they come in every order
        asked = self._question(coins, candidates, posterior)
        questions, counts = np.unique(asked, axis=0, return_counts=True)
        return Questions(questions, counts / len(coins))

    def _contrast(self, questions: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrast ``(..., K)`` of the posterior-weighted means over the two sides.

        A coefficient is the hypothesis' share of its side's weight, negative on the second side.
        """
        weights = self._public_weights(posterior)
        on_first_side = questions > 0.0
        first_weights = np.where(on_first_side, weights, 0.0)
        total_of_first = np.add.reduce(first_weights, axis=-1, keepdims=True)
        total_of_second = np.add.reduce(weights - first_weights, axis=-1, keepdims=True)
        total_of_own_side = np.where(on_first_side, total_of_first, total_of_second)
        return questions * weights / total_of_own_side


class Scheffe(BitChannel):
    """A random pair of hypotheses: which of the two likes the label better?

    Public coins draw a pair. The user says which of the two gives the label the larger probability,
    a bit that is flipped with probability ``1 / (e^eps + 1)`` (Gopi et al. 2020). The message is -1
    for the winner, +1 for the loser and 0 for the others.

    Example:
        K = 3, eps = 1, the pair {1, 3}: labels 0 and 1 speak for 1. The probability that 1 wins:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([-1.0, 0.0, 1.0])
        >>> np.exp(Scheffe(3, 3, 100).log_likelihood(message, table)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the pair does not depend on the label, and the bit is randomized response, ratio at
    most ``e^eps``.

    When to use it: hypothesis selection as in the literature. It is never blind: every pair is
    compared with probability ``2 / (K (K - 1))``. When not: for large K, where ``split`` asks about
    all in every round.
    """

    num_public_coins = 2

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages with one winner and one loser."""
        one_winner_one_loser = np.repeat([-1.0, 0.0, 1.0], [1, self.num_hypotheses - 2, 1])
        return (np.sort(messages, axis=-1) == one_winner_one_loser).all(axis=-1)

    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the pairs ``(..., K)`` that public coins draw: +1, -1, and 0 elsewhere."""
        one = integers(self.num_hypotheses, coins[..., 0])
        other = integers(self.num_hypotheses - 1, coins[..., 1])
        other += other >= one  # of the K - 1 that are left
        return pair_sides(one, other, self.num_hypotheses)

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """Return the questions about all pairs of hypotheses, which are equally likely."""
        lower, higher = np.triu_indices(self.num_hypotheses, 1)
        questions = pair_sides(lower, higher, self.num_hypotheses)
        return Questions(questions, uniform_distribution(len(questions)))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return both answers for all pairs of hypotheses, ``(K (K - 1), K)``."""
        return self.list_messages(candidates).messages


def two_sided(messages: Messages) -> BoolArray:
    """Return a mask ``(...)`` of messages with entries -1 and +1, of which both occur."""
    only_signs = (np.abs(messages) == 1.0).all(axis=-1)
    both_occur = np.abs(messages.sum(axis=-1)) < messages.shape[-1]
    return only_signs & both_occur


def pair_sides(one: IntArray, other: IntArray, num_hypotheses: int) -> FloatArray:
    """Return questions ``(..., K)`` about pairs of hypotheses, given by their indices ``(...)``.

    They are +1 at the lower index, -1 at the higher one, and 0 elsewhere.

    Example:
        >>> pair_sides(np.array(2), np.array(0), num_hypotheses=4).tolist()
        [1.0, 0.0, -1.0, 0.0]
    """
    hypotheses = np.arange(num_hypotheses)
    lower = np.minimum(one, other)[..., None]
    higher = np.maximum(one, other)[..., None]
    return (hypotheses == lower).astype(np.float64) - (hypotheses == higher)
