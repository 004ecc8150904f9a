"""From what a user hands over to a hypothesis class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.validation import describe
from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass
from ldp_gym.hypotheses.callables import Callables
from ldp_gym.hypotheses.classifiers import Classifiers
from ldp_gym.hypotheses.table import Table


def as_hypotheses(
    source: object, game_parameters: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> HypothesisClass:
    """The class that ``source`` stands for: a name, a table, callables, classifiers, or a class itself.

    ``"module:object"`` names any of these, or a function that makes one.

    Args:
        source: see the table at the top of :mod:`ldp_gym.hypotheses`.
        game_parameters: what the game knows (``num_hypotheses``, ``num_labels``, ``context_dim``,
            ``class_seed``, ``epsilon``, ``horizon``); ``None`` leaves the choice to the class.
        options: the named class's own options.

    Raises:
        ValueError: if the class cannot be made, or contradicts the game.
    """
    options = validation.options("options", options)
    if isinstance(source, str) and not HYPOTHESES.makes(source):
        source = HYPOTHESES[source]  # "module:object": a table, models or a class that is there already
    known = {key: value for key, value in game_parameters.items() if value is not None}
    if options and not isinstance(source, str):
        raise TypeError(
            f"hypotheses_kwargs {sorted(options)} go with a named class, not with {describe(source)}"
        )
    if isinstance(source, HypothesisClass):
        made = source
    elif isinstance(source, str):
        found: object = HYPOTHESES.build(source, known, options or {})
        made = found if isinstance(found, HypothesisClass) else as_hypotheses(found, game_parameters)
    elif isinstance(source, Sequence) and source and all(hasattr(f, "predict_proba") for f in source):
        made = Classifiers(source, known.get("context_dim"))
    elif isinstance(source, Sequence) and source and all(callable(f) for f in source):
        if "context_dim" not in known:
            raise ValueError("a list of callables needs context_dim, the length of their contexts")
        made = Callables(source, known["context_dim"])
    elif isinstance(source, Sequence) and any(hasattr(f, "predict") for f in source):
        without = next(f for f in source if not hasattr(f, "predict_proba"))
        raise TypeError(f"classifiers need predict_proba, which {describe(without)} does not have")
    elif source is None or np.isscalar(source) or callable(source) or hasattr(source, "predict_proba"):
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
