"""Options that are passed on, as name=value."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def search_here() -> None:
    """Let modules in the working directory count, after all that is installed: one's own is often there.

    Only for a command that names such a module, or is told to trust what names it.
    """
    if "" not in sys.path:
        sys.path.append("")


def directory_of(text: str) -> Path:
    """The directory that is to be written to.

    Raises:
        ValueError: if it has no name, or is a file.
    """
    path = Path(text)
    if not str(text):
        raise ValueError("a directory is needed, got an empty name")
    if path.exists() and not path.is_dir():
        raise ValueError(f"a directory is needed, and {path} is a file")
    return path


def option_of(text: str) -> tuple[str, Any]:
    """The name and the value, as JSON if it is that and else as text.

    Example:
        >>> option_of("gamma=2.5"), option_of("clipping=paper")
        (('gamma', 2.5), ('clipping', 'paper'))
    """
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError(f"an option is name=value, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
