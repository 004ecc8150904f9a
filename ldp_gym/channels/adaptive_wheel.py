"""The wheel of the public posterior."""

from __future__ import annotations

from ldp_gym.channels.adaptive import AdaptiveChannel
from ldp_gym.channels.wheel import Wheel


class AdaptiveWheel(AdaptiveChannel, Wheel):
    """The wheel of the public posterior's mixture: unlikely hypotheses huddle together (adaptive)."""
