"""A base class with its labels cut into parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.hypotheses.sources import as_hypotheses


class Refined(HypothesisClass):
    """A base class with every label cut into equal parts: M grows, and nothing else changes.

    Args:
        base: the name of the base class, a table, or a HypothesisClass.
        parts: how many parts each label is cut into.
        num_hypotheses: K of a named base.
        num_labels: M after the cut, a multiple of ``parts``.
        context_dim: d of a named base.
        class_seed: the seed of a named base.
        **base_options: further options of a named base.

    Example:
        >>> Refined([[0.5, 0.5], [1.0, 0.0]], parts=2)(np.zeros(1)).tolist()
        [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]]
    """

    def __init__(
        self,
        base: str | npt.ArrayLike | HypothesisClass = "dirichlet",
        parts: int = 2,
        num_hypotheses: int | None = None,
        num_labels: int | None = None,
        context_dim: int | None = None,
        class_seed: int = 0,
        **base_options: Any,
    ) -> None:
        self.parts = validation.whole("parts", parts, least=1)
        class_seed = validation.seed("class_seed", class_seed)
        if num_labels is not None:
            num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        if num_labels is not None and num_labels % self.parts:
            raise ValueError(f"num_labels must be a multiple of parts={self.parts}, got {num_labels}")
        base_parameters = {
            "num_hypotheses": num_hypotheses,
            "num_labels": None if num_labels is None else num_labels // self.parts,
            "context_dim": context_dim,
            "class_seed": class_seed,
        }
        self.base = as_hypotheses(base, base_parameters, base_options)
        super().__init__(self.base.num_hypotheses, self.base.num_labels * self.parts, self.base.context_dim)
        self.constant = self.base.constant
        self._table = self._refine(np.zeros(self.context_dim)) if self.constant else None

    def _refine(self, contexts: FloatArray) -> FloatArray:
        candidates = np.repeat(self.base(contexts), self.parts, axis=-1)
        candidates /= self.parts
        candidates.flags.writeable = False
        return candidates

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self._refine(contexts) if self._table is None else self._table
