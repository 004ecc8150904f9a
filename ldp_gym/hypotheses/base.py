"""The contract of a hypothesis class, and classes made from tables, callables and classifiers."""

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
        """Return candidates ``(..., K, M)`` at contexts ``(..., d)``; ``(K, M)`` if constant."""

    def __repr__(self) -> str:
        sizes = f"K={self.num_hypotheses}, M={self.num_labels}, d={self.context_dim}"
        return f"{type(self).__name__}({sizes})"


def check_size(num_hypotheses: object, num_labels: object) -> tuple[int, int]:
    """Check that K and M are whole numbers, and that a table of them fits into memory."""
    hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
    labels = validation.whole("num_labels (M)", num_labels, least=2)
    # An error names the larger of the two, which is the one to reduce.
    if hypotheses > labels:
        validation.fits_memory("num_hypotheses", hypotheses, labels, "the candidates")
    else:
        validation.fits_memory("num_labels", labels, hypotheses, "the candidates")
    return hypotheses, labels


class Table(HypothesisClass):
    """K fixed distributions, whatever the context.

    The lower bound and hypothesis selection are about such classes.

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
        """Return the table ``(K, M)``, whatever the contexts."""
        return self.table


class Callables(HypothesisClass):
    """K hypotheses given as Python callables.

    Args:
        functions: each maps one context ``(d,)`` to a distribution ``(M,)``. One that maps a batch
            ``(..., d)`` to ``(..., M)`` in the same way is called on whole batches, which is
            faster.
        context_dim: d.

    Example:
        >>> def fair(x):
        ...     return [0.5, 0.5]
        >>> def tilted(x):
        ...     up = 1 / (1 + np.exp(-x[0]))
        ...     return [up, 1 - up]
        >>> hypotheses = Callables([fair, tilted], context_dim=1)
        >>> hypotheses(np.array([[0.0], [np.log(3)]])).round(3).tolist()
        [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.75, 0.25]]]
    """

    def __init__(self, functions: Sequence[Callable[[FloatArray], Any]], context_dim: int) -> None:
        dim = validation.whole("context_dim (d)", context_dim, least=1)
        functions = validation.list_of("functions", functions, "functions")
        if len(functions) < 2 or not all(map(callable, functions)):
            raise TypeError(
                f"functions must be two or more callables, from contexts to distributions, got "
                f"{functions!r}"
            )
        shape = np.shape(functions[0](_trial_contexts(dim)[0]))
        if len(shape) != 1:
            raise ValueError(
                f"hypotheses given as functions map a context ({dim},) to a distribution over the "
                f"labels, (M,); hypothesis 0 gives shape {shape}"
            )
        num_labels = shape[0]
        super().__init__(len(functions), num_labels, dim)
        self.functions = [
            batched_function(function, dim, num_labels, f"hypothesis {j}")
            for j, function in enumerate(functions)
        ]
        self(_trial_contexts(dim))  # an error now rather than in a game

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the functions' checked distributions at contexts ``(..., d)``, ``(..., K, M)``."""
        candidates = [function(contexts) for function in self.functions]
        return game_arrays.distributions(np.stack(candidates, axis=-2))


def batched_function(
    function: Callable[[FloatArray], Any], context_dim: int, num_labels: int, name: str
) -> Callable[[FloatArray], Any]:
    """Return a function of contexts ``(..., d)`` for a function of one context ``(d,)``.

    A function that maps batches of contexts correctly is returned unchanged, any other is called on
    one context at a time.

    Args:
        function: maps one context ``(d,)`` to a distribution ``(M,)``.
        context_dim: d.
        num_labels: M.
        name: name of the function in errors.
    """
    contexts = _trial_contexts(context_dim)
    rows = np.stack([validation.numbers(f"what {name} returns", function(x)) for x in contexts])
    if rows.shape != (len(contexts), num_labels):
        raise ValueError(
            f"{name} must map a context ({context_dim},) to a distribution over the labels, "
            f"({num_labels},); got shape {rows.shape[1:]}"
        )
    # Batches (3, d), (1, 3, d) and (1, 1, d): the axes of a game, of a tape, and of a single
    # context.
    maps_batches = (
        _agrees(function, contexts, rows)
        and _agrees(function, contexts[None], rows[None])
        and _agrees(function, contexts[:1, None], rows[:1, None])
    )
    if maps_batches:
        return function
    return partial(_call_one_by_one, function)


def _agrees(
    function: Callable[[FloatArray], Any], contexts: FloatArray, expected: FloatArray
) -> bool:
    """Tell if a function maps a batch of contexts to the expected distributions."""
    try:
        distributions = validation.numbers("what a function returns", function(contexts))
    except Exception:  # a function of one context may fail on several in any way
        return False
    return distributions.shape == expected.shape and np.allclose(distributions, expected)


def _call_one_by_one(function: Callable[[FloatArray], Any], contexts: FloatArray) -> FloatArray:
    """Call a function of one context ``(d,)`` on contexts ``(..., d)``, and stack the results."""
    one_by_one = contexts.reshape(-1, contexts.shape[-1])
    rows = [validation.numbers("what a hypothesis returns", function(x)) for x in one_by_one]
    return np.stack(rows).reshape(*contexts.shape[:-1], -1)


def _trial_contexts(context_dim: int) -> FloatArray:
    """Return three contexts ``(3, d)`` to try a function on."""
    return np.random.default_rng(0).standard_normal((3, context_dim))


class Classifiers(HypothesisClass):
    """K hypotheses given as fitted classifiers.

    They have no default nature: contexts must be like those that the classifiers were fitted on.

    Args:
        models: fitted models with ``predict_proba``, all over the same classes.
        context_dim: d; from the models' ``n_features_in_`` when not given.
    """

    default_nature: ClassVar[str | None] = None

    def __init__(self, models: Sequence[Any], context_dim: int | None = None) -> None:
        models = validation.list_of("models", models, "fitted classifiers")
        if len(models) < 2 or not all(hasattr(model, "predict_proba") for model in models):
            raise TypeError(
                f"models must be two or more fitted classifiers with predict_proba, got "
                f"{describe(models)}"
            )
        dim = _common_features(models, context_dim)
        self.models = models
        self.classes = _common_classes(models)
        num_labels = probabilities_of(models[0], np.zeros((1, dim))).shape[-1]
        super().__init__(len(models), num_labels, dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the models' checked probabilities at contexts ``(..., d)``, ``(..., K, M)``."""
        candidates = [probabilities_of(model, contexts) for model in self.models]
        return game_arrays.distributions(np.stack(candidates, axis=-2))


def _common_features(models: list[Any], context_dim: int | None) -> int:
    """Return the number of features that all models take, which is ``context_dim`` if given."""
    if context_dim is not None:
        context_dim = validation.whole("context_dim (d)", context_dim, least=1)
    numbers_of_features = [getattr(model, "n_features_in_", None) for model in models]
    known = [features for features in numbers_of_features if features is not None]
    if context_dim is None and not known:
        raise ValueError(
            f"context_dim is needed: {describe(models[0])} does not say how many features it "
            f"takes; is it fitted?"
        )
    if context_dim is None:
        dim = known[0]
    else:
        dim = context_dim
    for j, features in enumerate(numbers_of_features):
        if features not in (None, dim):
            raise ValueError(f"hypothesis {j} takes {features} features, not context_dim={dim}")
    return dim


def _common_classes(models: list[Any]) -> npt.NDArray[Any] | None:
    """Return the names of the labels ``(M,)`` that all models were fitted on; None if unknown."""
    classes: list[Any] = [getattr(model, "classes_", None) for model in models]
    for j, names in enumerate(classes):
        if not np.array_equal(names, classes[0]):
            raise ValueError(
                f"the models must be fitted on the same classes: hypothesis {j} has {names}, "
                f"hypothesis 0 has {classes[0]}"
            )
    if classes[0] is None:
        return None
    return np.asarray(classes[0])


def probabilities_of(model: Any, contexts: FloatArray) -> FloatArray:
    """Return a classifier's probabilities ``(..., M)`` at contexts ``(..., d)``."""
    rows = contexts.reshape(-1, contexts.shape[-1])
    with warnings.catch_warnings():
        # A model fitted on a data frame asks for its column names, which contexts do not have.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        probabilities = validation.numbers("what predict_proba returns", model.predict_proba(rows))
    return probabilities.reshape(*contexts.shape[:-1], *probabilities.shape[1:])


def as_hypotheses(
    source: object, game_parameters: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> HypothesisClass:
    """Make a hypothesis class from the rule ``hypotheses``.

    Args:
        source: a name, a table, callables, classifiers or a class; or ``"module:object"``, the
            address of any of these or of a function that makes one.
        game_parameters: ``num_hypotheses``, ``num_labels``, ``context_dim`` and ``class_seed``; one
            that is None is left to the class.
        options: further options of a named class.
    """
    if isinstance(source, str) and not HYPOTHESES.makes(source):
        source = HYPOTHESES[source]  # the address of a table, of models or of a finished class
    if options and not isinstance(source, str):
        raise TypeError(
            f"hypotheses_kwargs {sorted(options)} go with a named class, not with "
            f"{describe(source)}"
        )
    if isinstance(source, str):
        made: object = HYPOTHESES.build(source, game_parameters, options or {})
    else:
        made = source
    if not isinstance(made, HypothesisClass):
        made = _class_of(made, game_parameters.get("context_dim"))
    _check_parameters(made, game_parameters)
    return made


def _class_of(source: object, context_dim: int | None) -> HypothesisClass:
    """Make a hypothesis class from a table, callables or classifiers."""
    if isinstance(source, Sequence) and source and not isinstance(source, str):
        if all(hasattr(item, "predict_proba") for item in source):
            return Classifiers(source, context_dim)
        if all(callable(item) for item in source):
            if context_dim is None:
                raise ValueError(
                    "a list of callables needs context_dim, the length of their contexts"
                )
            return Callables(source, context_dim)
        if any(hasattr(item, "predict") for item in source):
            raise TypeError(
                f"classifiers need predict_proba, which some do not have: {describe(source)}"
            )
    is_one_thing = source is None or np.isscalar(source)
    if is_one_thing or callable(source) or hasattr(source, "predict_proba"):
        raise TypeError(
            f"hypotheses must be a name, a (K, M) table, a list of two or more callables or fitted "
            f"classifiers, or a HypothesisClass; got {describe(source)}"
        )
    table: Any = source
    if context_dim is None:
        context_dim = 1
    return Table(table, context_dim)


def _check_parameters(made: HypothesisClass, game_parameters: Mapping[str, Any]) -> None:
    """Refuse a class whose K, M or d is not that of the game's parameters."""
    for name in ("num_hypotheses", "num_labels", "context_dim"):
        wanted = game_parameters.get(name)
        actual = getattr(made, name)
        if wanted not in (None, actual):
            raise ValueError(
                f"{name}={wanted} contradicts the hypotheses, which have {name}={actual}: {made!r}"
            )
