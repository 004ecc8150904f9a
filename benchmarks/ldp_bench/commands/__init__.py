"""The command ``ldp-gym``; commands of other packages are entry points in ``ldp_gym.commands``.

A command is imported when it is called, so that ``ldp-gym --help`` needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, NoReturn

try:
    import typer
    from typer.core import TyperGroup
    from typer.main import get_command
except ModuleNotFoundError:
    from ldp_gym.core.errors import extra

    with extra("bench", "the command ldp-gym"):
        raise

GROUP = "ldp_gym.commands"
"""Group of entry points in which other packages offer commands."""

STOPPED = 130
"""Exit status of a command that was interrupted, as shells have it."""

_OWN = {
    "bench": (
        "ldp_bench.commands.benchmarking:bench_command",
        "Play suites, or your game; print the findings and write a report.",
    ),
    "report": (
        "ldp_bench.commands.benchmarking:report_command",
        "Write the report: an HTML page that opens offline, and figures.",
    ),
    "export": (
        "ldp_bench.commands.benchmarking:export_command",
        "Write every episode's losses to a CSV file; status 1 for faults.",
    ),
    "list": (
        "ldp_bench.commands.catalogue:list_command",
        "List suites, learners, channels, truths, classes and natures.",
    ),
    "audit": (
        "ldp_bench.commands.auditing:audit_command",
        "Audit the privacy of a channel on a class, or of a function.",
    ),
    "plan": (
        "ldp_bench.commands.surveying:plan_command",
        "Plan a private survey that tells which of your models is right, without labels.",
    ),
    "answer": (
        "ldp_bench.commands.surveying:answer_command",
        "Print one private message about a label, as a line of JSON.",
    ),
    "read": (
        "ldp_bench.commands.surveying:read_command",
        "Read all messages of a survey; print what is left, how sure it is, and whether to stop.",
    ),
    "train": (
        "ldp_bench.commands.learning:train",
        "Train an agent, save it with its settings in a directory, and print its score.",
    ),
}
"""Address of each command of this package, and the sentence that the overview shows."""

_PLAIN: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
"""Options of all commands. Help in plain text: importing rich for it takes a sixth of the time."""

UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


class Commands(TyperGroup):
    """Group of all subcommands. One that cannot be imported says so, and leaves the others working."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, this package's first."""
        return list(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a subcommand; None for an unknown name."""
        point = _commands().get(cmd_name)
        if point is None:
            return None
        return _load(point)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write an overview of the commands; only those of other packages are imported for it."""
        rows = []
        for name in self.list_commands(ctx):
            if name in _OWN:
                _, sentence = _OWN[name]
            else:
                sentence = self.get_command(ctx, name).get_short_help_str()
            rows.append((name, sentence))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand; an error of the user is one line with status 2, an interrupt one with 130."""
        try:
            return self._invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("ldp-gym: stopped", err=True)
            raise typer.Exit(STOPPED) from None

    def _invoke(self, ctx: Any) -> Any:
        """Run a subcommand; an error of the user is one line."""
        from ldp_gym.core.errors import DamagedStoreError

        try:
            return super().invoke(ctx)
        except UsageError as error:
            # An error of ours is about no parameter: its message needs no words of typer around it.
            is_ours = isinstance(error, typer.BadParameter) and error.param is None
            if is_ours:
                _fail(error.message)
            _fail(error.format_message().replace("Value error, ", ""))  # pydantic's opening words
        except (DamagedStoreError, OSError) as error:
            _fail(str(error))


def _commands() -> dict[str, EntryPoint]:
    """Entry points of all commands by name, ours first; ours win over others of the same name."""
    ours = {name: EntryPoint(name, address, GROUP) for name, (address, _) in _OWN.items()}
    others = {point.name: point for point in entry_points(group=GROUP)}
    named = sorted(set(others) - set(ours))
    return ours | {name: others[name] for name in named}


def _load(point: EntryPoint) -> Any:
    """Load the command of an entry point; if that fails, make a command that says why.

    Raises:
        Exception: any error in a command of ours, but not that an extra is missing.
    """
    from ldp_gym.core.errors import BrokenPluginError, MissingExtraError
    from ldp_gym.core.registry import load_entry_point

    try:
        if point.name in _OWN:
            function = point.load()
        else:
            function = load_entry_point(point, "command")
        return _command(point.name, function, cls=getattr(function, "command_class", None))
    except (BrokenPluginError, MissingExtraError) as error:
        why = str(error)
    except Exception as error:
        if point.name in _OWN:
            raise
        why = f"command {point.name!r} of {point.module} cannot be used: {error}"

    def fail() -> None:
        """Say why the command cannot be loaded."""
        _fail(why)

    return _command(point.name, fail, help=why)


def _command(name: str, function: Callable[..., Any], **options: Any) -> Any:
    """Make a subcommand of a function, whose annotated parameters are its options."""
    made = typer.Typer(**_PLAIN)
    made.command(name=name, **options)(function)
    return get_command(made)


def _fail(why: str) -> NoReturn:
    """Say in one line why a command cannot be done, and end with status 2."""
    from ldp_gym.core.errors import printable

    typer.echo(f"ldp-gym: {printable(' '.join(why.split()))}", err=True)
    raise typer.Exit(2)


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
    """Print the version if it is asked for."""
    if version:
        from ldp_gym.core import VERSION

        typer.echo(f"ldp-gym {VERSION}")
        raise typer.Exit
