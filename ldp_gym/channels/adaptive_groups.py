"""Groups of hypotheses of equal posterior: a message names the group that fits the label best.

On disjoint supports a message tells most if its group has the share r* of the posterior
(:func:`ldp_gym.theory.best_share`). So there are about ``1 / r*`` groups, and fewer if one
hypothesis has more than that share. Of several numbers of groups the one that leaves the least
expected uncertainty is taken.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, NamedTuple

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
"""Difference below which numbers count as equal: their last bit depends on the batch."""


class _Division(NamedTuple):
    """Hypotheses that are dealt into g groups, in each of B games.

    Attributes:
        loads: weights of the groups, ``(g, B)``.
        members: whether a hypothesis is in a group, ``(g, K, B)``; hypotheses in the order of
            turns.
    """

    loads: FloatArray
    members: BoolArray


class _Votes(NamedTuple):
    """Votes of the labels for the groups of messages.

    Attributes:
        shares: each group's share of a label's vote, ``(groups, ..., M)``.
        is_named: 1 for the group that the message names, else 0, ``(groups, ..., 1)``.
    """

    shares: FloatArray
    is_named: FloatArray


class AdaptiveGroups(AdaptiveChannel, TwoLevelChannel):
    """The group of hypotheses that gives the label most probability, out of a few groups.

    The hypotheses are dealt into g groups, the likely ones first, each to the group with the least
    of the public posterior so far. The user names the group that gives the label the largest
    posterior-weighted mean probability, with probability ``e^eps / (e^eps + g - 1)``, or any other.
    The message lists each hypothesis' group, and last the group named.

    Example:
        K = 3, eps = 1, posterior (0.6, 0.25, 0.15): two groups, {1} and {2, 3}. The weighted mean
        of the second is (0.225, 0.288, 0.488), so labels 0 and 1 speak for the first. Naming the
        first:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> message = np.array([0, 1, 1, 0])
        >>> posterior = np.array([0.6, 0.25, 0.15])
        >>> channel = AdaptiveGroups(3, 3, 100)
        >>> np.exp(channel.log_likelihood(message, table, posterior)).round(3).tolist()
        [0.685, 0.592, 0.361]

    Privacy: the groups depend on public values only, and any group is named with one of two
    probabilities, a factor of ``e^eps`` apart.

    When to use it: rounds may depend on earlier messages and eps is 1 or more; on 8 or 32 disjoint
    supports no other channel here is as close to the limit. When not: at eps of 0.5 or less, or K
    above 100, take ``adaptive-split``.

    The base measure of :meth:`log_density` is the law of the groups, times counting their names.
    """

    free_of_num_labels: ClassVar[bool] = True

    @cached_property
    def sizes(self) -> list[int]:
        """Possible numbers of groups: 2, 3, 5, 9, ..., and last the largest, which is 2 or more.

        The largest is ``min(1 / r*, K)``, rounded.
        """
        share = max(best_share(self.epsilon), 1.0 / self.num_hypotheses)
        largest = max(2, round(1.0 / share))
        powers_and_one = [2**power + 1 for power in range(largest.bit_length())]
        return [size for size in powers_and_one if size < largest] + [largest]

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: K for the order of dealing; for the truth, another group and ties."""
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.MultiDiscrete:
        """Space of messages: the group of each hypothesis, then the group that is named."""
        return gym.spaces.MultiDiscrete([self.sizes[-1]] * (self.num_hypotheses + 1))

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages that can be sent.

        The number of groups is possible, none is empty, and one of them is named.
        """
        groups = np.sort(messages[..., :-1], axis=-1)
        last_group = groups[..., -1]
        none_empty = (groups[..., 0] == 0) & (np.diff(groups, axis=-1) <= 1).all(axis=-1)
        is_possible_number = np.isin(last_group + 1, self.sizes)
        names_a_group = messages[..., -1] <= last_group
        return none_empty & is_possible_number & names_a_group

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Deal the hypotheses into groups, and name the label's group or another one."""
        order_coins = uniforms[..., :-3]
        truth_coin = uniforms[..., -3]
        other_group_coin = uniforms[..., -2]
        tie_coin = uniforms[..., -1]

        groups = self._divide(order_coins, posterior)
        num_groups = np.maximum.reduce(groups, axis=-1) + 1

        # The right group has the largest mean probability of the label. Of several with the largest
        # mean a coin picks one.
        label_masses = masses(candidates, np.asarray(labels))
        shares = self._shares(groups, posterior)
        means = np.einsum("g...k,...k->g...", shares, label_masses)
        num_winners_so_far = np.cumsum(_winners(means, num_groups), axis=0)
        winner = (tie_coin * num_winners_so_far[-1]).astype(np.int64)
        right = (num_winners_so_far > winner).argmax(axis=0)

        wrong = (other_group_coin * (num_groups - 1)).astype(np.int64)
        wrong += wrong >= right
        truthful = truth_coin < np.exp(self._log_right)[num_groups]
        named = np.where(truthful, right, wrong)
        return np.concatenate([groups, named[..., None]], axis=-1)

    @cached_property
    def _log_right(self) -> FloatArray:
        """Log probability of naming the right group, indexed by the number of groups."""
        num_wrong = np.maximum(np.arange(self.sizes[-1] + 1) - 1, 1)
        return -np.log1p(num_wrong * math.exp(-self.epsilon))

    def _divide(self, coins: FloatArray, posterior: Public) -> IntArray:
        """Return the group of each hypothesis, ``(..., K)``, for public coins ``(..., K)``.

        Likely hypotheses are dealt first; the coins make their order random.
        """
        weights = np.broadcast_to(self._public_weights(posterior), coins.shape)
        blurred_weights = weights * (0.5 + coins)
        turns = (-blurred_weights).argsort(axis=-1)
        return self._divide_in_turn(turns, weights)

    def _divide_in_turn(self, turns: IntArray, weights: FloatArray) -> IntArray:
        """Return the group of each hypothesis, ``(..., K)``, if they are dealt in the given order.

        Of the possible numbers of groups it takes the one after which the posterior is expected to
        be most certain.
        """
        # Hypotheses by games, (K, B), from here on: the long axis is the last.
        weights_by_game = weights.reshape(-1, self.num_hypotheses).T
        turns_by_game = turns.reshape(-1, self.num_hypotheses).T
        num_games = weights_by_game.shape[1]
        places = turns_by_game * num_games + np.arange(num_games)  # indices into the flat array
        weights_in_turn = weights_by_game.reshape(-1)[places]
        roots = np.sqrt(weights_in_turn)

        first, *others = _deal(weights_in_turn, self.sizes)
        chosen = first.members.argmax(axis=0)
        least = self._expected_uncertainty(roots, first)
        for division in others:
            uncertainty = self._expected_uncertainty(roots, division)
            is_better = uncertainty < least - _EQUAL_MEANS
            chosen = np.where(is_better, division.members.argmax(axis=0), chosen)
            least = np.where(is_better, uncertainty, least)

        groups = np.empty(weights_in_turn.shape, dtype=np.int64)
        groups.reshape(-1)[places] = chosen
        return groups.T.reshape(weights.shape)

    def _expected_uncertainty(self, roots: FloatArray, division: _Division) -> FloatArray:
        """Return the expected uncertainty ``(B,)`` after a message about a division.

        Uncertainty is the sum of the square roots of a posterior, whose square roots before the
        message are ``roots`` ``(K, B)``. (Entropy in its place asks too much about the likeliest
        hypothesis.) On disjoint supports it is expected to be
        ``sum_g sqrt(p_g) sum_k sqrt(w_k q_g(k))``, where group g is named with probability
        ``q_g(k)`` if k is the truth, and with ``p_g`` on average.
        """
        ratio = math.exp(-self.epsilon)
        root_of_ratio = math.exp(-self.epsilon / 2.0)
        sums = (1.0 - root_of_ratio) * np.einsum("kb,gkb->gb", roots, division.members)
        sums += root_of_ratio * np.add.reduce(roots, axis=0)
        sums *= np.sqrt(ratio + (1.0 - ratio) * division.loads)
        num_groups = len(division.loads)
        return np.add.reduce(sums, axis=0) * math.exp(self._log_right[num_groups])

    def _shares(self, groups: IntArray, posterior: Public) -> FloatArray:
        """Return each hypothesis' weight in the mean of its group, ``(groups, ..., K)``."""
        numbers = np.arange(self.sizes[-1]).reshape(-1, *[1] * groups.ndim)
        shares = self._public_weights(posterior) * (groups == numbers)
        totals = np.add.reduce(shares, axis=-1, keepdims=True)
        shares /= np.maximum(totals, LEAST_PUBLIC_WEIGHT)
        return shares

    def _votes(self, messages: Messages, candidates: FloatArray, posterior: Public) -> _Votes:
        """Return the labels' votes for the groups of messages, and the groups that are named."""
        groups = messages[..., :-1]
        named = messages[..., -1:]
        num_groups = np.maximum.reduce(groups, axis=-1, keepdims=True) + 1
        means = mixture(self._shares(groups, posterior), candidates)
        shares = _winners(means, num_groups).astype(np.float64)
        shares /= np.add.reduce(shares, axis=0)

        numbers = np.arange(len(shares)).reshape(-1, *[1] * groups.ndim)
        return _Votes(shares, (numbers == named).astype(np.float64))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """Return the log probability of naming the right group of a message, ``(..., 1)``."""
        num_groups = np.maximum.reduce(messages[..., :-1], axis=-1, keepdims=True) + 1
        return self._log_right[num_groups]

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote for the group that a message names."""
        votes = self._votes(messages, candidates, posterior)
        return np.add.reduce(votes.shares * votes.is_named, axis=0)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the quadratic scores of the group that is named, given the groups."""
        votes = self._votes(messages, candidates, posterior)
        group_chances = np.stack([expectations(candidates, shares) for shares in votes.shares])
        chances = np.add.reduce(group_chances * votes.is_named, axis=0)
        log_right = self._log_fits(messages, candidates, posterior)
        squares = np.exp(log_right) * np.add.reduce(np.square(group_chances), axis=0)
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List all divisions into groups, or random ones, with one message per group."""
        if self.num_hypotheses > MOST_ORDERED:
            return self._list_by_draws(candidates, posterior)
        weights = self._public_weights(posterior)
        turns = all_orders(self.num_hypotheses)
        groups_in_turn = self._divide_in_turn(turns, np.broadcast_to(weights, turns.shape))
        divisions, division_of_turn = np.unique(groups_in_turn, axis=0, return_inverse=True)
        messages, draws = _name_each_group(divisions)

        turn_chances = _order_chances(turns, weights)
        division_chances = np.bincount(division_of_turn.reshape(-1), turn_chances)
        with np.errstate(divide="ignore"):
            log_weights = np.log(division_chances)[draws]
        return MessageList(messages, log_weights, draws, complete=True)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: K, which blur the order in which the hypotheses are dealt."""
        return self.num_hypotheses

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return one message for each group of the division that the coins deal."""
        division = self._divide(coins, posterior)
        messages, _ = _name_each_group(division[None])
        return messages

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the messages of a hundred divisions.

        A density takes two values, so that any log ratio is eps or 0.
        """
        coins = np.random.default_rng(0).random((100, self.num_hypotheses))
        divisions = np.unique(self._divide(coins, posterior), axis=0)
        messages, _ = _name_each_group(divisions)
        return messages


def _deal(weights: FloatArray, sizes: list[int]) -> list[_Division]:
    """Deal hypotheses of weights ``(K, B)``, one after another, each to the lightest group.

    Returns one division for each number of groups in ``sizes``.
    """
    numbers = np.arange(sizes[-1])[:, None]

    # All numbers of groups at once. A group beyond the number has infinite load, so that it is
    # never the lightest.
    exists = numbers < np.reshape(sizes, (-1, 1, 1))
    loads = np.repeat(np.where(exists, 0.0, np.inf), weights.shape[1], axis=-1)
    members = np.empty((len(weights), *loads.shape), dtype=np.bool_)
    for weight, is_dealt in zip(weights, members, strict=True):
        least_load = np.minimum.reduce(loads, axis=1, keepdims=True)
        lightest = (loads <= least_load * (1.0 + _EQUAL_MEANS)).argmax(axis=1)
        np.equal(numbers, lightest[:, None], out=is_dealt)
        loads += weight * is_dealt

    members = members.transpose(1, 2, 0, 3)
    return [_Division(loads[i, :size], members[i, :size]) for i, size in enumerate(sizes)]


def _winners(means: FloatArray, num_groups: IntArray) -> BoolArray:
    """Return a mask of the groups with the largest mean, for means ``(groups, ...)``.

    Only the first ``num_groups`` groups exist.
    """
    numbers = np.arange(len(means)).reshape(-1, *[1] * (means.ndim - 1))
    is_largest = means >= np.maximum.reduce(means, axis=0) * (1.0 - _EQUAL_MEANS)
    return is_largest & (numbers < num_groups)


def _name_each_group(divisions: IntArray) -> tuple[IntArray, IntArray]:
    """Return one message for each group of divisions ``(n, K)``, and the index of its division.

    Example:
        >>> messages, division = _name_each_group(np.array([[0, 1, 1], [2, 0, 1]]))
        >>> messages.tolist()
        [[0, 1, 1, 0], [0, 1, 1, 1], [2, 0, 1, 0], [2, 0, 1, 1], [2, 0, 1, 2]]
        >>> division.tolist()
        [0, 0, 1, 1, 1]
    """
    num_groups = divisions.max(axis=-1) + 1
    division = np.repeat(np.arange(len(divisions)), num_groups)
    named = np.concatenate([np.arange(count) for count in num_groups])
    return np.concatenate([divisions[division], named[:, None]], axis=-1), division


def _order_chances(orders: IntArray, weights: FloatArray) -> FloatArray:
    """Return the probability ``(n,)`` of each order ``(n, K)`` of independent random numbers.

    Number k is uniform in ``[w_k / 2, 3 w_k / 2]``; the orders are decreasing. Given that some
    numbers lie between the same two neighbouring ends of these intervals, all their orders are
    equally likely. So an order is cut, in all ways, into what lies in the highest stretch, the
    next, and so on.
    """
    num_hypotheses = len(weights)
    lowest = weights / 2.0
    highest = weights * 1.5
    ends = np.unique(np.concatenate([lowest, highest]))[::-1]

    # chances[i, n]: probability that the first n of order i lie in the stretches so far, in order.
    chances = np.zeros((len(orders), num_hypotheses + 1))
    chances[:, 0] = 1.0
    for high, low in pairwise(ends):
        may_lie_here = (highest >= high) & (lowest <= low)
        lies_here = np.where(may_lie_here, (high - low) / weights, 0.0)[orders]
        after = chances.copy()
        for first in range(num_hypotheses):
            run = chances[:, first].copy()
            for last in range(first, num_hypotheses):
                run *= lies_here[:, last] / (last - first + 1)
                after[:, last + 1] += run
        chances = after
    return chances[:, -1]
