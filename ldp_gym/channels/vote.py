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
    """Return the hypotheses ``(..., J)`` that labels vote for.

    J is the largest number of them in any table; others fill up where they are fewer.
    """
    gets_votes = votes(candidates).any(axis=-1)
    winners_first = np.argsort(~gets_votes, axis=-1, kind="stable")
    most = np.count_nonzero(gets_votes, axis=-1).max()
    return winners_first[..., :most]


def vote_laws_of_winners(candidates: FloatArray) -> FloatArray:
    """Return the probability that a label of ``f_k`` votes for :func:`winners`, ``(..., K, J)``."""
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
        """Number of names in a set, which tells most about a vote: ``r* K``, rounded."""
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
        return 1.0 - 2.0 * sets

    def _read(self, messages: Messages) -> FloatArray:
        return (messages < 0.0).astype(np.float64)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw a set of hypotheses that tends to hold the one that the label votes for."""
        set_uniforms = uniforms[..., :-1]
        tie_coin = uniforms[..., -1]
        voted_for = cast_votes(candidates, np.asarray(labels), tie_coin)
        return self._write(self._draw(voted_for, set_uniforms))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote for hypotheses in the message's set."""
        return mixture(self._read(messages), votes(candidates))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the quadratic scores of hypotheses, with their votes in place of their labels."""
        own, other = self.agreement_rates
        squares = np.square(vote_laws_of_winners(candidates)).sum(axis=-1)
        chances = self._chances(messages, candidates, posterior)
        return (own - other) * squares - 2.0 * chances

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the windows of one circle of names.

        A density takes two values, so that any log ratio is eps or 0.
        """
        in_order = np.arange(self.num_names) / self.num_names
        return self.messages_given_coins(in_order, candidates)


class _Arc(NamedTuple):
    """The arc that a message of :class:`Wheel` reports, at given candidates.

    Attributes:
        length: r, ``(..., 1)``.
        log_density: log density of an arc that covers the hypothesis voted for, ``(..., 1)``.
    """

    length: FloatArray
    log_density: FloatArray


class Wheel(TwoLevelChannel):
    """A noisy arc on a circle of hypotheses, which tends to cover the one voted for.

    Each hypothesis stands on a circle of circumference 1, in public random order, in the middle of
    a stretch as long as the public probability of a vote for it (``v(y) = argmax_j f_j(x)[y]``, as
    in ``vote``). The user reports an arc of length r, ``e^eps`` times likelier if it covers the
    hypothesis that the label votes for. The message says how far behind the start of the arc each
    hypothesis stands, in (0, 1]: those up to r are covered.

    Example:
        K = 3, eps = 1, labels 0, 1, 2 vote for 1, 2, 3. The uniform mixture has stretches (1/3,
        0.27, 0.4) and an arc of 0.4, which covers the label's own hypothesis with probability
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
        """Number of uniforms: K for places on the circle; for covering, the start and ties."""
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: distance of each hypothesis behind the start of the arc."""
        return gym.spaces.Box(0.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages whose distances are all positive."""
        return np.asarray((messages > 0.0).all(axis=-1))

    @per_table
    def _stretches(self, candidates: FloatArray) -> FloatArray:
        """Return the probability of a vote for each hypothesis under the mixture, ``(..., K)``."""
        uniform = uniform_distribution(self.num_hypotheses)
        return expectations(votes(candidates), mixture(uniform, candidates))

    def _arc(self, stretches: FloatArray) -> _Arc:
        """Return the arc for stretches ``(..., K)``.

        Its length is ``r*``; if one stretch is longer, the length of that stretch, up to 1/2.
        """
        longest = stretches.max(axis=-1, keepdims=True)
        length = np.clip(longest, best_share(self.epsilon), 0.5)
        # e^eps / (r e^eps + 1 - r), in logarithms.
        log_total = np.logaddexp(np.log(length) + self.epsilon, np.log1p(-length))
        return _Arc(length, self.epsilon - log_total)

    def _places(self, coins: FloatArray, stretches: FloatArray) -> FloatArray:
        """Return the hypotheses' places on the circle, ``(..., K)``, in the order of the coins."""
        order = coins.argsort(axis=-1)
        lengths = np.take_along_axis(np.broadcast_to(stretches, coins.shape), order, axis=-1)
        middles = np.cumsum(lengths, axis=-1) - lengths / 2.0
        places = np.empty(coins.shape)
        np.put_along_axis(places, order, middles, axis=-1)
        return _on_grid(places)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw the order of the hypotheses, and an arc that tends to cover the one voted for."""
        order_coins = uniforms[..., :-3]
        cover_coin = uniforms[..., -3]
        start_coin = uniforms[..., -2]
        tie_coin = uniforms[..., -1]

        stretches = self._stretches(candidates)
        places = self._places(order_coins, stretches)
        voted_for = cast_votes(candidates, np.asarray(labels), tie_coin)
        place = at(places, np.broadcast_to(voted_for, places.shape[:-1]))

        # An arc that covers the place starts up to r before it, any other up to 1 - r behind it.
        arc = self._arc(stretches)
        length = arc.length[..., 0]
        covers = cover_coin < length * np.exp(arc.log_density[..., 0])
        start = place + np.where(covers, -length, 1.0 - length) * start_coin
        return _distances_behind(_on_grid(start)[..., None], places)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote for hypotheses that the arc covers."""
        arc = self._arc(self._stretches(candidates))
        return self._covered(messages, candidates, arc)

    def _covered(self, messages: Messages, candidates: FloatArray, arc: _Arc) -> FloatArray:
        """Return the share of each label's vote for covered hypotheses, ``(..., M)``."""
        is_covered = (messages <= arc.length).astype(np.float64)
        return mixture(is_covered, votes(candidates))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """Return the log density of an arc that covers the hypothesis voted for."""
        return self._arc(self._stretches(candidates)).log_density

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """See :meth:`Channel.log_likelihood`."""
        # As in the base class, but the arc is worked out once.
        arc = self._arc(self._stretches(candidates))
        chances = expectations(candidates, self._covered(messages, candidates, arc))
        return log_mixture(chances, arc.log_density, self.epsilon)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the quadratic scores of the arc, given the order of the hypotheses."""
        laws = vote_laws_of_winners(candidates)
        arc = self._arc(self._stretches(candidates))
        names = winners(candidates)
        names = np.broadcast_to(names, (*messages.shape[:-1], names.shape[-1]))
        places = np.take_along_axis(messages, names, axis=-1)

        # The measure of the starts from which an arc covers two hypotheses, (..., J, J).
        differences = np.abs(places[..., :, None] - places[..., None, :])
        distances = np.minimum(differences, 1.0 - differences)
        covers_two = np.maximum(arc.length[..., None] - distances, 0.0)

        chances = self._chances(messages, candidates, posterior)
        squares = np.exp(arc.log_density) * np.einsum("...kj,...kj->...k", laws, laws @ covers_two)
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List arcs for all orders of the hypotheses, or for random ones.

        For each order there is one arc per interval of starts that cover the same hypotheses.
        """
        complete = self.num_hypotheses <= MOST_ORDERED
        if complete:
            # Where on the circle the first hypothesis stands makes no difference.
            orders_of_others = all_orders(self.num_hypotheses - 1) + 1.0
            coins = np.insert(orders_of_others, 0, 0.0, axis=1)
        else:
            coins = np.random.default_rng(0).random((NUM_DRAWS, self.num_hypotheses))
        stretches = self._stretches(candidates)
        places = self._places(coins, stretches)

        # An arc begins or ceases to cover a hypothesis where it starts at its place, or r before.
        arc = self._arc(stretches)
        ends = np.concatenate([places, places - arc.length], axis=-1) % 1.0
        ends = np.sort(ends, axis=-1)
        ends = np.concatenate([ends, ends[:, :1] + 1.0], axis=-1)
        starts = (ends[:, 1:] + ends[:, :-1]) / 2.0
        messages = _distances_behind(starts[..., None], places[:, None])

        with np.errstate(divide="ignore"):
            log_weights = np.log(np.diff(ends, axis=-1) / len(places))
        draws = np.repeat(np.arange(len(places)), 2 * self.num_hypotheses)
        messages = messages.reshape(-1, self.num_hypotheses)
        return MessageList(messages, log_weights.reshape(-1), draws, complete)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return an arc around each hypothesis of one circle.

        A density takes two values, so that any log ratio is eps or 0.
        """
        stretches = self._stretches(candidates)
        in_order = np.arange(self.num_hypotheses, dtype=np.float64)
        places = self._places(in_order, stretches)
        starts = places[:, None] - self._arc(stretches).length / 2.0
        return _distances_behind(starts, places)


def _on_grid(places: FloatArray) -> FloatArray:
    """Round places to a grid on which differences are exact.

    Rounded differences would reveal the place from which the arc was drawn.
    """
    return np.floor(places * _CIRCLE_STEPS) / _CIRCLE_STEPS


def _distances_behind(start: FloatArray, places: FloatArray) -> FloatArray:
    """Return the distances of places behind a start on the circle, in (0, 1].

    Example:
        >>> _distances_behind(np.array(0.75), np.array([0.75, 0.0, 0.5])).tolist()
        [1.0, 0.25, 0.75]
    """
    distance = places - start
    distance -= np.floor(distance)
    return np.where(distance <= 0.0, 1.0, distance)
