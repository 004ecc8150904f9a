"""What a model was trained on, and what it says when it plays something else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from ldp_gym import CHANNELS, HYPOTHESES, Game
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.core.registry import Registry


def warn_outside(name: str, trained_on: Mapping[str, Any], measured: Mapping[str, str], game: Game) -> None:
    """Warn, once, if a model plays outside of what it was trained on: where, and what was measured there.

    Args:
        name: what the model goes by.
        trained_on: ``[least, largest]`` for any of ``epsilon``, ``K``, ``M`` and ``T``; the names of the
            ``channels`` and of the families of ``classes``. What it does not speak of is not looked at.
        measured: what was measured outside, in words, by the same keys.
        game: what it plays.
    """
    outside = describe_outside(trained_on, measured, game)
    if outside:
        _warn(f"{name!r} plays outside of what it was trained on: {outside}")


def describe_outside(trained_on: Mapping[str, Any], measured: Mapping[str, str], game: Game) -> str:
    """Where a game lies outside, in words; empty if nowhere."""
    found = {}
    numbers = {
        "epsilon": game.channel.epsilon,
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
    }
    for key, number in numbers.items():
        least, largest = trained_on.get(key, (number, number))
        if not least <= number <= largest:
            symbol = "eps" if key == "epsilon" else key
            found[key] = f"{symbol} = {number:g}, trained on {least:g} to {largest:g}"
    parties = {"channels": ("channel", _name_in(CHANNELS, game.channel))}
    if game.hypotheses is not None:  # the family of a class that is redrawn is not among the public rules
        parties["classes"] = ("class family", _name_in(HYPOTHESES, game.hypotheses))
    for key, (kind, party) in parties.items():
        if party not in trained_on.get(key, [party]):
            found[key] = f"{kind} {party!r}, trained on {', '.join(trained_on[key])}"
    said = {key: f"measured: {text}" for key, text in measured.items()}
    return "; ".join(f"{text} ({said.get(key, 'nothing was measured there')})" for key, text in found.items())


def _name_in(registry: Registry[Any], party: object) -> str:
    """The registered name of a channel or class; for one without, what it is."""
    named = (name for name, maker in registry.own.items() if maker is type(party))
    return next(named, type(party).__name__)


@cache  # said once
def _warn(text: str) -> None:
    warnings.warn(text, OutsideTrainingWarning, stacklevel=4)
