"""Exact integer tables: channels with finite messages, private in machine arithmetic.

Once a channel's public coins are drawn, finitely many messages are left. A table has a column of integer
probabilities out of 2^64 for each label: the channel's :meth:`~ldp_gym.Channel.log_density`, normalised over
those messages. A 64-bit integer from the operating system picks the message, so every probability is met
exactly. The table depends on public values only; the label only decides which column is used.

**Privacy.** The eps of a table is the logarithm of the largest ratio of two labels' entries for one
message. The ratio is compared, in integers, with a rational lower bound on ``e^eps``. Where the rounding of
floats makes it too large, all columns are moved towards their mean, by a share of 2^-40 or more, until it
fits.
"""

from __future__ import annotations

import itertools
import json
import math
import secrets
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseError, IncompatibleChannelError
from ldp_gym.privacy.certificate import uniform_posterior
from ldp_gym.privacy.densities import check_situation

TOTAL = 2**64
"""Sum of the entries of a column."""

_BITS = 64
"""Random bits that draw a message, or a public coin."""

_COIN_BITS = 52
"""Bits of a public coin that are used: with 53, the largest would round to 1."""

_LEAST_COUNT = 2**12
"""Count added to every entry of a table, so that no message is impossible."""

_COLUMN_SLACK = 2.0**-50
"""Share of a column, for each message, that is held back: its sum stays below 2^64 however floats round."""

_SHARE_GROWTH = 16.0
"""Factor between the shares by which columns are moved towards their mean."""

_LEAST_SHARE = 2.0**-40
"""Smallest share by which columns are moved towards their mean."""

_MOST_SHARE = 2.0**-10
"""Largest share by which columns are moved towards their mean, unless eps is near the rounding."""

_RATIO_ROUNDING = 2.0**-43
"""Error of a log ratio from floats and integers: at an eps near it, columns are moved by a larger share."""

_LARGEST_EXPONENT = 700.0
"""Largest eps whose power is computed: a table of 2^64 cannot tell larger ones apart."""

_DIGITS = 50
"""Digits of powers and logarithms, which ``decimal`` rounds correctly."""


class ExactTable(NamedTuple):
    """Integer probabilities, out of 2^64, with which each label sends each message.

    Attributes:
        messages: the possible messages, ``(n, *message_shape)``.
        counts: ``(n, M)``, unsigned; a column sums to 2^64 (so a table of one message holds zeros).
        ratio: the largest ratio of two entries for one message.
        epsilon: its logarithm, rounded up; at most the channel's eps.
    """

    messages: Messages
    counts: npt.NDArray[np.uint64]
    ratio: Fraction
    epsilon: float

    def probabilities(self, label: int) -> list[Fraction]:
        """Return the probabilities with which a label, in ``0..M-1``, sends each message."""
        label = validation.index("label", label, self.counts.shape[1])
        if len(self.messages) == 1:
            return [Fraction(1)]
        return [Fraction(count, TOTAL) for count in self.counts[:, label].tolist()]

    def pick(self, label: int, number: int) -> Messages:
        """Return the message that a label sends when the random 64-bit integer is ``number``."""
        label = validation.index("label", label, self.counts.shape[1])
        number = validation.whole("number", number, least=0, most=TOTAL - 1)
        ends = itertools.accumulate(self.counts[:-1, label].tolist())
        for message, end in zip(self.messages, ends, strict=False):  # the last one ends at 2^64
            if number < end:
                return message
        return self.messages[-1]

    def to_json(self) -> str:
        """The table as JSON, for clients in any language: counts are decimal digits in text."""
        counts = [[str(count) for count in row] for row in self.counts.tolist()]
        return json.dumps({"messages": self.messages.tolist(), "counts": counts})

    @classmethod
    def from_json(cls, text: str) -> ExactTable:
        """The table that :meth:`to_json` wrote; its ratio and eps are computed again from the counts.

        Raises:
            ValueError: if a column does not sum to 2^64, or messages and counts do not fit.
        """
        given = json.loads(text)
        rows = [[int(count) for count in row] for row in given["counts"]]
        messages = np.array(given["messages"])
        row_lengths = {len(row) for row in rows}
        if len(messages) != len(rows) or len(row_lengths) != 1:
            raise ValueError(
                f"a table has a row of counts per message, got {len(rows)} and {len(messages)}"
            )
        if len(rows) == 1:  # the one message is certain, and 2^64 is 0 in 64-bit arithmetic
            return cls(messages, np.zeros((1, len(rows[0])), np.uint64), Fraction(1), 0.0)
        least_count = min(min(row) for row in rows)
        totals = [sum(column) for column in zip(*rows, strict=True)]
        if least_count < 1 or any(total != TOTAL for total in totals):
            raise ValueError("counts of a table are positive, and those of a label sum to 2^64")
        counts = np.array(rows, dtype=np.uint64)
        ratio = _largest_ratio(counts)
        return cls(messages, counts, ratio, _log_above(ratio))


class HasChannel(Protocol):
    """A plan of a survey: it knows its channel."""

    def channel(self) -> Channel:
        """Return the channel that users answer through."""


class ExactChannel:
    """Sampler of a channel with finite messages: integer probabilities and the operating system's coins.

    Args:
        channel: the channel to sample exactly, or a plan (``ldp_bench.Plan``) that names it.
        most: largest eps that the user allows. A plan comes from somebody else, so it needs this.

    Raises:
        IncompatibleChannelError: if its messages are not finite or it hides nothing.
        ValueError: if its eps is above ``most``.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> exact = ExactChannel(RandomizedResponse(2, 3, 100, epsilon=1.0))
        >>> table = exact.table(np.zeros(0), np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]]))
        >>> sum(table.probabilities(0)), 1.0 - 1e-9 < table.epsilon <= 1.0
        (Fraction(1, 1), True)
    """

    def __init__(self, channel: Channel | HasChannel, *, most: float | None = None) -> None:
        self.channel = _allowed_channel(channel, most)
        self._check_has_table()
        self._most_ratio = _exp_below(min(self.channel.epsilon, _LARGEST_EXPONENT))

    def _check_has_table(self) -> None:
        """Check that the channel hides something, and that its messages can be listed given the coins."""
        channel = self.channel
        advice = "Use one with finite messages, such as 'one-bit', or define messages_given_coins()"
        if math.isinf(channel.epsilon):
            raise IncompatibleChannelError(
                f"{channel!r} hides nothing: there is no exact table. {advice}"
            )
        any_candidates = uniform_distribution(channel.num_hypotheses, channel.num_labels)
        any_coins = np.full(channel.num_public_coins, 0.5)
        try:
            channel.messages_given_coins(any_coins, any_candidates, uniform_posterior(channel))
        except TypeError as error:
            raise IncompatibleChannelError(
                f"{channel!r} has no exact table: {error}. {advice}"
            ) from error

    def table(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> ExactTable:
        """Return the table of the messages that are left once the public coins are drawn.

        Args:
            coins: uniforms in (0, 1), ``(num_public_coins,)``.
            candidates: the class at a context, ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.

        Raises:
            BrokenPromiseError: if the channel's declared density is not eps-private.
        """
        candidates, posterior = check_situation(self.channel, candidates, posterior)
        coins = validation.numbers("coins", coins)
        count = self.channel.num_public_coins
        if coins.shape != (count,):
            raise ValueError(f"coins must be {count} uniforms, got shape {coins.shape}")
        if not ((coins > 0.0) & (coins < 1.0)).all():  # NaN too
            raise ValueError(f"coins must lie in (0, 1), got {coins}")
        return self._table(coins, candidates, posterior)

    def answer(
        self,
        label: int,
        candidates: FloatArray,
        posterior: FloatArray | None = None,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> tuple[Messages, float]:
        """Draw the message of a label; return it with the eps that it spends.

        Args:
            label: the user's label, in ``0..M-1``.
            candidates: the class at a context, ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.
            random_bits: function from a number n to an integer of n random bits; by default the operating
                system's.
        """
        label = validation.index("label", label, self.channel.num_labels)
        candidates, posterior = check_situation(self.channel, candidates, posterior)
        count = self.channel.num_public_coins
        coins = _uniforms(random_bits(_BITS * count), count)
        table = self._table(coins, candidates, posterior)
        message = table.pick(label, random_bits(_BITS))
        return message, table.epsilon

    def _table(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> ExactTable:
        """Return the table of the messages that are left once the coins are drawn, from checked arguments.

        Where rounding makes a ratio of two labels too large, all labels' probabilities are moved towards
        their mean, by a share that grows until the ratios fit.
        """
        messages = self.channel.messages_given_coins(coins, candidates, posterior)
        if len(messages) == 1:
            # The one message is certain, and 2^64 is 0 in 64-bit arithmetic.
            no_counts = np.zeros((1, self.channel.num_labels), np.uint64)
            return ExactTable(messages, no_counts, Fraction(1), 0.0)

        law = self._law(messages, candidates, posterior)
        mean = law.mean(axis=1, keepdims=True)
        most_share = max(_MOST_SHARE, min(_RATIO_ROUNDING / self.channel.epsilon, 1.0))
        share = _LEAST_SHARE
        while share <= most_share:
            counts = _to_counts(law + share * (mean - law))
            ratio = _largest_ratio(counts)
            if ratio <= self._most_ratio:
                epsilon = min(_log_above(ratio), self.channel.epsilon)
                return ExactTable(messages, counts, ratio, epsilon)
            share *= _SHARE_GROWTH
        raise BrokenPromiseError(
            f"{self.channel!r} does not keep its promise at these candidates: its density ratios exceed "
            f"e^{self.channel.epsilon:g} by more than rounding. ldp_gym.audit.certify says by how much"
        )

    def _law(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        """Probabilities ``(n, M)`` of the messages that are left, given each label."""
        log_density = self.channel.log_density(messages, candidates, posterior)
        law = np.exp(log_density - log_density.max())
        law /= law.sum(axis=0)
        if not law.min() >= 0.0:  # NaN too
            raise BrokenPromiseError(
                f"{self.channel!r} has no density at these candidates: {log_density}"
            )
        return law


def _allowed_channel(channel: Channel | HasChannel, most: float | None) -> Channel:
    """Return the channel, or that of a plan, if its eps is not above the largest that the user allows."""
    if not isinstance(channel, Channel) and callable(getattr(channel, "channel", None)):
        if most is None:
            raise TypeError("a plan states its own eps: state the largest that you allow, most=")
        channel = channel.channel()
    channel = require_channel(channel)
    if most is not None and channel.epsilon > validation.positive("most", most):
        raise ValueError(
            f"{channel!r} spends eps = {channel.epsilon:g}, more than the {most:g} allowed"
        )
    return channel


def _to_counts(law: FloatArray) -> npt.NDArray[np.uint64]:
    """Round the columns of a law ``(n, M)`` to integers that sum to 2^64 (0 in 64-bit arithmetic)."""
    num_messages = len(law)
    total = TOTAL * (1.0 - num_messages * _COLUMN_SLACK)
    counts = (law * total).astype(np.uint64) + np.uint64(_LEAST_COUNT)

    # What a column lacks is shared out in proportion. Unsigned integers wrap, so minus a sum is 2^64 - sum.
    missing = np.negative(counts.sum(axis=0))
    counts += (law * missing).astype(np.uint64)

    # What it lacks still is shared out evenly, and the rest goes to the first messages.
    missing = np.negative(counts.sum(axis=0))
    share, rest = np.divmod(missing, np.uint64(num_messages))
    counts += share
    message_indices = np.arange(num_messages, dtype=np.uint64)[:, None]
    counts += message_indices < rest
    return counts


def _largest_ratio(counts: npt.NDArray[np.uint64]) -> Fraction:
    """Largest ratio of two labels' counts for one message, exactly, from counts ``(n, M)``."""
    numerator = 1
    denominator = 1
    largest_counts = counts.max(axis=1).tolist()
    smallest_counts = counts.min(axis=1).tolist()
    for largest, smallest in zip(largest_counts, smallest_counts, strict=True):
        is_larger = largest * denominator > numerator * smallest
        if is_larger:
            numerator = largest
            denominator = smallest
    return Fraction(numerator, denominator)


def _log_above(ratio: Fraction) -> float:
    """Smallest float that is certainly at least ``log(ratio)``."""
    if ratio == 1:
        return 0.0
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        log = (Decimal(ratio.numerator) / ratio.denominator).ln().next_plus()
    nearest = float(log)
    if nearest >= log:
        return nearest
    return math.nextafter(nearest, math.inf)


def _exp_below(exponent: float) -> Fraction:
    """Lower bound on ``e^x``, tight to a part of 10^-49."""
    with localcontext(prec=_DIGITS):
        return Fraction(Decimal(exponent).exp().next_minus())


def _uniforms(bits: int, count: int) -> FloatArray:
    """Public coins strictly inside (0, 1), from an integer of 64 random bits each, of which 52 are used."""
    bytes_per_coin = _BITS // 8
    integers = np.frombuffer(bits.to_bytes(bytes_per_coin * count, "little"), dtype=np.uint64)
    used = integers >> np.uint64(_BITS - _COIN_BITS)
    return (used.astype(np.float64) + 0.5) * 2.0**-_COIN_BITS
