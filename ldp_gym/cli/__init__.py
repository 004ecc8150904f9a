"""The command ``ldp-gym``, one module per subcommand.

Its extra is ``bench``: where that is missing, the import raises an ImportError that says so, and the console
script (:mod:`ldp_gym.__main__`) prints it.
"""

from __future__ import annotations

from typing import Annotated

from ldp_gym.core import VERSION
from ldp_gym.core.errors import extra

with extra("bench", "the command ldp-gym"):
    import typer

    from ldp_gym.cli.auditing import audit
    from ldp_gym.cli.benchmarking import bench, export, report
    from ldp_gym.cli.commands import Commands
    from ldp_gym.cli.listing import catalogue
    from ldp_gym.cli.selecting import select_command

app = typer.Typer(
    cls=Commands,
    help="Benchmark learners, audit channels and train agents of LDPDist-v0.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ldp-gym {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    pass


app.command()(bench)
app.command()(report)
app.command()(export)
app.command(name="list")(catalogue)
app.command()(audit)
app.command(name="select")(select_command)
