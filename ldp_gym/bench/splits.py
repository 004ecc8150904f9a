"""Named games to train and to test agents on.

Every test split changes one thing of the training games. ``ldp-gym bench splits --learner`` scores an agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GameSplit:
    """Games, as keyword arguments of ``gym.make("LDPDist-v0", ...)`` by title, with a line about them."""

    name: str
    about: str
    games: Mapping[str, Mapping[str, Any]]

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((title, dict(rules)) for title, rules in self.games.items())


_BASE = {
    **{"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16, "epsilon": 2.0, "horizon": 1000},
    **{"channel": "laplace-single", "redraw_hypotheses": True, "observe_candidates": True},
}
"""Base game: every episode draws its own Dirichlet(0.3) table and truth."""

_FIXED = {"redraw_hypotheses": False}


def _split(name: str, about: str, changes: Mapping[str, Mapping[str, Any]]) -> GameSplit:
    """A split of base games with one change each, by title."""
    return GameSplit(name, about, {title: {**_BASE, **change} for title, change in changes.items()})


TRAIN = _split(
    "train",
    "redrawn tables and softmax-linear classes, K from 4 to 16, M from 8 to 32, eps from 1 to 4, two "
    "horizons, three channels",
    {
        "base": {},
        **{f"K = {k}": {"num_hypotheses": k} for k in (4, 16)},
        **{f"M = {m}": {"num_labels": m} for m in (8, 32)},
        **{f"eps = {e}": {"epsilon": float(e)} for e in (1, 4)},
        **{"T = 300": {"horizon": 300}, "softmax-linear": {"hypotheses": "softmax-linear"}},
        **{name: {"channel": name} for name in ("split", "randomized-response")},
    },
)

_OTHER_CHANNELS = ("subset-selection", "one-bit", "wheel", "adaptive-split")

TESTS: dict[str, GameSplit] = {
    split.name: split
    for split in (
        GameSplit("familiar", "the training games, on episodes that are not trained on", TRAIN.games),
        _split(
            "class",
            "other families: sharper and flatter tables, disjoint supports, the lower bound's pairs",
            {
                "Dirichlet(0.05)": {"hypotheses_kwargs": {"concentration": 0.05}},
                "Dirichlet(1)": {"hypotheses_kwargs": {"concentration": 1.0}},
                "disjoint": {"hypotheses": "disjoint", **_FIXED},
                "hadamard": {"hypotheses": "hadamard", "num_labels": None, **_FIXED},
            },
        ),
        _split("num-hypotheses", "other K", {f"K = {k}": {"num_hypotheses": k} for k in (2, 32, 64)}),
        _split("num-labels", "other M", {f"M = {m}": {"num_labels": m} for m in (2, 64, 128)}),
        _split("epsilon", "more privacy, and less", {f"eps = {e:g}": {"epsilon": e} for e in (0.5, 8.0)}),
        _split("horizon", "fewer rounds, and more", {f"T = {t}": {"horizon": t} for t in (200, 3000)}),
        _split("channel", "messages of other forms", {name: {"channel": name} for name in _OTHER_CHANNELS}),
        _split(
            "memory",
            "one fixed table, for policies that read raw messages and remember them",
            {"table": {"epsilon": 1.0, **_FIXED}},
        ),
    )
}
"""Test splits by name."""
