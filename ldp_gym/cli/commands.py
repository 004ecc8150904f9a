"""The subcommands: this package's, and those of others by entry points, imported when they are asked for."""

from __future__ import annotations

import errno
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ldp_gym.core.errors import BrokenPluginError, DamagedStoreError
from ldp_gym.core.registry import load_entry_point


class Commands(TyperGroup):
    """All subcommands. One that cannot be imported says so in its place, and leaves the others working."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names: this package's own first."""
        return list(dict.fromkeys([*super().list_commands(ctx), *sorted(_plugins())]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        own = super().get_command(ctx, cmd_name)
        point = _plugins().get(cmd_name)
        return own if own is not None or point is None else _plugin(point)

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand; what is wrong with files is told in one line, with status 2."""
        try:
            return super().invoke(ctx)
        except (DamagedStoreError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:  # nobody reads our output any more
                raise
            typer.echo(f"ldp-gym: {' '.join(str(error).split())}", err=True)
            ctx.exit(2)


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="ldp_gym.commands")}


def _plugin(point: EntryPoint) -> Any:
    """The command of an entry point; where it cannot be imported, one that says why."""
    try:
        function = load_entry_point(point, "command")
        return _command(point.name, function, cls=getattr(function, "command_class", None))
    except BrokenPluginError as error:
        why = str(error)
    except Exception as error:  # what it offers is no command
        why = f"command {point.name!r} of {point.module} cannot be used: {error}"

    def fail() -> None:
        typer.echo(f"ldp-gym: {why}", err=True)
        raise typer.Exit(2)

    return _command(point.name, fail, help=why.replace("[", "\\["))


def _command(name: str, function: Callable[..., Any], **options: Any) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name=name, **options)(function)
    return get_command(app)
