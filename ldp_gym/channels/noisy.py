"""Clipped log-likelihoods with additive noise: the paper's two channels, and a Gaussian rival."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ldp_gym.channels import accounting
from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.base import Public
from ldp_gym.channels.clipped import (
    NEGLIGIBLE,
    ClippedChannel,
    LogKernel,
    importance_weighted_losses,
    mark_revealed,
    revealed_coordinate,
    reveals_one,
)
from ldp_gym.channels.clipping import Cells
from ldp_gym.core import sampling, validation
from ldp_gym.core.arrays import (
    LONG_ROW,
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    at,
    masses,
    one_hot,
    per_table,
)

CALIBRATIONS = ("paper", "tight")
"""Yardstick of the noise: the paper's bound on a range, or the range at the candidates."""

_CHUNK = 2**14
"""Number of distances computed at a time, small enough to stay in the cache of one core."""


@dataclass(frozen=True)
class NoiseLaw:
    """A symmetric law of noise on the real line.

    Attributes:
        draw: function from uniforms to noise, by inverse transform.
        log_kernel: log density without its constant, as a function of the noise.
        log_norm: constant of the log density.
        reach: distance that the noise exceeds with probability at most ``e^-g``, as a function of
            g.
    """

    draw: Callable[[FloatArray], FloatArray]
    log_kernel: Callable[[FloatArray], FloatArray]
    log_norm: float
    reach: Callable[[float], float]


LAPLACE = NoiseLaw(
    draw=sampling.laplace,
    log_kernel=lambda x: np.copysign(x, -1.0),  # -|x|
    log_norm=-math.log(2.0),
    reach=lambda g: g,
)
GAUSS = NoiseLaw(
    draw=sampling.normal,
    log_kernel=lambda x: -0.5 * np.square(x),
    log_norm=-0.5 * math.log(2.0 * math.pi),
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


class _Reading(NamedTuple):
    """Content of messages that reveal one coordinate.

    Attributes:
        distances: distance of each label's level above the revealed value, in noise scales,
            ``(..., M)``; +inf for labels that h_t never reaches.
        scale: noise scale of the revealed loss, ``(...)``.
    """

    distances: FloatArray
    scale: FloatArray


class NoisyChannel(ClippedChannel):
    """Base of the channels that add noise to clipped log-likelihoods, and map them to losses.

    A message is ``-c (log pbar_j[h_t(y)] + noise + log M - c')``, eqs. (8) and (12). The other
    arguments are those of :class:`ClippedChannel`.

    Args:
        calibration: ``"paper"``: noise for log-likelihoods of range ``log(KT)``; ``"tight"``: for
            the public range ``D_j(x_t) = max_y log pbar_j - min_y log pbar_j`` of each coordinate,
            which is never larger. The offset is common to all coordinates: otherwise the truth need
            not have the least loss.
        gamma: sets the offset c', within which all noise of an episode stays with probability
            ``1 - e^-gamma``; log T when not given.
    """

    law: ClassVar[NoiseLaw]

    def __init__(
        self, *sizes: int, calibration: str = "paper", gamma: float | None = None, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.calibration = validation.choice("calibration", calibration, CALIBRATIONS)
        self.log_kt = accounting.log_range(self.num_hypotheses, self.horizon)
        gamma = accounting.resolved_gamma(gamma, self.horizon)
        self._reach = self.law.reach(gamma + self.log_kt)

        # Computed once: the accounting is too slow for every step.
        scale = self._paper_scale() if calibration == "paper" else self._unit_scale()
        self._scale = np.full(self.num_hypotheses, scale)
        self._flat_scale = min(1.0, self._paper_scale())
        slope = 1.0 / (self.log_kt + 2.0 * self._reach * scale)
        if not 0.0 < slope < np.inf:
            raise ValueError(
                f"{self!r} would need noise beyond the floats, of scale {scale}: raise epsilon"
            )

    @abstractmethod
    def _unit_scale(self) -> float:
        """Return the noise scale that hides coordinates of range 1."""

    def _paper_scale(self) -> float:
        """Return the noise scale that hides coordinates of range ``log(KT)`` (eq. (7))."""
        return self._unit_scale() * self.log_kt

    @abstractmethod
    def distances(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """Yield how far all labels' levels are above the revealed values, ``(J, ..., M)``.

        In noise scales; +inf for labels that h_t never reaches. The coordinates that a message
        reveals come in order, J at a time.
        """

    def noise(self, candidates: FloatArray, cells: Cells | None = None) -> Noise:
        """Return the public noise scales, offset and slope at candidates ``(..., K, M)``.

        ``cells`` are those of the candidates, if they are known.
        """
        scale = self._scale
        if self.calibration == "tight":
            if cells is None:
                cells = self.clipping.cells(candidates)
            lowest, highest = self.ranges(candidates, cells)
            widths = highest - lowest
            # A coordinate of width 0 does not depend on the label. A tiny width consists of
            # rounding errors, which unit scale hides too (or the paper's scale, if that is less).
            scale = scale * widths
            scale = np.where(widths > NEGLIGIBLE, scale, np.maximum(scale, self._flat_scale))
        offset = self._reach * scale.max(axis=-1)
        slope = 1.0 / (self.log_kt + 2.0 * offset)
        return Noise(scale, offset, slope)

    def to_loss(
        self, log_likelihood: FloatArray, offset: FloatArray, slope: FloatArray
    ) -> FloatArray:
        """Map noisy log-likelihoods to losses, Section 4, eq. (8)."""
        return mark_revealed(-slope * (log_likelihood + (np.log(self.num_labels) - offset)))

    def from_loss(self, losses: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """Map losses to noisy log-likelihoods: the inverse of :meth:`to_loss`."""
        return offset - np.log(self.num_labels) - losses / slope


class LaplaceSingle(NoisyChannel):
    """The log-likelihood of one random hypothesis, with Laplace noise (Algorithm 2, eq. (12)).

    Public coins draw a hypothesis J, private coins h_t(y) by :class:`Clipping`. The message has
    ``-c (log pbar_J[h_t(y)] + Laplace noise + log M - c')`` at J and 0 elsewhere: a loss in about
    [0, 1]. The noise scale is ``log(KT) / eps``, or ``D_J(x_t) / eps`` with
    ``calibration="tight"``.

    Example:
        K = 3, T = 100, eps = 1: the paper's scale is log 300 = 5.70. The ranges of this table need
        less:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> LaplaceSingle(3, 3, 100, calibration="tight").noise(table).scale.round(2).tolist()
        [2.04, 0.97, 1.76]

    Privacy: J does not depend on the label. The revealed log-likelihood has range at most
    ``log(KT)``, Section 4, eq. (7), so Laplace noise of scale ``log(KT) / eps`` keeps the ratio
    below ``e^eps`` (Lemma 6).

    When to use it: to reproduce the paper. When not: ``hybrid`` reveals the same with less noise at
    every eps, and comparisons tell far more.

    The base measure of :meth:`log_density` counts coordinates and takes Lebesgue's within one.
    """

    law: ClassVar[NoiseLaw] = LAPLACE
    free_of_num_labels: ClassVar[bool] = True
    num_uniforms = 4  # two for h_t, the coordinate, the noise

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of messages that reveal one coordinate."""
        return reveals_one(messages)

    def _unit_scale(self) -> float:
        """Return the Laplace scale that hides one coordinate of range 1."""
        return 1.0 / self.epsilon

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Reveal a random coordinate of the clipped log-likelihoods, with noise."""
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        coordinate, level = self._one_level(labels, candidates, uniforms, cells)
        noisy = level + at(noise.scale, coordinate) * self.law.draw(uniforms[..., 3])
        return one_hot(
            self.to_loss(noisy, noise.offset, noise.slope), coordinate, self.num_hypotheses
        )

    def distances(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """Yield how far the labels' levels are above the only revealed value, ``(1, ..., M)``."""
        reading = self._read(messages, candidates, cells)
        yield reading.distances[None]

    def _read(self, messages: Messages, candidates: FloatArray, cells: Cells) -> _Reading:
        """Read what messages reveal, in the noise scales of the coordinates that they reveal."""
        noise = self.noise(candidates, cells)
        coordinate = revealed_coordinate(messages)
        scale = at(noise.scale, coordinate)
        log_likelihood = self.from_loss(at(messages, coordinate), noise.offset, noise.slope)
        revealed = log_likelihood / scale

        if candidates.ndim == 2:
            # One table for all rounds: its levels are kept.
            levels_by_label = self._levels_by_label(candidates, cells)
            if levels_by_label.flags.f_contiguous:
                levels = levels_by_label.T[coordinate]
            else:
                levels = masses(levels_by_label, coordinate)
        else:
            label_masses = at(candidates, coordinate, slice(None))
            levels = self._levels_of(label_masses, cells.lengths, cells.total) / scale[..., None]
        return _Reading(levels - revealed[..., None], scale * noise.slope)

    @per_table
    def _levels_by_label(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """Return the levels ``log pbar_j[y]`` of a table in noise scales, ``(M, K)``.

        If M is large, the levels of one hypothesis are neighbours in memory.
        """
        levels = self._levels(candidates, cells) / self.noise(candidates, cells).scale[..., None]
        if self.num_labels >= LONG_ROW:
            return levels.T
        return np.ascontiguousarray(levels.T)

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""
        reading = self._read(messages, candidates, cells)
        log_norm = self.law.log_norm - np.log(reading.scale) - math.log(self.num_hypotheses)
        return LogKernel(self.law.log_kernel(reading.distances), log_norm)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return importance-weighted losses: public centres, plus K times the deviation."""
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        revealed = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        return importance_weighted_losses(messages, revealed, self.ranges(candidates, cells))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the messages without noise, for all labels and coordinates.

        Between two breakpoints ``log pbar_j[y]`` a mixture of Laplace densities is
        ``A e^v + B e^-v``, so the ratio of two is monotone there, and it is constant in the tails.
        So it is largest at a breakpoint.
        """
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        levels = self._levels(candidates, cells)[:, cells.lengths > 0.0]
        coordinates = np.repeat(np.arange(self.num_hypotheses), levels.shape[1])
        losses = self.to_loss(levels.reshape(-1), noise.offset, noise.slope)
        return one_hot(losses, coordinates, self.num_hypotheses)


class VectorChannel(NoisyChannel):
    """Base of the channels that send the losses of all hypotheses, each with independent noise.

    They need delta > 0. ``h_t(y)`` is drawn once and shared by all coordinates, so that what hides
    ``h_t(y)`` hides y.
    """

    pure: ClassVar[bool] = False

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: two for h_t, and one for each coordinate's noise."""
        return 2 + self.num_hypotheses

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Reveal all coordinates of the clipped log-likelihoods, with noise."""
        labels, uniforms = self._align(labels, candidates, uniforms)
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        clipped = self.clipping.draw(labels, cells, uniforms[..., :2])
        lengths = at(cells.lengths, clipped)[..., None]
        density = self.clipping.density(masses(candidates, clipped), lengths, cells.total)
        noisy = np.log(density) + noise.scale * self.law.draw(uniforms[..., 2:])
        return self.to_loss(noisy, noise.offset[..., None], noise.slope[..., None])

    def distances(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """Yield how far the labels' levels are above the revealed values, ``(J, ..., M)``."""
        noise = self.noise(candidates, cells)
        log_likelihoods = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        revealed = log_likelihoods / noise.scale
        levels = self._levels(candidates, cells) / noise.scale[..., None]
        leading_shape = np.broadcast_shapes(levels.shape[:-2], revealed.shape[:-1])
        shape = (*leading_shape, self.num_labels)

        # As many coordinates at a time as stay in the cache.
        step = max(1, _CHUNK // math.prod(shape))
        for start in range(0, self.num_hypotheses, step):
            chunk = slice(start, start + step)
            distances = np.empty((revealed[..., chunk].shape[-1], *shape))
            coordinates_last = np.moveaxis(distances, 0, -2)
            np.subtract(levels[..., chunk, :], revealed[..., chunk, None], out=coordinates_last)
            yield distances

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""
        terms = np.zeros((*messages.shape[:-1], self.num_labels))
        for distances in self.distances(messages, candidates, cells):
            for log_kernel in self.law.log_kernel(distances):
                terms += log_kernel

        noise = self.noise(candidates, cells)
        log_norms = self.law.log_norm - np.log(noise.scale * noise.slope[..., None])
        log_norm = np.broadcast_to(log_norms.sum(axis=-1), messages.shape[:-1])
        return LogKernel(terms, log_norm)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the noisy log-likelihoods without the public offset, negated."""
        noise = self.noise(candidates)
        return -self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])

    @abstractmethod
    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """Bound the least delta of noise on coordinates that move by ``shifts`` ``(K,)`` scales."""

    def delta_bounds(
        self, candidates: FloatArray, epsilon: float, posterior: Public = None
    ) -> DeltaBounds:
        """Bound the least delta by the accounting of the noise.

        From above: no two labels move a coordinate by more than its range, and mixing by h_t only
        helps.

        From below: let P and P' be the kernels of two labels that are far apart, and S the event on
        which they differ most. Mixed with a share mu = 1/T of the average A over all cells, they
        differ by at least ``(1 - mu) delta - (e^eps - 1) mu A(S)``. Here ``A(S) <= P(S) + delta'``
        with delta' the bound from above, and ``P(S) <= delta(e) / (1 - e^(e - eps))`` for all e
        below eps.
        """
        cells = self.clipping.cells(candidates)
        levels = self._levels(candidates, cells)[:, cells.lengths > 0.0]
        levels = levels / self.noise(candidates, cells).scale[:, None]
        upper = self._delta(np.ptp(levels, axis=-1), epsilon).upper

        shifts = _largest_move(levels)
        probability = min(
            self._delta(shifts, lower_epsilon).upper / -np.expm1(lower_epsilon - epsilon)
            for lower_epsilon in (0.5 * epsilon, 0.9 * epsilon)
        )
        average = min(1.0, probability + upper)
        mixing = self.clipping.mixing
        gain = np.expm1(min(epsilon, 700.0))
        lower = (1.0 - mixing) * self._delta(shifts, epsilon).lower - gain * mixing * average
        return DeltaBounds(max(0.0, float(lower)), upper)


def _largest_move(levels: FloatArray) -> FloatArray:
    """Return by how much each of K coordinates moves between two labels that are far apart.

    The labels are the farthest pair of those that are extreme in a coordinate of levels ``(K, M)``.
    """
    extreme = levels[:, np.unique([levels.argmax(axis=-1), levels.argmin(axis=-1)])]
    moves = np.abs(extreme[:, :, None] - extreme[:, None, :]).reshape(len(levels), -1)
    farthest = np.square(moves).sum(axis=0).argmax()
    return moves[:, farthest]


class LaplaceVector(VectorChannel):
    """The log-likelihoods of all hypotheses, each with Laplace noise (Algorithm 1, eq. (8)).

    It needs delta > 0. Every coordinate gets independent noise of scale
    ``(2 sqrt(2K ln(1/delta)) + sqrt(K eps)) log(KT) / eps``; with ``calibration="tight"`` the
    composition is accounted numerically, from the range that each coordinate really has.

    Example:
        K = 3, T = 100, eps = 1, delta = 1e-5; pure composition would need ``3 log 300 = 17``.

        >>> table = np.full((3, 3), 1 / 3)
        >>> LaplaceVector(3, 3, 100, delta=1e-5).noise(table).scale.round(1).tolist()
        [104.7, 104.7, 104.7]

    Privacy: each coordinate has range at most ``log(KT)``, and advanced composition over the K of
    them makes the vector (eps, delta)-private (Lemma 3).

    When to use it: to reproduce the paper. When not: K below about 100 with the paper's scale,
    which is larger than that of pure composition; pass ``calibration="tight"``, 3 to 4 times less
    noise.
    """

    law: ClassVar[NoiseLaw] = LAPLACE

    def _unit_scale(self) -> float:
        """Return the Laplace scale that hides K coordinates of range 1."""
        return accounting.laplace_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _paper_scale(self) -> float:
        """Return Algorithm 1's Laplace scale."""
        return accounting.vector_noise_scale(
            self.num_hypotheses, self.horizon, self.epsilon, self.delta
        )

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """Bound the least delta numerically, by privacy loss distributions."""
        return accounting.laplace_delta(shifts, epsilon)


class GaussianVector(VectorChannel):
    """The log-likelihoods of all hypotheses, each with Gaussian noise.

    It needs delta > 0. As :class:`LaplaceVector`, with normal noise: scaled to ranges of 1, K
    coordinates move by at most sqrt(K) in Euclidean norm, which the analytic Gaussian mechanism
    (Balle and Wang 2018) hides.

    Example:
        K = 3, T = 100, eps = 1, delta = 1e-5: a standard deviation of 37 in log-likelihood units.

        >>> table = np.full((3, 3), 1 / 3)
        >>> GaussianVector(3, 3, 100, delta=1e-5).noise(table).scale.round(1).tolist()
        [36.9, 36.9, 36.9]

    Privacy: with shift s in units of the standard deviation, delta is
    ``Phi(s/2 - eps/s) - e^eps Phi(-s/2 - eps/s)``; the scale solves this for ``s = sqrt(K)``
    ranges.

    When to use it: learners that average messages, such as WMA, and K of 8 or more. When not: Bayes
    does as well on Laplace noise, whose density has a sharper peak.
    """

    law: ClassVar[NoiseLaw] = GAUSS

    def _unit_scale(self) -> float:
        """Return the standard deviation that hides K coordinates of range 1."""
        return accounting.gaussian_vector_scale(self.num_hypotheses, self.epsilon, self.delta)

    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """Return the exact delta twice: it depends on the Euclidean norm of the shifts only."""
        delta = accounting.gaussian_delta(float(np.sqrt(np.square(shifts).sum())), epsilon)
        return DeltaBounds(delta, delta)
