"""Values of the command line: options as name=value, directories, and errors about them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from ldp_gym.core.errors import printable


def search_here() -> None:
    """Import modules from the working directory too, after everything that is installed."""
    if "" not in sys.path:
        sys.path.append("")


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Turn errors about a user's values into one line and exit status 2."""
    try:
        yield
    except (ImportError, TypeError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise typer.BadParameter(str(error) or type(error).__name__) from error
    except SystemExit as error:
        raise typer.BadParameter(f"code of a module:Class ended the program, by {error!r}") from error


def say(console: Console, text: str, style: str = "", mark: Text | str = "") -> None:
    """Print a text as it is, without markup or control characters."""
    console.print(Text.assemble(mark, (printable(text), style)), highlight=False)


def json_of(text: str) -> Any:
    """Value of a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{text[:60]!r} is not JSON: {error}") from None


def option_of(text: str) -> tuple[str, Any]:
    """Name and value of name=value; a value that is not JSON is text."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError(f"an option is name=value, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
