"""``ldp-gym bench``, ``report`` and ``export``: measure, show, and take away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ldp_gym.bench import leaderboard
from ldp_gym.bench.experiment import Cell
from ldp_gym.bench.findings import Verdict, judge
from ldp_gym.bench.page import layout
from ldp_gym.bench.report import write
from ldp_gym.bench.results import Results
from ldp_gym.bench.runner import TIME_LIMIT, run
from ldp_gym.bench.store import DIRECTORY, FILE, Outcome, Store
from ldp_gym.bench.suites import SIZES, SUITES, Suite
from ldp_gym.errors import DamagedStoreError

Directory = Annotated[Path, typer.Argument(help="The directory that `ldp-gym bench` wrote to.")]


def bench(
    suite: Annotated[list[str], typer.Argument(help=f"One or more of {', '.join(SUITES.names())}; or all.")],
    learner: Annotated[
        list[str] | None,
        typer.Option(help="A further learner: a name, module:Class, or a trained model's directory."),
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="A further channel: a name, or module:Class.")
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Instead of the suite's own numbers.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first episode's seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Cells at a time; -1: one per core.")] = -1,
    out: Annotated[Path, typer.Option(help="Where results go, and where a killed run goes on.")] = DIRECTORY,
    size: Annotated[str, typer.Option(help=f"{' or '.join(SIZES)}.")] = "default",
    dask: Annotated[
        str | None, typer.Option(help="A Dask scheduler's address, to play there instead.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1e-3, help="Seconds per cell of a third-party learner.")
    ] = TIME_LIMIT,
) -> None:
    """Play suites, print what follows from them, and write a report.

    What is already in the output directory is not played again. Exit status 1 if a learner or channel failed.
    """
    console = Console()
    names = [name for given in suite for name in (SUITES.names() if given == "all" else [given])]
    failed = False
    for name in names:
        try:
            chosen = SUITES[name]()
            with _bar(console) as bar:
                results = run(
                    chosen,
                    learners=learner or (),
                    channels=channel or (),
                    episodes=episodes,
                    seed=seed,
                    jobs=jobs,
                    out=out,
                    size=size,
                    dask=dask,
                    time_limit=time_limit,
                    on_start=bar.start,
                    on_cell=bar.advance,
                )
        except (AssertionError, DamagedStoreError, ImportError, OSError, TypeError, ValueError) as error:
            raise typer.BadParameter(str(error)) from error
        except KeyboardInterrupt:
            console.print(f"stopped. What was played is in {out}: the same command goes on from there.")
            raise typer.Exit(130) from None
        _print(console, chosen, results)
        failed = failed or bool(results.failures)
    report(out)
    raise typer.Exit(1 if failed else 0)


def report(directory: Directory = DIRECTORY) -> None:
    """Write the report: one HTML page that opens offline, and its figures as SVG and PNG."""
    console = Console()
    store = _existing(directory)
    if not store.runs():
        raise typer.BadParameter(f"nothing has been run in {directory}")
    console.print(f"report: {write(directory)}")


def export(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet file to write.")],
    directory: Directory = DIRECTORY,
) -> None:
    """Write every episode's losses to a CSV or Parquet file."""
    try:
        rows = _existing(directory).export(file)
    except (ImportError, OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    Console().print(f"{rows:,} rows: {file}")


def _existing(directory: Path) -> Store:
    """The store of a directory that has one."""
    if not (directory / FILE).exists():
        raise typer.BadParameter(f"there are no results in {directory}; `ldp-gym bench` makes some")
    try:
        return Store(directory)
    except DamagedStoreError as error:
        raise typer.BadParameter(str(error)) from error


class _Rate(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        played, seconds = task.fields["rounds"], task.elapsed or 0.0
        return Text(f"{played / seconds / 1e6:.2f} M rounds/s" if seconds and played else "")


class _Bar:
    """Cells done, rounds per second, and the time left, which goes with the rounds."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None, rounds=0, cells="")
        self._cells = self._done = self._rounds = 0

    def start(self, cells: int, done: int, rounds: int) -> None:
        self._cells, self._done = cells, done
        self._progress.update(self._task, total=max(rounds, 1), completed=0 if rounds else 1)
        self._show("playing" if rounds else "all in the store")

    def advance(self, cell: Cell, outcome: Outcome) -> None:
        self._done += 1
        self._rounds += cell.rounds
        self._progress.update(self._task, advance=cell.rounds, rounds=self._rounds)
        failed = f" [red]failed: {cell.experiment.learner}[/red]" if outcome.status == "failed" else ""
        self._show(f"{cell.experiment}{failed}")

    def _show(self, text: str) -> None:
        self._progress.update(self._task, description=text, cells=f"{self._done}/{self._cells} cells")


@contextmanager
def _bar(console: Console) -> Iterator[_Bar]:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[cells]}"),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        yield _Bar(progress)


def _print(console: Console, suite: Suite, results: Results) -> None:
    """The suite's leaderboard and findings."""
    console.rule(f"{suite.name}: {suite.title}")
    if suite.ranks_learners and results.successes:
        _print_leaderboard(console, results)
    colours = {Verdict.SHOWN: "green", Verdict.NOT_CONTRADICTED: "dim", Verdict.CONTRADICTED: "red"}
    for finding, verdict in judge(suite.findings(results)):
        mark = "·" if verdict is None else f"[{colours[verdict]}]{verdict.mark}[/]"
        console.print(f" {mark} {finding.text}", highlight=False)
    for failure in results.failures:
        console.print(f" [red]failed[/red] {failure.experiment}: {failure.message.strip().splitlines()[-1]}")


def _print_leaderboard(console: Console, results: Results) -> None:
    """The report's leaderboard, as far as a terminal has room for it."""
    rows = leaderboard.rows(results)
    shared, shown = layout(leaderboard.COLUMNS, rows)
    brief = {column: values for column, values in shown.items() if column.title in leaderboard.BRIEF}
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in brief:
        table.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
    for i, row in enumerate(rows):
        texts = [escape(values[i].text) for values in brief.values()]
        table.add_row(*texts, style="bold" if row.best else None)
    console.print(shared, table, "", sep="\n", highlight=False)
