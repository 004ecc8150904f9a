"""Certificates: a channel's promise next to what an exact audit finds, and a warning where it is broken."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, uniform_distribution
from ldp_gym.core.errors import BrokenPromiseError, BrokenPromiseWarning
from ldp_gym.core.registry import is_builtin
from ldp_gym.privacy.exact import exact_delta, exact_epsilon

TOLERANCE = 1e-9
"""Relative tolerance of a claim, for rounding."""

_ROUNDING = 1e-12
"""Absolute tolerance of a difference of two log densities."""

_LARGEST = 4096
"""Largest table, in entries, that is audited before a game: a larger one takes longer than the game."""


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
        within = self.epsilon <= self.claimed_epsilon * (1.0 + TOLERANCE) + _ROUNDING
        return within and self.delta <= self.claimed_delta * (1.0 + TOLERANCE)

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        if math.isinf(self.claimed_epsilon):
            return "no privacy at all"
        return "the promise holds" if self.holds else "the promise is broken"


def uniform_posterior(channel: Channel) -> FloatArray | None:
    """Return the uniform public posterior for an adaptive channel, None for any other."""
    num_hypotheses = require_channel(channel).num_hypotheses
    return uniform_distribution(num_hypotheses) if channel.adaptive else None


def certify(channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None) -> Certificate:
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
        found = f"{channel!r} breaks its promise: it has epsilon = {certificate.epsilon:.6g}, delta = "
        broken = None if certificate.holds else f"{found}{certificate.delta:.4g} at the game's candidates"
    except TypeError:  # no exact audit
        return
    except BrokenPromiseError as error:
        broken = str(error)
    if broken is not None:
        warnings.warn(broken, BrokenPromiseWarning, stacklevel=3)
