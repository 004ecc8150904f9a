"""The public class ``F = {f_1, ..., f_K}`` of distribution-valued functions ``f_j : R^d -> D([M])``.

A :class:`HypothesisClass` maps contexts ``(..., d)`` to *candidates* ``(..., K, M)``, the distributions
``f_1(x), ..., f_K(x)``. A class that ignores its context (``constant``) returns its ``(K, M)`` table with
no leading axes, and everything downstream broadcasts.

============================ ==============================================================
name                         class
============================ ==============================================================
(a ``(K, M)`` array)         :class:`Table`, constant
(a list of callables)        :class:`Callables`
(a list of fitted models)    :class:`Classifiers`
``"dirichlet"``              :class:`Dirichlet`, a random table
``"softmax-linear"``         :class:`SoftmaxLinear`, so that contexts matter
``"hadamard"``               :class:`Hadamard`, the lower bound's class (Appendix A)
``"hadamard-star"``          :class:`HadamardStar`, the class of our lower bounds
``"disjoint"``               :class:`Disjoint`, K disjoint supports
``"refined"``                :class:`Refined`, a base class with every label cut into equal parts
============================ ==============================================================
"""

from ldp_gym.hypotheses.base import (
    HYPOTHESES,
    Callables,
    Classifiers,
    HypothesisClass,
    Table,
    as_hypotheses,
)
from ldp_gym.hypotheses.families import Dirichlet, Disjoint, Hadamard, HadamardStar, Refined, SoftmaxLinear

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

HYPOTHESES.own.update(
    {
        "dirichlet": Dirichlet,
        "disjoint": Disjoint,
        "hadamard": Hadamard,
        "hadamard-star": HadamardStar,
        "refined": Refined,
        "softmax-linear": SoftmaxLinear,
    }
)
