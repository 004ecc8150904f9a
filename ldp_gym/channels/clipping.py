"""Clipping, Section 4: bounds log-likelihoods and keeps their order.

The paper cuts label y into ``ceil(M max_j f_j[y])`` cells and lets ``h_t`` move a label to a
uniform cell of all ``N'`` with probability 1/T, so that the density ``pbar_j = h_t o f_j`` of a
cell lies within ``[1/(TKM), 1/M]``. Two departures:

- *No ceilings.* With them ``N'`` can exceed KM; the range then exceeds ``log(KT)`` and the channels
  built on it break their promise. Here y has a cell of *length* ``l_y = M max_j f_j[y]`` on the
  line, and every constant and proof holds as written. ``rule="paper"`` keeps the ceilings, to show
  the failure.
- *No cells.* The density is constant on a label's cell, so only labels are kept, in O(KM):
  ``h_t(y)`` is y with probability 1 - 1/T and else a label drawn with probability ``l_y / N'``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, at, has_zero, mixture, per_table
from ldp_gym.core.sampling import categorical

RULES = ("continuous", "paper")
"""Ways to cut labels into cells: of any length, or with the paper's ceilings."""


@dataclass(frozen=True)
class Cells:
    """Lengths of the labels' cells at a context.

    Attributes:
        lengths: ``l_y``, shape ``(..., M)``; zero for a label that no hypothesis allows.
        total: ``N' = sum_y l_y``, shape ``(..., 1)``.
    """

    lengths: FloatArray
    total: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Probabilities ``l_y / N'`` that a uniform point of all cells lies in a label's cell."""
        return self.lengths / self.total


class Clipping:
    """The random map ``h_t`` and the densities it induces.

    Args:
        horizon: T, which sets the share 1/T of uniform noise.
        rule: ``"continuous"``, or ``"paper"`` with the ceilings of Section 4, eq. (3).
    """

    def __init__(self, horizon: int, rule: str = "continuous") -> None:
        self.rule = validation.choice("clipping", rule, RULES)
        self.mixing = 1.0 / validation.whole("horizon (T)", horizon, least=1)

    @per_table
    def cells(self, candidates: FloatArray) -> Cells:
        """Return the cells that candidates ``(..., K, M)`` give their labels (eq. (3))."""
        lengths = candidates.shape[-1] * candidates.max(axis=-2)
        if self.rule == "paper":
            # 100 * 0.07 is a hair above 7 in floats and would get an eighth cell.
            lengths = np.ceil(lengths * (1.0 - 8.0 * np.finfo(np.float64).eps))
        return Cells(lengths, np.add.reduce(lengths, axis=-1, keepdims=True))

    def draw(self, labels: IntArray, cells: Cells, uniforms: FloatArray) -> IntArray:
        """Draw ``h_t(y)`` of labels y ``(...)``, as the label whose cell it falls in (eq. (5)).

        It is y with probability 1 - 1/T, and otherwise a random label, drawn in proportion to the
        lengths of the cells. The uniforms are ``(..., 2)``.
        """
        moves = uniforms[..., 0] < self.mixing
        # A label without a cell always moves.
        if has_zero(cells.lengths):
            moves |= at(cells.lengths, labels) == 0.0
        if not moves.any():
            return labels
        lengths = np.broadcast_to(cells.lengths, (*labels.shape, cells.lengths.shape[-1]))
        clipped = np.array(labels)
        clipped[moves] = categorical(lengths[moves], uniforms[moves, 1])
        return clipped

    def density(self, mass: FloatArray, length: FloatArray, total: FloatArray) -> FloatArray:
        """Return the density ``pbar_j`` on labels' cells, ``(1 - 1/T) f_j[y] / l_y + 1 / (T N')``.

        Section 4, eq. (6).

        Args:
            mass: ``f_j[y]``.
            length: ``l_y``.
            total: ``N'``.
        """
        # A cell of length zero has no mass either: 0 / 0 is 0.
        safe_length = np.maximum(length, np.finfo(np.float64).tiny)
        return (1.0 - self.mixing) * mass / safe_length + self.mixing / total

    def label_losses(self, candidates: FloatArray) -> FloatArray:
        """Return the clipped log-losses ``-log pbar_k(y)`` of labels, ``(..., K, M)``."""
        cells = self.cells(candidates)
        density = self.density(candidates, cells.lengths[..., None, :], cells.total[..., None])
        return -np.log(density)

    @per_table
    def smooth_candidates(self, candidates: FloatArray) -> FloatArray:
        """Return the law of ``h_t(y)`` for a label y of each hypothesis, ``(..., K, M)``.

        It is ``(1 - 1/T) f_j + (1/T) l / N'``, for cells of lengths l and of total length N'.
        """
        smooth = (1.0 - self.mixing) * candidates
        smooth += self.mixing * self.cells(candidates).shares[..., None, :]
        smooth.flags.writeable = False  # functions decorated with per_table keep results for it
        return smooth

    def smooth(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        """Return the paper's prediction ``p_hat[y] = sum_{y' in S_y} pbar_t[y']``, ``(..., M)``.

        ``weights`` ``(..., K)`` are those of the hypotheses.
        """
        return mixture(weights, self.smooth_candidates(candidates))
