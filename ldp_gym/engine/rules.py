"""The rules: the keyword arguments of ``gym.make("LDPDist-v0", ...)``, their types and their defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypedDict

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.natures.base import Nature


class Rules(TypedDict, total=False):
    """Keyword arguments of the environments.

    Attributes:
        hypotheses: the class F: a name, a ``(K, M)`` table (array or nested lists), a list of callables, a
            list of fitted classifiers, a HypothesisClass, or the address of one, ``"module:object"``.
        num_hypotheses: K; a named class has its own default, 8.
        num_labels: M; a named class has its own default, 16 for ``softmax-linear`` and ``dirichlet``.
        context_dim: d; a named class has its own default, 4 for ``softmax-linear`` and 1 for the others.
        class_seed: seed of a random class.
        hypotheses_kwargs: further options of a named class.
        channel: the channel by which users privatize: a name, ``"module:Object"``, or a Channel.
        channel_kwargs: further options of a named channel.
        epsilon: a named channel's privacy level; 1 by default.
        delta: a named channel's delta; 0, as for all pure channels, by default.
        horizon: T; 1000 by default, and the number of rows where the truth is replayed.
        nature: source of the contexts: a name or a Nature; ``"iid"`` by default. Fitted classifiers have no
            default: their contexts must be like those they were fitted on.
        nature_kwargs: further options of a named nature.
        truth: distribution of the labels: "uniform" for a member drawn each episode, its index, another name
            (``"mixture"``, ``"contaminated"``, ``"switching"``, ``"replay"``), a row of M probabilities, a
            callable from contexts, a fitted classifier, or a Truth.
        truth_kwargs: further options of a named truth.
        observe_candidates: show the candidates ``f_j(x_t)`` in the observations.
        redraw_hypotheses: draw a new class of the named family in each episode.
        batch: number of users who answer under one public posterior, which advances when the batch is
            complete; 1 by default. Matters where a channel or nature is adaptive.
        reveal: put the truth and the labels into info. For debugging and analysis only.
        max_loss: cap of the KL in the reward, which is always finite.
    """

    hypotheses: object
    num_hypotheses: int | None
    num_labels: int | None
    context_dim: int | None
    class_seed: int
    hypotheses_kwargs: Mapping[str, Any] | None
    channel: str | Channel
    channel_kwargs: Mapping[str, Any] | None
    epsilon: float | None
    delta: float | None
    horizon: int | None
    nature: str | Nature | None
    nature_kwargs: Mapping[str, Any] | None
    truth: object
    truth_kwargs: Mapping[str, Any] | None
    observe_candidates: bool
    redraw_hypotheses: bool
    batch: int
    reveal: bool
    max_loss: float


DEFAULTS: Rules = {
    **dict.fromkeys(Rules.__annotations__),  # type: ignore[typeddict-item]
    "hypotheses": "softmax-linear",
    "class_seed": 0,
    "channel": "laplace-single",
    "truth": "uniform",
    "observe_candidates": False,
    "redraw_hypotheses": False,
    "batch": 1,
    "reveal": False,
    "max_loss": 100.0,
}

DEFAULT_HORIZON = 1000

DEFAULT_PRIVACY = {"epsilon": 1.0, "delta": 0.0}
"""Privacy level of a named channel if the rules give none."""


def complete_rules(rules: Mapping[str, Any]) -> Rules:
    """Fill in the default of every rule that is not given.

    Raises:
        TypeError: for an unknown rule, naming the nearest.

    Example:
        >>> complete_rules({"horizon": 10})["channel"]
        'laplace-single'
        >>> complete_rules({"horizn": 10})
        Traceback (most recent call last):
        ...
        TypeError: LDPDist-v0 got an unexpected keyword argument 'horizn'; did you mean 'horizon'? ...
    """
    for name in rules:
        if name not in DEFAULTS:
            known = [
                other for other in (*DEFAULTS, "render_mode", "logit_range", "observation") if other != name
            ]
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(
                f"LDPDist-v0 got an unexpected keyword argument {name!r}{hint} It takes {', '.join(DEFAULTS)}"
                f" and render_mode; LDPDistBox-v0 takes logit_range and observation too"
            )
    return {**DEFAULTS, **rules}  # type: ignore[typeddict-item]


def as_rules(name: str, value: object) -> dict[str, Any]:
    """``value``, the argument ``name``, as a dict of known rules.

    Raises:
        TypeError: if it is something else, or has an unknown rule.
    """
    validation.instance(name, value, Mapping, "a dict of what gym.make('LDPDist-v0', ...) takes")
    rules = validation.options_dict(name, value)
    complete_rules(rules)
    return rules


def rule_value(rules: Mapping[str, Any], name: str) -> Any:
    """Value of a rule, or its default."""
    value = rules.get(name)
    defaults = {**DEFAULTS, **DEFAULT_PRIVACY, "horizon": DEFAULT_HORIZON, "nature": "iid"}
    return defaults[name] if value is None else value
