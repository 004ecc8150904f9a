"""Lists of messages that represent all messages of a channel, so that expectations are sums."""

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
        log_weights: the logarithm of what each stands for, in the base measure of ``log_density``, ``(N,)``.
        draws: the number of the draw of the public coins that each comes from, ``(N,)``.
        complete: whether all messages are listed, so that sums are exact.
    """

    messages: Messages
    log_weights: FloatArray
    draws: IntArray
    complete: bool


def complete_list(messages: Messages, log_weights: FloatArray | None = None) -> MessageList:
    """A list of all messages; each stands for itself when no weights are given."""
    if log_weights is None:
        log_weights = np.zeros(len(messages))
    return MessageList(
        messages, log_weights, np.zeros(len(messages), dtype=np.int64), complete=True
    )


def message_range(space: gym.Space[Any]) -> tuple[Any, Any, bool]:
    """The least and the largest point, coordinate by coordinate, and whether they are whole numbers."""
    if isinstance(space, gym.spaces.Discrete):
        return space.start, space.start + space.n - 1, True
    if isinstance(space, gym.spaces.Box):
        return space.low, space.high, np.issubdtype(space.dtype, np.integer)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1, True
    return 0, 1, True


def list_space(space: gym.Space[Any]) -> Messages | None:
    """Every point of a finite space ``(N, *shape)``; None where there are too many, or infinitely many."""
    low, high, whole = message_range(space)
    lengths = np.broadcast_to(np.asarray(high, dtype=np.float64) - low + 1.0, space.shape or ())
    few = lengths.prod() <= MOST_MESSAGES or isinstance(space, gym.spaces.Discrete)
    if not (whole and few):
        return None
    start = np.broadcast_to(np.asarray(low, dtype=np.int64), space.shape or ())
    sizes = np.asarray(high, dtype=np.int64) - start + 1
    strides = np.cumprod(np.append(1, sizes.reshape(-1)[:0:-1]))[::-1][: sizes.size].reshape(
        sizes.shape
    )
    numbers = np.arange(int(sizes.prod())).reshape(-1, *[1] * sizes.ndim)
    return (numbers // strides % sizes + start).astype(space.dtype)


def list_by_coins(messages: Messages, chances: FloatArray | None) -> MessageList:
    """List of messages ``(n, N, *message_shape)`` given n values of the public coins.

    The values have the given chances ``(n,)``, or are random draws.
    """
    n, each = messages.shape[:2]
    with np.errstate(divide="ignore"):
        log_chances = np.full(n, -math.log(n)) if chances is None else np.log(chances)
    return MessageList(
        messages.reshape(n * each, *messages.shape[2:]),
        np.repeat(log_chances, each),
        np.repeat(np.arange(n), each),
        complete=chances is not None,
    )


def all_orders(size: int) -> IntArray:
    """Every order of ``size`` things, ``(size!, size)``."""
    return np.array(list(permutations(range(size))), dtype=np.int64)


def all_subsets(num_names: int, size: int) -> FloatArray | None:
    """Every set of ``size`` out of N names, as zeros and ones ``(n, N)``; None where there are too many."""
    if math.comb(num_names, size) > MOST_MESSAGES:
        return None
    chosen = np.array(list(combinations(range(num_names), size)))
    sets = np.zeros((len(chosen), num_names))
    np.put_along_axis(sets, chosen, 1.0, axis=-1)
    return sets


def draw_windows(coins: FloatArray, sizes: IntArray) -> FloatArray:
    """Windows ``(..., N, N)``, as zeros and ones, on circles that uniforms ``(..., N)`` order."""
    places, size = coins.argsort(axis=-1)[..., None, :], coins.shape[-1]
    behind_start = (places - np.arange(size)[:, None]) % size
    return (behind_start < np.asarray(sizes)[..., None, None]).astype(np.float64)
