"""Functions of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import ArgumentTypeError
from ldp_gym.hypotheses.base import HypothesisClass


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
        functions = validation.list_of("functions", functions, "functions")
        if len(functions) < 2 or not all(map(callable, functions)):
            raise ArgumentTypeError(
                f"functions must be two or more callables, from contexts to distributions, got {functions!r}"
            )
        first = np.shape(functions[0](_probe(dim)[0]))
        if len(first) != 1:
            raise ValueError(
                f"hypotheses given as functions map a context ({dim},) to a distribution over the labels, "
                f"(M,); hypothesis 0 gives shape {first}"
            )
        num_labels = first[0]
        super().__init__(len(functions), num_labels, dim)
        self.functions = [
            batched_function(f, dim, num_labels, f"hypothesis {j}") for j, f in enumerate(functions)
        ]
        self(_probe(dim))

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return game_arrays.distributions(np.stack([f(contexts) for f in self.functions], axis=-2))


def _call_on_each(function: Callable[[FloatArray], Any], contexts: FloatArray) -> FloatArray:
    """What a function of one context gives at contexts ``(..., d)``."""
    each = contexts.reshape(-1, contexts.shape[-1])
    rows = [validation.numbers("what a hypothesis returns", function(x)) for x in each]
    return np.stack(rows).reshape(*contexts.shape[:-1], -1)


def _probe(context_dim: int) -> FloatArray:
    """A few contexts on which a function is tried."""
    return np.random.default_rng(0).standard_normal((3, context_dim))


def batched_function(
    function: Callable[[FloatArray], Any], context_dim: int, num_labels: int, name: str
) -> Callable[[FloatArray], Any]:
    """``function`` itself if it already maps batches row by row, else one that does.

    Args:
        function: maps one context ``(d,)`` to a distribution ``(M,)``.
        context_dim: d.
        num_labels: M.
        name: what to call it in an error.
    """
    probe = _probe(context_dim)
    rows = np.stack([validation.numbers(f"what {name} returns", function(x)) for x in probe])
    if rows.shape != (len(probe), num_labels):
        raise ValueError(
            f"{name} must map a context ({context_dim},) to a distribution over the labels, ({num_labels},); "
            f"got shape {rows.shape[1:]}"
        )
    for batch, expected in ((probe, rows), (probe[None], rows[None]), (probe[:1, None], rows[:1, None])):
        try:
            at_once = validation.numbers(name, function(batch))
        except Exception:  # whatever a function of one context does with several
            return partial(_call_on_each, function)
        if at_once.shape != expected.shape or not np.allclose(at_once, expected):
            return partial(_call_on_each, function)
    return function
