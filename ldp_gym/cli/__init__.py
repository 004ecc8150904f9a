"""The command ``ldp-gym``, one module a subcommand."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

from ldp_gym import __version__

try:
    import typer

    from ldp_gym.cli.auditing import audit
    from ldp_gym.cli.benchmarking import bench, export, report
    from ldp_gym.cli.listing import catalogue
except ImportError as error:  # pragma: no cover - said once, by the command itself
    sys.exit(f"the command ldp-gym needs {error.name}: pip install 'ldp-gym[bench]'")

app = typer.Typer(
    help="Benchmark learners, audit channels and train agents of LDPDist-v0.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _tell(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ldp-gym {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell, is_eager=True, help="Print the version, and stop.")
    ] = False,
) -> None:
    pass


app.command()(bench)
app.command()(report)
app.command()(export)
app.command(name="list")(catalogue)
app.command()(audit)
for _command in entry_points(group="ldp_gym.commands"):  # other packages' own; ours come first
    app.command(name=_command.name)(_command.load())


def main() -> None:
    """The entry point. Modules in the working directory count: a learner of one's own is often there."""
    sys.path.insert(0, "")
    app()
