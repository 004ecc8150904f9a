"""What a model was trained on, and what it says when it plays something else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from ldp_gym import CHANNELS, HYPOTHESES, Game
from ldp_gym.errors import OutsideTrainingWarning
from ldp_gym.registry import Registry

RANGES = ("epsilon", "K", "M", "T")
"""The numbers of a game that a model's ``trained_on`` may bound, each by its least and largest."""


def warn_outside(name: str, trained_on: Mapping[str, Any], measured: Mapping[str, str], game: Game) -> None:
    """Warn, once, if a model plays outside of what it was trained on: where, and what was measured there.

    Args:
        name: what the model goes by.
        trained_on: ``[least, largest]`` for any of :data:`RANGES`; the names of the ``channels`` and of the
            families of ``classes``. What it does not speak of is not looked at.
        measured: what was measured outside, in words, by the same keys.
        game: what it plays.
    """
    outside = describe_outside(trained_on, measured, game)
    if outside:
        _warn(f"{name!r} plays outside of what it was trained on: {outside}")


def describe_outside(trained_on: Mapping[str, Any], measured: Mapping[str, str], game: Game) -> str:
    """Where a game lies outside, in words; empty if nowhere."""
    channel = game.channel
    numbers = dict(
        zip(RANGES, (channel.epsilon, game.num_hypotheses, game.num_labels, game.horizon), strict=True)
    )
    found = {
        key: f"{_symbol(key)} = {number:g}, trained on {trained_on[key][0]:g} to {trained_on[key][1]:g}"
        for key, number in numbers.items()
        if key in trained_on and not trained_on[key][0] <= number <= trained_on[key][1]
    }
    # The family of a class that is redrawn each episode is not among the public rules.
    parties = {"channels": _name_in(CHANNELS, channel)}
    if game.hypotheses is not None:
        parties["classes"] = _name_in(HYPOTHESES, game.hypotheses)
    for key, party in parties.items():
        if key in trained_on and party not in trained_on[key]:
            kind = {"channels": "channel", "classes": "class family"}[key]
            found[key] = f"{kind} {party!r}, trained on {', '.join(trained_on[key])}"
    return "; ".join(f"{text} ({_said(measured, key)})" for key, text in found.items())


def _said(measured: Mapping[str, str], key: str) -> str:
    return f"measured: {measured[key]}" if key in measured else "nothing was measured there"


def _symbol(key: str) -> str:
    return "eps" if key == "epsilon" else key


def _name_in(registry: Registry[Any], party: object) -> str:
    """The registered name of a channel or class; for one without, what it is."""
    named = (name for name in registry.names() if registry.is_builtin(name) and registry[name] is type(party))
    return next(named, type(party).__name__)


@cache  # said once
def _warn(text: str) -> None:
    warnings.warn(text, OutsideTrainingWarning, stacklevel=4)
