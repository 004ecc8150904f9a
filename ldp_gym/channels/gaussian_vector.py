"""All K clipped log-likelihoods with Gaussian noise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ldp_gym.channels import accounting
from ldp_gym.channels.noise_laws import GAUSS, NoiseLaw
from ldp_gym.channels.vector import VectorChannel
from ldp_gym.core.arrays import FloatArray


class GaussianVector(VectorChannel):
    """The log-likelihood of every hypothesis, each with Gaussian noise; needs delta > 0.

    Privacy: K coordinates, each scaled to its range, move by at most sqrt(K) in Euclidean norm between two
    labels; the analytic Gaussian mechanism (Balle and Wang 2018) hides that with the least variance.

    Use it for learners that average messages, such as WMA, and K of 8 or more: at eps = 1 its noise has a
    smaller standard deviation than that of ``laplace-vector``. The exact posterior does as well on Laplace
    noise, whose density has a sharper peak.
    """

    law: ClassVar[NoiseLaw] = GAUSS

    def _unit_scale(self) -> float:
        return accounting.gaussian_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> accounting.DeltaBounds:
        delta = accounting.gaussian_delta(float(np.sqrt(np.square(shifts).sum())), epsilon)
        return accounting.DeltaBounds(delta, delta)
