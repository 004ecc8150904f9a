"""The wheel of the public posterior."""

from __future__ import annotations

from typing import ClassVar

from ldp_gym.channels.wheel import Wheel


class AdaptiveWheel(Wheel):
    """The wheel of the public posterior's mixture: unlikely hypotheses huddle together (adaptive)."""

    adaptive: ClassVar[bool] = True
