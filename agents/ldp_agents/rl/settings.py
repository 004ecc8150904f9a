"""Settings of training, from the file ``settings.yaml`` and from those that a user changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ldp_gym.core import validation
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    import yaml

SETTINGS_FILE = Path(__file__).parent / "settings.yaml"
"""File with the settings of all algorithms."""

NUM_ROUNDS = "n_timesteps"
"""Setting that says for how many rounds to train."""


@cache
def _read_file() -> dict[str, dict[str, Any]]:
    """Default settings by the name of an algorithm, read once."""
    return dict(yaml.safe_load(SETTINGS_FILE.read_text("utf-8")))


def algorithms() -> list[str]:
    """Names of the algorithms that the file has settings for."""
    return list(_read_file())


def settings_of(algorithm: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All settings of an algorithm: those of the file, with the given changes.

    Raises:
        ValueError: for an unknown algorithm or setting, or a value of another kind.

    Example:
        >>> settings_of("a2c", {"n_steps": 8})["n_steps"]
        8
    """
    if algorithm not in _read_file():
        raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(algorithms())}")
    settings = dict(_read_file()[algorithm])
    if changes is None:
        return settings

    for name, value in changes.items():
        if name not in settings:
            listed = ", ".join(f"{known}={default}" for known, default in settings.items())
            raise ValueError(f"{algorithm} has no setting {name!r}; it has {listed}")
        settings[name] = _checked(name, value, settings[name])
    return settings


def _checked(name: str, value: Any, default: Any) -> Any:
    """Check that the value of a setting has the type of the default, and return it."""
    if isinstance(default, list):
        kind = type(default[0])
        if not isinstance(value, list) or not all(type(part) is kind for part in value):
            raise ValueError(f"{name} must be a list such as {default}, got {value!r}")
        return value
    if isinstance(default, int):
        return validation.whole(name, value, least=1)
    if isinstance(default, float):
        return validation.real(name, value)
    return validation.text(name, value)
