"""A fixed table of distributions."""

from __future__ import annotations

import numpy.typing as npt

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray
from ldp_gym.hypotheses.base import HypothesisClass


class Table(HypothesisClass):
    """K fixed distributions: the constant functions of the lower bound and of hypothesis selection.

    Example:
        >>> import numpy as np
        >>> coins = Table([[0.5, 0.5], [0.9, 0.1]])
        >>> coins(np.zeros((3, 1))).tolist()
        [[0.5, 0.5], [0.9, 0.1]]
        >>> Table([[0.5, 0.5], [0.9, 0.2]])
        Traceback (most recent call last):
        ...
        ValueError: hypothesis 1 sums to 1.1, off one by +0.1 (allowed: 1e-05); probabilities ...
    """

    constant = True

    def __init__(self, table: npt.ArrayLike, context_dim: int = 1) -> None:
        self.table = game_arrays.table(table)
        self.table.flags.writeable = False  # shared with every learner
        super().__init__(self.table.shape[0], self.table.shape[1], context_dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self.table
