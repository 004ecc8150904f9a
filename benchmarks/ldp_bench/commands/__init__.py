"""The command ``ldp-gym``; commands of other packages are entry points in ``ldp_gym.commands``."""

from __future__ import annotations

import errno
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, NoReturn

from ldp_gym.core import VERSION
from ldp_gym.core.errors import BrokenPluginError, DamagedStoreError, extra, printable
from ldp_gym.core.registry import load_entry_point

with extra("bench", "the command ldp-gym"):
    import typer
    from typer.core import TyperGroup
    from typer.main import get_command

    from ldp_bench.commands.auditing import audit_command
    from ldp_bench.commands.benchmarking import bench_command, export_command, report_command
    from ldp_bench.commands.catalogue import list_command
    from ldp_bench.commands.surveying import answer_command, plan_command, read_command

_PLAIN: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
"""Options of all commands. Help in plain text: importing rich for it takes a sixth of the time."""


class Commands(TyperGroup):
    """Group of all subcommands. One that cannot be imported says so, and leaves the others working."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, this package's first."""
        return list(dict.fromkeys([*super().list_commands(ctx), *sorted(_plugins())]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Look up a subcommand by its name, this package's first."""
        own = super().get_command(ctx, cmd_name)
        point = _plugins().get(cmd_name)
        return own if own is not None or point is None else _plugin(point)

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand; an error of the user is one line, with status 2."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            plain = isinstance(error, typer.BadParameter) and error.param is None
            _fail(error.message if plain else error.format_message().replace("Value error, ", ""))
        except (DamagedStoreError, OSError) as error:
            if (
                isinstance(error, OSError) and error.errno == errno.EPIPE
            ):  # nobody reads our output any more
                raise
            _fail(str(error))


UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


def _fail(why: str) -> NoReturn:
    typer.echo(f"ldp-gym: {printable(' '.join(why.split()))}", err=True)
    raise typer.Exit(2)


_TRAIN = EntryPoint("train", "ldp_bench.commands.learning:train", "ldp_gym.commands")
"""The command ``train``, which is imported only when it is called: it needs the extra ``rl``."""


def _plugins() -> dict[str, EntryPoint]:
    """Commands that are imported when they are called, ours and those of other packages, by name."""
    others = {point.name: point for point in entry_points(group="ldp_gym.commands")}
    return {**others, _TRAIN.name: _TRAIN}


def _plugin(point: EntryPoint) -> Any:
    """Load the command of an entry point; where that fails, make one that says why."""
    try:
        function = load_entry_point(point, "command")
        return _command(point.name, function, cls=getattr(function, "command_class", None))
    except BrokenPluginError as error:
        why = str(error)
    except Exception as error:  # the entry point is not a command
        why = f"command {point.name!r} of {point.module} cannot be used: {error}"

    def fail() -> None:
        _fail(why)

    return _command(point.name, fail, help=why)


def _command(name: str, function: Callable[..., Any], **options: Any) -> Any:
    made = typer.Typer(**_PLAIN)
    made.command(name=name, **options)(function)
    return get_command(made)


app = typer.Typer(
    cls=Commands,
    help="Learning under local differential privacy: benchmark, audit, plan surveys, train agents.",
    no_args_is_help=True,
    **_PLAIN,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"ldp-gym {VERSION}")
        raise typer.Exit


for command in (
    bench_command,
    report_command,
    export_command,
    list_command,
    audit_command,
    plan_command,
    answer_command,
    read_command,
):
    app.command(command.__name__.removesuffix("_command"))(command)
