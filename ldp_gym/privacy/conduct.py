"""How a channel treats users and callers: what is seen without statistics, as coins are given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.sampling import open_uniforms

_MOST_USERS = 4096
"""So many send at once."""

_CELLS = 2_000_000
"""How many numbers their candidates or their coins may be."""

_BATCH_SIZES = (1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024)
"""In batches of so many they send once more, and a few of them one by one."""

_ONE_BY_ONE = 16

_ROUNDING = 1e-9
"""How far off a real number may be that is computed once more, in another batch."""


def find_misconduct(channel: Channel, seed: int = 0) -> str | None:
    """What a channel does that no message may tell from its density, in words; None if nothing was found.

    When a user's label changes, no other user's message does, to the last bit. A message is the same whether
    it is encoded or sent, and with however many others. Labels, candidates, coins and the posterior are left
    as they were: the learner gets the candidates. Messages are numbers of the message space, without hidden
    digits.

    Args:
        channel: the channel.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng(seed)
    num_hypotheses, num_labels = channel.num_hypotheses, channel.num_labels
    table = rng.dirichlet(np.full(num_labels, 0.5), size=num_hypotheses)
    coins = channel.num_uniforms + np.prod(channel.message_shape, dtype=int)
    many = _users(channel, rng, table, (_affordable(coins),))
    count = _affordable(coins + table.size) // 2 * 2
    if channel.most_tables is None:
        tables = rng.dirichlet(np.full(num_labels, 0.5), size=(count, num_hypotheses))
    else:
        tables = np.tile(table, (count, 1, 1))
    own = _users(channel, rng, tables, (count,))
    in_rounds = _users(channel, rng, tables.reshape(2, -1, *table.shape), (2, count // 2))
    for users in (many, own, in_rounds):
        lie = _misconduct(channel, rng, users)
        if lie:
            return lie
    return _batch_that_differs(channel, many)


def why_no_numbers(messages: Messages) -> str | None:
    """Says why messages are no plain numbers, if they are not."""
    if messages.dtype.kind not in "biuf" or messages.dtype.itemsize > 8:
        return f"messages that are numbers of at most 64 bits, got {messages.dtype}"
    return None


def _affordable(each: int) -> int:
    return max(4, min(_MOST_USERS, _CELLS // each))


def _users(
    channel: Channel, rng: np.random.Generator, candidates: FloatArray, shape: tuple[int, ...]
) -> list[Any]:
    """What users of a given shape are handed: labels, candidates, coins, and a posterior if it is read."""
    labels = rng.integers(channel.num_labels, size=shape)
    uniforms = open_uniforms([rng], (*shape, channel.num_uniforms))[0]
    posterior = rng.dirichlet(np.ones(channel.num_hypotheses)) if channel.adaptive else None
    return [labels, candidates, uniforms, posterior]


def _misconduct(channel: Channel, rng: np.random.Generator, users: list[Any]) -> str | None:
    labels, candidates, uniforms, posterior = users
    before = [None if given is None else given.copy() for given in users]
    messages = np.array(channel.encode(labels, candidates, uniforms, posterior))
    sent, log_likelihood = channel.send(labels, candidates, uniforms, posterior)
    channel.log_density(messages, candidates, posterior)
    channel.log_likelihood(messages, candidates, posterior)
    names = ("labels", "candidates", "uniforms", "posterior")
    for name, was, now in zip(names, before, users, strict=True):
        if was is not None and not np.array_equal(was, now):
            return f"{name} left as they were: the channel has written into them"
    lie = why_no_numbers(messages)
    if lie:
        return lie
    if not np.array_equal(_bits(messages, labels.size), _bits(np.asarray(sent), labels.size)):
        return "the same messages from send() as from encode()"
    expected = channel.log_likelihood(messages, candidates, posterior)
    if not np.allclose(log_likelihood, expected, rtol=1e-9, atol=1e-9):
        return "the same log-likelihoods from send() as from log_likelihood()"
    changed = rng.random(labels.shape) < 0.5
    others = np.where(changed, rng.integers(channel.num_labels, size=labels.shape), labels)
    after = np.asarray(channel.encode(others, candidates, uniforms, posterior))
    touched = (_bits(after, labels.size) != _bits(messages, labels.size)).any(axis=-1) & ~changed.reshape(-1)
    if touched.any():
        return (
            f"messages that tell nothing of other users: {int(touched.sum())} of {int((~changed).sum())} "
            f"changed with the labels of others"
        )
    return None


def _batch_that_differs(channel: Channel, users: list[Any]) -> str | None:
    """Says in which batches users send other messages than among all."""
    labels, candidates, uniforms, posterior = users
    together = np.asarray(channel.encode(*users))
    rows = [((size,), (1, size), (size, 1))[number % 3] for number, size in enumerate(_BATCH_SIZES)]
    start = 0
    for shape in [*[()] * _ONE_BY_ONE, *rows]:
        size = math.prod(shape)
        part = slice(start, start := start + size)
        if start > len(labels):
            return None
        some, coins = labels[part].reshape(shape), uniforms[part].reshape(*shape, -1)
        alone = np.asarray(channel.encode(some, candidates, coins, posterior))
        alone, expected = alone.reshape(size, -1), together[part].reshape(size, -1)
        other = ~np.isclose(alone, expected, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True).all(axis=-1)
        if other.any():
            return (
                f"messages that do not depend on how many are sent at once: of {size} users "
                f"{int(other.sum())} sent another one in a batch of shape {shape} than among {len(labels)}"
            )
    return None


def _bits(messages: Messages, users: int) -> npt.NDArray[np.uint8]:
    """The bytes of each user's message, ``(n, ...)``."""
    return np.ascontiguousarray(messages).reshape(users, -1).view(np.uint8)
