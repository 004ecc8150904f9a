"""Options that are passed on, as name=value."""

from __future__ import annotations

import json
from typing import Any


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
