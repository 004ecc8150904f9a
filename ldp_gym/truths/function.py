"""A function of the context that need not be in the class: a callable, or a fitted classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray
from ldp_gym.hypotheses.callables import batched_function
from ldp_gym.truths.base import Truth, TruthView


class Function(Truth):
    """``p*_t = g(x_t)``.

    Args:
        num_labels: M.
        context_dim: d.
        function: maps one context ``(d,)`` to a distribution ``(M,)``. One that maps a batch ``(..., d)`` to
            ``(..., M)`` in the same way is called on whole batches, which is faster.
    """

    def __init__(self, num_labels: int, context_dim: int, function: Callable[[FloatArray], Any]) -> None:
        self._function = batched_function(function, context_dim, num_labels, "the truth")

    def distributions(self, view: TruthView) -> FloatArray:
        assert view.contexts is not None, "a truth that needs contexts gets them"
        return game_arrays.distributions(self._function(view.contexts), "the truth")
