"""Google docstrings as autodoc needs them; the one line of an attribute or a property stays as it is.

`sphinx.ext.napoleon` would read "Space of messages: integers" as an attribute of type "Space of messages".
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

CONFIG = Config(napoleon_use_rtype=False, napoleon_use_ivar=True)
ONE_LINERS = {"attribute", "data", "property"}


def rewrite(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Replace a docstring's lines by reStructuredText."""
    if what not in ONE_LINERS:
        lines[:] = GoogleDocstring(lines, CONFIG, app, what, name, item, options).lines()


def setup(app: Sphinx) -> dict[str, bool]:
    """Have autodoc call :func:`rewrite`."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
