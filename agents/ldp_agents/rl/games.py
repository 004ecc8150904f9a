"""Random games that ``amortized`` is trained on: every batch is another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ldp_gym.bench.splits import SPLITS

CLASSES: dict[str, dict[str, Any]] = {
    "dirichlet(0.05)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 0.05}},
    "dirichlet(0.3)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 0.3}},
    "dirichlet(1)": {"hypotheses": "dirichlet", "hypotheses_kwargs": {"concentration": 1.0}},
    "softmax-linear": {"hypotheses": "softmax-linear"},
    "disjoint": {"hypotheses": "disjoint"},
    "hadamard": {"hypotheses": "hadamard"},
}
"""Class families by name, as keyword arguments of ``gym.make``."""

RANGES: dict[str, tuple[float, float]] = {
    "epsilon": (0.25, 8.0),
    "K": (2, 64),
    "M": (2, 128),
    "T": (100, 3000),
}
"""Least and largest numbers of the games."""

DRAWN_GAMES = {
    "classes": sorted({str(rules["hypotheses"]) for rules in CLASSES.values()}),
    **{key: list(ends) for key, ends in RANGES.items()},
}
"""The games of :func:`draw_rules` as a model's ``trained_on`` has them."""

_REDRAWN = ("dirichlet", "softmax-linear")
"""Families from which every episode draws another class."""


def make_rules(
    family: str, channel: str, epsilon: float, num_hypotheses: int, num_labels: int, horizon: int
) -> dict[str, Any]:
    """The rules of a game, with M as near to the given one as the family allows."""
    rules = {
        **CLASSES[family],
        "num_hypotheses": num_hypotheses,
        "channel": channel,
        "epsilon": epsilon,
        "delta": 1e-5 if channel.endswith("-vector") else 0.0,
        "horizon": horizon,
    }
    if rules["hypotheses"] in _REDRAWN:
        return {**rules, "num_labels": num_labels, "redraw_hypotheses": True, "observe_candidates": True}
    if family == "disjoint":
        return {**rules, "num_labels": max(num_hypotheses, num_labels)}
    return {**rules, "num_hypotheses": num_hypotheses + num_hypotheses % 2}  # pairs, which determine M


def draw_rules(rng: np.random.Generator, channels: Sequence[str]) -> dict[str, Any]:
    """The rules of a random game: family and channel uniform, numbers log-uniform in :data:`RANGES`."""
    epsilon, *sizes = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in RANGES.values())
    num_hypotheses, num_labels, horizon = map(round, sizes)
    family, channel = rng.choice(list(CLASSES)), rng.choice(list(channels))
    return make_rules(str(family), str(channel), epsilon, num_hypotheses, num_labels, horizon)


def draw_from_split(rng: np.random.Generator, split: str) -> dict[str, Any]:
    """The rules of a random game of a split of :mod:`ldp_gym.bench.splits`."""
    games = list(SPLITS[split].games.values())
    return dict(games[int(rng.integers(len(games)))])


def describe_split(split: str) -> dict[str, Any]:
    """The games of a split as a model's ``trained_on`` has them."""
    games: Collection[Mapping[str, Any]] = SPLITS[split].games.values()
    rules_of = {"epsilon": "epsilon", "K": "num_hypotheses", "M": "num_labels", "T": "horizon"}
    found = {key: [rules[rule] for rules in games] for key, rule in rules_of.items()}
    return {
        "classes": sorted({str(rules["hypotheses"]) for rules in games}),
        **{key: [min(values), max(values)] for key, values in found.items()},
        "channels": sorted({str(rules["channel"]) for rules in games}),
    }
