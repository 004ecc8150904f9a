"""A channel's promise beside what an exact audit finds, and a warning where it is broken."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

from ldp_gym.channels.base import Channel, as_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseWarning
from ldp_gym.core.registry import is_builtin
from ldp_gym.privacy.exact import exact_delta, exact_epsilon
from ldp_gym.privacy.floats import Reachability, reachable

TOLERANCE = 1e-9
"""How far above its claim a channel may be in floats, relatively."""

_ROUNDING = 1e-12
"""How far off a difference of two log densities may be."""

_MESSAGES, _LEAST_MESSAGES = 2_000, 40
"""Of floats a certificate looks at so many messages times labels, and at least at so many messages."""

_LARGEST = 4096
"""Tables of more than K M entries are not audited on the way: it would take longer than the game."""


@dataclass(frozen=True)
class Certificate:
    """What an audit found of a channel at one class, beside what the channel claims.

    Attributes:
        epsilon: the eps that holds.
        delta: the delta that holds with it.
        claimed_epsilon: what the channel promises.
        claimed_delta: what the channel promises.
        method: how the figures were obtained.
        labels: the pair of labels that is told apart best, where the method names one.
        message: the message that tells them apart, where the method names one.
        audit_floats: what finds :attr:`floats`, when it is first asked for.
    """

    epsilon: float
    delta: float
    claimed_epsilon: float
    claimed_delta: float
    method: str
    labels: tuple[int, int] | None = None
    message: Messages | None = None
    audit_floats: Callable[[], Reachability] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def floats(self) -> Reachability:
        """Whether the messages keep their secret on a machine: another question, and another answer."""
        if self.audit_floats is None:
            return Reachability("not judged", "the certificate was not made from a channel")
        return self.audit_floats()

    @property
    def holds(self) -> bool:
        """Whether the claim is met, in real arithmetic."""
        within = self.epsilon <= self.claimed_epsilon * (1.0 + TOLERANCE) + _ROUNDING
        return within and self.delta <= self.claimed_delta * (1.0 + TOLERANCE)

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        if math.isinf(self.claimed_epsilon):
            return "no privacy at all"
        return "the promise holds" if self.holds else "the promise is broken"


def uniform_posterior(channel: Channel) -> FloatArray | None:
    """The public posterior before any message, for an adaptive channel; None for any other."""
    num_hypotheses = as_channel(channel).num_hypotheses
    return uniform_distribution(num_hypotheses) if channel.adaptive else None


def certify(channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None) -> Certificate:
    """Audit a channel's own claim at these candidates: exactly if it is pure, by its delta if it is not."""
    claim = as_channel(channel).epsilon, channel.delta
    count = max(_LEAST_MESSAGES, _MESSAGES // channel.num_labels)
    audit_floats = partial(reachable, channel, candidates, posterior, messages=count)
    if channel.pure:
        found = exact_epsilon(channel, candidates, posterior)
        method = "exact density ratio over all labels"
        return Certificate(found.epsilon, 0.0, *claim, method, found.labels, found.message, audit_floats)
    bounds = exact_delta(channel, candidates, channel.epsilon, posterior)
    method = "accounted delta, an upper bound"
    return Certificate(channel.epsilon, bounds.upper, *claim, method, audit_floats=audit_floats)


def warn_of_broken_promise(channel: Channel, candidates: FloatArray) -> None:
    """Warn if a channel that may break its promise does so at these candidates ``(K, M)``.

    The shipped channels keep theirs, but for the paper's own clipping; the tests see to that. A channel whose
    density cannot be audited exactly is not judged.
    """
    literal = isinstance(channel, ClippedChannel) and channel.clipping.rule == "paper"
    if candidates.size > _LARGEST or (is_builtin(type(channel)) and not literal):
        return
    try:
        certificate = certify(channel, candidates, uniform_posterior(channel))
    except TypeError:  # it does not say where its density ratio is largest
        return
    if not certificate.holds:
        warnings.warn(
            f"{channel!r} breaks its promise: it has epsilon = {certificate.epsilon:.6g}, delta = "
            f"{certificate.delta:.4g} at the game's candidates. Less is private than it claims",
            BrokenPromiseWarning,
            stacklevel=3,
        )
