"""The contract of a hypothesis class, and the classes made from tables, callables and fitted classifiers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import Registry
from ldp_gym.core.validation import describe

HYPOTHESES: Registry[HypothesisClass] = Registry("hypothesis class", group="ldp_gym.hypotheses")


class HypothesisClass(ABC):
    """K functions from contexts in ``R^d`` to distributions over M labels.

    Attributes:
        num_hypotheses: K, at least 2.
        num_labels: M, at least 2.
        context_dim: d, at least 1.
        constant: True if the candidates are the same for every context.
        classes: names of the labels ``(M,)``, or None.
        default_nature: nature to use if the rules name none; None where contexts must be given.
    """

    constant: bool = False
    classes: npt.NDArray[Any] | None = None
    default_nature: ClassVar[str | None] = "iid"

    def __init__(self, num_hypotheses: int, num_labels: int, context_dim: int) -> None:
        self.num_hypotheses, self.num_labels = check_size(num_hypotheses, num_labels)
        self.context_dim = validation.whole("context_dim (d)", context_dim, least=1)

    @abstractmethod
    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Candidates ``(..., K, M)`` at contexts ``(..., d)``; ``(K, M)`` if the class is constant."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.num_hypotheses}, M={self.num_labels}, d={self.context_dim})"


def check_size(num_hypotheses: object, num_labels: object) -> tuple[int, int]:
    """K and M as ints, small enough for a table in memory."""
    hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    labels = validation.whole("num_labels (M)", num_labels, least=2)
    (each, _), (count, name) = sorted([(hypotheses, "num_hypotheses"), (labels, "num_labels")])
    validation.fits_memory(name, count, each, "the candidates")
    return hypotheses, labels


class Table(HypothesisClass):
    """K fixed distributions: the constant functions of the lower bound and of hypothesis selection.

    Example:
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
        self.table = game_arrays.checked_table(table)
        self.table.flags.writeable = False  # shared with every learner
        super().__init__(self.table.shape[0], self.table.shape[1], context_dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return self.table


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
            raise TypeError(
                f"functions must be two or more callables, from contexts to distributions, got {functions!r}"
            )
        first = np.shape(functions[0](_probe(dim)[0]))
        if len(first) != 1:
            raise ValueError(
                f"hypotheses given as functions map a context ({dim},) to a distribution over the labels, "
                f"(M,); hypothesis 0 gives shape {first}"
            )
        super().__init__(len(functions), first[0], dim)
        self.functions = [
            batched_function(f, dim, first[0], f"hypothesis {j}") for j, f in enumerate(functions)
        ]
        self(_probe(dim))

    def __call__(self, contexts: FloatArray) -> FloatArray:
        return game_arrays.distributions(np.stack([f(contexts) for f in self.functions], axis=-2))


def batched_function(
    function: Callable[[FloatArray], Any], context_dim: int, num_labels: int, name: str
) -> Callable[[FloatArray], Any]:
    """``function`` if it already maps batches row by row, else one that calls it on every row.

    It maps one context ``(d,)`` to a distribution ``(M,)``; an error calls it ``name``.
    """
    probe = _probe(context_dim)
    rows = np.stack([validation.numbers(f"what {name} returns", function(x)) for x in probe])
    if rows.shape != (len(probe), num_labels):
        raise ValueError(
            f"{name} must map a context ({context_dim},) to a distribution over the labels, ({num_labels},); "
            f"got shape {rows.shape[1:]}"
        )
    for batch, expected in (
        (probe, rows),
        (probe[None], rows[None]),
        (probe[:1, None], rows[:1, None]),
    ):
        try:
            at_once = validation.numbers(name, function(batch))
        except Exception:  # whatever a function of one context does with several
            return partial(_call_on_each, function)
        if at_once.shape != expected.shape or not np.allclose(at_once, expected):
            return partial(_call_on_each, function)
    return function


def _call_on_each(function: Callable[[FloatArray], Any], contexts: FloatArray) -> FloatArray:
    each = contexts.reshape(-1, contexts.shape[-1])
    rows = [validation.numbers("what a hypothesis returns", function(x)) for x in each]
    return np.stack(rows).reshape(*contexts.shape[:-1], -1)


def _probe(context_dim: int) -> FloatArray:
    """Three contexts to try a function on."""
    return np.random.default_rng(0).standard_normal((3, context_dim))


class Classifiers(HypothesisClass):
    """K fitted classifiers. They have no default nature: contexts must be like those they were fitted on.

    Args:
        models: fitted models with ``predict_proba``, all over the same classes.
        context_dim: d; from the models' ``n_features_in_`` when not given.
    """

    default_nature: ClassVar[str | None] = None

    def __init__(self, models: Sequence[Any], context_dim: int | None = None) -> None:
        models = validation.list_of("models", models, "fitted classifiers")
        if len(models) < 2 or not all(hasattr(model, "predict_proba") for model in models):
            raise TypeError(
                f"models must be two or more fitted classifiers with predict_proba, got {describe(models)}"
            )
        if context_dim is not None:
            context_dim = validation.whole("context_dim (d)", context_dim, least=1)
        takes = [getattr(model, "n_features_in_", None) for model in models]
        dim = context_dim or next((features for features in takes if features is not None), None)
        if dim is None:
            raise ValueError(
                f"context_dim is needed: {describe(models[0])} does not say how many features it takes; is "
                f"it fitted?"
            )
        for j, features in enumerate(takes):
            if features not in (None, dim):
                raise ValueError(f"hypothesis {j} takes {features} features, not context_dim={dim}")
        classes: list[Any] = [getattr(model, "classes_", None) for model in models]
        for j, labels in enumerate(classes):
            if not np.array_equal(labels, classes[0]):
                raise ValueError(
                    f"the models must be fitted on the same classes: hypothesis {j} has {labels}, "
                    f"hypothesis 0 has {classes[0]}"
                )
        self.models = models
        self.classes = None if classes[0] is None else np.asarray(classes[0])
        super().__init__(
            len(models), probabilities_of(models[0], np.zeros((1, dim))).shape[-1], dim
        )

    def __call__(self, contexts: FloatArray) -> FloatArray:
        candidates = [probabilities_of(model, contexts) for model in self.models]
        return game_arrays.distributions(np.stack(candidates, axis=-2))


def probabilities_of(model: Any, contexts: FloatArray) -> FloatArray:
    """``predict_proba`` at ``(..., d)``, without the warning about a data frame's column names."""
    rows = contexts.reshape(-1, contexts.shape[-1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        probabilities = validation.numbers("what predict_proba returns", model.predict_proba(rows))
    return probabilities.reshape(*contexts.shape[:-1], *probabilities.shape[1:])


def as_hypotheses(
    source: object, game_parameters: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> HypothesisClass:
    """Make a hypothesis class from the rule ``hypotheses``.

    ``"module:object"`` stands for a name, a table, callables, classifiers, a class, or a function that makes
    one. A parameter of the game that is None is left to the class.
    """
    if isinstance(source, str) and not HYPOTHESES.makes(source):
        source = HYPOTHESES[source]  # "module:object": a table, models or a finished class
    known = {key: value for key, value in game_parameters.items() if value is not None}
    if options and not isinstance(source, str):
        raise TypeError(
            f"hypotheses_kwargs {sorted(options)} go with a named class, not with {describe(source)}"
        )
    if isinstance(source, HypothesisClass):
        made = source
    elif isinstance(source, str):
        found: object = HYPOTHESES.build(source, game_parameters, options or {})
        made = (
            found if isinstance(found, HypothesisClass) else as_hypotheses(found, game_parameters)
        )
    elif (
        isinstance(source, Sequence) and source and all(hasattr(f, "predict_proba") for f in source)
    ):
        made = Classifiers(source, known.get("context_dim"))
    elif isinstance(source, Sequence) and source and all(callable(f) for f in source):
        if "context_dim" not in known:
            raise ValueError("a list of callables needs context_dim, the length of their contexts")
        made = Callables(source, known["context_dim"])
    elif isinstance(source, Sequence) and any(hasattr(f, "predict") for f in source):
        raise TypeError(
            f"classifiers need predict_proba, which some do not have: {describe(source)}"
        )
    elif (
        source is None
        or np.isscalar(source)
        or callable(source)
        or hasattr(source, "predict_proba")
    ):
        raise TypeError(
            f"hypotheses must be a name, a (K, M) table, a list of two or more callables or fitted "
            f"classifiers, or a HypothesisClass; got {describe(source)}"
        )
    else:
        made = Table(source, known.get("context_dim", 1))  # type: ignore[arg-type]
    for name in ("num_hypotheses", "num_labels", "context_dim"):
        if name in known and known[name] != getattr(made, name):
            raise ValueError(
                f"{name}={known[name]} contradicts the hypotheses, which have {name}={getattr(made, name)}: "
                f"{made!r}"
            )
    return made
