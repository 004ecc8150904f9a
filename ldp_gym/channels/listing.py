"""Lists of a channel's messages with weights, so that expectations are sums over a list."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray, Messages

MOST_MESSAGES = 100_000
"""Largest number of messages that are listed, roughly."""

MOST_ORDERED = 8
"""Largest number of hypotheses of which all orders are listed: 40,320 of eight."""

NUM_DRAWS = 1000
"""Number of draws of the public coins that stand for all of them, where there are too many."""


class MessageList(NamedTuple):
    """Messages with their weights: ``sum_z weight(z) q(z | y) = 1`` for every label.

    Attributes:
        messages: ``(N, *message_shape)``.
        log_weights: logarithms of the weights, in the base measure of ``log_density``, ``(N,)``.
        draws: index of the draw of the public coins that each message comes from, ``(N,)``.
        complete: whether all messages are listed, so that sums are exact.
    """

    messages: Messages
    log_weights: FloatArray
    draws: IntArray
    complete: bool


def complete_list(messages: Messages, log_weights: FloatArray | None = None) -> MessageList:
    """List all messages ``(N, *message_shape)``; each has the weight 1 if none are given."""
    if log_weights is None:
        log_weights = np.zeros(len(messages))
    one_draw = np.zeros(len(messages), dtype=np.int64)
    return MessageList(messages, log_weights, one_draw, complete=True)


class MessageRange(NamedTuple):
    """Least and largest coordinates of the points of a space.

    Attributes:
        low: the least, for all coordinates together or for each.
        high: the largest, likewise.
        are_whole: whether all coordinates are whole numbers.
    """

    low: Any
    high: Any
    are_whole: bool


def message_range(space: gym.Space[Any]) -> MessageRange:
    """Return the least and the largest coordinates of a space of messages."""
    if isinstance(space, gym.spaces.Discrete):
        return MessageRange(space.start, space.start + space.n - 1, are_whole=True)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return MessageRange(space.start, space.start + space.nvec - 1, are_whole=True)
    if isinstance(space, gym.spaces.Box):
        are_whole = bool(np.issubdtype(space.dtype, np.integer))
        return MessageRange(space.low, space.high, are_whole)
    return MessageRange(0, 1, are_whole=True)  # zeros and ones: MultiBinary


def list_space(space: gym.Space[Any]) -> Messages | None:
    """Return all points of a space, ``(N, *shape)``; None if there are too many to list.

    Example:
        >>> list_space(gym.spaces.MultiDiscrete([2, 3])).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    points = message_range(space)
    shape = space.shape or ()
    # As floats, because products of many whole numbers overflow.
    values_of_coordinate = np.asarray(points.high, dtype=np.float64) - points.low + 1.0
    num_values = np.broadcast_to(values_of_coordinate, shape)
    are_few = num_values.prod() <= MOST_MESSAGES or isinstance(space, gym.spaces.Discrete)
    if not (points.are_whole and are_few):
        return None

    # Point number i of N has the digits of i as coordinates. The base of a digit is the number of
    # values that the coordinate takes.
    low = np.broadcast_to(np.asarray(points.low, dtype=np.int64), shape)
    bases = np.asarray(points.high, dtype=np.int64) - low + 1
    after_each = np.cumprod(np.append(1, bases.reshape(-1)[:0:-1]))[::-1]
    place_values = after_each[: bases.size].reshape(bases.shape)
    numbers = np.arange(int(bases.prod())).reshape(-1, *[1] * bases.ndim)
    return (numbers // place_values % bases + low).astype(space.dtype)


def list_by_coins(messages: Messages, chances: FloatArray | None) -> MessageList:
    """List messages given values of the public coins.

    Args:
        messages: the N messages given each of n values of the coins, ``(n, N, *message_shape)``.
        chances: probabilities of the values, ``(n,)``; None if the values are random draws.
    """
    num_values, num_messages = messages.shape[:2]
    if chances is None:
        log_chances = np.full(num_values, -math.log(num_values))
    else:
        with np.errstate(divide="ignore"):
            log_chances = np.log(chances)
    return MessageList(
        messages.reshape(num_values * num_messages, *messages.shape[2:]),
        np.repeat(log_chances, num_messages),
        np.repeat(np.arange(num_values), num_messages),
        complete=chances is not None,
    )


def all_orders(size: int) -> IntArray:
    """Return all orders of the numbers ``0 .. size - 1``, ``(size!, size)``."""
    return np.array(list(permutations(range(size))), dtype=np.int64)


def all_subsets(num_names: int, size: int) -> FloatArray | None:
    """Return all sets of ``size`` out of N names as zeros and ones ``(n, N)``; None if too many.

    Example:
        >>> all_subsets(3, 2).tolist()
        [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    if math.comb(num_names, size) > MOST_MESSAGES:
        return None
    chosen = np.array(list(combinations(range(num_names), size)))
    sets = np.zeros((len(chosen), num_names))
    np.put_along_axis(sets, chosen, 1.0, axis=-1)
    return sets


def draw_windows(coins: FloatArray, sizes: IntArray) -> FloatArray:
    """Return all sets of neighbours on circles of N names, as zeros and ones ``(..., N, N)``.

    The second to last axis is that of the N sets, one for each start on the circle.

    Args:
        coins: uniforms ``(..., N)`` that put the names in order on a circle.
        sizes: number of neighbours on the circle in a window, ``(...)``.
    """
    num_names = coins.shape[-1]
    position = coins.argsort(axis=-1)[..., None, :]
    starts = np.arange(num_names)[:, None]
    steps_from_start = (position - starts) % num_names
    inside = steps_from_start < np.asarray(sizes)[..., None, None]
    return inside.astype(np.float64)
