"""A word of warning before a game is played on a channel that breaks its promise."""

from __future__ import annotations

import warnings

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.errors import BrokenPromiseWarning
from ldp_gym.numerics.arrays import FloatArray
from ldp_gym.privacy.certificate import certify, uniform_posterior
from ldp_gym.registry import is_builtin

_LARGEST = 4096
"""Tables of more than K M entries are not audited on the way: it would take longer than the game."""


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
