"""Clipped log-likelihoods with additive noise: the paper's two channels, and their calibration."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ldp_gym.channels.clipped import NEGLIGIBLE, ClippedChannel, mark_revealed
from ldp_gym.channels.clipping import Cells
from ldp_gym.core import sampling, validation
from ldp_gym.core.arrays import FloatArray, Messages

CALIBRATIONS = ("paper", "tight")


@dataclass(frozen=True)
class NoiseLaw:
    """A symmetric law on the line.

    Attributes:
        draw: noise from uniforms, by inverse transform.
        log_kernel: the log density up to its constant.
        log_norm: the constant.
        variance: its variance.
        reach: distance that the noise exceeds with probability at most ``e^-g``, as a function of g.
    """

    draw: Callable[[FloatArray], FloatArray]
    log_kernel: Callable[[FloatArray], FloatArray]
    log_norm: float
    variance: float
    reach: Callable[[float], float]


LAPLACE = NoiseLaw(
    draw=sampling.laplace,
    log_kernel=lambda x: np.copysign(x, -1.0),
    log_norm=-math.log(2.0),
    variance=2.0,
    reach=lambda g: g,
)
GAUSS = NoiseLaw(
    draw=sampling.normal,
    log_kernel=lambda x: -0.5 * np.square(x),
    log_norm=-0.5 * math.log(2.0 * math.pi),
    variance=1.0,
    reach=lambda g: math.sqrt(2.0 * (g + math.log(2.0))),
)


class Noise(NamedTuple):
    """Public numbers by which a round's log-likelihoods turn into losses.

    Attributes:
        scale: the noise scale b_j of each coordinate, in log-likelihood units, ``(..., K)``.
        offset: ``c'``, ``(...)``.
        slope: ``c = 1 / (log(KT) + 2 c')``, ``(...)``.
    """

    scale: FloatArray
    offset: FloatArray
    slope: FloatArray


class NoisyChannel(ClippedChannel):
    """A noisy, affine image of the clipped log-likelihoods.

    A message is ``-c (log pbar_j[h_t(y)] + noise + log M - c')``, eqs. (8) and (12). The other
    arguments are those of :class:`ClippedChannel`.

    Args:
        calibration: ``"paper"``: noise for log-likelihoods of range ``log(KT)``; ``"tight"``: for the public
            range ``D_j(x_t) = max_y log pbar_j - min_y log pbar_j`` of each coordinate, which is never
            larger. The offset is common to all coordinates: otherwise the truth need not have the least loss.
        gamma: sets the offset c', within which all noise of an episode stays with probability 1 - e^-gamma;
            log T when not given.
    """

    law: ClassVar[NoiseLaw]

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        clipping: str = "continuous",
        calibration: str = "paper",
        gamma: float | None = None,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta, clipping=clipping)
        self.calibration = validation.choice("calibration", calibration, CALIBRATIONS)
        self.log_kt = math.log(self.num_hypotheses) + math.log(self.horizon)
        gamma = math.log(self.horizon) if gamma is None else validation.positive("gamma", gamma)
        self._reach = self.law.reach(gamma + self.log_kt)
        # Worked out once: the accounting takes a moment, and a step must not pay for it.
        scale = self._paper_scale() if calibration == "paper" else self._unit_scale()
        self._scale = np.full(self.num_hypotheses, scale)
        self._flat_scale = min(1.0, self._paper_scale())
        if not 0.0 < 1.0 / (self.log_kt + 2.0 * self._reach * scale) < np.inf:
            raise ValueError(f"{self!r} would need noise beyond the floats, of scale {scale}: raise epsilon")

    @abstractmethod
    def _unit_scale(self) -> float:
        """The noise scale that hides coordinates of range 1."""

    def _paper_scale(self) -> float:
        """The noise scale that hides coordinates of range ``log(KT)``, Section 4, eq. (7)."""
        return self._unit_scale() * self.log_kt

    @abstractmethod
    def distances(self, messages: Messages, candidates: FloatArray, cells: Cells) -> Iterator[FloatArray]:
        """Distances of the levels of all labels above a revealed value, in noise scales, ``(..., M)``.

        One after another for the coordinates that a message reveals; +inf where h_t never goes.
        """

    def noise(self, candidates: FloatArray, cells: Cells | None = None) -> Noise:
        """The public noise scales, offset and slope at these candidates."""
        scale = self._scale
        if self.calibration == "tight":
            lowest, highest = self.ranges(candidates, cells or self.clipping.cells(candidates))
            ranges = highest - lowest
            # A coordinate of no range carries no label: unit scale (or the paper's, if less) hides the
            # rounding of its levels, of which a tiny range consists, too.
            scale = scale * ranges
            scale = np.where(ranges > NEGLIGIBLE, scale, np.maximum(scale, self._flat_scale))
        offset = self._reach * scale.max(axis=-1)
        return Noise(scale, offset, 1.0 / (self.log_kt + 2.0 * offset))

    def _coordinate_variance(self, candidates: FloatArray) -> FloatArray:
        """A bound on the variance of each noisy log-likelihood around its range's centre, ``(..., K)``."""
        cells = self.clipping.cells(candidates)
        lowest, highest = self.ranges(candidates, cells)
        return self.law.variance * self.noise(candidates, cells).scale ** 2 + ((highest - lowest) / 2.0) ** 2

    def to_loss(self, log_likelihood: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """The loss that a noisy log-likelihood turns into, Section 4, eq. (8)."""
        return mark_revealed(-slope * (log_likelihood + (np.log(self.num_labels) - offset)))

    def from_loss(self, losses: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """The inverse of :meth:`to_loss`: the noisy log-likelihood that a loss stands for."""
        return offset - np.log(self.num_labels) - losses / slope
