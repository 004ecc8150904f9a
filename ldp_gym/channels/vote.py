"""Votes: a label votes for the hypothesis that gives it the largest probability; equals share the vote.

The channel ``vote`` sends a set of hypotheses that tends to hold the one voted for; ``wheel`` puts
them on a circle, and sends an arc that tends to cover it.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

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
    """Share of each label's vote that each hypothesis gets, ``(..., K, M)``; equals share it evenly.

    Example:
        >>> votes(np.array([[0.6, 0.2, 0.2], [0.6, 0.1, 0.3]])).tolist()
        [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    """
    largest = np.maximum.reduce(candidates, axis=-2, keepdims=True)
    shares = (candidates >= largest * (1.0 - TIE)).astype(np.float64)
    shares /= np.add.reduce(shares, axis=-2, keepdims=True)
    return shares


def winners(candidates: FloatArray) -> IntArray:
    """The hypotheses ``(..., J)`` that labels vote for, filled up with others where they are fewer."""
    wins = votes(candidates).any(axis=-1)
    return np.argsort(~wins, axis=-1, kind="stable")[..., : np.count_nonzero(wins, axis=-1).max()]


def vote_laws_of_winners(candidates: FloatArray) -> FloatArray:
    """Probability that a label of hypothesis k votes for each of :func:`winners`, ``(..., K, J)``."""
    shares = np.take_along_axis(votes(candidates), winners(candidates)[..., None], axis=-2)
    return np.einsum("...km,...jm->...kj", candidates, shares)


def cast_votes(candidates: FloatArray, labels: IntArray, coins: FloatArray) -> IntArray:
    """The hypotheses that labels ``(...)`` vote for; private coins ``(...)`` decide where equals share."""
    return categorical(masses(votes(candidates), labels), coins)


class Vote(SubsetChannel):
    """A random set of hypotheses that probably holds the one that likes the label best.

    The label votes for ``v(y) = argmax_j f_j(x)[y]``; among equals a private coin decides. The
    message is a set of w hypotheses by subset selection, ``e^eps`` times likelier if it holds v(y),
    with w the best share ``r* K``, rounded. It is written as -1 in the set and +1 outside.

    Example:
        K = 3, eps = 1: w = 1, so the message names one hypothesis, the right one with probability
        ``e / (e + 2) = 0.576`` and each other with 0.212. Labels 0, 1, 2 vote for 1, 2, 3, and
        naming 1 has the probabilities

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> np.exp(Vote(3, 3, 100).log_likelihood(np.array([-1.0, 1.0, 1.0]), table)).round(3).tolist()
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
        """Number of names in a set: ``r* K``, rounded, which tells most about a vote; from 1 to K - 1."""
        return min(max(1, round(best_share(self.epsilon) * self.num_names)), self.num_names - 1)

    @property
    def num_uniforms(self) -> int:
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
        chosen = cast_votes(candidates, np.asarray(labels), uniforms[..., -1])
        return self._write(self._draw(chosen, uniforms[..., :-1]))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        return mixture(self._read(messages), votes(candidates))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Quadratic score of each hypothesis, with its votes in place of its labels."""
        own, other = self.agreement_rates
        squares = (own - other) * np.square(vote_laws_of_winners(candidates)).sum(axis=-1)
        return squares - 2.0 * self._chances(messages, candidates, posterior)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """A window of names that slides around: a density takes two values, so any ratio is eps or 0."""
        return self.messages_given_coins(np.arange(self.num_names) / self.num_names, candidates)


class Wheel(TwoLevelChannel):
    """A noisy arc on a circle of hypotheses, which probably covers the one that likes the label best.

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
        """Number of uniforms: K for places on the circle; one each for covering, the arc's start and ties."""
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: distance of each hypothesis behind the start of the arc."""
        return gym.spaces.Box(0.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def possible(self, messages: Messages) -> BoolArray:
        """Mask ``(...)`` of messages whose distances are all positive."""
        return np.asarray((messages > 0.0).all(axis=-1))

    @per_table
    def _stretches(self, candidates: FloatArray) -> FloatArray:
        """Probability ``(..., K)`` of a vote for each hypothesis under the uniform mixture."""
        uniform = uniform_distribution(self.num_hypotheses)
        return expectations(votes(candidates), mixture(uniform, candidates))

    def _arc(self, stretches: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The arc's length r, and the log density of an arc that covers: ``(..., 1)`` each.

        ``r*``, unless one hypothesis has more than that: then as much, up to a half.
        """
        arc = np.clip(stretches.max(axis=-1, keepdims=True), best_share(self.epsilon), 0.5)
        return arc, self.epsilon - np.logaddexp(np.log(arc) + self.epsilon, np.log1p(-arc))

    def _places(self, coins: FloatArray, stretches: FloatArray) -> FloatArray:
        """Places of the hypotheses on the circle when uniforms ``(..., K)`` have put them in order."""
        order = coins.argsort(axis=-1)
        lengths = np.take_along_axis(np.broadcast_to(stretches, coins.shape), order, axis=-1)
        places = np.empty(coins.shape)
        np.put_along_axis(places, order, np.cumsum(lengths, axis=-1) - lengths / 2.0, axis=-1)
        return _on_grid(places)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        stretches = self._stretches(candidates)
        places = self._places(uniforms[..., :-3], stretches)
        chosen = cast_votes(candidates, np.asarray(labels), uniforms[..., -1])
        arc, log_density = (side[..., 0] for side in self._arc(stretches))
        covers = uniforms[..., -3] < arc * np.exp(log_density)
        chosen = np.broadcast_to(chosen, places.shape[:-1])
        start = at(places, chosen) + np.where(covers, -arc, 1.0 - arc) * uniforms[..., -2]
        return _behind(places, _on_grid(start)[..., None])

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        arc, _ = self._arc(self._stretches(candidates))
        return mixture((messages <= arc).astype(np.float64), votes(candidates))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        return self._arc(self._stretches(candidates))[1]

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        arc, log_density = self._arc(self._stretches(candidates))
        covered = mixture((messages <= arc).astype(np.float64), votes(candidates))
        return log_mixture(expectations(candidates, covered), log_density, self.epsilon)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        laws, names = vote_laws_of_winners(candidates), winners(candidates)
        arc, log_density = self._arc(self._stretches(candidates))
        names = np.broadcast_to(names, (*messages.shape[:-1], names.shape[-1]))
        places = np.take_along_axis(messages, names, axis=-1)
        apart = np.abs(places[..., :, None] - places[..., None, :])
        # How many of the starts make an arc cover both of two hypotheses, (..., J, J).
        both = np.maximum(arc[..., None] - np.minimum(apart, 1.0 - apart), 0.0)
        squares = np.exp(log_density) * np.einsum("...kj,...kj->...k", laws, laws @ both)
        return quadratic_losses(
            self._chances(messages, candidates, posterior), squares, self.epsilon
        )

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """For all orders, or random ones, an arc per interval of starts that cover the same hypotheses."""
        num_hypotheses, stretches = self.num_hypotheses, self._stretches(candidates)
        complete = num_hypotheses <= MOST_ORDERED
        if complete:  # where on the circle the first one stands says nothing
            coins = np.insert(all_orders(num_hypotheses - 1) + 1.0, 0, 0.0, axis=1)
        else:
            coins = np.random.default_rng(0).random((NUM_DRAWS, num_hypotheses))
        places = self._places(coins, stretches)
        ends = np.sort(
            np.concatenate([places, places - self._arc(stretches)[0]], axis=-1) % 1.0, axis=-1
        )
        ends = np.concatenate([ends, ends[:, :1] + 1.0], axis=-1)
        messages = _behind(places[:, None], (ends[:, 1:, None] + ends[:, :-1, None]) / 2.0)
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.diff(ends, axis=-1) / len(places))
        draws = np.repeat(np.arange(len(places)), 2 * num_hypotheses)
        return MessageList(
            messages.reshape(-1, num_hypotheses), log_weights.reshape(-1), draws, complete
        )

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """An arc around each hypothesis: a density takes two values, so any ratio is eps or 0."""
        stretches = self._stretches(candidates)
        places = self._places(np.arange(self.num_hypotheses, dtype=np.float64), stretches)
        return _behind(places, places[:, None] - self._arc(stretches)[0] / 2.0)


def _on_grid(places: FloatArray) -> FloatArray:
    """Places on a grid with exact differences: rounded ones would reveal whose place the arc is at."""
    return np.floor(places * _CIRCLE_STEPS) / _CIRCLE_STEPS


def _behind(places: FloatArray, start: FloatArray) -> FloatArray:
    """Distances of places behind the start on the circle, in (0, 1]."""
    distance = places - start
    distance -= np.floor(distance)
    return np.where(distance <= 0.0, 1.0, distance)
