"""One distribution over the labels, whatever the context and the round."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray
from ldp_gym.truths.base import Truth, TruthView


class Fixed(Truth):
    """The row ``p*`` in every round.

    Args:
        num_labels: M.
        row: M probabilities.
    """

    needs_contexts: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    def __init__(self, num_labels: int, row: npt.ArrayLike) -> None:
        self.row = game_arrays.row("truth", row, num_labels)

    def distributions(self, view: TruthView) -> FloatArray:
        return np.broadcast_to(self.row, (len(view.episode), 1, len(self.row)))
