"""Channels that hold in machine arithmetic: tables of integers, sampled with integers.

When a channel's public coins are drawn, finitely many messages are left. How likely a label sends each of
them is a column of a table. Here the table's entries are whole numbers out of 2^64, so every probability is
rational. A 64-bit integer of the operating system picks the message, so every probability is met exactly.
The table depends on public things alone, and the label decides nothing but which column is used.

**Privacy.** For one message take the largest and the least entry over the labels. The eps of the table is the
logarithm of the largest such ratio. Each ratio is compared with a rational number below ``e^eps``, in
integers. Where the rounding of floats makes one too large, all columns are moved towards their mean, by a
share of 10^-12 or more, until it is not: thresholds are rounded towards more privacy.

**The law.** The entries are the channel's own :meth:`~ldp_gym.Channel.log_density`, normalised over the
messages that are left, up to that share. So the channel's likelihoods read the messages as they read the
simulator's.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import CHANNELS, Channel, as_channel
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseError, IncompatibleChannelError
from ldp_gym.privacy.certificate import uniform_posterior

TOTAL = 2**64
"""What the entries of a column sum to."""

_LEAST_SHARE = 2.0**-40
_MOST_SHARE = 2.0**-10
"""By what share columns are moved towards their mean; a channel that needs more broke its promise."""

_RATIO_BITS = 48
"""Digits of a ratio whose logarithm is taken: few different ones come up, so that it is taken once."""

_STEEPEST = 700.0
"""The largest eps of which a power is computed. A table of 2^64 cannot tell larger ones apart."""

_EXP_BITS, _HALVINGS = 160, 10
"""How many digits an exponential in whole numbers has, and how often its exponent is halved."""

NEAREST = {
    "laplace-single": "one-bit",
    "laplace-vector": "one-bit",
    "gaussian-vector": "one-bit",
    "hybrid": "one-bit",
    "wheel": "vote",
    "adaptive-wheel": "adaptive-groups",
    "identity": "randomized-response",
}
"""What to use instead of a channel that cannot be deployed."""


class ExactTable(NamedTuple):
    """How likely each label sends each of the messages that are left, out of 2^64.

    Attributes:
        messages: ``(n, *message_shape)``.
        counts: ``(n, M)``, unsigned; a column sums to 2^64, and so a table of one message has zeros.
        ratio: the largest ratio of two entries for one message.
        epsilon: its logarithm, rounded up, and at most what was asked for.
    """

    messages: Messages
    counts: npt.NDArray[np.uint64]
    ratio: Fraction
    epsilon: float

    def probabilities(self, label: int) -> list[Fraction]:
        """The probabilities with which a label sends each message."""
        if len(self.messages) == 1:
            return [Fraction(1)]
        return [Fraction(count, TOTAL) for count in self.counts[:, label].tolist()]

    def pick(self, label: int, number: int) -> Messages:
        """The message that a label sends if the coin is this number below 2^64."""
        ends = itertools.accumulate(self.counts[:-1, label].tolist())
        chosen = next((i for i, end in enumerate(ends) if number < end), -1)
        return self.messages[chosen]


class ExactChannel(Channel):
    """A channel with finitely many messages, as it is deployed: the same messages, drawn with integers.

    It is a channel like any other: audits and contract checks take it. :meth:`answer` is what a client calls.

    Args:
        channel: what is to be deployed.

    Raises:
        IncompatibleChannelError: if its messages are not finitely many, or it hides nothing; it names the
            nearest channel that will do.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> exact = ExactChannel(RandomizedResponse(2, 3, 100, epsilon=1.0))
        >>> table = exact.table(np.zeros(0), np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]]))
        >>> sum(table.probabilities(0)), 1.0 - 1e-9 < table.epsilon <= 1.0
        (Fraction(1, 1), True)
    """

    resolution: ClassVar[float] = 0.0  # a positive probability is at least 2^-64 in a table

    def __init__(self, channel: Channel) -> None:
        self.channel = as_channel(channel)
        self.adaptive = channel.adaptive  # type: ignore[misc]  # a class variable, of a class per channel
        self.pure = True  # type: ignore[misc]
        self.posterior_rate, self.posterior_share = channel.posterior_rate, channel.posterior_share
        _check_deployable(channel)
        super().__init__(channel.num_hypotheses, channel.num_labels, channel.horizon, epsilon=channel.epsilon)
        self._most_ratio = _exp_below(min(self.epsilon, _STEEPEST))

    # -- What a client does ---------------------------------------------------------------------------

    def table(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> ExactTable:
        """The table of the messages that public coins ``(num_public_coins,)`` leave.

        Raises:
            BrokenPromiseError: if the channel's own density is not eps-private.
        """
        messages = self.channel.messages_given_coins(coins, candidates, posterior)
        if len(messages) == 1:
            return ExactTable(messages, np.zeros((1, self.num_labels), np.uint64), Fraction(1), 0.0)
        log_density = self.channel.log_density(messages, candidates, posterior)
        law = np.exp(log_density - np.maximum.reduce(log_density, axis=None))
        law /= np.add.reduce(law, axis=0)
        if not np.minimum.reduce(law, axis=None) >= 0.0:  # NaN too
            raise BrokenPromiseError(f"{self.channel!r} has no density at these candidates: {log_density}")
        return self._round_table(messages, law)

    def _round_table(self, messages: Messages, law: FloatArray) -> ExactTable:
        """The law ``(n, M)`` in whole numbers out of 2^64."""
        mean = np.add.reduce(law, axis=1)[:, None] / law.shape[1]
        share = _LEAST_SHARE
        while share <= _MOST_SHARE:
            counts = _whole(law + share * (mean - law))
            most, least = _largest_ratio(counts)
            if most << _EXP_BITS <= least * self._most_ratio:
                epsilon = min(_log_above(-(-(most << _RATIO_BITS) // least)), self.epsilon)
                return ExactTable(messages, counts, Fraction(most, least), epsilon)
            share *= 16.0
        raise BrokenPromiseError(
            f"{self.channel!r} does not keep its promise at these candidates: its density ratios exceed "
            f"e^{self.epsilon:g}, and by more than rounding. ldp_gym.audit.certify says by how much"
        )

    def answer(
        self,
        label: int,
        candidates: FloatArray,
        posterior: FloatArray | None = None,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> tuple[Messages, float]:
        """The message of a label, and the eps that it spends.

        Args:
            label: in ``0..M-1``.
            candidates: the class at a context, ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.
            random_bits: a number of so many random bits; by default from the operating system.
        """
        count = self.channel.num_public_coins
        coins = _uniforms(random_bits(64 * count), count)
        table = self.table(coins, candidates, posterior)
        return table.pick(label, random_bits(64)), table.epsilon

    # -- As a channel ---------------------------------------------------------------------------------

    @property
    def num_public_coins(self) -> int:
        """The channel's."""
        return self.channel.num_public_coins

    @property
    def num_uniforms(self) -> int:
        """The public coins, and one for the message."""
        return self.num_public_coins + 1

    @property
    def message_space(self) -> gym.spaces.Space[Any]:
        """The channel's."""
        return self.channel.message_space

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        """One table after the other. A uniform has 53 bits of the 64 that a client draws."""
        labels = np.asarray(labels)
        shape = np.broadcast_shapes(labels.shape, uniforms.shape[:-1], candidates.shape[:-2])
        labels = np.broadcast_to(labels, shape)
        uniforms = np.broadcast_to(uniforms, (*shape, self.num_uniforms))
        candidates = np.broadcast_to(candidates, (*shape, *candidates.shape[-2:]))
        if posterior is not None:
            posterior = np.broadcast_to(posterior, (*shape, posterior.shape[-1]))
        messages = np.empty((*shape, *self.message_shape), dtype=self.message_space.dtype)
        for i in np.ndindex(shape):
            public = None if posterior is None else posterior[i]
            table = self.table(uniforms[i][:-1], candidates[i], public)
            messages[i] = table.pick(int(labels[i]), int(math.ldexp(uniforms[i][-1], 64)))
        return messages

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self.channel.log_density(messages, candidates, posterior)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self.channel.log_likelihood(messages, candidates, posterior)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self.channel.loss_estimates(messages, candidates, posterior)

    def worst_case_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """The channel's."""
        return self.channel.worst_case_messages(candidates, posterior)

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Messages:
        """The channel's."""
        return self.channel.messages_given_coins(coins, candidates, posterior)


def _check_deployable(channel: Channel) -> None:
    advice = _advice(channel)
    if math.isinf(channel.epsilon):
        raise IncompatibleChannelError(f"{channel!r} hides nothing and cannot be deployed. {advice}")
    uniform = uniform_distribution(channel.num_hypotheses, channel.num_labels)
    coins = np.full(channel.num_public_coins, 0.5)
    try:
        channel.messages_given_coins(coins, uniform, uniform_posterior(channel))
    except TypeError as error:
        raise IncompatibleChannelError(
            f"{channel!r} cannot be deployed: {error}; which floats occur may tell the label. {advice}"
        ) from error


def _advice(channel: Channel) -> str:
    for name, instead in NEAREST.items():
        if type(channel) is CHANNELS[name]:
            return f"The nearest that will do is {instead!r}"
    return "A channel of your own needs a finite message space, or messages_given_coins()"


def _whole(law: FloatArray) -> npt.NDArray[np.uint64]:
    """Columns of a law in whole numbers that sum to 2^64, which is 0 in 64 bits."""
    size = len(law)
    slack = TOTAL * (1.0 - size * 2.0**-50)  # for what floats round up
    counts = (law * slack).astype(np.uint64)
    share, left = np.divmod(np.negative(np.add.reduce(counts, axis=0)), np.uint64(size))
    counts += share
    counts += np.arange(size, dtype=np.uint64)[:, None] < left
    return counts


def _largest_ratio(counts: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """The two entries of one row whose ratio is largest."""
    high, low = np.maximum.reduce(counts, axis=1), np.minimum.reduce(counts, axis=1)
    worst = 1, 1
    for most, least in zip(high.tolist(), low.tolist(), strict=True):
        if most * worst[1] > worst[0] * least:
            worst = most, least
    return worst


@lru_cache(maxsize=4096)
def _log_above(ratio: int) -> float:
    """The least float of which it is certain that it is at least ``log(ratio / 2^48)``."""
    above = math.log(ratio / (1 << _RATIO_BITS))
    while _exp_below(above) < ratio << (_EXP_BITS - _RATIO_BITS):
        above = math.nextafter(above, math.inf)
    return above


def _exp_below(exponent: float) -> int:
    """``2^160 e^x`` or less by a part of 10^-40, for x of 0 or more: the series of ``e^(x / 1024)``, squared.

    All is positive and rounded down.
    """
    numerator, denominator = exponent.as_integer_ratio()
    step = (numerator << _EXP_BITS - _HALVINGS) // denominator
    total = term = 1 << _EXP_BITS
    n = 1
    while term:
        term = (term * step >> _EXP_BITS) // n
        total += term
        n += 1
    for _ in range(_HALVINGS):
        total = total * total >> _EXP_BITS
    return total


def _uniforms(bits: int, count: int) -> FloatArray:
    """Uniforms strictly inside (0, 1), from 64 random bits each. They are public: 53 of the bits will do."""
    numbers = np.frombuffer(bits.to_bytes(8 * count, "little"), dtype=np.uint64)
    return ((numbers >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
