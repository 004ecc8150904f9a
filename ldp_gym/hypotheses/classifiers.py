"""Fitted classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import ArgumentTypeError
from ldp_gym.core.validation import describe
from ldp_gym.hypotheses.base import HypothesisClass


class Classifier(Protocol):
    """A fitted classifier, as scikit-learn has them."""

    def predict_proba(self, X: FloatArray) -> FloatArray:  # noqa: N803
        """Class probabilities ``(n, M)`` of the rows of ``X (n, d)``."""


def probabilities_of(model: Classifier, contexts: FloatArray) -> FloatArray:
    """``predict_proba`` at ``(..., d)``, quiet about the names of a data frame that it was fitted on."""
    rows = contexts.reshape(-1, contexts.shape[-1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        probabilities = validation.numbers("what predict_proba returns", model.predict_proba(rows))
    return probabilities.reshape(*contexts.shape[:-1], *probabilities.shape[1:])


def name_classes(classes: Any) -> str:
    """A model's ``classes_``, for messages."""
    return "no classes_ (is it fitted?)" if classes is None else str(classes)


class Classifiers(HypothesisClass):
    """K fitted classifiers. Contexts are what they were fitted on: the rules say where they come from.

    Args:
        models: fitted models with ``predict_proba``, all over the same classes.
        context_dim: d; from the models' ``n_features_in_`` when not given.
    """

    default_nature: ClassVar[str | None] = None

    def __init__(self, models: Sequence[Classifier], context_dim: int | None = None) -> None:
        models = validation.list_of("models", models, "fitted classifiers")
        if len(models) < 2 or not all(hasattr(model, "predict_proba") for model in models):
            raise ArgumentTypeError(
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
                    f"the models must share their classes: hypothesis {j} has {name_classes(labels)}, "
                    f"hypothesis 0 has {name_classes(classes[0])}"
                )
        self.models = list(models)
        self.classes = None if classes[0] is None else np.asarray(classes[0])
        super().__init__(len(models), probabilities_of(models[0], np.zeros((1, dim))).shape[-1], dim)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        candidates = [probabilities_of(model, contexts) for model in self.models]
        return game_arrays.distributions(np.stack(candidates, axis=-2))
