"""The uniform mixture, a baseline that never learns."""

from __future__ import annotations

import numpy as np

from ldp_agents.base import ExponentialWeights
from ldp_gym.core.arrays import FloatArray, Messages


class Uniform(ExponentialWeights):
    """Never learns: the uniform mixture of the candidates."""

    rate = 0.0
    track = "uninformed"

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        leading = messages.shape[: messages.ndim - len(self.game.channel.message_shape)]
        return np.zeros((*leading, self.game.num_hypotheses))
