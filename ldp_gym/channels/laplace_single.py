"""Algorithm 2's channel: one random coordinate of the clipped log-likelihoods, with Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.clipped import (
    LAPLACE,
    NoiseLaw,
    NoisyChannel,
    importance_weighted_losses,
    revealed_coordinate,
)
from ldp_gym.channels.clipping import Cells
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at, masses, one_hot


class LaplaceSingle(NoisyChannel):
    """The log-likelihood of one random hypothesis, with Laplace noise (Algorithm 2, eq. (12)).

    Public coins draw a hypothesis J, private coins h_t(y) by :class:`Clipping`. The message has
    ``-c (log pbar_J[h_t(y)] + Laplace noise + log M - c')`` at J and 0 elsewhere: a loss in about [0, 1]. The
    noise scale is ``log(KT) / eps``, or ``D_J(x_t) / eps`` with ``calibration="tight"``.

    Example:
        K = 3, T = 100, eps = 1: the paper's scale is log 300 = 5.70. The ranges of this table need less:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> LaplaceSingle(3, 3, 100, calibration="tight").noise(table).scale.round(2).tolist()
        [2.04, 0.97, 1.76]

    Privacy: J does not depend on the label. The revealed log-likelihood has range at most ``log(KT)``,
    Section 4, eq. (7), so Laplace noise of scale ``log(KT) / eps`` keeps the ratio below ``e^eps`` (Lemma 6).

    When to use it: to reproduce the paper. When not: ``hybrid`` reveals the same with less noise at every
    eps, and comparisons tell far more.

    The base measure of :meth:`log_density` counts coordinates and takes Lebesgue's within one.
    """

    law: ClassVar[NoiseLaw] = LAPLACE
    free_of_num_labels: ClassVar[bool] = True
    num_uniforms = 4  # two for h_t, the coordinate, the noise

    def _unit_scale(self) -> float:
        return 1.0 / self.epsilon

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Public = None
    ) -> Messages:
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        coordinate, level = self._one_level(labels, candidates, uniforms, cells)
        noisy = level + at(noise.scale, coordinate) * self.law.draw(uniforms[..., 3])
        return one_hot(self.to_loss(noisy, noise.offset, noise.slope), coordinate, self.num_hypotheses)

    def distances(self, messages: Messages, candidates: FloatArray, cells: Cells) -> Iterator[FloatArray]:
        yield self._read(messages, candidates, cells)[0]

    def _read(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        """The distances ``(..., M)`` in the revealed coordinate, and the noise scale of its loss."""
        noise, coordinate = self.noise(candidates, cells), revealed_coordinate(messages)
        scale = at(noise.scale, coordinate)
        revealed = self.from_loss(at(messages, coordinate), noise.offset, noise.slope) / scale
        if candidates.ndim == 2:  # one table for all rounds
            levels = masses((self._levels(candidates, cells) / noise.scale[..., None]).T, coordinate)
        else:
            masses_of_coordinate = at(candidates, coordinate, slice(None))
            levels = self._levels_of(masses_of_coordinate, cells.lengths, cells.total) / scale[..., None]
        return levels - revealed[..., None], scale * noise.slope

    def _log_kernel(
        self, messages: Messages, candidates: FloatArray, cells: Cells
    ) -> tuple[FloatArray, FloatArray]:
        distances, scale = self._read(messages, candidates, cells)
        log_norm = self.law.log_norm - np.log(scale) - math.log(self.num_hypotheses)
        return self.law.log_kernel(distances), log_norm

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """The importance-weighted estimate: public centres, and K-fold corrected what was revealed."""
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        revealed = self.from_loss(messages, noise.offset[..., None], noise.slope[..., None])
        return importance_weighted_losses(messages, revealed, *self.ranges(candidates, cells))

    def loss_variance(self, candidates: FloatArray) -> FloatArray:
        return self.num_hypotheses * self._coordinate_variance(candidates).mean(axis=-1)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """The messages without noise, from every label and coordinate.

        Between two breakpoints ``log pbar_j[y]`` a mixture of Laplace densities is ``A e^v + B e^-v``, so the
        ratio of two is monotone there, and it is constant in the tails: it is largest at a breakpoint.
        """
        cells = self.clipping.cells(candidates)
        noise = self.noise(candidates, cells)
        levels = self._levels(candidates, cells)[:, cells.lengths > 0.0]
        coordinates = np.repeat(np.arange(self.num_hypotheses), levels.shape[1])
        losses = self.to_loss(levels.reshape(-1), noise.offset, noise.slope)
        return one_hot(losses, coordinates, self.num_hypotheses)
