"""Functions of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import FloatArray


class Callables(HypothesisClass):
    """K functions given as Python callables.

    Args:
        functions: each maps one context ``(d,)`` to a distribution ``(M,)``. One that maps a batch
            ``(..., d)`` to ``(..., M)`` in the same way is called on whole batches, which is faster.
        context_dim: d.

    Example:
        >>> def fair(x):
        ...     return [0.5, 0.5]
        >>> def tilted(x):
        ...     up = 1 / (1 + np.exp(-x[0]))
        ...     return [up, 1 - up]
        >>> Callables([fair, tilted], context_dim=1)(np.array([[0.0], [np.log(3)]])).round(3).tolist()
        [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.75, 0.25]]]
    """

    def __init__(self, functions: Sequence[Callable[[FloatArray], Any]], context_dim: int) -> None:
        dim = validation.whole("context_dim (d)", context_dim, least=1)
        probe = np.random.default_rng(0).standard_normal((3, dim))
        rows = [np.stack([np.asarray(f(x), dtype=np.float64) for x in probe]) for f in functions]
        for j, row in enumerate(rows):
            if row.ndim != 2 or row.shape != rows[0].shape:
                raise ValueError(
                    f"hypothesis {j} must map a context ({dim},) to a distribution over the labels that all "
                    f"share, {rows[0].shape[1:]}; got shape {row.shape[1:]}"
                )
        super().__init__(len(rows), rows[0].shape[1] if rows else 0, dim)
        self.functions = [_batched(f, probe, row) for f, row in zip(functions, rows, strict=True)]
        self(probe)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return validation.distributions(np.stack([f(contexts) for f in self.functions], axis=-2))


class _OneByOne:
    """A function of one context, as a function of batches."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self.function = function

    def __call__(self, contexts: FloatArray) -> FloatArray:
        rows = [np.asarray(self.function(x), np.float64) for x in contexts.reshape(-1, contexts.shape[-1])]
        return np.stack(rows).reshape(*contexts.shape[:-1], -1)


def _batched(
    function: Callable[[FloatArray], Any], probe: FloatArray, rows: FloatArray
) -> Callable[[FloatArray], Any]:
    """``function`` itself if it already maps batches row by row, else one that does."""
    for batch, expected in ((probe, rows), (probe[None], rows[None]), (probe[:1, None], rows[:1, None])):
        try:
            at_once = np.asarray(function(batch), dtype=np.float64)
        except Exception:  # whatever a function of one context does with several
            return _OneByOne(function)
        if at_once.shape != expected.shape or not np.allclose(at_once, expected):
            return _OneByOne(function)
    return function
