"""Exact audits: the least eps and delta of a channel's declared density."""

from __future__ import annotations

from typing import Any

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

_SENT = 2000
"""Number of messages of a custom channel whose density ratios are compared with its worst case."""


def exact_epsilon(
    channel: Channel | FloatArray,
    candidates: FloatArray | None = None,
    posterior: FloatArray | None = None,
) -> ExactEpsilon:
    """Compute the least eps for which the channel's declared density is eps-LDP at candidates ``(K, M)``.

    Deterministic. The supremum is found among the channel's :meth:`~ldp_gym.Channel.worst_case_messages`;
    of a custom channel with few messages, among all of them. Other custom channels are believed in their
    worst cases, unless one of 2,000 messages that they send contradicts them:
    :func:`~ldp_gym.audit.certify` looks further. Labels that no hypothesis allows count too.

    In place of a channel and candidates, a table of probabilities: a row for each label, a column for each
    message, which is then the index of a column.

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

    messages, _ = messages_to_compare(channel, candidates, posterior)
    worst = worst_of_messages(channel, messages, candidates, posterior)
    check_totals(channel, candidates, posterior)
    labels = np.arange(max(_SENT, 2 * channel.num_labels)) % channel.num_labels
    sent = channel.privatize(labels, candidates, np.random.default_rng(0), posterior)
    sent = channel.check_messages(sent)
    for part, log_density in log_densities(channel, sent, candidates, posterior):
        objection = beyond_worst_case(channel, worst.epsilon, part, log_density)
        if objection is not None:
            raise BrokenPromiseError(f"no certificate for {channel!r}: it needs {objection}")
    return worst


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


def messages_to_compare(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> tuple[Messages, bool]:
    """Messages of a custom channel to look for its largest density ratio, and whether they are all.

    Raises:
        TypeError: if they cannot be enumerated and the channel names no worst cases.
    """
    messages = enumerated_messages(channel)
    if messages is not None:
        return messages, True
    return channel.worst_case_messages(candidates, posterior), False


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
        lower, upper = (float(bound) for bound in returned)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"delta_bounds of {channel!r} must return two numbers, a lower and an upper bound, got "
            f"{validation.describe(returned)}"
        ) from error
    if not 0.0 <= lower <= upper <= 1.0:  # NaN too
        raise ValueError(f"delta_bounds of {channel!r} must lie in [0, 1] in order, got {returned}")
    return DeltaBounds(lower, upper)
