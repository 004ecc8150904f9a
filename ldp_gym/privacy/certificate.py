"""Certificates: what a channel promises, next to what an audit finds.

A shipped channel is certified by its exact audit. A custom channel is not believed in its own
conclusions, ``delta_bounds`` and ``worst_case_messages``: its certificate rests on ``encode`` and
``log_density``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseWarning
from ldp_gym.core.registry import is_builtin
from ldp_gym.privacy.densities import (
    TOLERANCE,
    ExactEpsilon,
    check_situation,
    check_totals,
    exceeds,
    worst_of_messages,
)
from ldp_gym.privacy.exact import (
    ComparedMessages,
    declared_delta,
    exact_delta,
    exact_epsilon,
    messages_to_compare,
)
from ldp_gym.privacy.misfit import find_misfit
from ldp_gym.privacy.sampled import MessageSample, SampledDelta, sample_messages

_SENT_FIRST = 1000
"""Number of messages that are checked to be points of their space before an audit."""

_ABSOLUTE_ROUNDING = 1e-12
"""Absolute error of an eps that counts as rounding."""

_SAMPLES = 200_000
"""Number of messages whose densities are compared for the certificate of a custom channel."""

_SAMPLES_BEFORE_A_GAME = 20_000
"""Number of messages whose densities are compared before a game."""

_MOST_COUNTED = 200_000
"""Largest number of messages that are counted, to compare the sampler with the density."""

_LARGEST_TABLE = 4096
"""Largest table, in entries, that is audited before a game: a larger one takes longer than the game."""


@dataclass(frozen=True)
class Certificate:
    """Result of an audit at one table of candidates, next to the channel's promise.

    Attributes:
        epsilon: the eps that holds.
        delta: the delta that holds with it.
        claimed_epsilon: the eps that the channel promises.
        claimed_delta: the delta that the channel promises.
        method: the audit that was made.
        labels: the pair of labels that is told apart best, if the audit names one.
        message: the message that tells them apart, if the audit names one.
        sampled_delta: delta as estimated from the messages of a custom channel that is not pure.
        objection: a fault of the channel that makes its promise void, such as messages that do not follow
            its density; None if none was found.
        scope: the messages that were looked at, if they are not all.
    """

    epsilon: float
    delta: float
    claimed_epsilon: float
    claimed_delta: float
    method: str
    labels: tuple[int, int] | None = None
    message: Messages | None = None
    sampled_delta: SampledDelta | None = None
    objection: str | None = None
    scope: str | None = None

    @property
    def holds(self) -> bool:
        """True if the claim is met in real arithmetic, as far as the audit looked."""
        epsilon_limit = self.claimed_epsilon * (1.0 + TOLERANCE) + _ABSOLUTE_ROUNDING
        delta_limit = self.claimed_delta * (1.0 + TOLERANCE)
        is_kept = self.epsilon <= epsilon_limit and self.delta <= delta_limit
        return bool(is_kept and self.objection is None)

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        if math.isinf(self.claimed_epsilon):
            return "no privacy at all"
        if self.objection is not None:
            return "the promise fails"
        if not self.holds:
            return "the promise is broken"
        if self.scope is not None:
            return f"the promise holds over {self.scope}"
        return "the promise holds"

    def __str__(self) -> str:
        claim = f"eps = {self.claimed_epsilon:g}, delta = {self.claimed_delta:g}"
        result = f"eps = {self.epsilon:.9g}, delta = {self.delta:.6g}"
        sentence = f"{self.verdict}: promised {claim}; found {result}, by the {self.method}"
        if self.labels is not None:
            sentence += f"; labels {self.labels[0]} and {self.labels[1]} differ most"
        if self.objection is not None:
            sentence += f". It needs {self.objection}"
        return sentence


def uniform_posterior(channel: Channel) -> FloatArray | None:
    """Return the uniform public posterior for an adaptive channel, None for any other."""
    if not require_channel(channel).adaptive:
        return None
    return uniform_distribution(channel.num_hypotheses)


def certify(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None
) -> Certificate:
    """Audit a channel's claim at candidates ``(K, M)``: its eps if it is pure, its delta if it is not.

    It is about real arithmetic; :func:`~ldp_gym.audit.reachable` is about floats.

    A shipped channel is audited exactly. A custom channel is not believed in its own ``delta_bounds`` and
    ``worst_case_messages``. Messages that can be enumerated are; otherwise some 200,000 are drawn, among them
    rare ones, and the certificate's ``scope`` says so. Their densities are compared with its promise and with
    what it declares; how often labels send them is compared with the density. A correct channel fails with
    probability 2e-6 at most.

    Raises:
        TypeError: if messages cannot be enumerated, and the channel declares no worst case or no delta.
        ValueError: if the channel's density is unusable, such as NaN or a sum other than one.
    """
    channel = require_channel(channel)
    candidates, posterior = check_situation(channel, candidates, posterior)
    if not is_builtin(type(channel)):
        return _certify_custom(channel, candidates, posterior, _SAMPLES)
    if channel.pure:
        worst = exact_epsilon(channel, candidates, posterior)
        return _pure_certificate(channel, worst, "exact density ratio over all labels")
    bounds = exact_delta(channel, candidates, channel.epsilon, posterior)
    return Certificate(
        epsilon=channel.epsilon,
        delta=bounds.upper,
        claimed_epsilon=channel.epsilon,
        claimed_delta=channel.delta,
        method="accounted delta, an upper bound",
    )


def _pure_certificate(
    channel: Channel,
    worst: ExactEpsilon,
    method: str,
    objection: str | None = None,
    scope: str | None = None,
) -> Certificate:
    """Certificate of a pure channel whose largest density ratio is known."""
    return Certificate(
        epsilon=worst.epsilon,
        delta=0.0,
        claimed_epsilon=channel.epsilon,
        claimed_delta=channel.delta,
        method=method,
        labels=worst.labels,
        message=worst.message,
        objection=objection,
        scope=scope,
    )


def _certify_custom(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None, samples: int
) -> Certificate:
    """Audit a custom channel by its sampler and its density.

    Args:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        posterior: the public posterior ``(K,)`` of an adaptive channel.
        samples: number of messages whose densities are compared.
    """
    # What the channel declares is read first: without it there is no certificate, and no need to sample.
    if channel.pure:
        compared = messages_to_compare(channel, candidates, posterior)
        worst = worst_of_messages(channel, compared.messages, candidates, posterior)
    else:
        bounds = declared_delta(channel, candidates, channel.epsilon, posterior)
    check_totals(channel, candidates, posterior)
    _check_first_messages(channel, candidates, posterior)

    situation = (candidates, posterior)
    misfit = find_misfit(channel, min(samples, _MOST_COUNTED), situations=[situation])
    sample = sample_messages(channel, candidates, posterior, samples)
    objection = misfit or sample.impossible
    if channel.pure:
        return _certify_custom_epsilon(channel, worst, compared, sample, objection)
    computed = _enumerated_delta(channel, candidates, posterior)
    return _certify_custom_delta(channel, bounds, computed, sample, objection)


def _check_first_messages(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> None:
    """Check that messages of all labels are points of the message space."""
    labels = np.arange(max(_SENT_FIRST, channel.num_labels)) % channel.num_labels
    messages = channel.privatize(labels, candidates, np.random.default_rng(0), posterior)
    channel.check_messages(messages)


def _certify_custom_epsilon(
    channel: Channel,
    worst: ExactEpsilon,
    compared: ComparedMessages,
    sample: MessageSample,
    objection: str | None,
) -> Certificate:
    """Certificate of a pure custom channel: its eps is the largest ratio that was compared or sampled.

    Args:
        channel: the channel.
        worst: largest density ratio of the compared messages.
        compared: all messages of the channel, or those that it names as worst cases.
        sample: messages that the channel sent.
        objection: a fault of the channel that is known already, or None.
    """
    num_compared = len(compared.messages)
    if compared.are_all:
        method = f"exact density ratio over all labels and all {num_compared:,} messages"
        scope = None
    else:
        method = "largest density ratio over all labels"
        scope = f"the listed worst cases ({num_compared:,}) and {sample.num_messages:,} sampled messages"

    if exceeds(sample.largest.epsilon, worst.epsilon):
        if objection is None:
            objection = (
                f"worst_case_messages among which the density ratio is largest: it is "
                f"{sample.largest.epsilon:.6g} at {sample.largest.message!r}, which was sent, and at most "
                f"{worst.epsilon:.6g} among them"
            )
        worst = sample.largest
    return _pure_certificate(channel, worst, method, objection, scope)


def _certify_custom_delta(
    channel: Channel,
    bounds: DeltaBounds,
    computed: float | None,
    sample: MessageSample,
    objection: str | None,
) -> Certificate:
    """Certificate of a custom channel with delta > 0, from its messages next to its declared bounds.

    Its delta is the declared upper bound, or larger if the messages prove more.

    Args:
        channel: the channel.
        bounds: its declared bounds on delta.
        computed: delta over all messages, or None if they cannot be enumerated.
        sample: messages that the channel sent.
        objection: a fault of the channel that is known already, or None.
    """
    estimate = sample.delta
    delta = bounds.upper
    method = (
        f"declared delta of at most {bounds.upper:.4g}, beside an estimate from messages of "
        f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g})"
    )
    scope: str | None = f"{sample.num_messages:,} sampled messages"
    if estimate.low > bounds.upper * (1.0 + TOLERANCE):
        delta = estimate.low
        first, second = estimate.labels
        objection = objection or (
            f"delta_bounds that hold: it declares a delta of at most {bounds.upper:.4g}, and its messages "
            f"prove at least {estimate.low:.4g} (labels {first} against {second})"
        )

    if computed is not None:
        method = (
            f"declared delta of at most {bounds.upper:.4g}, beside one of {computed:.4g} computed over "
            f"all messages"
        )
        scope = None
        delta = max(delta, computed)
        is_inside = bounds.lower - TOLERANCE <= computed <= bounds.upper + TOLERANCE
        if not is_inside:
            objection = objection or (
                f"delta_bounds that hold: it declares {bounds.lower:.4g} to {bounds.upper:.4g}, and over "
                f"all messages delta is {computed:.6g}"
            )
    return Certificate(
        epsilon=channel.epsilon,
        delta=delta,
        claimed_epsilon=channel.epsilon,
        claimed_delta=channel.delta,
        method=method,
        labels=estimate.labels,
        sampled_delta=estimate,
        objection=objection,
        scope=scope,
    )


def _enumerated_delta(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None
) -> float | None:
    """Compute delta at the promised eps over all messages; None if they cannot be enumerated."""
    try:
        return Channel.delta_bounds(channel, candidates, channel.epsilon, posterior).upper
    except TypeError:
        return None


# -- Before a game ----------------------------------------------------------------------------------------


def warn_of_broken_promise(channel: Channel, candidates: FloatArray) -> None:
    """Warn if a custom channel, or the paper's literal clipping, breaks its promise at candidates ``(K, M)``.

    The other shipped channels are certified by the tests. Large tables are not audited: it would take longer
    than the game.
    """
    is_literal = isinstance(channel, ClippedChannel) and channel.clipping.rule == "paper"
    is_trusted = is_builtin(type(channel)) and not is_literal
    candidates = validation.numbers("candidates", candidates)
    if is_trusted or candidates.size > _LARGEST_TABLE:
        return
    fault = find_broken_promise(channel, candidates, _SAMPLES_BEFORE_A_GAME)
    if fault is not None:
        message = f"{fault} (at the game's candidates)"
        warnings.warn(message, BrokenPromiseWarning, stacklevel=3)


def find_broken_promise(
    channel: Channel, candidates: FloatArray, samples: int = _SAMPLES
) -> str | None:
    """Describe how a channel breaks its promise at candidates ``(K, M)``; None if no way was found.

    Adaptive channels are audited at the uniform public posterior.
    """
    candidates, posterior = check_situation(channel, candidates, uniform_posterior(channel))
    try:
        if is_builtin(type(channel)):
            certificate = certify(channel, candidates, posterior)
        else:
            certificate = _certify_custom(channel, candidates, posterior, samples)
    except TypeError:
        # The channel declares nothing that could be compared: its messages may still contradict its promise.
        return _fault_in_messages(channel, candidates, posterior, samples)
    if certificate.objection is not None:
        return f"no certificate for {channel!r}: it needs {certificate.objection}"
    if certificate.holds:
        return None
    return _describe_broken_promise(channel, certificate.epsilon, certificate.delta)


def _fault_in_messages(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None, samples: int
) -> str | None:
    """Describe how sampled messages contradict a channel's promise; None if they do not."""
    sample = sample_messages(channel, candidates, posterior, samples)
    if sample.impossible is not None:
        return f"no certificate for {channel!r}: it needs {sample.impossible}"
    if channel.pure and exceeds(sample.largest.epsilon, channel.epsilon):
        return _describe_broken_promise(channel, sample.largest.epsilon, 0.0)
    if not channel.pure and sample.delta.low > channel.delta:
        return _describe_broken_promise(channel, channel.epsilon, sample.delta.low)
    return None


def _describe_broken_promise(channel: Channel, epsilon: float, delta: float) -> str:
    """Sentence with the eps and delta that a channel has in place of those that it promises."""
    return f"{channel!r} breaks its promise: it has epsilon = {epsilon:.6g}, delta = {delta:.4g}"
