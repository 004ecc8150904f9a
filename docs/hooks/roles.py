"""Docstrings as the site needs them: roles become links, and an ``Example:`` becomes code that is shown."""

from __future__ import annotations

import re
from typing import Any

import griffe

import ldp_agents
import ldp_gym

ROLE = re.compile(r":(?:class|func|meth|attr|mod):`(~?)([\w.]+)`")


class Roles(griffe.Extension):
    """Rewrites the docstring of every object as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace roles by links, where they name an object in full, and by code elsewhere."""
        if obj.docstring is not None:
            text = ROLE.sub(_link, obj.docstring.value)
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", text, flags=re.MULTILINE)


def _link(role: re.Match[str]) -> str:
    short, path = role.groups()
    if not path.startswith(("ldp_gym.", "ldp_agents.")):
        return f"`{path}`"
    return f"[`{path.rpartition('.')[2] if short else path}`][{_home(path)}]"


def _home(path: str) -> str:
    """Where an object that the package exports is defined: ``ldp_gym.Channel`` in ``ldp_gym.channels.base``."""
    package, name, *rest = path.split(".")
    exported = getattr({"ldp_gym": ldp_gym, "ldp_agents": ldp_agents}[package], name, None)
    if not isinstance(exported, type):
        return path
    return ".".join([exported.__module__, exported.__qualname__, *rest])
