"""Exact audits: the least eps and delta of a channel's declared density, next to what it promises."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseError, BrokenPromiseWarning
from ldp_gym.core.registry import is_builtin

_MOST_DENSITIES, _SENT = 4_000_000, 2000
"""Largest number of densities that are computed at a time, 32 MB, and number of messages of a custom channel
whose density ratios are compared with its worst case."""

_TOLERANCE, _ROUNDING, _TOTAL_TOLERANCE = 1e-9, 1e-12, 1e-6
"""Tolerances: of an eps or delta, relative; of an eps, absolute; of the sum of a density."""

_LARGEST = 4096
"""Largest table, in entries, that is audited before a game: a larger one takes longer than the game."""


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


def exact_epsilon(
    channel: Channel | FloatArray,
    candidates: FloatArray | None = None,
    posterior: FloatArray | None = None,
) -> ExactEpsilon:
    """Compute the least eps for which the channel's declared density is eps-LDP at candidates ``(K, M)``.

    Deterministic. The supremum is found among the channel's :meth:`~ldp_gym.Channel.worst_case_messages`;
    labels that no hypothesis allows count too. In place of a channel and candidates, a table of
    probabilities: a row for each label, a column for each message, which is then the index of a column.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
        >>> round(exact_epsilon(RandomizedResponse(2, 3, 10, epsilon=1.5), table).epsilon, 9)
        1.5
        >>> round(exact_epsilon([[0.75, 0.25], [0.25, 0.75]]).epsilon, 9)
        1.098612289
    """
    if not isinstance(channel, Channel) and candidates is None and posterior is None:
        law = game_arrays.distributions(
            channel, "label", "a Channel without candidates, or a table,", "message"
        )
        if law.ndim != 2 or len(law) < 2:
            raise ValueError(f"a table has a row for each label, at least 2, got shape {law.shape}")
        with np.errstate(divide="ignore"):
            return _largest(np.log(law.T), np.arange(law.shape[1]))
    channel = require_channel(channel)
    candidates, posterior = check_situation(channel, candidates, posterior)
    found = worst_case(channel, candidates, posterior)
    if not is_builtin(type(channel)):
        _check_totals(channel, candidates, posterior)
        labels = np.arange(max(_SENT, 2 * channel.num_labels)) % channel.num_labels
        sent = channel.privatize(labels, candidates, np.random.default_rng(0), posterior)
        for some, log_density in log_densities(
            channel, channel.check_messages(sent), candidates, posterior
        ):
            if (missed := beyond_worst_case(channel, found.epsilon, some, log_density)) is not None:
                raise BrokenPromiseError(f"no certificate for {channel!r}: it needs {missed}")
    return found


def worst_case(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> ExactEpsilon:
    """Find the largest density ratio among the channel's ``worst_case_messages``."""
    found = []
    messages = channel.worst_case_messages(candidates, posterior)
    for some, log_density in log_densities(channel, messages, candidates, posterior):
        if not (log_density < np.inf).all():  # NaN too
            raise ValueError(
                f"log_density of {channel!r} is NaN or infinite: there is nothing to certify"
            )
        found.append(_largest(log_density, some))
    worst = max(found, key=lambda one: one.epsilon, default=None)
    if worst is None or worst.epsilon == -np.inf:
        raise ValueError(
            f"every message of {channel!r} has density 0: there is nothing to certify. "
            f"worst_case_messages() must name messages of positive density"
        )
    return worst


def _largest(log_density: FloatArray, messages: Messages) -> ExactEpsilon:
    """The largest of the log density ratios ``(R, M)`` of messages."""
    ratios = _log_ratios(log_density)
    worst = int(ratios.argmax())
    labels = int(log_density[worst].argmax()), int(log_density[worst].argmin())
    return ExactEpsilon(float(ratios[worst]), labels, np.asarray(messages[worst]))


def beyond_worst_case(
    channel: Channel, worst: float, messages: Messages, log_density: FloatArray
) -> str | None:
    """Describe a message that was sent with a density ratio beyond that of ``worst_case_messages``."""
    ratios = _log_ratios(log_density)
    found = int(ratios.argmax())
    if not channel.pure or ratios[found] <= worst + _TOLERANCE * (1.0 + worst):
        return None
    return (
        f"worst_case_messages among which the density ratio is largest: it is {ratios[found]:.6g} at "
        f"{messages[found]!r}, which was sent, and at most {worst:.6g} among them"
    )


def _check_totals(channel: Channel, candidates: FloatArray, posterior: FloatArray | None) -> None:
    """Check that a density sums to one for every label, over messages that can be listed."""
    try:
        listed = channel.list_messages(candidates, posterior)
    except TypeError:  # real numbers, in a base measure of the channel's choice
        return
    total, start = np.zeros(channel.num_labels), 0
    for some, log_density in log_densities(channel, listed.messages, candidates, posterior):
        weights = listed.log_weights[start : start + len(some), None]
        total, start = total + np.exp(log_density + weights).sum(axis=0), start + len(some)
    off = np.abs(total - 1.0)
    if not off.max() <= _TOTAL_TOLERANCE:
        label = int(np.argmax(~(off <= _TOTAL_TOLERANCE)))
        raise ValueError(
            f"log_density of {channel!r} must sum to one over the messages for every label; it sums to "
            f"{total[label]:.6g} for label {label}"
        )


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
    """Yield the messages in parts, each with its log densities, so that many labels fit into memory."""
    together = max(1, _MOST_DENSITIES // candidates.size)
    for start in range(0, len(messages), together):
        some = messages[start : start + together]
        log_density, shape = (
            channel.log_density(some, candidates, posterior),
            (len(some), channel.num_labels),
        )
        if getattr(log_density, "shape", None) != shape:
            raise ValueError(
                f"log_density of {channel!r} must have shape (n, M), here {shape}, got "
                f"{getattr(log_density, 'shape', type(log_density).__name__)}"
            )
        yield some, log_density


def _log_ratios(log_density: FloatArray) -> FloatArray:
    """Largest difference of labels' log densities ``(R, M)`` by message; -inf for one that is never sent."""
    highest, lowest = log_density.max(axis=-1), log_density.min(axis=-1)
    return np.subtract(highest, lowest, where=highest > -np.inf, out=np.full(len(highest), -np.inf))


def exact_delta(
    channel: Channel, candidates: FloatArray, epsilon: float, posterior: FloatArray | None = None
) -> DeltaBounds:
    """Bound the least delta for which the channel is (eps, delta)-LDP at candidates ``(K, M)``."""
    candidates, posterior = check_situation(channel, candidates, posterior)
    if not is_builtin(type(channel)):
        _check_totals(channel, candidates, posterior)
    public = () if posterior is None else (posterior,)
    bounds = channel.delta_bounds(candidates, validation.positive("epsilon", epsilon), *public)
    if not 0.0 <= bounds.lower <= bounds.upper <= 1.0:
        raise ValueError(f"delta_bounds of {channel!r} must lie in [0, 1] in order, got {bounds}")
    return bounds


# -- Certificates -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """Result of an exact audit at one table of candidates, next to the channel's promise.

    Attributes:
        epsilon: the eps that holds.
        delta: the delta that holds with it.
        claimed_epsilon: the eps that the channel promises.
        claimed_delta: the delta that the channel promises.
        method: the audit that was made.
        labels: the pair of labels that is told apart best, if the audit names one.
        message: the message that tells them apart, if the audit names one.
    """

    epsilon: float
    delta: float
    claimed_epsilon: float
    claimed_delta: float
    method: str
    labels: tuple[int, int] | None = None
    message: Messages | None = None

    @property
    def holds(self) -> bool:
        """True if the claim is met in real arithmetic."""
        within = self.epsilon <= self.claimed_epsilon * (1.0 + _TOLERANCE) + _ROUNDING
        return within and self.delta <= self.claimed_delta * (1.0 + _TOLERANCE)

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        if math.isinf(self.claimed_epsilon):
            return "no privacy at all"
        return "the promise holds" if self.holds else "the promise is broken"


def uniform_posterior(channel: Channel) -> FloatArray | None:
    """Return the uniform public posterior for an adaptive channel, None for any other."""
    return (
        uniform_distribution(require_channel(channel).num_hypotheses) if channel.adaptive else None
    )


def certify(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None
) -> Certificate:
    """Audit a channel's claim at candidates ``(K, M)``: its eps if it is pure, its delta if it is not.

    It is about real arithmetic; :func:`~ldp_gym.audit.reachable` is about floats.
    """
    claim = require_channel(channel).epsilon, channel.delta
    if channel.pure:
        found = exact_epsilon(channel, candidates, posterior)
        method = "exact density ratio over all labels"
        return Certificate(found.epsilon, 0.0, *claim, method, found.labels, found.message)
    bounds = exact_delta(channel, candidates, channel.epsilon, posterior)
    return Certificate(channel.epsilon, bounds.upper, *claim, "accounted delta, an upper bound")


def warn_of_broken_promise(channel: Channel, candidates: FloatArray) -> None:
    """Warn if a custom channel, or the paper's literal clipping, breaks its promise at candidates ``(K, M)``.

    The other shipped channels are certified by the tests. A channel without an exact audit is skipped.
    """
    literal = isinstance(channel, ClippedChannel) and channel.clipping.rule == "paper"
    candidates = validation.numbers("candidates", candidates)
    if candidates.size > _LARGEST or (is_builtin(type(channel)) and not literal):
        return
    try:
        certificate = certify(channel, candidates, uniform_posterior(channel))
        found = (
            f"{channel!r} breaks its promise: it has epsilon = {certificate.epsilon:.6g}, delta = "
        )
        broken = (
            None
            if certificate.holds
            else f"{found}{certificate.delta:.4g} at the game's candidates"
        )
    except TypeError:  # no exact audit
        return
    except BrokenPromiseError as error:
        broken = str(error)
    if broken is not None:
        warnings.warn(broken, BrokenPromiseWarning, stacklevel=3)
