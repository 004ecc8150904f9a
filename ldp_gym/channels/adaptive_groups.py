"""Groups of hypotheses of about equal posterior: the message names the one that likes the label best.

On disjoint supports a message tells most if its group has the share r* of the posterior
(:func:`ldp_gym.theory.best_share`), so there are about ``1 / r*`` groups, and fewer when one hypothesis has
more than that. Of several numbers of groups the one that leaves the least expected uncertainty is taken.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import LEAST_PUBLIC_WEIGHT, AdaptiveChannel, Public
from ldp_gym.channels.listing import MOST_ORDERED, MessageList, all_orders
from ldp_gym.channels.two_level import TwoLevelChannel, best_share, quadratic_losses
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    expectations,
    masses,
    mixture,
)

_EQUAL_MEANS = 1e-9
"""Differences below this are ties: the last bit depends on the shape of a batch, and must not decide."""


class AdaptiveGroups(AdaptiveChannel, TwoLevelChannel):
    """The group of hypotheses that likes the label best, out of a few groups of equal posterior.

    The hypotheses are dealt into g groups, the likely ones first, each to the group with the least of the
    public posterior so far. The user names the group that gives the label the largest posterior-weighted mean
    probability, with probability ``e^eps / (e^eps + g - 1)``, or any other. The message lists each
    hypothesis' group, and last the group named.

    Example:
        K = 3, eps = 1, posterior (0.6, 0.25, 0.15): two groups, {1} and {2, 3}. The weighted mean of the
        second is (0.225, 0.288, 0.488), so labels 0 and 1 speak for the first. Naming the first:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message, posterior = np.array([0, 1, 1, 0]), np.array([0.6, 0.25, 0.15])
        >>> np.exp(AdaptiveGroups(3, 3, 100).log_likelihood(message, table, posterior)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the groups depend on public values only, and any group is named with one of two probabilities,
    a factor of ``e^eps`` apart.

    When to use it: rounds may depend on earlier messages and eps is 1 or more; on 8 or 32 disjoint supports
    no other channel here is as close to the limit. When not: at eps of 0.5 or less, or K above 100, take
    ``adaptive-split``.

    The base measure of :meth:`log_density` is the law of the groups, times counting their names.
    """

    free_of_num_labels: ClassVar[bool] = True

    @cached_property
    def sizes(self) -> list[int]:
        """Possible numbers of groups: 2, 3, 5, 9, ... up to ``min(1 / r*, K)``, rounded, at least 2."""
        share = max(best_share(self.epsilon), 1.0 / self.num_hypotheses)
        most = max(2, round(1.0 / share))
        steps = (2**power + 1 for power in range(most.bit_length()))
        return [*(size for size in steps if size < most), most]

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: K blur the order of dealing; one each for truth, other group and ties."""
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.MultiDiscrete:
        """Space of messages: the group of each hypothesis, then the group that is named."""
        return gym.spaces.MultiDiscrete([self.sizes[-1]] * (self.num_hypotheses + 1))

    def possible(self, messages: Messages) -> BoolArray:
        """Mask ``(...)`` of divisions into a possible number of groups, none empty, of which one is named."""
        groups = np.sort(messages[..., :-1], axis=-1)
        filled = (groups[..., 0] == 0) & (np.diff(groups, axis=-1) <= 1).all(axis=-1)
        return (
            filled
            & np.isin(groups[..., -1] + 1, self.sizes)
            & (messages[..., -1] <= groups[..., -1])
        )

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        groups = self._divide(uniforms[..., :-3], posterior)
        liked = masses(candidates, np.asarray(labels))
        count = np.maximum.reduce(groups, axis=-1) + 1
        means = np.einsum("g...k,...k->g...", self._shares(groups, posterior), liked)
        winners = np.cumsum(_winners(means, count), axis=0)
        right = (winners > (uniforms[..., -1] * winners[-1]).astype(np.int64)).argmax(axis=0)
        wrong = (uniforms[..., -2] * (count - 1)).astype(np.int64)
        wrong += wrong >= right
        named = np.where(uniforms[..., -3] < np.exp(self._log_right)[count], right, wrong)
        return np.concatenate([groups, named[..., None]], axis=-1)

    @cached_property
    def _log_right(self) -> FloatArray:
        """Log probability of naming the right group, indexed by the number of groups."""
        return -np.log1p(np.maximum(np.arange(self.sizes[-1] + 1) - 1, 1) * math.exp(-self.epsilon))

    def _divide(self, coins: FloatArray, posterior: Public) -> IntArray:
        """Group of each hypothesis, ``(..., K)``, when uniforms ``(..., K)`` blur the order of turns.

        It takes the number of groups after which the posterior is expected to be most certain.
        """
        weights = np.broadcast_to(self._public_weights(posterior), coins.shape)
        return self._divide_in_turn((-weights * (0.5 + coins)).argsort(axis=-1), weights)

    def _divide_in_turn(self, turns: IntArray, weights: FloatArray) -> IntArray:
        """Group of each hypothesis, ``(..., K)``, when they are dealt in the given order."""
        # Hypotheses by games, (K, B), from here on: the long axis is the last.
        by_game = weights.reshape(-1, self.num_hypotheses).T
        places = turns.reshape(by_game.T.shape).T * by_game.shape[1] + np.arange(by_game.shape[1])
        weights_in_turn = by_game.reshape(-1)[places]
        roots = np.sqrt(weights_in_turn)
        divisions = _assign(weights_in_turn, self.sizes)
        uncertainties = [
            self._expected_uncertainty(roots, load, members) for load, members in divisions
        ]
        chosen, least = divisions[0][1].argmax(axis=0), uncertainties[0]
        for (_, members), uncertainty in zip(divisions[1:], uncertainties[1:], strict=True):
            better = uncertainty < least - _EQUAL_MEANS
            chosen = np.where(better, members.argmax(axis=0), chosen)
            least = np.where(better, uncertainty, least)
        groups = np.empty(weights_in_turn.shape, dtype=np.int64)
        groups.reshape(-1)[places] = chosen
        return groups.T.reshape(weights.shape)

    def _expected_uncertainty(
        self, roots: FloatArray, load: FloatArray, members: BoolArray
    ) -> FloatArray:
        """The expected sum of the square roots of the next posterior, if supports are disjoint, ``(B,)``.

        That is ``sum_g sqrt(p_g) sum_k sqrt(w_k q_g(k))``, where group g is named with probability ``q_g(k)``
        if k is the truth, and with ``p_g`` on average. Entropy in its place asks too much about the likeliest
        hypothesis.
        """
        ratio, root = math.exp(-self.epsilon), math.exp(-self.epsilon / 2.0)
        spread = (1.0 - root) * np.einsum("kb,gkb->gb", roots, members)
        spread += root * np.add.reduce(roots, axis=0)
        spread *= np.sqrt(ratio + (1.0 - ratio) * load)
        return np.add.reduce(spread, axis=0) * math.exp(self._log_right[len(load)])

    def _shares(self, groups: IntArray, posterior: Public) -> FloatArray:
        """Weight of each hypothesis in the mean of each group, ``(groups, ..., K)``."""
        numbers = np.arange(self.sizes[-1]).reshape(-1, *[1] * groups.ndim)
        shares = self._public_weights(posterior) * (groups == numbers)
        shares /= np.maximum(np.add.reduce(shares, axis=-1, keepdims=True), LEAST_PUBLIC_WEIGHT)
        return shares

    def _votes(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> tuple[FloatArray, FloatArray]:
        """Each group's share of labels' votes, ``(groups, ..., M)``; 1 for the named ``(groups, ..., 1)``."""
        groups = messages[..., :-1]
        count = np.maximum.reduce(groups, axis=-1, keepdims=True) + 1
        winners = _winners(mixture(self._shares(groups, posterior), candidates), count).astype(
            np.float64
        )
        winners /= np.add.reduce(winners, axis=0)
        named = np.arange(len(winners)).reshape(-1, *[1] * groups.ndim) == messages[..., -1:]
        return winners, named.astype(np.float64)

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """The log probability of naming the right one of a message's groups, ``(..., 1)``."""
        return self._log_right[np.maximum.reduce(messages[..., :-1], axis=-1, keepdims=True) + 1]

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        winners, named = self._votes(messages, candidates, posterior)
        return np.add.reduce(winners * named, axis=0)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        winners, named = self._votes(messages, candidates, posterior)
        chances = np.stack([expectations(candidates, group) for group in winners])
        right = np.exp(self._log_fits(messages, candidates, posterior))
        squares = right * np.add.reduce(np.square(chances), axis=0)
        return quadratic_losses(np.add.reduce(chances * named, axis=0), squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """All divisions into groups, or random ones, with one message per group."""
        if self.num_hypotheses > MOST_ORDERED:
            return self._list_some(candidates, posterior)
        weights, turns = self._public_weights(posterior), all_orders(self.num_hypotheses)
        groups = self._divide_in_turn(turns, np.broadcast_to(weights, turns.shape))
        groups, which = np.unique(groups, axis=0, return_inverse=True)
        messages, draws = _name_each(groups)
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.bincount(which.reshape(-1), _order_chances(turns, weights)))[
                draws
            ]
        return MessageList(messages, log_weights, draws, complete=True)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: K, which blur the order in which the hypotheses are dealt."""
        return self.num_hypotheses

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Messages that name each group of the division that the coins deal."""
        return _name_each(self._divide(coins, posterior)[None])[0]

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """A hundred divisions, a message per group: a density takes two values, so any ratio is eps or 0."""
        coins = np.random.default_rng(0).random((100, self.num_hypotheses))
        return _name_each(np.unique(self._divide(coins, posterior), axis=0))[0]


def _assign(weights: FloatArray, sizes: list[int]) -> list[tuple[FloatArray, BoolArray]]:
    """Deal hypotheses of weights ``(K, B)`` in turn to the lightest group, for each number of groups.

    Returns, for each number g, the groups' weights, ``(g, B)``, and who is in them, ``(g, K, B)``.
    """
    numbers = np.arange(sizes[-1])[:, None]
    # All numbers of groups at once; a group too many is never the lightest.
    load = np.where(numbers < np.reshape(sizes, (-1, 1, 1)), 0.0, np.inf)
    load = np.repeat(load, weights.shape[1], axis=-1)
    members = np.empty((len(weights), *load.shape), dtype=np.bool_)
    for weight, lightest in zip(weights, members, strict=True):
        first = (
            load <= np.minimum.reduce(load, axis=1, keepdims=True) * (1.0 + _EQUAL_MEANS)
        ).argmax(axis=1)
        np.equal(numbers, first[:, None], out=lightest)
        load += weight * lightest
    members = members.transpose(1, 2, 0, 3)
    return [(load[i, :size], members[i, :size]) for i, size in enumerate(sizes)]


def _winners(means: FloatArray, count: IntArray) -> BoolArray:
    """Mask of the groups, among the first ``count``, with the largest of the means ``(groups, ...)``."""
    numbers = np.arange(len(means)).reshape(-1, *[1] * (means.ndim - 1))
    return (means >= np.maximum.reduce(means, axis=0) * (1.0 - _EQUAL_MEANS)) & (numbers < count)


def _name_each(divisions: IntArray) -> tuple[IntArray, IntArray]:
    """Messages that name each group of divisions ``(n, K)``, and the number of each one's division."""
    counts = divisions.max(axis=-1) + 1
    numbers = np.repeat(np.arange(len(divisions)), counts)
    names = np.concatenate([np.arange(count) for count in counts])
    return np.concatenate([divisions[numbers], names[:, None]], axis=-1), numbers


def _order_chances(orders: IntArray, weights: FloatArray) -> FloatArray:
    """Probability of each order ``(n, K)`` of independent numbers, uniform in ``[w_k / 2, 3 w_k / 2]``.

    Numbers between two neighbouring ends come in any order with equal probability. So an order is cut in all
    ways into what lies in the highest interval, the next, and so on.
    """
    num_hypotheses = len(weights)
    ends = np.unique(np.concatenate([weights / 2.0, weights * 1.5]))[::-1]
    # Probability that the first n of an order lie in the intervals so far, (orders, n).
    chances = np.zeros((len(orders), num_hypotheses + 1))
    chances[:, 0] = 1.0
    for high, low in pairwise(ends):
        spans = (weights * 1.5 >= high) & (weights / 2.0 <= low)
        inside = np.where(spans, (high - low) / weights, 0.0)[orders]
        after = chances.copy()
        for first in range(num_hypotheses):
            run = chances[:, first].copy()
            for last in range(first, num_hypotheses):
                run *= inside[:, last] / (last - first + 1)
                after[:, last + 1] += run
        chances = after
    return chances[:, -1]
