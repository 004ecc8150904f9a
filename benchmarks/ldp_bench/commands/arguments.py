"""Values of the command line: rules of a game, options as name=value, and errors about them."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ldp_gym.core.errors import printable
from ldp_gym.core.registry import PACKAGES
from ldp_gym.engine.rules import Rules

_RULE = "Rule of the game, name=value (data: module:object; option: channel_kwargs.name=value); repeatable."
_CLASS = "A name, module:object, or a table as JSON: '[[1,0,0],[0,0.5,0.5]]'."
_TRUST = "Run code that a trained model's files or stored results name."

RuleOption = Annotated[list[str] | None, typer.Option(metavar="RULE", help=_RULE)]
HypothesesOption = Annotated[str | None, typer.Option(metavar="CLASS", help=_CLASS)]
EpsilonOption = Annotated[float | None, typer.Option(metavar="EPS", help="Privacy level, eps.")]
HorizonOption = Annotated[int | None, typer.Option(metavar="T", help="Number of rounds, T.")]
TrustOption = Annotated[bool, typer.Option("--trust", help=_TRUST)]


_LEAST_WIDTH = 20
"""Smallest number of columns that text is wrapped to."""

_USUAL_WIDTH = 80
"""Number of columns of a terminal that does not say how many it has."""


def allow_local_imports() -> None:
    """Import modules from the working directory too, after everything that is installed."""
    if "" not in sys.path:
        sys.path.append("")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors about a user's values into one line and exit status 2."""
    try:
        yield
    except (
        ImportError,
        TypeError,
        ValueError,
        OverflowError,
        MemoryError,
        RecursionError,
    ) as error:
        raise typer.BadParameter(
            f"{error or type(error).__name__}{place_in_own_code(error)}"
        ) from error
    except SystemExit as error:
        raise typer.BadParameter(
            f"code of a module:Class ended the program, by {error!r}"
        ) from error


def place_in_own_code(error: BaseException) -> str:
    """File and line of a user's code that raised an error, as `` (mine.py, line 4)``; else empty."""
    while error.__cause__ is not None:
        error = error.__cause__
    installed = tuple(_installed_folders())
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_file = os.path.isfile(frame.filename)  # not such as "<string>"
        if is_file and not frame.filename.startswith(installed):
            return f" ({os.path.basename(frame.filename)}, line {frame.lineno})"
    return ""


def _installed_folders() -> list[str]:
    """Folders of Python, of installed packages and of ours: code in them is not the user's."""
    folders = [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folders.append(os.path.dirname(spec.origin))
    return folders


def make_console(kind: type[Console] = Console) -> Console:
    """Console of the terminal's width, or of a usual one where that is unknown or absurd, such as 0."""
    console = kind()
    if console.width < _LEAST_WIDTH:
        console.width = _USUAL_WIDTH
    return console


def say(console: Console, text: str, style: str = "", mark: Text | str = "") -> None:
    """Print a text, wrapped to the console's width, without its markup or control characters.

    Args:
        console: where to print.
        text: the text.
        style: colour and weight of the text, such as "bold red".
        mark: printed before the text; later lines are then indented.
    """
    indent = ""
    if mark:
        indent = "  "
    width = max(console.width - len(indent), _LEAST_WIDTH)
    first, *others = Text.assemble(mark, (printable(text), style)).wrap(console, width)
    console.print(first, highlight=False)
    for line in others:
        console.print(Text.assemble(indent, line), highlight=False)


def value_of(text: str) -> Any:
    """Read a value on the command line: JSON, or else the text itself.

    Raises:
        ValueError: if the text begins like a list or an object, and is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip().startswith(("[", "{")):
            raise ValueError(f"{text[:60]!r} is not JSON: {error}") from None
        return text


def option_of(text: str) -> tuple[str, Any]:
    """Read an option ``name=value``: return its name and its value, which may be JSON."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError(f"expected name=value, got {text!r}")
    return name, value_of(value)


def rules_of(texts: list[str] | None, **short: Any) -> dict[str, Any]:
    """Read rules: return them by name.

    Args:
        texts: values of ``--rule``, each ``name=value`` or ``party_kwargs.option=value``.
        **short: rules that have an option of their own, such as ``epsilon``; None if it is not given.

    Raises:
        TypeError: for an unknown rule, naming the nearest.
        ValueError: for a rule that is given twice.
    """
    rules = {name: value for name, value in short.items() if value is not None}
    if isinstance(rules.get("hypotheses"), str):
        rules["hypotheses"] = value_of(rules["hypotheses"])
    for text in texts or []:
        name, value = option_of(text)
        target: Any = rules
        party, dot, option = name.partition(".")
        if dot:  # an option of a party, such as channel_kwargs.size
            target = rules.setdefault(party, {})
            name = option
        if not isinstance(target, dict) or name in target:
            raise ValueError(f"{text!r} sets a rule that is already set")
        target[name] = value
    Rules.check_names(rules)
    return rules
