"""Exact audits: the least eps and delta of a channel's declared density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import BrokenPromiseError
from ldp_gym.core.registry import is_builtin
from ldp_gym.privacy.densities import (
    ExactEpsilon,
    beyond_worst_case,
    check_situation,
    check_totals,
    enumerated_messages,
    largest_ratio,
    log_densities,
    worst_of_messages,
)

_MESSAGES_SENT = 2000
"""Number of messages of a custom channel whose density ratios are compared with its worst case."""

_LEAST_PER_LABEL = 2
"""Least number of these messages for each label."""


def exact_epsilon(
    channel: Channel | FloatArray,
    candidates: FloatArray | None = None,
    posterior: FloatArray | None = None,
) -> ExactEpsilon:
    """Compute the least eps for which the channel's declared density is eps-LDP at candidates ``(K, M)``.

    Deterministic. It is the largest log density ratio of two labels among the channel's
    :meth:`~ldp_gym.Channel.worst_case_messages`; of a custom channel with few messages, among all of them.
    The worst cases that another custom channel names are trusted, unless one of 2,000 messages that it sends
    contradicts them; :func:`~ldp_gym.audit.certify` looks further. Labels that no hypothesis allows count
    too.

    Args:
        channel: the channel; or, without candidates, a table of probabilities with a row for each label and a
            column for each message. A message is then the index of a column.
        candidates: the class at one context, ``(K, M)``.
        posterior: the public posterior ``(K,)``, for an adaptive channel.

    Raises:
        BrokenPromiseError: if a custom channel sends a message beyond its worst cases.
        ValueError: if its density is unusable, such as NaN or a sum other than one.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
        >>> round(exact_epsilon(RandomizedResponse(2, 3, 10, epsilon=1.5), table).epsilon, 9)
        1.5
        >>> round(exact_epsilon([[0.75, 0.25], [0.25, 0.75]]).epsilon, 9)
        1.098612289
    """
    if not isinstance(channel, Channel) and candidates is None and posterior is None:
        return _epsilon_of_table(channel)

    channel = require_channel(channel)
    candidates, posterior = check_situation(channel, candidates, posterior)
    if is_builtin(type(channel)):
        messages = channel.worst_case_messages(candidates, posterior)
        return worst_of_messages(channel, messages, candidates, posterior)

    compared = messages_to_compare(channel, candidates, posterior)
    worst = worst_of_messages(channel, compared.messages, candidates, posterior)
    check_totals(channel, candidates, posterior)
    _check_sent_messages(channel, candidates, posterior, worst.epsilon)
    return worst


def _check_sent_messages(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None, worst: float
) -> None:
    """Check that no message that a custom channel sends has a log density ratio beyond ``worst``."""
    num_messages = max(_MESSAGES_SENT, _LEAST_PER_LABEL * channel.num_labels)
    labels = np.arange(num_messages) % channel.num_labels
    sent = channel.privatize(labels, candidates, np.random.default_rng(0), posterior)
    sent = channel.check_messages(sent)
    for part, log_density in log_densities(channel, sent, candidates, posterior):
        objection = beyond_worst_case(channel, worst, part, log_density)
        if objection is not None:
            raise BrokenPromiseError(f"no certificate for {channel!r}: it needs {objection}")


def _epsilon_of_table(table: Any) -> ExactEpsilon:
    """Compute the least eps of a table with a row for each label and a column for each message."""
    law = game_arrays.distributions(
        table, "label", "a Channel without candidates, or a table,", "message"
    )
    if law.ndim != 2 or len(law) < 2:
        raise ValueError(f"a table has a row for each label, at least 2, got shape {law.shape}")
    with np.errstate(divide="ignore"):
        log_density = np.log(law.T)
    return largest_ratio(log_density, np.arange(law.shape[1]))


class ComparedMessages(NamedTuple):
    """Messages among which the largest density ratio of a custom channel is looked for.

    Attributes:
        messages: the messages, ``(n, *message_shape)``.
        are_all: True if the channel can send no others.
    """

    messages: Messages
    are_all: bool


def messages_to_compare(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> ComparedMessages:
    """All messages of a custom channel if they can be enumerated, else those that it names as worst cases.

    Raises:
        TypeError: if they cannot be enumerated and the channel names no worst cases.
    """
    messages = enumerated_messages(channel)
    if messages is not None:
        return ComparedMessages(messages, are_all=True)
    worst_cases = channel.worst_case_messages(candidates, posterior)
    return ComparedMessages(worst_cases, are_all=False)


def exact_delta(
    channel: Channel, candidates: FloatArray, epsilon: float, posterior: FloatArray | None = None
) -> DeltaBounds:
    """Bound the least delta for which the channel is (eps, delta)-LDP at candidates ``(K, M)``.

    These are the channel's own :meth:`~ldp_gym.Channel.delta_bounds`. Of a custom channel they are what its
    author declares: :func:`~ldp_gym.audit.certify` compares them with its messages.
    """
    candidates, posterior = check_situation(channel, candidates, posterior)
    epsilon = validation.positive("epsilon", epsilon)
    if not is_builtin(type(channel)):
        check_totals(channel, candidates, posterior)
    return declared_delta(channel, candidates, epsilon, posterior)


def declared_delta(
    channel: Channel, candidates: FloatArray, epsilon: float, posterior: FloatArray | None
) -> DeltaBounds:
    """Call a channel's ``delta_bounds`` by keyword, and check that it returns an interval in [0, 1].

    Raises:
        ValueError: if it takes other arguments, or returns something else.
    """
    arguments: dict[str, Any] = {"candidates": candidates, "epsilon": epsilon}
    if posterior is not None:
        arguments["posterior"] = posterior
    try:
        returned: Any = channel.delta_bounds(**arguments)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise ValueError(
            f"delta_bounds of {channel!r} must take candidates, epsilon and posterior by these names: {error}"
        ) from error

    try:
        lower, upper = map(float, returned)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"delta_bounds of {channel!r} must return two numbers, a lower and an upper bound, got "
            f"{validation.describe(returned)}"
        ) from error
    if not 0.0 <= lower <= upper <= 1.0:  # NaN too
        raise ValueError(f"delta_bounds of {channel!r} must lie in [0, 1] in order, got {returned}")
    return DeltaBounds(lower, upper)
