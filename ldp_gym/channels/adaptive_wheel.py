"""The wheel of the public posterior."""

from __future__ import annotations

from ldp_gym.channels.adaptive import AdaptiveChannel
from ldp_gym.channels.wheel import Wheel
from ldp_gym.core.arrays import FloatArray


class AdaptiveWheel(AdaptiveChannel, Wheel):
    """The wheel on which likely hypotheses have much room, and unlikely ones stand close together."""

    def _weights(self, posterior: FloatArray | None) -> FloatArray:
        return self._public(posterior)
