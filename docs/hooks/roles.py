"""Docstrings as the site needs them: roles become links, tables become Markdown's, examples code."""

from __future__ import annotations

import re
from typing import Any

import griffe

import ldp_agents
import ldp_gym

ROLE = re.compile(r":(?:class|func|meth|attr|mod):`(~?)([\w.]+)`")

TABLE = re.compile(r"^(=+(?: =+)+)\n(.*)\n\1\n((?:.*\n)*?)\1$", flags=re.MULTILINE)


class Roles(griffe.Extension):
    """Rewrites the docstring of every object as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace roles by links, where they name an object in full, and by code elsewhere."""
        if obj.docstring is not None:
            text = ROLE.sub(_link, TABLE.sub(_table, obj.docstring.value))
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", text, flags=re.MULTILINE)


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
    if not path.startswith(("ldp_gym.", "ldp_agents.")):
        return f"`{path}`"
    return f"[`{path.rpartition('.')[2] if short else path}`][{_home(path)}]"


def _home(path: str) -> str:
    """Where what a package exports is defined: ``ldp_gym.Channel`` in ``ldp_gym.channels.base``."""
    package, name, *rest = path.split(".")
    exported = getattr({"ldp_gym": ldp_gym, "ldp_agents": ldp_agents}[package], name, None)
    if not isinstance(exported, type):
        return path
    return ".".join([exported.__module__, exported.__qualname__, *rest])
