"""Density ratios of a channel: the numbers from which the exact and the sampled audits are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.listing import list_space
from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray, Messages

MOST_DENSITIES = 4_000_000
"""Largest number of densities that are computed at a time (32 MB)."""

TOLERANCE = 1e-9
"""Relative error of an eps or a delta that counts as rounding."""

_TOTAL_TOLERANCE = 1e-6
"""Largest distance of the sum of a density from one that counts as rounding."""

_MOST_ENUMERATED = 1_000_000
"""Largest number of messages of a ``Discrete`` space that are enumerated."""


@dataclass(frozen=True)
class ExactEpsilon:
    """The largest log density ratio of a channel.

    Attributes:
        epsilon: the supremum over messages and label pairs of ``log q(z | y) - log q(z | y')``.
        labels: the pair ``(y, y')`` that attains it.
        message: the message z at which it does.
    """

    epsilon: float
    labels: tuple[int, int]
    message: Messages


def check_situation(
    channel: Any, candidates: npt.ArrayLike | None, posterior: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Check candidates ``(K, M)``, and the public posterior ``(K,)`` that an adaptive channel needs."""
    num_hypotheses = require_channel(channel).num_hypotheses
    if candidates is None:
        raise ValueError(
            "a Channel is audited at one context: pass candidates, the class there, (K, M)"
        )
    candidates = game_arrays.one_context(candidates, num_hypotheses, channel.num_labels)

    if posterior is not None:
        return candidates, game_arrays.one_posterior(posterior, num_hypotheses)
    if channel.adaptive:
        raise ValueError(
            f"{channel!r} is adaptive: an audit is at one public posterior. Pass posterior=, such as "
            f"ldp_gym.audit.uniform_posterior(channel)"
        )
    return candidates, None


def log_densities(
    channel: Channel, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
) -> Iterator[tuple[Messages, FloatArray]]:
    """Yield the messages in parts, with their log densities ``(n, M)``; parts limit the memory."""
    part_size = max(1, MOST_DENSITIES // candidates.size)
    for start in range(0, len(messages), part_size):
        part = messages[start : start + part_size]
        log_density = channel.log_density(part, candidates, posterior)
        shape = (len(part), channel.num_labels)
        if getattr(log_density, "shape", None) != shape:
            raise ValueError(
                f"log_density of {channel!r} must have shape (n, M), here {shape}, got "
                f"{getattr(log_density, 'shape', type(log_density).__name__)}"
            )
        yield part, log_density


def worst_log_ratios(log_density: FloatArray) -> FloatArray:
    """Largest difference of two labels' log densities ``(n, M)`` by message; -inf if it is never sent."""
    highest = log_density.max(axis=-1)
    lowest = log_density.min(axis=-1)
    ratios = np.full(len(highest), -np.inf)
    return np.subtract(highest, lowest, where=highest > -np.inf, out=ratios)


def largest_ratio(log_density: FloatArray, messages: Messages) -> ExactEpsilon:
    """Find the message and the two labels with the largest of the log density ratios ``(n, M)``."""
    ratios = worst_log_ratios(log_density)
    worst = int(ratios.argmax())
    likeliest = int(log_density[worst].argmax())
    unlikeliest = int(log_density[worst].argmin())
    return ExactEpsilon(float(ratios[worst]), (likeliest, unlikeliest), np.asarray(messages[worst]))


def worst_of_messages(
    channel: Channel, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
) -> ExactEpsilon:
    """Find the largest density ratio among some messages.

    Raises:
        ValueError: if a density is NaN or infinite, or if no message has a positive density.
    """
    worst: ExactEpsilon | None = None
    for part, log_density in log_densities(channel, messages, candidates, posterior):
        if not (log_density < np.inf).all():  # NaN too
            raise ValueError(
                f"log_density of {channel!r} is NaN or infinite: there is nothing to certify"
            )
        worst_of_part = largest_ratio(log_density, part)
        if worst is None or worst_of_part.epsilon > worst.epsilon:
            worst = worst_of_part
    if worst is None or worst.epsilon == -np.inf:
        raise ValueError(
            f"every message of {channel!r} has density 0: there is nothing to certify. "
            f"worst_case_messages() must name messages of positive density"
        )
    return worst


def enumerated_messages(channel: Channel) -> Messages | None:
    """All messages that a channel can send ``(n, *message_shape)``; None if they cannot be enumerated."""
    space = channel.message_space
    if isinstance(space, gym.spaces.Discrete) and int(space.n) > _MOST_ENUMERATED:
        return None
    messages = list_space(space)
    if messages is None:
        return None
    return messages[np.asarray(channel.possible(messages))]


def exceeds(epsilon: float, limit: float) -> bool:
    """Tell if an eps is above a limit by more than rounding."""
    return epsilon > limit + TOLERANCE * (1.0 + limit)


def beyond_worst_case(
    channel: Channel, worst: float, messages: Messages, log_density: FloatArray
) -> str | None:
    """Describe a message that was sent with a density ratio beyond that of ``worst_case_messages``.

    Args:
        channel: the channel; None is returned if it is not pure, as it may then exceed any ratio.
        worst: largest log density ratio of its worst-case messages.
        messages: messages that it sent, ``(n, *message_shape)``.
        log_density: their log densities for every label, ``(n, M)``.
    """
    ratios = worst_log_ratios(log_density)
    largest = int(ratios.argmax())
    if not channel.pure or not exceeds(ratios[largest], worst):
        return None
    return (
        f"worst_case_messages among which the density ratio is largest: it is {ratios[largest]:.6g} at "
        f"{messages[largest]!r}, which was sent, and at most {worst:.6g} among them"
    )


def check_totals(channel: Channel, candidates: FloatArray, posterior: FloatArray | None) -> None:
    """Check that a density sums to one for every label, over messages that can be listed.

    Raises:
        ValueError: if it does not.
    """
    try:
        listed = channel.list_messages(candidates, posterior)
    except TypeError:  # real numbers, in a base measure that the channel chooses
        return
    totals = np.zeros(channel.num_labels)
    start = 0
    for part, log_density in log_densities(channel, listed.messages, candidates, posterior):
        log_weights = listed.log_weights[start : start + len(part), None]
        totals += np.exp(log_density + log_weights).sum(axis=0)
        start += len(part)

    is_one = np.abs(totals - 1.0) <= _TOTAL_TOLERANCE  # False for NaN
    if not is_one.all():
        label = int(np.argmin(is_one))
        raise ValueError(
            f"log_density of {channel!r} must sum to one over the messages for every label; it sums to "
            f"{totals[label]:.6g} for label {label}"
        )
