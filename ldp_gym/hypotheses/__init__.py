"""The public class ``F = {f_1, ..., f_K}`` of functions from contexts to distributions.

A :class:`HypothesisClass` maps contexts ``(..., d)`` to *candidates* ``(..., K, M)``, the
distributions ``f_1(x), ..., f_K(x)``. A class that ignores its context (``constant``) returns its
``(K, M)`` table with no leading axes, and everything downstream broadcasts.
"""

from ldp_gym.hypotheses.base import (
    HYPOTHESES,
    Callables,
    Classifiers,
    HypothesisClass,
    Table,
    as_hypotheses,
)
from ldp_gym.hypotheses.families import (
    Dirichlet,
    Disjoint,
    Hadamard,
    HadamardStar,
    Refined,
    SoftmaxLinear,
)

__all__ = [
    "HYPOTHESES",
    "Callables",
    "Classifiers",
    "Dirichlet",
    "Disjoint",
    "Hadamard",
    "HadamardStar",
    "HypothesisClass",
    "Refined",
    "SoftmaxLinear",
    "Table",
    "as_hypotheses",
]

HYPOTHESES.own |= {
    "dirichlet": Dirichlet,
    "disjoint": Disjoint,
    "hadamard": Hadamard,
    "hadamard-star": HadamardStar,
    "refined": Refined,
    "softmax-linear": SoftmaxLinear,
}
