"""``ldp-gym list``: everything that is registered, one line each."""

from __future__ import annotations

import inspect
import re
from typing import Any

from rich.console import Console
from rich.table import Table

from ldp_gym.bench.suites import SUITES
from ldp_gym.channels.base import CHANNELS
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.learners import LEARNERS
from ldp_gym.natures.base import NATURES
from ldp_gym.registry import Registry


def catalogue() -> None:
    """Show every suite, learner, channel, class and nature by name, yours among them."""
    console = Console()
    registries: list[tuple[str, Registry[Any]]] = [
        ("suites", SUITES),
        ("learners", LEARNERS),
        ("channels", CHANNELS),
        ("hypothesis classes", HYPOTHESES),
        ("natures", NATURES),
    ]
    for title, registry in registries:
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        for name in registry.names():
            table.add_row(f"[bold]{name}[/bold]", _line(registry, name))
        console.print(table, end="\n\n")
    console.print(
        "Your own goes by 'module:Class', or by an entry point in a group such as ldp_gym.learners."
    )


def _line(registry: Registry[Any], name: str) -> str:
    """The first sentence of its documentation, or why there is none."""
    try:
        lines = (inspect.getdoc(registry[name]) or "").partition("\n\n")[0].split("\n")
    except Exception as error:  # somebody's broken package must not hide the others
        return f"cannot be loaded: {error}"
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", " ".join(lines)).replace("``", "")
