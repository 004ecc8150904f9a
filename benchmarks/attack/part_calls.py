"""Calls that make a game and its parts: rules, everything that goes by a name, what a user hands over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from attack.call import Call
from attack.wrong_values import (
    COUNTS,
    FINE,
    LISTS,
    MEASURES,
    NO_ARRAYS,
    SHARES,
    TABLE,
    THINGS,
    no_arrays,
    no_rows,
    no_tables,
)

import ldp_gym
from ldp_gym import hypotheses, truths


def _rules_calls() -> Iterator[Call]:
    """The rules of a game, through gym.make, gym.make_vec and evaluate."""
    named = {
        "num_hypotheses": 3,
        "num_labels": 4,
        "context_dim": 2,
        "class_seed": 0,
        "epsilon": 1.0,
        "delta": 0.0,
        "horizon": 5,
        "max_loss": 3.0,
        "observe_candidates": False,
        "redraw_hypotheses": False,
        "reveal": False,
        "hypotheses_kwargs": None,
        "channel_kwargs": None,
        "nature_kwargs": None,
        "truth_kwargs": None,
        "hypotheses": "softmax-linear",
        "channel": "laplace-single",
        "nature": "iid",
        "truth": "uniform",
    }
    names = [*THINGS, "builtins:int", "builtins:dict", "os:path", "nowhere:X", ":", "a:b:c", [], FINE]
    truths = [value for value in THINGS if not isinstance(value, int)] + [
        -1,
        99,
        True,
        "builtins:int",
        *no_rows(4),
    ]
    wrong = {
        "hypotheses": [*no_tables(3, 4), "builtins:int", "os:path", "nowhere:X", [print, 3], [], [len, len]],
        "channel": names,
        "nature": names,
        "truth": [value for value in truths if not callable(value) or isinstance(value, type)],
    }
    words = {f"{party}_kwargs": (f"{party}_kwargs", "option") for party in ("channel", "nature", "truth")}
    words["hypotheses_kwargs"] = ("hypotheses_kwargs", "option")
    words["hypotheses"] = ("hypothes", "table")
    optional = ("num_hypotheses", "num_labels", "context_dim", "nature", "epsilon", "delta", "horizon")
    for name, function in {
        "gym.make": lambda **rules: gym.make("LDPDist-v0", **rules),
        "gym.make_vec": lambda **rules: gym.make_vec("LDPDist-v0", num_envs=2, **rules),
        "LDPDistEnv": ldp_gym.LDPDistEnv,
        "evaluate rules": lambda **rules: ldp_gym.evaluate("uniform", rules, episodes=1),
    }.items():
        yield Call(name, function, named, wrong, words, ldp_gym.LDPDistEnv, optional)


def _registered_calls() -> Iterator[Call]:
    """Every class that goes by a name."""
    right = {
        "num_hypotheses": 4,
        "num_labels": 8,
        "horizon": 1000,
        "context_dim": 2,
        "epsilon": 1.0,
        "class_seed": 0,
        "contexts": np.zeros((8, 2)).tolist(),
        "labels": [0, 1] * 4,
        "base": TABLE,
    }
    wrong = {
        "contexts": no_arrays(8, 2),
        "pool": no_arrays(8, 2),
        "labels": ["abc", 3, 1.5, *([odd] * 8 for odd in (1j, -1, 99, math.nan, [0], "0", None)), [0]],
        "classes": [],  # the class of hypotheses brings them
        "base": [*THINGS, "nowhere:X", "builtins:int", [], *no_tables(2, 3)[13:20]],
        "sizes": LISTS,
        "other": no_rows(8),
        "member": COUNTS,
        "members": LISTS,
        "switches": LISTS,
        "weights": no_rows(2),
        "gap": SHARES,
        "posterior_rate": [*MEASURES, 2],
        "posterior_share": [*SHARES, 1.0],
        "epsilon": [
            value for value in MEASURES if value is not math.inf and not isinstance(value, np.float64)
        ],
    }
    words = {"pool": ("contexts",), "member": ("truth",), "base": ("hypothes", "table", "base")}
    optional = ("num_hypotheses", "num_labels", "context_dim")
    for registry in (ldp_gym.HYPOTHESES, ldp_gym.CHANNELS, ldp_gym.NATURES, ldp_gym.TRUTHS):
        for name, maker in registry.items():
            if not registry.is_builtin(name):
                continue
            own = {p: value for p, value in right.items() if registry.takes(name, p)}
            own = {**registry.defaults(name), **own}
            if name.endswith("-vector"):
                own["delta"] = 1e-5
            if name == "refined":
                own = {"base": TABLE, "parts": 2, "class_seed": 0}
            free = optional if registry is ldp_gym.HYPOTHESES else ("contexts",) if name == "cycle" else ()
            yield Call(f"{registry.kind} {name}", maker, own, wrong, words, optional=free)


class _Coin:
    """A fitted classifier of two features."""

    n_features_in_ = 2

    def predict_proba(self, rows: Any) -> Any:
        return np.full((len(rows), 3), 1 / 3)


def _source_calls() -> Iterator[Call]:
    """From what a user hands over to classes and truths."""
    makers = [*NO_ARRAYS, [], [3, 3], [print, 3], ["a", "b"], None]
    dims = {"context_dim": COUNTS}
    yield Call(
        "Table", hypotheses.Table, {"table": TABLE, "context_dim": 1}, {"table": no_tables(2, 3), **dims}
    )
    yield Call(
        "Callables",
        hypotheses.Callables,
        {"functions": [lambda x: [0.5, 0.5]] * 2, "context_dim": 2},
        {
            "functions": [
                *makers,
                [len, len],
                [lambda x: "ab"] * 2,
                [lambda x: None] * 2,
                [lambda x: [2.0, 3.0]] * 2,
            ]
        },
        {"functions": ("function", "hypothesis")},
    )
    yield Call(
        "Classifiers",
        hypotheses.Classifiers,
        {"models": [_Coin(), _Coin()], "context_dim": 2},
        {"models": makers},
        {"models": ("models", "predict_proba"), "context_dim": ("context_dim",)},
        optional=("context_dim",),
    )
    yield Call(
        "as_hypotheses",
        hypotheses.as_hypotheses,
        {"source": TABLE, "game_parameters": {}, "options": None},
        {"source": no_tables(2, 3), "game_parameters": []},
        {"source": ("hypothes", "table"), "options": ("options", "hypotheses_kwargs")},
    )
    yield Call(
        "as_truth",
        truths.as_truth,
        {"source": 0, "hypotheses": hypotheses.Table(TABLE), "horizon": 5, "options": None},
        {"source": [b"x", "nobody", 1.5, 1j, -1, 9, object(), *no_rows(3)[14:]], "hypotheses": []},
        {"source": ("truth",), "options": ("options", "truth_kwargs")},
    )


def part_calls() -> Iterator[Call]:
    """All of them."""
    for part in (_source_calls, _rules_calls, _registered_calls):
        yield from part()
