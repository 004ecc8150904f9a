"""Fitted classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import FloatArray


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
