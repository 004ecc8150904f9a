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
        loads: total public weights of the groups, ``(g, B)``.
        members: whether a hypothesis is in a group, ``(g, K, B)``; the hypotheses are in the order
            in which they were dealt.
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
        """Number of uniforms of a message: K + 3.

        K blur the order in which the hypotheses are dealt; one each decides whether the right group
        is named, which wrong one otherwise, and which group is right on a tie.
        """
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.MultiDiscrete:
        """Space of messages: the group of each hypothesis, then the group that is named."""
        return gym.spaces.MultiDiscrete([self.sizes[-1]] * (self.num_hypotheses + 1))

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages that can be sent.

        Their number of groups is one of :attr:`sizes`, no group is empty, and they name one of
        these groups.
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
        """Draw messages ``(..., K + 1)``: the group of each hypothesis, and the named group.

        The hypotheses are dealt into groups, and the label's group is named, or another one.
        """
        order_coins = uniforms[..., :-3]
        truth_coin = uniforms[..., -3]
        other_group_coin = uniforms[..., -2]
        tie_coin = uniforms[..., -1]

        groups = self._divide(order_coins, posterior)
        num_groups = np.maximum.reduce(groups, axis=-1) + 1

        # The right group gives the label the largest mean probability.
        label_masses = masses(candidates, np.asarray(labels))
        shares = self._shares_within_groups(groups, posterior)
        means = np.einsum("g...k,...k->g...", shares, label_masses)
        right = _pick_one(_has_largest_mean(means, num_groups), tie_coin)

        wrong = (other_group_coin * (num_groups - 1)).astype(np.int64)
        wrong += wrong >= right  # the groups other than the right one, in their order
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

        Likely hypotheses are dealt first. Their order is random: each weight is multiplied by a
        uniform factor in [1/2, 3/2].
        """
        weights = np.broadcast_to(self._public_weights(posterior), coins.shape)
        blurred_weights = weights * (0.5 + coins)
        order = (-blurred_weights).argsort(axis=-1)
        return self._divide_in_order(order, weights)

    def _divide_in_order(self, order: IntArray, weights: FloatArray) -> IntArray:
        """Return the group of each hypothesis, ``(..., K)``, if they are dealt in the given order.

        Of the possible numbers of groups the one is chosen after which the posterior is expected to
        be most certain.

        Args:
            order: hypotheses in the order in which they are dealt, ``(..., K)``.
            weights: public weights of the hypotheses, ``(..., K)``.
        """
        # Hypotheses by games, (K, B), from here on: work along the long axis is fast.
        weights_by_game = weights.reshape(-1, self.num_hypotheses).T
        order_by_game = order.reshape(-1, self.num_hypotheses).T
        num_games = weights_by_game.shape[1]
        flat_index = order_by_game * num_games + np.arange(num_games)
        weights_in_order = weights_by_game.reshape(-1)[flat_index]
        group_in_order = self._most_informative_division(weights_in_order)

        groups = np.empty(weights_in_order.shape, dtype=np.int64)
        groups.reshape(-1)[flat_index] = group_in_order
        return groups.T.reshape(weights.shape)

    def _most_informative_division(self, weights: FloatArray) -> IntArray:
        """Return the groups ``(K, B)`` of hypotheses of weights ``(K, B)``, dealt in row order.

        Each game has the number of groups with the least expected uncertainty after a message.
        """
        roots = np.sqrt(weights)
        first_division, *other_divisions = _deal(weights, self.sizes)
        best_groups = first_division.members.argmax(axis=0)
        least_uncertainty = self._expected_uncertainty(roots, first_division)
        for division in other_divisions:
            uncertainty = self._expected_uncertainty(roots, division)
            is_better = uncertainty < least_uncertainty - _EQUAL_MEANS
            best_groups = np.where(is_better, division.members.argmax(axis=0), best_groups)
            least_uncertainty = np.where(is_better, uncertainty, least_uncertainty)
        return best_groups

    def _expected_uncertainty(self, roots: FloatArray, division: _Division) -> FloatArray:
        """Return the expected uncertainty ``(B,)`` after a message about a division.

        Uncertainty is the sum of the square roots of the posterior. (With entropy in its place the
        channel would ask too much about the likeliest hypothesis.) On disjoint supports its
        expectation is ``sum_g sqrt(p_g) sum_k sqrt(w_k q_g(k))``: w is the posterior before the
        message, and group g is named with probability ``q_g(k)`` if k is the truth, and with
        ``p_g`` on average. ``q_g(k)`` is r for the group of k and ``e^-eps r`` for any other.

        Args:
            roots: square roots of w, ``(K, B)``.
            division: the groups.
        """
        ratio = math.exp(-self.epsilon)
        root_of_ratio = math.exp(-self.epsilon / 2.0)

        # sum_k sqrt(w_k q_g(k)), divided by sqrt(r), and then times sqrt(p_g / r), (g, B).
        sums = (1.0 - root_of_ratio) * np.einsum("kb,gkb->gb", roots, division.members)
        sums += root_of_ratio * np.add.reduce(roots, axis=0)
        sums *= np.sqrt(ratio + (1.0 - ratio) * division.loads)
        num_groups = len(division.loads)
        return np.add.reduce(sums, axis=0) * math.exp(self._log_right[num_groups])

    def _shares_within_groups(self, groups: IntArray, posterior: Public) -> FloatArray:
        """Return the share of each hypothesis in the weight of each group, ``(g, ..., K)``.

        It is 0 for hypotheses outside the group.

        Args:
            groups: the group of each hypothesis, ``(..., K)``.
            posterior: the public posterior, ``(..., K)``.
        """
        group_numbers = np.arange(self.sizes[-1]).reshape(-1, *[1] * groups.ndim)
        shares = self._public_weights(posterior) * (groups == group_numbers)
        totals = np.add.reduce(shares, axis=-1, keepdims=True)
        shares /= np.maximum(totals, LEAST_PUBLIC_WEIGHT)
        return shares

    def _votes(self, messages: Messages, candidates: FloatArray, posterior: Public) -> _Votes:
        """Return the labels' votes for the groups of messages, and the groups that are named.

        A label votes for the group that gives it the largest mean probability; groups with equal
        means share the vote.
        """
        groups = messages[..., :-1]
        named = messages[..., -1:]
        num_groups = np.maximum.reduce(groups, axis=-1, keepdims=True) + 1
        means = mixture(self._shares_within_groups(groups, posterior), candidates)
        vote_shares = _has_largest_mean(means, num_groups).astype(np.float64)
        vote_shares /= np.add.reduce(vote_shares, axis=0)

        group_numbers = np.arange(len(vote_shares)).reshape(-1, *[1] * groups.ndim)
        return _Votes(vote_shares, is_named=(group_numbers == named).astype(np.float64))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: Public
    ) -> FloatArray:
        """Return the log probability that the group a label votes for is named, ``(..., 1)``.

        It depends on the number of groups in the message, whose last entry is the named group.
        """
        groups = messages[..., :-1]
        num_groups = np.maximum.reduce(groups, axis=-1, keepdims=True) + 1
        return self._log_right[num_groups]

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the share of each label's vote that goes to the named group, ``(..., M)``."""
        votes = self._votes(messages, candidates, posterior)
        return np.add.reduce(votes.shares * votes.is_named, axis=0)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        They score the law of the named group, given the groups (:func:`quadratic_losses`). The
        chances are the probabilities, under each hypothesis, that a label votes for the named
        group; the squares sum those of all groups, times the probability that the group voted for
        is named.
        """
        votes = self._votes(messages, candidates, posterior)
        group_chances = np.stack([expectations(candidates, shares) for shares in votes.shares])
        chances = np.add.reduce(group_chances * votes.is_named, axis=0)  # of the named group
        log_right = self._log_fits(messages, candidates, posterior)
        squares = np.exp(log_right) * np.add.reduce(np.square(group_chances), axis=0)
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List all divisions into groups, or random ones, with one message per group."""
        if self.num_hypotheses > MOST_ORDERED:
            return self._list_by_draws(candidates, posterior)
        weights = self._public_weights(posterior)
        orders = all_orders(self.num_hypotheses)
        groups_by_order = self._divide_in_order(orders, np.broadcast_to(weights, orders.shape))
        divisions, division_of_order = np.unique(groups_by_order, axis=0, return_inverse=True)
        named = _name_each_group(divisions)

        # Different orders may lead to the same division.
        order_chances = _order_chances(orders, weights)
        division_chances = np.bincount(division_of_order.reshape(-1), order_chances)
        with np.errstate(divide="ignore"):
            log_weights = np.log(division_chances)[named.division]
        return MessageList(named.messages, log_weights, named.division, complete=True)

    @property
    def num_public_coins(self) -> int:
        """Number of public coins: K, which blur the order in which the hypotheses are dealt."""
        return self.num_hypotheses

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return the g messages ``(g, K + 1)`` that are possible for given coins ``(K,)``.

        The coins determine the division of the hypotheses into g groups; a message names one.
        """
        groups = self._divide(coins, posterior)
        only_division = groups[None]
        return _name_each_group(only_division).messages

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the messages of a hundred random divisions.

        They are enough: the density of a message takes two values, a factor ``e^eps`` apart, so the
        largest log ratio is eps, or 0 if all labels vote alike.
        """
        coins = np.random.default_rng(0).random((100, self.num_hypotheses))
        divisions = np.unique(self._divide(coins, posterior), axis=0)
        return _name_each_group(divisions).messages


def _deal(weights: FloatArray, sizes: list[int]) -> list[_Division]:
    """Deal hypotheses of weights ``(K, B)``, one after another, each to the lightest group.

    Returns one division for each number of groups in ``sizes``, which increase.
    """
    group_numbers = np.arange(sizes[-1])[:, None]

    # All numbers of groups are dealt at once: loads are (sizes, groups, B). A group beyond the
    # number has infinite load, so that it is never the lightest.
    exists = group_numbers < np.reshape(sizes, (-1, 1, 1))
    loads = np.repeat(np.where(exists, 0.0, np.inf), weights.shape[1], axis=-1)
    members = np.empty((len(weights), *loads.shape), dtype=np.bool_)
    for weight, is_member in zip(weights, members, strict=True):
        least_load = np.minimum.reduce(loads, axis=1, keepdims=True)
        lightest = (loads <= least_load * (1.0 + _EQUAL_MEANS)).argmax(axis=1)
        np.equal(group_numbers, lightest[:, None], out=is_member)
        loads += weight * is_member

    members = members.transpose(1, 2, 0, 3)  # (sizes, groups, K, B)
    return [_Division(loads[i, :size], members[i, :size]) for i, size in enumerate(sizes)]


def _has_largest_mean(means: FloatArray, num_groups: IntArray) -> BoolArray:
    """Return a mask ``(groups, ...)`` of the groups with the largest mean, up to rounding.

    Args:
        means: means of the groups, ``(groups, ...)``.
        num_groups: number of groups that exist, ``(...)``; means of others do not count.
    """
    group_numbers = np.arange(len(means)).reshape(-1, *[1] * (means.ndim - 1))
    is_largest = means >= np.maximum.reduce(means, axis=0) * (1.0 - _EQUAL_MEANS)
    return is_largest & (group_numbers < num_groups)


def _pick_one(is_eligible: BoolArray, coins: FloatArray) -> IntArray:
    """Draw the index ``(...)`` of one true entry of a mask ``(n, ...)``, by coins ``(...)``.

    Example:
        >>> _pick_one(np.array([True, False, True]), np.array(0.7)).item()
        2
    """
    num_eligible_so_far = np.cumsum(is_eligible, axis=0)
    drawn = (coins * num_eligible_so_far[-1]).astype(np.int64)
    return (num_eligible_so_far > drawn).argmax(axis=0)


class _NamedGroups(NamedTuple):
    """Messages that name the groups of divisions.

    Attributes:
        messages: the group of each hypothesis, and last the named group, ``(N, K + 1)``.
        division: index of the division that a message is about, ``(N,)``.
    """

    messages: IntArray
    division: IntArray


def _name_each_group(divisions: IntArray) -> _NamedGroups:
    """Return one message for each group of divisions ``(n, K)`` of the hypotheses into groups.

    Example:
        >>> named = _name_each_group(np.array([[0, 1, 1], [2, 0, 1]]))
        >>> named.messages.tolist()
        [[0, 1, 1, 0], [0, 1, 1, 1], [2, 0, 1, 0], [2, 0, 1, 1], [2, 0, 1, 2]]
        >>> named.division.tolist()
        [0, 0, 1, 1, 1]
    """
    num_groups = divisions.max(axis=-1) + 1
    division = np.repeat(np.arange(len(divisions)), num_groups)
    group = np.concatenate([np.arange(count) for count in num_groups])
    messages = np.concatenate([divisions[division], group[:, None]], axis=-1)
    return _NamedGroups(messages, division)


def _order_chances(orders: IntArray, weights: FloatArray) -> FloatArray:
    """Return the probability ``(n,)`` that independent random numbers have each order ``(n, K)``.

    Number k is uniform in ``[w_k / 2, 3 w_k / 2]``, and an order lists the numbers from the largest
    to the least. The ends of all intervals divide the line into bins. Numbers in one bin are
    uniform there, so that all m! orders of m of them are equally likely. The probability of an
    order is therefore a sum over the ways to divide it into the numbers of the highest bin, those
    of the next, and so on.

    Args:
        orders: indices of the numbers, ``(n, K)``.
        weights: w, ``(K,)``.
    """
    num_hypotheses = len(weights)
    lowest = weights / 2.0
    highest = weights * 1.5
    ends = np.unique(np.concatenate([lowest, highest]))[::-1]

    # Column m: probability that the first m numbers of an order lie in the bins so far, in order.
    chances = np.zeros((len(orders), num_hypotheses + 1))
    chances[:, 0] = 1.0
    for bin_high, bin_low in pairwise(ends):
        reaches_bin = (highest >= bin_high) & (lowest <= bin_low)
        chance_of_bin = np.where(reaches_bin, (bin_high - bin_low) / weights, 0.0)[orders]
        chances_with_bin = chances.copy()
        for first in range(num_hypotheses):
            # The numbers first, ..., last of an order lie in this bin, in one of (their number)!
            # orders; those before them lie in higher bins.
            chance_of_run = chances[:, first].copy()
            for last in range(first, num_hypotheses):
                chance_of_run *= chance_of_bin[:, last] / (last - first + 1)
                chances_with_bin[:, last + 1] += chance_of_run
        chances = chances_with_bin
    return chances[:, -1]
