"""Algorithm 1's channel: all K clipped log-likelihoods, each with Laplace noise."""

from __future__ import annotations

from typing import ClassVar

from ldp_gym.channels import accounting
from ldp_gym.channels.noise_laws import LAPLACE, NoiseLaw
from ldp_gym.channels.noise_scales import vector_noise_scale
from ldp_gym.channels.vector import VectorChannel
from ldp_gym.core.arrays import FloatArray


class LaplaceVector(VectorChannel):
    """The log-likelihood of every hypothesis, with Laplace noise (Algorithm 1, eq. (8)); needs delta > 0.

    Privacy: each coordinate alone is eps'-private; advanced composition over the K of them makes the vector
    (eps, delta)-private (Lemma 3). With ``calibration="tight"`` the composition is accounted
    numerically, and is never worse than the pure one: 3 to 4 times less noise.
    """

    law: ClassVar[NoiseLaw] = LAPLACE

    def _unit_scale(self) -> float:
        return accounting.laplace_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _paper_scale(self) -> float:
        return vector_noise_scale(self.num_hypotheses, self.horizon, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> accounting.DeltaBounds:
        return accounting.laplace_delta(shifts, epsilon)
