"""Directories of trained models: their files, and the one function that loads them."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ldp_gym.core import validation
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.core.files import write_text
from ldp_gym.engine.learners import MakeLearner

CARD, WEIGHTS, POLICY = "model.json", "weights.npz", "policy.zip"
"""Files of a model: its card, and either arrays or a policy of stable-baselines3 (which is a pickle)."""

ProgressCallback = Callable[[int, Callable[[], MakeLearner], Callable[[Path], None]], None]
"""Callback of a training run: rounds played, function that gives the current model, function that saves a
checkpoint."""

_PACKAGES = ("ldp-gym", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


def load(directory: str | Path, *, trust: bool = False) -> MakeLearner:
    """Load a trained model: a picklable function from Game to Learner.

    Args:
        directory: directory that ``ldp-gym train`` or :func:`ldp_agents.rl.save` has written.
        trust: whether to read a policy of stable-baselines3, which runs whatever code it holds.

    Raises:
        FileNotFoundError: if there is no model in the directory.
        UntrustedCodeError: if it holds such a policy, and ``trust`` is not set.
    """
    path, trust = validation.path("directory", directory), validation.flag("trust", trust)
    if not (path / CARD).exists():
        raise FileNotFoundError(
            f"no trained model in {path}: it has no {CARD}; 'ldp-gym train --out' makes one"
        )
    if (path / WEIGHTS).exists():
        from ldp_agents.rl.model import Model

        return Model.read(path)
    require_trust(path / POLICY, trust)
    from ldp_agents.rl.policies import StoredPolicy

    return StoredPolicy(path)


def require_trust(file: Path, trust: bool) -> None:
    """Refuse to read a file that runs code, unless it is trusted."""
    if not trust:
        raise UntrustedCodeError(
            f"{file} runs whatever code it holds when it is read. If you trust whoever made it, say so: "
            f"trust=True, or --trust on the command line"
        )


def read_card(directory: Path) -> dict[str, Any]:
    """The card of a model: what it was trained on, and what made it. It may not name code."""
    try:
        card = json.loads((directory / CARD).read_text("utf-8"))
        if not isinstance(card["trained_on"], dict):
            raise ValueError("trained_on is not a dict")
        check_stored_rules(card.get("config", {}).get("rules", {}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{directory / CARD} is not the card of a model: {error}") from error
    return dict(card)


def write_card(directory: Path, card: Mapping[str, Any]) -> None:
    """Write the card of a model."""
    write_text(directory / CARD, json.dumps(card, indent=2) + "\n")


def check_stored_rules(rules: Mapping[str, Any]) -> None:
    """Check that rules from a file name only registered parts: a file never says what is imported."""
    for name in ("hypotheses", "channel", "nature", "truth"):
        if isinstance(value := rules.get(name), str) and ":" in value:
            raise ValueError(
                f"its rules have {name}={value!r}, and a file may not say what is imported: give it again, "
                f"such as --{name} {value}"
            )


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that make a model."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
