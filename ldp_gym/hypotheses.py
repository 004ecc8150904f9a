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
``"disjoint"``               :class:`Disjoint`, K supports that do not meet
``"refined"``                :class:`Refined`, a base class with every label cut into equal parts
============================ ==============================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ldp_gym import theory, validation
from ldp_gym.arrays import FloatArray
from ldp_gym.registry import Registry

CLASSES: Registry[HypothesisClass] = Registry("hypothesis class")


class HypothesisClass(ABC):
    """K functions from contexts in ``R^d`` to distributions over M labels.

    Attributes:
        num_hypotheses: K, at least 2.
        num_labels: M, at least 2.
        context_dim: d, at least 1.
        constant: whether the candidates are the same for every context.
    """

    constant: bool = False

    def __init__(self, num_hypotheses: int, num_labels: int, context_dim: int) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        self.num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)

    @abstractmethod
    def __call__(self, contexts: FloatArray) -> FloatArray:
        """The candidates ``(..., K, M)`` at contexts ``(..., d)``; ``(K, M)`` if the class is constant."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.num_hypotheses}, M={self.num_labels}, d={self.context_dim})"


class Table(HypothesisClass):
    """K fixed distributions: the constant functions of the lower bound and of hypothesis selection.

    Example:
        >>> coins = Table([[0.5, 0.5], [0.9, 0.1]])
        >>> coins(np.zeros((3, 1))).tolist()
        [[0.5, 0.5], [0.9, 0.1]]
        >>> Table([[0.5, 0.5], [0.9, 0.2]])
        Traceback (most recent call last):
        ...
        ValueError: hypothesis 1 sums to 1.1, off one by +0.1 (allowed: 1e-05); every hypothesis is ...
    """

    constant = True

    def __init__(self, table: npt.ArrayLike, context_dim: int = 1) -> None:
        self.table = validation.distributions(table)
        if self.table.ndim != 2:
            raise ValueError(f"a table has shape (K, M), got {self.table.shape}")
        self.table.flags.writeable = False  # shared with every learner
        super().__init__(self.table.shape[0], self.table.shape[1], context_dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self.table


@CLASSES.register("dirichlet")
class Dirichlet(Table):
    """A random table, its rows drawn independently from the symmetric Dirichlet law.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d; the contexts carry nothing.
        class_seed: the seed of the table.
        concentration: the Dirichlet parameter; small values give rows with few heavy labels.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        num_labels: int = 16,
        context_dim: int = 1,
        class_seed: int = 0,
        concentration: float = 0.3,
    ) -> None:
        alpha = validation.positive("concentration", concentration)
        size = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        labels = validation.whole("num_labels (M)", num_labels, least=2)
        rng = np.random.default_rng(class_seed)
        super().__init__(rng.dirichlet(np.full(labels, alpha), size=size), context_dim)


@CLASSES.register("softmax-linear")
class SoftmaxLinear(HypothesisClass):
    """``f_j(x) = softmax(W_j x)`` with standard normal weights ``W_j``: contexts matter.

    Args:
        num_hypotheses: K.
        num_labels: M.
        context_dim: d.
        class_seed: the seed of the weights.
        scale: the standard deviation of the weights; larger values give sharper distributions.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        num_labels: int = 16,
        context_dim: int = 4,
        class_seed: int = 0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, context_dim)
        shape = (self.num_hypotheses, self.num_labels, self.context_dim)
        self.weights = np.random.default_rng(class_seed).standard_normal(shape)
        self.weights *= validation.positive("scale", scale, most=1e100)
        self.weights.flags.writeable = False

    def __call__(self, contexts: FloatArray) -> FloatArray:
        # einsum, not a BLAS product: its sums do not depend on the batch's shape, so neither do labels.
        candidates: FloatArray = np.einsum("...d,kmd->...km", contexts, self.weights)
        candidates -= candidates.max(axis=-1, keepdims=True)
        np.exp(candidates, out=candidates)
        candidates /= np.add.reduce(candidates, axis=-1, keepdims=True)
        return candidates


@CLASSES.register("hadamard")
class Hadamard(Table):
    """The lower bound's class, eq. (distributionp) of Appendix A: pairs that no private channel tells apart.

    ``num_hypotheses = 2K`` for K pairs; ``M = N``, the power of two with ``N/2 <= K <= N - 1``. Pair i uses
    column i + 1 of the Sylvester-Hadamard matrix (column 1 is all ones)::

        p_{i,1} = (1 - H_{i+1}) / N,    p_{i,2} = p_{i,1} + a H_{i+1} / N

    Args:
        num_hypotheses: 2K, even.
        context_dim: d; the contexts carry nothing.
        epsilon: the privacy level that the gap is made for.
        horizon: the horizon T that the gap is made for.
        gap: ``a`` in [0, 1]; from epsilon and the horizon when not given.
    """

    def __init__(
        self,
        num_hypotheses: int = 8,
        context_dim: int = 1,
        epsilon: float = 1.0,
        horizon: int = 1000,
        gap: float | None = None,
    ) -> None:
        size = validation.whole("num_hypotheses (2K, for K pairs)", num_hypotheses, least=2)
        if size % 2:
            raise ValueError(f"the Hadamard class comes in pairs: num_hypotheses must be even, got {size}")
        pairs = size // 2
        if gap is None:
            gap = theory.hadamard_gap(size, horizon, epsilon)
        self.gap = validation.real("gap (a)", gap)
        if not 0.0 <= self.gap <= 1.0:
            raise ValueError(
                f"the Hadamard class needs a gap a in [0, 1], got {self.gap:.6g}: "
                f"raise the horizon to at least {theory.hadamard_horizon(size, epsilon):.0f}"
            )
        order = 1 << pairs.bit_length()
        columns = _sylvester(order)[1 : pairs + 1]
        first = (1.0 - columns) / order
        second = first + self.gap * columns / order
        super().__init__(np.stack([first, second], axis=1).reshape(size, order), context_dim)


def _sylvester(order: int) -> FloatArray:
    """The Sylvester-Hadamard matrix of the given order, a power of two; it is symmetric."""
    matrix = np.ones((1, 1))
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@CLASSES.register("disjoint")
class Disjoint(Table):
    """K uniform distributions whose supports do not meet: one label names the truth.

    Args:
        num_hypotheses: K.
        num_labels: M, at least K; spread over the supports as evenly as it goes. K when not given.
        context_dim: d; the contexts carry nothing.
        sizes: the number of labels of each support instead.
    """

    def __init__(
        self,
        num_hypotheses: int | None = None,
        num_labels: int | None = None,
        context_dim: int = 1,
        sizes: Sequence[int] | None = None,
    ) -> None:
        if sizes is None:
            size = validation.whole(
                "num_hypotheses (K)", 8 if num_hypotheses is None else num_hypotheses, least=2
            )
            labels = validation.whole(
                "num_labels (M)", size if num_labels is None else num_labels, least=size
            )
            sizes = [len(part) for part in np.array_split(np.arange(labels), size)]
        widths = [validation.whole(f"sizes[{j}]", width, least=1) for j, width in enumerate(sizes)]
        owners = np.repeat(np.arange(len(widths)), widths)
        supports = owners == np.arange(len(widths))[:, None]
        super().__init__(supports / np.array(widths, dtype=np.float64)[:, None], context_dim)


@CLASSES.register("refined")
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
        if num_labels is not None:
            num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        if num_labels is not None and num_labels % self.parts:
            raise ValueError(f"num_labels must be a multiple of parts={self.parts}, got {num_labels}")
        facts = {
            "num_hypotheses": num_hypotheses,
            "num_labels": None if num_labels is None else num_labels // self.parts,
            "context_dim": context_dim,
            "class_seed": class_seed,
        }
        self.base = as_hypotheses(base, facts, base_options)
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


class Classifier(Protocol):
    """A fitted classifier, as scikit-learn has them."""

    def predict_proba(self, X: FloatArray) -> FloatArray:  # noqa: N803
        """Class probabilities ``(n, M)`` of the rows of ``X (n, d)``."""


class Classifiers(HypothesisClass):
    """K fitted classifiers; the truth is the one whose probabilities the users' labels follow.

    Args:
        models: fitted models with ``predict_proba``, all over the same classes.
        context_dim: d; from the models' ``n_features_in_`` when not given.
    """

    def __init__(self, models: Sequence[Classifier], context_dim: int | None = None) -> None:
        takes = [getattr(model, "n_features_in_", None) for model in models]
        dim = context_dim or next((features for features in takes if features is not None), None)
        if dim is None:
            raise ValueError(
                f"context_dim is needed: {models[0]!r} does not say how many features it takes; is it fitted?"
            )
        for j, features in enumerate(takes):
            if features not in (None, dim):
                raise ValueError(f"hypothesis {j} takes {features} features, not context_dim={dim}")
        classes: list[Any] = [getattr(model, "classes_", None) for model in models]
        for j, labels in enumerate(classes):
            if not np.array_equal(labels, classes[0]):
                raise ValueError(
                    f"the models must share their classes: hypothesis {j} has {labels}, "
                    f"hypothesis 0 has {classes[0]}"
                )
        self.models = list(models)
        super().__init__(len(models), models[0].predict_proba(np.zeros((1, dim))).shape[-1], dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        rows = contexts.reshape(-1, self.context_dim)
        candidates = np.stack([model.predict_proba(rows) for model in self.models], axis=-2)
        return validation.distributions(candidates.reshape(*contexts.shape[:-1], *candidates.shape[1:]))


def as_hypotheses(
    source: object, facts: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> HypothesisClass:
    """The class that ``source`` stands for: a name, a table, callables, classifiers, or a class itself.

    Args:
        source: see the table at the top of this module.
        facts: what the game knows (``num_hypotheses``, ``num_labels``, ``context_dim``, ``class_seed``,
            ``epsilon``, ``horizon``); ``None`` leaves the choice to the class.
        options: the named class's own options.

    Raises:
        ValueError: if the class cannot be made, or contradicts a fact.
    """
    known = {key: value for key, value in facts.items() if value is not None}
    if options and not isinstance(source, str):
        raise TypeError(f"hypotheses_kwargs {sorted(options)} go with a named class, not with {source!r}")
    if isinstance(source, HypothesisClass):
        made = source
    elif isinstance(source, str):
        made = CLASSES.build(source, known, options or {})
    elif isinstance(source, Sequence) and source and all(hasattr(f, "predict_proba") for f in source):
        made = Classifiers(source, known.get("context_dim"))
    elif isinstance(source, Sequence) and source and all(callable(f) for f in source):
        if "context_dim" not in known:
            raise ValueError("a list of callables needs context_dim, the length of their contexts")
        made = Callables(source, known["context_dim"])
    elif isinstance(source, Sequence) and any(hasattr(f, "predict") for f in source):
        without = next(f for f in source if not hasattr(f, "predict_proba"))
        raise TypeError(f"classifiers need predict_proba, which {without!r} has not")
    elif source is None or np.isscalar(source) or callable(source) or hasattr(source, "predict_proba"):
        raise TypeError(
            f"hypotheses must be a name, a (K, M) table, a list of two or more callables or fitted "
            f"classifiers, or a HypothesisClass; got {source!r}"
        )
    else:
        made = Table(source, known.get("context_dim", 1))  # type: ignore[arg-type]
    for fact in ("num_hypotheses", "num_labels", "context_dim"):
        if fact in known and known[fact] != getattr(made, fact):
            raise ValueError(
                f"{fact}={known[fact]} contradicts the hypotheses, which have {fact}={getattr(made, fact)}: "
                f"{made!r}"
            )
    return made
