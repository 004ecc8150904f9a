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
"""Ranges that the noise is scaled to: the paper's bound, or the range at the candidates."""

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
    """Noise that each label would explain, in messages that reveal one hypothesis j.

    Attributes:
        distances: ``log pbar_j[y]`` minus the revealed noisy log-likelihood, in noise scales,
            ``(..., M)``; +inf for labels that h_t never reaches.
        loss_scale: scale of the noise in the revealed loss, ``(...)``.
    """

    distances: FloatArray
    loss_scale: FloatArray


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
    """Law of the noise of one coordinate, at scale 1."""

    def __init__(
        self, *sizes: int, calibration: str = "paper", gamma: float | None = None, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.calibration = validation.choice("calibration", calibration, CALIBRATIONS)
        self.log_kt = accounting.log_range(self.num_hypotheses, self.horizon)
        gamma = accounting.resolved_gamma(gamma, self.horizon)
        self._reach = self.law.reach(gamma + self.log_kt)

        # Computed once: the accounting is too slow for every step.
        if calibration == "paper":
            scale = self._paper_scale()
        else:
            scale = self._unit_scale()
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
        """Yield labels' log-likelihoods minus revealed values in noise scales, ``(J, ..., M)``.

        The log-likelihood of label y under hypothesis j is ``log pbar_j[y]``; +inf stands for
        labels that h_t never reaches. The first axis holds revealed hypotheses, J at a time, in
        their order.
        """

    def noise(self, candidates: FloatArray, cells: Cells | None = None) -> Noise:
        """Return the public noise scales, offset and slope at candidates ``(..., K, M)``.

        Args:
            candidates: the public ``f_j(x_t)``.
            cells: the cells of the candidates, if they are known already.
        """
        scale = self._scale
        if self.calibration == "tight":
            if cells is None:
                cells = self.clipping.cells(candidates)
            scale = self._scale_of_ranges(candidates, cells)
        offset = self._reach * scale.max(axis=-1)
        slope = 1.0 / (self.log_kt + 2.0 * offset)
        return Noise(scale, offset, slope)

    def _scale_of_ranges(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """Return noise scales ``(..., K)`` in proportion to the ranges of the log-likelihoods."""
        ranges = self.ranges(candidates, cells)
        widths = ranges.highest - ranges.lowest
        scale = self._scale * widths

        # A coordinate of width 0 does not depend on the label. A tiny width consists of rounding
        # errors, which unit scale hides too (or the paper's scale, if that is less).
        return np.where(widths > NEGLIGIBLE, scale, np.maximum(scale, self._flat_scale))

    def to_loss(
        self, log_likelihood: FloatArray, offset: FloatArray, slope: FloatArray
    ) -> FloatArray:
        """Map noisy log-likelihoods ``log pbar`` to losses, Section 4, eq. (8), elementwise.

        A loss is ``-c (log pbar + log M - c')`` with slope c and offset c'.
        """
        return mark_revealed(-slope * (log_likelihood + (np.log(self.num_labels) - offset)))

    def from_loss(self, losses: FloatArray, offset: FloatArray, slope: FloatArray) -> FloatArray:
        """Map losses to noisy log-likelihoods ``c' - log M - loss / c``, elementwise.

        It is the inverse of :meth:`to_loss`, with slope c and offset c'.
        """
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
        """Draw messages ``(..., K)`` that reveal the noisy log-likelihood of one hypothesis."""
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        drawn = self._draw_coordinate(labels, candidates, uniforms, cells)
        noise_coin = uniforms[..., 3]
        scale = at(noise.scale, drawn.coordinate)
        noisy = drawn.log_likelihood + scale * self.law.draw(noise_coin)
        losses = self.to_loss(noisy, noise.offset, noise.slope)
        return one_hot(losses, drawn.coordinate, self.num_hypotheses)

    def distances(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """Yield labels' log-likelihoods minus the revealed value, in noise scales.

        One array ``(1, ..., M)``: a message reveals one hypothesis j only. The log-likelihood of
        label y is ``log pbar_j[y]``; +inf stands for labels that h_t never reaches.
        """
        reading = self._read(messages, candidates, cells)
        yield reading.distances[None]

    def _read(self, messages: Messages, candidates: FloatArray, cells: Cells) -> _Reading:
        """Compare the value that a message reveals with the log-likelihood of each label.

        Both are divided by the noise scale of the revealed hypothesis.
        """
        noise = self.noise(candidates, cells)
        coordinate = revealed_coordinate(messages)
        scale = at(noise.scale, coordinate)
        revealed_loss = at(messages, coordinate)
        revealed = self.from_loss(revealed_loss, noise.offset, noise.slope) / scale

        if candidates.ndim == 2:
            log_pbar = self._log_pbar_of_table(coordinate, candidates, cells)
        else:
            label_masses = at(candidates, coordinate, slice(None))
            log_pbar = self._log_pbar_of_masses(label_masses, cells.lengths, cells.total)
            log_pbar = log_pbar / scale[..., None]
        return _Reading(log_pbar - revealed[..., None], loss_scale=scale * noise.slope)

    def _log_pbar_of_table(
        self, coordinate: IntArray, candidates: FloatArray, cells: Cells
    ) -> FloatArray:
        """Return ``log pbar_j[y]`` of hypotheses j ``(...)`` in noise scales, ``(..., M)``.

        All rounds share the candidates ``(K, M)``, so the logarithms are computed once.
        """
        log_pbar_by_label = self._log_pbar_by_label(candidates, cells)
        hypotheses_are_rows_in_memory = log_pbar_by_label.flags.f_contiguous
        if hypotheses_are_rows_in_memory:
            return log_pbar_by_label.T[coordinate]
        return masses(log_pbar_by_label, coordinate)

    @per_table
    def _log_pbar_by_label(self, candidates: FloatArray, cells: Cells) -> FloatArray:
        """Return ``log pbar_j[y]`` of a table ``(K, M)`` in noise scales, ``(M, K)``.

        The memory layout makes look-ups fast: the numbers of a label are neighbours, or those of a
        hypothesis if there are many labels.
        """
        scale = self.noise(candidates, cells).scale
        log_pbar = self._log_pbar(candidates, cells) / scale[..., None]
        if self.num_labels >= LONG_ROW:
            return log_pbar.T
        return np.ascontiguousarray(log_pbar.T)

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label."""
        reading = self._read(messages, candidates, cells)
        log_norm = self.law.log_norm - np.log(reading.loss_scale) - math.log(self.num_hypotheses)
        return LogKernel(self.law.log_kernel(reading.distances), log_norm)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return unbiased losses ``(..., K)``: minus the noisy log-likelihoods, on average.

        For the revealed hypothesis, K times the deviation from the middle of its public range is
        counted (:func:`importance_weighted_losses`); for the others, the middle of their range.
        """
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        revealed = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        return importance_weighted_losses(messages, revealed, self.ranges(candidates, cells))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return the messages without noise, for all labels and all hypotheses.

        Between two neighbouring values ``log pbar_j[y]`` a mixture of Laplace densities of v is
        ``A e^v + B e^-v``, so the ratio of two is monotone there, and it is constant in the tails.
        So it is largest at one of these values.
        """
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        log_pbar = self._log_pbar(candidates, cells)[:, cells.lengths > 0.0]
        coordinates = np.repeat(np.arange(self.num_hypotheses), log_pbar.shape[1])
        losses = self.to_loss(log_pbar.reshape(-1), noise.offset, noise.slope)
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
        """Draw messages ``(..., K)``: noisy log-likelihoods of the clipped label, as losses.

        The map h_t of :class:`Clipping` clips the label once, for all hypotheses.
        """
        labels, uniforms = self._align(labels, candidates, uniforms)
        clipping_coins = uniforms[..., :2]
        noise_coins = uniforms[..., 2:]
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)

        clipped = self.clipping.draw(labels, cells, clipping_coins)
        lengths = at(cells.lengths, clipped)[..., None]
        density = self.clipping.density(masses(candidates, clipped), lengths, cells.total)
        noisy = np.log(density) + noise.scale * self.law.draw(noise_coins)
        return self.to_loss(noisy, noise.offset[..., None], noise.slope[..., None])

    def distances(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> Iterator[FloatArray]:
        """Yield labels' log-likelihoods minus revealed values in noise scales, ``(J, ..., M)``.

        A message reveals a noisy log-likelihood of every hypothesis. The log-likelihood of label y
        under hypothesis j is ``log pbar_j[y]``; +inf stands for labels that h_t never reaches. As
        many hypotheses j come at a time, J, as stay in the cache.
        """
        noise = self.noise(candidates, cells)
        log_likelihoods = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        revealed = log_likelihoods / noise.scale
        log_pbar = self._log_pbar(candidates, cells) / noise.scale[..., None]
        leading_shape = np.broadcast_shapes(log_pbar.shape[:-2], revealed.shape[:-1])
        shape_of_one = (*leading_shape, self.num_labels)  # distances for one hypothesis

        hypotheses_at_once = max(1, _CHUNK // math.prod(shape_of_one))
        for start in range(0, self.num_hypotheses, hypotheses_at_once):
            stop = min(start + hypotheses_at_once, self.num_hypotheses)
            distances = np.empty((stop - start, *shape_of_one))

            # The same memory with axes (..., J, M), like the numbers that are subtracted.
            hypotheses_before_labels = np.moveaxis(distances, 0, -2)
            np.subtract(
                log_pbar[..., start:stop, :],
                revealed[..., start:stop, None],
                out=hypotheses_before_labels,
            )
            yield distances

    def _log_kernel(self, messages: Messages, candidates: FloatArray, cells: Cells) -> LogKernel:
        """Return the log density of messages given the clipped label.

        The noise of the coordinates is independent, so their log densities are added up.
        """
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
        """Return minus the noisy log-likelihoods of all hypotheses, ``(..., K)``."""
        noise = self.noise(candidates)
        return -self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])

    @abstractmethod
    def _delta(self, shifts: FloatArray, epsilon: float) -> DeltaBounds:
        """Bound the least delta of noise on coordinates that move by ``shifts`` ``(K,)`` scales."""

    def delta_bounds(
        self, candidates: FloatArray, epsilon: float, posterior: Public = None
    ) -> DeltaBounds:
        """Bound the least delta of the channel, from that of its noise on two labels' numbers.

        From above: no two labels move a coordinate by more than its range, and mixing by h_t only
        helps.

        From below: let P and P' be the laws of a message from two labels that are far apart, if h_t
        keeps them, and S the event on which they differ most. Mixed with a share mu = 1/T of the
        average A over all cells, they differ by at least ``(1 - mu) delta - (e^eps - 1) mu A(S)``.
        Here ``A(S) <= P(S) + delta'`` with delta' the bound from above, and
        ``P(S) <= delta(e) / (1 - e^(e - eps))`` for all e below eps, of which two are tried.
        """
        cells = self.clipping.cells(candidates)
        log_pbar = self._log_pbar(candidates, cells)[:, cells.lengths > 0.0]
        log_pbar = log_pbar / self.noise(candidates, cells).scale[:, None]
        ranges = np.ptp(log_pbar, axis=-1)
        upper = self._delta(ranges, epsilon).upper

        shifts = _shifts_of_far_labels(log_pbar)
        probability_of_event = np.inf  # P(S), bounded from above
        for lower_epsilon in (0.5 * epsilon, 0.9 * epsilon):
            lower_delta = self._delta(shifts, lower_epsilon).upper
            bound = lower_delta / -np.expm1(lower_epsilon - epsilon)
            probability_of_event = min(probability_of_event, bound)
        average_of_event = min(1.0, probability_of_event + upper)  # A(S), bounded from above

        mixing = self.clipping.mixing
        growth = np.expm1(min(epsilon, 700.0))  # e^eps - 1, kept below overflow
        delta_without_mixing = self._delta(shifts, epsilon).lower
        lower = (1.0 - mixing) * delta_without_mixing - growth * mixing * average_of_event
        return DeltaBounds(max(0.0, float(lower)), upper)


def _shifts_of_far_labels(values: FloatArray) -> FloatArray:
    """Return by how much each coordinate of values ``(K, M)`` differs between two labels, ``(K,)``.

    Of the labels whose value is the largest or the least in some coordinate, the two labels are the
    pair at the largest Euclidean distance.

    Example:
        >>> _shifts_of_far_labels(np.array([[0.0, 1.0, 3.0], [4.0, 1.0, 0.0]])).tolist()
        [3.0, 4.0]
    """
    extreme_labels = np.unique([values.argmax(axis=-1), values.argmin(axis=-1)])
    extreme = values[:, extreme_labels]
    shifts = np.abs(extreme[:, :, None] - extreme[:, None, :]).reshape(len(values), -1)
    farthest_pair = np.square(shifts).sum(axis=0).argmax()
    return shifts[:, farthest_pair]


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
        """Return the exact delta as both bounds, for coordinates that move by ``shifts`` ``(K,)``.

        For independent Gaussian noise it depends on the Euclidean norm of the shifts only.
        """
        norm = float(np.sqrt(np.square(shifts).sum()))
        delta = accounting.gaussian_delta(norm, epsilon)
        return DeltaBounds(delta, delta)
