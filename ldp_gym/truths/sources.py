"""From what a user hands over to a truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.validation import describe
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.hypotheses.classifiers import name_classes, probabilities_of
from ldp_gym.truths.base import TRUTHS, Truth
from ldp_gym.truths.fixed import Fixed
from ldp_gym.truths.function import Function
from ldp_gym.truths.member import Member


def as_truth(
    source: object, hypotheses: HypothesisClass, horizon: int, options: Mapping[str, Any] | None = None
) -> Truth:
    """The truth that ``source`` stands for.

    Args:
        source: an index, "uniform" or another name, a row of M probabilities, a callable from contexts, a
            fitted classifier, or a Truth.
        hypotheses: the class that is played.
        horizon: T.
        options: of a named truth.

    Raises:
        ValueError: if the truth cannot be made, saying why.
        TypeError: if it is none of these.
    """
    options = validation.options("options", options)
    horizon = validation.whole("horizon (T)", horizon, least=1)
    num_labels, context_dim = hypotheses.num_labels, hypotheses.context_dim
    if isinstance(source, str):
        game_parameters = {
            "num_hypotheses": hypotheses.num_hypotheses,
            "num_labels": num_labels,
            "context_dim": context_dim,
            "horizon": horizon,
            "classes": hypotheses.classes,
        }
        made = TRUTHS.build(source, game_parameters, options or {})
        if not isinstance(made, Truth):
            raise TypeError(f"truth {source!r} must make a Truth, got {describe(made)}")
        return made
    if options:
        raise TypeError(f"truth_kwargs {sorted(options)} go with a named truth, not with {describe(source)}")
    if isinstance(source, Truth):
        return source
    if isinstance(source, Integral) and not isinstance(source, bool | np.bool_ | np.timedelta64):
        return Member(hypotheses.num_hypotheses, int(source))
    if hasattr(source, "predict_proba"):
        classes: Any = getattr(source, "classes_", None)
        if hypotheses.classes is not None and not np.array_equal(classes, hypotheses.classes):
            raise ValueError(
                f"the truth must share the classes of the hypotheses, {hypotheses.classes}; it has "
                f"{name_classes(classes)}"
            )
        return Function(num_labels, context_dim, partial(probabilities_of, source))
    if callable(source) and not isinstance(source, type):
        return Function(num_labels, context_dim, source)
    if isinstance(source, list | tuple | np.ndarray) or hasattr(source, "__array__"):
        return _fixed(num_labels, source)
    raise TypeError(
        f"truth must be an index, a name, a row of M = {num_labels} probabilities, a callable from contexts, "
        f"a fitted classifier or a Truth (made, not its class); got {describe(source)}"
    )


def _fixed(num_labels: int, row: Any) -> Truth:
    """A row of probabilities. The error also says how to replay logged labels, which look alike."""
    try:
        return Fixed(num_labels, row)
    except ValueError as error:
        raise ValueError(
            f'{error}. To replay logged labels: truth="replay" with '
            'truth_kwargs={"contexts": X, "labels": y}'
        ) from error
