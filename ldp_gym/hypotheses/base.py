"""The public class F of distribution-valued functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import Registry

HYPOTHESES: Registry[HypothesisClass] = Registry("hypothesis class", group="ldp_gym.hypotheses")


class HypothesisClass(ABC):
    """K functions from contexts in ``R^d`` to distributions over M labels.

    Attributes:
        num_hypotheses: K, at least 2.
        num_labels: M, at least 2.
        context_dim: d, at least 1.
        constant: whether the candidates are the same for every context.
        classes: the names of the labels ``(M,)``, where they have some.
        default_nature: who picks the contexts if the rules do not say; None where contexts must be given.
    """

    constant: bool = False
    classes: npt.NDArray[Any] | None = None
    default_nature: ClassVar[str | None] = "iid"

    def __init__(self, num_hypotheses: int, num_labels: int, context_dim: int) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        self.num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)
        validation.fits_memory("num_hypotheses", self.num_hypotheses, self.num_labels, "the candidates")

    @abstractmethod
    def __call__(self, contexts: FloatArray) -> FloatArray:
        """The candidates ``(..., K, M)`` at contexts ``(..., d)``; ``(K, M)`` if the class is constant."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.num_hypotheses}, M={self.num_labels}, d={self.context_dim})"
