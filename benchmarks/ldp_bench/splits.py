"""Named games to train and to test agents on, as keyword arguments of ``gym.make("LDPDist-v0", ...)``.

Most test splits change one property of training games. ``ldp-gym bench splits --learner`` scores an agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Games = dict[str, dict[str, Any]]
"""Rules of games by title."""

_BASE = {
    **{
        "hypotheses": "dirichlet",
        "num_hypotheses": 8,
        "num_labels": 16,
        "epsilon": 2.0,
        "horizon": 1000,
    },
    **{"channel": "laplace-single", "redraw_hypotheses": True, "observe_candidates": True},
}
"""Base game: every episode draws its own Dirichlet(0.3) table and truth."""

_FIXED = {"redraw_hypotheses": False}


def _games(changes: Mapping[str, Mapping[str, Any]]) -> Games:
    """Base game with each of the given changes, by title."""
    return {title: {**_BASE, **change} for title, change in changes.items()}


TRAIN = _games(
    {
        "base": {},
        **{f"K = {k}": {"num_hypotheses": k} for k in (4, 16)},
        **{f"M = {m}": {"num_labels": m} for m in (8, 32)},
        **{f"eps = {e}": {"epsilon": float(e)} for e in (1, 4)},
        **{"T = 300": {"horizon": 300}, "softmax-linear": {"hypotheses": "softmax-linear"}},
        **{name: {"channel": name} for name in ("split", "randomized-response")},
    }
)
"""Training games: tables and softmax-linear classes, K from 4 to 16, M from 8 to 32, eps from 1 to 4."""

_FAMILIES: Games = {
    "Dirichlet(0.05)": {"hypotheses_kwargs": {"concentration": 0.05}},
    "Dirichlet(1)": {"hypotheses_kwargs": {"concentration": 1.0}},
    "disjoint": {"hypotheses": "disjoint", **_FIXED},
    "hadamard": {"hypotheses": "hadamard", "num_labels": None, **_FIXED},
}
_CHANNELS = ("subset-selection", "one-bit", "wheel", "adaptive-split")

TESTS: dict[str, Games] = {
    "familiar": TRAIN,  # on episodes that are not trained on
    "class": _games(_FAMILIES),
    "num-hypotheses": _games({f"K = {k}": {"num_hypotheses": k} for k in (2, 32, 64)}),
    "num-labels": _games({f"M = {m}": {"num_labels": m} for m in (2, 64, 128)}),
    "epsilon": _games({f"eps = {e:g}": {"epsilon": e} for e in (0.5, 8.0)}),
    "horizon": _games({f"T = {t}": {"horizon": t} for t in (200, 3000)}),
    "channel": _games({name: {"channel": name} for name in _CHANNELS}),
    "memory": _games(
        {"table": {"epsilon": 1.0, **_FIXED}}
    ),  # for policies that remember raw messages
}
"""Test splits by name."""
