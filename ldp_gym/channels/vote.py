"""Votes: a label votes for the hypothesis that gives it the largest probability.

The channel ``vote`` sends a set of hypotheses that tends to hold the one voted for; ``wheel`` puts
them on a circle, and sends an arc that tends to cover it.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.bit import TIE
from ldp_gym.channels.listing import MOST_ORDERED, NUM_DRAWS, MessageList, all_orders
from ldp_gym.channels.subset_selection import SubsetChannel
from ldp_gym.channels.two_level import TwoLevelChannel, best_share, log_mixture, quadratic_losses
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    at,
    expectations,
    masses,
    mixture,
    per_table,
    uniform_distribution,
)
from ldp_gym.core.sampling import categorical

_CIRCLE_STEPS = 2.0**40
"""Number of grid points on the circle of :class:`Wheel`."""


@per_table
def votes(candidates: FloatArray) -> FloatArray:
    """Return the share of each label's vote that each hypothesis gets, ``(..., K, M)``.

    Hypotheses with equal probabilities share a vote evenly.

    Example:
        >>> votes(np.array([[0.6, 0.2, 0.2], [0.6, 0.1, 0.3]])).tolist()
        [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    """
    largest = np.maximum.reduce(candidates, axis=-2, keepdims=True)
    shares = (candidates >= largest * (1.0 - TIE)).astype(np.float64)
    shares /= np.add.reduce(shares, axis=-2, keepdims=True)
    return shares


def winners(candidates: FloatArray) -> IntArray:
    """Return the indices ``(..., J)`` of the hypotheses that get a vote from some label.

    J is the largest number of such hypotheses in any table of a batch. A table with fewer has
    hypotheses without votes at the end of its row.

    Example:
        >>> winners(np.array([[0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])).tolist()
        [1, 2]
    """
    gets_votes = votes(candidates).any(axis=-1)
    winners_first = np.argsort(~gets_votes, axis=-1, kind="stable")
    num_winners = np.count_nonzero(gets_votes, axis=-1).max()
    return winners_first[..., :num_winners]


def vote_laws_of_winners(candidates: FloatArray) -> FloatArray:
    """Return the law of the vote of a label drawn from each hypothesis, ``(..., K, J)``.

    Entry (k, j) is the probability, under ``f_k``, of a vote for the j-th of the J hypotheses that
    get votes (:func:`winners`).
    """
    shares = np.take_along_axis(votes(candidates), winners(candidates)[..., None], axis=-2)
    return np.einsum("...km,...jm->...kj", candidates, shares)


def cast_votes(candidates: FloatArray, labels: IntArray, coins: FloatArray) -> IntArray:
    """Draw the hypotheses that labels ``(...)`` vote for; private coins ``(...)`` break ties."""
    return categorical(masses(votes(candidates), labels), coins)


class Vote(SubsetChannel):
    """A random set of hypotheses that tends to hold the one with the largest probability.

    The label votes for ``v(y) = argmax_j f_j(x)[y]``; among equals a private coin decides. The
    message is a set of w hypotheses by subset selection, ``e^eps`` times likelier if it holds v(y),
    with w the best share ``r* K``, rounded. It is written as -1 in the set and +1 outside.

    Example:
        K = 3, eps = 1: w = 1, so the message names one hypothesis, the right one with probability
        ``e / (e + 2) = 0.576`` and each other with 0.212. Labels 0, 1, 2 vote for 1, 2, 3, and
        naming 1 has the probabilities

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([-1.0, 1.0, 1.0])
        >>> np.exp(Vote(3, 3, 100).log_likelihood(message, table)).round(3).tolist()
        [0.43, 0.321, 0.248]

    Privacy: a set has one probability if it holds the vote and ``e^-eps`` times that if not, and
    the vote is a function of the label and a coin.

    When to use it: hypotheses have their own labels, eps of 2 and more.

    When not: it can be blind, as :class:`Split` is; on that class's table Bayes pays 156 / 575 nats
    in 1,000 / 4,000 rounds.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def num_names(self) -> int:
        """Number of names: here the hypotheses, K."""
        return self.num_hypotheses

    @cached_property
    def size(self) -> int:
        """Number w of hypotheses in a set: ``r* K``, rounded, which tells most about a vote.

        ``r*`` (:func:`best_share`) is the best share of all possible votes that a message fits.
        """
        best_size = round(best_share(self.epsilon) * self.num_names)
        return min(max(1, best_size), self.num_names - 1)

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: those of the set, and one that decides between equals."""
        return super().num_uniforms + 1

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: a number per hypothesis, -1 in the set, +1 outside."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def _write(self, sets: FloatArray) -> Messages:
        """Convert sets ``(..., K)``, zeros and ones, to messages: -1 in the set, +1 outside."""
        return 1.0 - 2.0 * sets

    def _read(self, messages: Messages) -> FloatArray:
        """Convert messages ``(..., K)`` to sets: 1 for a hypothesis in the set, 0 for others."""
        return (messages < 0.0).astype(np.float64)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw the messages ``(..., K)``: sets that tend to hold the hypothesis voted for."""
        set_uniforms = uniforms[..., :-1]
        tie_coin = uniforms[..., -1]
        voted_for = cast_votes(candidates, np.asarray(labels), tie_coin)
        return self._write(self._draw(voted_for, set_uniforms))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote that goes into the message's set, ``(..., M)``."""
        return mixture(self._read(messages), votes(candidates))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        It is ``(a - b) sum_j V_k(j)^2 - 2 c_k(z)``, up to a constant. ``V_k(j)`` is the probability
        that a label of ``f_k`` votes for hypothesis j, and ``c_k(z)`` the probability that the set
        z holds this vote. A set holds the user's vote with probability a, and any other hypothesis
        with probability b.
        """
        rate_of_own, rate_of_other = self.agreement_rates
        squares = np.square(vote_laws_of_winners(candidates)).sum(axis=-1)
        chances = self._chances(messages, candidates, posterior)
        return (rate_of_own - rate_of_other) * squares - 2.0 * chances

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the K sets of w hypotheses that are neighbours on a circle in the order 0..K-1.

        They are enough: the density of a set takes two values, a factor ``e^eps`` apart, so the
        largest log ratio is eps, or 0 if all labels vote alike.
        """
        coins_in_order = np.arange(self.num_names) / self.num_names
        return self.messages_given_coins(coins_in_order, candidates)


class _ArcLaw(NamedTuple):
    """Law of the arc that a message of :class:`Wheel` reports, at given candidates.

    Attributes:
        length: length r of the arc on a circle of circumference 1, ``(..., 1)``.
        log_density: log density of the start of an arc that covers the hypothesis voted for,
            ``(..., 1)``; that of any other start is smaller by eps.
    """

    length: FloatArray
    log_density: FloatArray


class Wheel(TwoLevelChannel):
    """A noisy arc on a circle of hypotheses, which tends to cover the one voted for.

    The hypotheses divide a circle of circumference 1 into intervals, in public random order: the
    interval of a hypothesis is as long as the public probability of a vote for it
    (``v(y) = argmax_j f_j(x)[y]``, as in ``vote``), and its position is the middle. The user
    reports an arc of length r, ``e^eps`` times likelier if it covers the hypothesis that the label
    votes for. The message has, for each hypothesis, the distance from the start of the arc to its
    position, in (0, 1]: those up to r are covered.

    Example:
        K = 3, eps = 1, labels 0, 1, 2 vote for 1, 2, 3. The uniform mixture has intervals of 1/3,
        0.27 and 0.4, and an arc of 0.4, which covers the label's own hypothesis with probability
        ``0.4 e / (0.4 e + 0.6) = 0.644``. A message that covers only the first:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> Wheel(3, 3, 100).agreement(np.array([0.2, 0.5, 0.9]), table).tolist()
        [1.0, 0.0, 0.0]

    Privacy: the circle depends on public values only. An arc has one density if it covers the vote
    and ``e^-eps`` times that if not, so the ratio for two labels is at most ``e^eps``.

    When to use it: eps above 1, any M; on disjoint supports it comes closest to the information
    limit, of the non-adaptive channels here.

    When not: it can be blind, as :class:`Split` is; on that class's table Bayes pays 149 / 566 nats
    in 1,000 / 4,000 rounds.

    The base measure of :meth:`log_density` is the law of the order, times Lebesgue's for the arc's
    start.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms of a message: K + 3.

        K put the hypotheses in order; one each decides whether the arc covers the vote, where it
        starts, and which of several equal hypotheses gets the vote.
        """
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: the distance from the start of the arc to each hypothesis."""
        return gym.spaces.Box(0.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages whose distances are all positive."""
        return np.asarray((messages > 0.0).all(axis=-1))

    @per_table
    def _vote_probabilities(self, candidates: FloatArray) -> FloatArray:
        """Return the probability of a vote for each hypothesis, ``(..., K)``.

        The label is drawn from the uniform mixture of the candidates ``(..., K, M)``.
        """
        uniform = uniform_distribution(self.num_hypotheses)
        return expectations(votes(candidates), mixture(uniform, candidates))

    def _arc_law(self, vote_probabilities: FloatArray) -> _ArcLaw:
        """Return the length and log density of the arc, for vote probabilities ``(..., K)``.

        The length r is the best share ``r*`` of all votes that a message fits
        (:func:`best_share`). If a hypothesis gets a vote with a larger probability, r is that
        probability, up to 1/2. An arc that covers the vote has the density
        ``e^eps / (r e^eps + 1 - r)``.
        """
        largest = vote_probabilities.max(axis=-1, keepdims=True)
        length = np.clip(largest, best_share(self.epsilon), 0.5)

        # In logarithms, because e^eps may overflow.
        log_total = np.logaddexp(np.log(length) + self.epsilon, np.log1p(-length))
        return _ArcLaw(length, log_density=self.epsilon - log_total)

    def _positions(self, order_coins: FloatArray, vote_probabilities: FloatArray) -> FloatArray:
        """Return the positions of the hypotheses on the circle, ``(..., K)``, in [0, 1).

        In the order of their coins ``(..., K)`` the hypotheses take intervals as long as the
        probabilities of a vote for them. A position is the middle of such an interval.
        """
        order = order_coins.argsort(axis=-1)
        interval_lengths = np.broadcast_to(vote_probabilities, order_coins.shape)
        lengths_in_order = np.take_along_axis(interval_lengths, order, axis=-1)
        middles_in_order = np.cumsum(lengths_in_order, axis=-1) - lengths_in_order / 2.0

        positions = np.empty(order_coins.shape)
        np.put_along_axis(positions, order, middles_in_order, axis=-1)
        return _on_grid(positions)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw the messages ``(..., K)``: distances from the start of an arc to all hypotheses.

        Public coins order the hypotheses on the circle; private coins draw an arc that tends to
        cover the hypothesis that the label votes for.
        """
        order_coins = uniforms[..., :-3]
        cover_coin = uniforms[..., -3]
        start_coin = uniforms[..., -2]
        tie_coin = uniforms[..., -1]

        vote_probabilities = self._vote_probabilities(candidates)
        positions = self._positions(order_coins, vote_probabilities)
        voted_for = cast_votes(candidates, np.asarray(labels), tie_coin)
        position_of_vote = at(positions, np.broadcast_to(voted_for, positions.shape[:-1]))

        # An arc that covers the vote starts up to r before it, any other up to 1 - r behind it.
        arc = self._arc_law(vote_probabilities)
        length = arc.length[..., 0]
        covers = cover_coin < length * np.exp(arc.log_density[..., 0])
        start = position_of_vote + np.where(covers, -length, 1.0 - length) * start_coin
        return _distances_from(_on_grid(start)[..., None], positions)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote that the arc covers, ``(..., M)``."""
        arc = self._arc_law(self._vote_probabilities(candidates))
        return self._covered_votes(messages, candidates, arc)

    def _covered_votes(
        self, messages: Messages, candidates: FloatArray, arc: _ArcLaw
    ) -> FloatArray:
        """Return the share of each label's vote that the arc covers, ``(..., M)``.

        A hypothesis is covered if its distance from the start of the arc, which the message
        ``(..., K)`` has, is at most the length of the arc.
        """
        is_covered = (messages <= arc.length).astype(np.float64)
        return mixture(is_covered, votes(candidates))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """Return the log density of an arc that covers the hypothesis voted for, ``(..., 1)``."""
        return self._arc_law(self._vote_probabilities(candidates)).log_density

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the hypotheses' log-likelihoods, ``(..., K)``.

        They follow from the probability that the arc covers the vote of a label of ``f_k``. The
        method of the base class returns the same, but works out the law of the arc twice.
        """
        arc = self._arc_law(self._vote_probabilities(candidates))
        chances = expectations(candidates, self._covered_votes(messages, candidates, arc))
        return log_mixture(chances, arc.log_density, self.epsilon)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        It is that of :func:`quadratic_losses` given the order on the circle, which needs the
        integral of ``L c_k(z)^2`` over all starts of an arc z. ``c_k(z)`` is the probability that
        z covers the vote of a label of ``f_k``, and L the density of an arc that does. So the
        integral is a sum over pairs of votes: their probabilities, times the measure of the starts
        from which an arc covers both.
        """
        vote_laws = vote_laws_of_winners(candidates)
        arc = self._arc_law(self._vote_probabilities(candidates))
        voted_for = winners(candidates)
        voted_for = np.broadcast_to(voted_for, (*messages.shape[:-1], voted_for.shape[-1]))
        positions = np.take_along_axis(messages, voted_for, axis=-1)

        # The shorter way around the circle between two hypotheses that get votes, (..., J, J).
        differences = np.abs(positions[..., :, None] - positions[..., None, :])
        distances = np.minimum(differences, 1.0 - differences)
        starts_that_cover_both = np.maximum(arc.length[..., None] - distances, 0.0)

        sums_over_pairs = np.einsum(
            "...kj,...kj->...k", vote_laws, vote_laws @ starts_that_cover_both
        )
        squares = np.exp(arc.log_density) * sums_over_pairs
        chances = self._chances(messages, candidates, posterior)
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List messages for all orders of the hypotheses on the circle, or for random orders.

        An order determines the positions of the K hypotheses. When the start of the arc moves once
        around the circle, the set of covered hypotheses changes 2K times. So an order has 2K
        messages, one for each interval of starts with the same set, weighted by its length.
        """
        lists_all_orders = self.num_hypotheses <= MOST_ORDERED
        if lists_all_orders:
            order_coins = _coins_of_all_orders(self.num_hypotheses)
        else:
            order_coins = np.random.default_rng(0).random((NUM_DRAWS, self.num_hypotheses))
        vote_probabilities = self._vote_probabilities(candidates)
        positions = self._positions(order_coins, vote_probabilities)
        num_orders = len(positions)

        arc = self._arc_law(vote_probabilities)
        boundaries = _starts_where_coverage_changes(positions, arc.length)
        middle_starts = (boundaries[:, 1:] + boundaries[:, :-1]) / 2.0
        messages = _distances_from(middle_starts[..., None], positions[:, None])

        with np.errstate(divide="ignore"):  # two boundaries may coincide
            log_weights = np.log(np.diff(boundaries, axis=-1) / num_orders)
        return MessageList(
            messages.reshape(-1, self.num_hypotheses),
            log_weights.reshape(-1),
            draws=np.repeat(np.arange(num_orders), 2 * self.num_hypotheses),
            complete=lists_all_orders,
        )

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return K messages, whose arcs are centred on one hypothesis each, ``(K, K)``.

        The hypotheses are in the order 0..K-1 on the circle. These messages are enough: the density
        of an arc takes two values, a factor ``e^eps`` apart, so the largest log ratio is eps, or 0
        if all labels vote alike.
        """
        vote_probabilities = self._vote_probabilities(candidates)
        coins_in_order = np.arange(self.num_hypotheses, dtype=np.float64)
        positions = self._positions(coins_in_order, vote_probabilities)
        starts = positions[:, None] - self._arc_law(vote_probabilities).length / 2.0
        return _distances_from(starts, positions)


def _coins_of_all_orders(num_hypotheses: int) -> FloatArray:
    """Return coins ``((K - 1)!, K)`` that put the hypotheses on a circle in all possible orders.

    Orders that differ by a rotation have the same messages, so hypothesis 0 is always the first.

    Example:
        >>> _coins_of_all_orders(3).tolist()
        [[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]
    """
    orders_of_others = all_orders(num_hypotheses - 1) + 1.0
    return np.insert(orders_of_others, 0, 0.0, axis=1)


def _starts_where_coverage_changes(positions: FloatArray, length: FloatArray) -> FloatArray:
    """Return the starts at which an arc begins or ceases to cover a hypothesis, ``(n, 2K + 1)``.

    They are sorted, and the last is the first after one round, 1 later. An arc of length r covers a
    position from the start r before it until the start at the position itself.

    Args:
        positions: positions of the hypotheses on n circles of circumference 1, ``(n, K)``.
        length: length r of the arc, ``(1,)``.

    Example:
        >>> _starts_where_coverage_changes(np.array([[0.25, 0.75]]), np.array([0.125])).tolist()
        [[0.125, 0.25, 0.625, 0.75, 1.125]]
    """
    starts = np.concatenate([positions, positions - length], axis=-1) % 1.0
    starts = np.sort(starts, axis=-1)
    return np.concatenate([starts, starts[:, :1] + 1.0], axis=-1)


def _on_grid(positions: FloatArray) -> FloatArray:
    """Round positions on the circle down to a grid on which differences are exact floats.

    Otherwise the rounding of a distance would reveal the hypothesis that the user votes for.
    """
    return np.floor(positions * _CIRCLE_STEPS) / _CIRCLE_STEPS


def _distances_from(start: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the distances from a start to positions, forward around the circle, in (0, 1].

    The distance to the start itself is 1, a full round.

    Example:
        >>> _distances_from(np.array(0.75), np.array([0.75, 0.0, 0.5])).tolist()
        [1.0, 0.25, 0.75]
    """
    distance = positions - start
    distance -= np.floor(distance)
    return np.where(distance <= 0.0, 1.0, distance)
