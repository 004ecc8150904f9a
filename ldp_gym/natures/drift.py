"""A walk."""

from __future__ import annotations

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.sampling import normal
from ldp_gym.natures.base import NatureView
from ldp_gym.natures.iid import IID


class Drift(IID):
    """Contexts that move slowly: each is close to the one before.

    A stationary walk ``x_t = sqrt(1 - r^2) x_{t-1} + r z_t`` with standard normal steps and start.

    Args:
        context_dim: d.
        rate: r in (0, 1]; the walk forgets its past in about ``2 / r^2`` rounds.
    """

    def __init__(self, context_dim: int, rate: float = 0.1) -> None:
        super().__init__(context_dim)
        self.rate = validation.positive("rate", rate, most=1.0)

    def contexts(self, view: NatureView) -> FloatArray:
        contexts, previous = normal(view.uniforms), view.previous
        keep = np.sqrt(1.0 - self.rate**2)
        for t in range(contexts.shape[1]):
            step = contexts[:, t]
            previous = np.where(view.rounds[:, t, None] == 0, step, keep * previous + self.rate * step)
            contexts[:, t] = previous
        return contexts
