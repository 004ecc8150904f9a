"""Docstrings as the site needs them: roles become links, tables become Markdown's, examples code."""

from __future__ import annotations

import pkgutil
import re
from typing import Any

import griffe

import ldp_agents  # noqa: F401  (its names are looked up)
import ldp_gym  # noqa: F401

ROLE = re.compile(r":(?:class|func|meth|attr|mod|data):`(~?)([\w.]+)`")
TABLE = re.compile(r"^(=+(?: =+)+)\n(.*)\n\1\n((?:.*\n)*?)\1$", flags=re.MULTILINE)
EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", flags=re.MULTILINE)


class Roles(griffe.Extension):
    """Rewrites the docstring of every object as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace roles by links, and mark tables and examples."""
        if obj.docstring is not None:
            text = ROLE.sub(_link, TABLE.sub(_table, obj.docstring.value))
            text = EXAMPLE.sub(lambda block: f"```pycon\n{block[0].rstrip()}\n```\n", text)
            obj.docstring.value = re.sub(
                r"^(\s*)Example:$", r"\1Examples:", text, flags=re.MULTILINE
            )


def _table(table: re.Match[str]) -> str:
    """A simple table of reStructuredText as one of Markdown."""
    edges = [match.span() for match in re.finditer("=+", table[1])]
    rows = [
        [line[start : (end if end < edges[-1][1] else None)].strip() for start, end in edges]
        for line in [table[2], *table[3].splitlines()]
    ]
    rows.insert(1, ["---"] * len(edges))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _link(role: re.Match[str]) -> str:
    short, path = role.groups()
    return link(path, path.rpartition(".")[2] if short else path)


def link(path: str, shown: str) -> str:
    """Link to the place of a name in the reference, if it has one."""
    if not path.startswith(("ldp_gym.", "ldp_agents.")):
        return f"<code>{shown}</code>"
    return f'<autoref optional identifier="{home(path)}"><code>{shown}</code></autoref>'


def home(path: str) -> str:
    """Path of an object in the module that defines it, such as ``ldp_gym.channels.base.Channel``."""
    try:
        found = pkgutil.resolve_name(path)
    except (AttributeError, ImportError, ValueError):
        return path
    if hasattr(found, "__qualname__") and str(getattr(found, "__module__", "")).startswith("ldp_"):
        return f"{found.__module__}.{found.__qualname__}"
    return path
