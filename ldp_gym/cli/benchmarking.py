"""``ldp-gym bench``, ``report`` and ``export``: measure, show, and take away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
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

from ldp_gym.bench.experiment import Cell
from ldp_gym.bench.results import Played, Results
from ldp_gym.bench.runner import TIME_LIMIT, run
from ldp_gym.bench.store import FILE, Outcome, Store
from ldp_gym.bench.suites import SIZES, SUITES, Suite
from ldp_gym.errors import DamagedStoreError

OUT = Path("ldp-gym-results")

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
    jobs: Annotated[int, typer.Option(help="Cells at a time; -1: one on each core.")] = -1,
    out: Annotated[Path, typer.Option(help="Where results go, and where a killed run goes on.")] = OUT,
    size: Annotated[str, typer.Option(help=f"{' or '.join(SIZES)}.")] = "default",
    dask: Annotated[
        str | None, typer.Option(help="A Dask scheduler's address, to play there instead.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1e-3, help="Seconds for each cell of a learner that is not ours.")
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


def report(directory: Directory = OUT) -> None:
    """Write the report: one HTML page that opens offline, and its figures as SVG and PNG."""
    from ldp_gym.bench.report import write

    console = Console()
    store = _existing(directory)
    if not store.runs():
        raise typer.BadParameter(f"nothing has been run in {directory}")
    console.print(f"report: {write(directory)}")


def export(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet file to write.")],
    directory: Directory = OUT,
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
    """Rounds played a second."""

    def render(self, task: Task) -> Text:
        played, seconds = task.fields["rounds"], task.elapsed or 0.0
        return Text(f"{played / seconds / 1e6:.2f} M rounds/s" if seconds and played else "")


class _Bar:
    """Cells done, rounds a second, and the time left, which goes with the rounds."""

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
        failed = f" [red]failed: {cell.entry.learner}[/red]" if outcome.status == "failed" else ""
        self._show(f"{cell.entry}{failed}")

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
    if suite.name == "quick":
        for learners in _columns(results, console.width):
            console.print(_leaderboard(results, learners))
    for finding in suite.findings(results):
        mark = {True: "[green]✓[/green]", False: "[red]✗[/red]", None: "·"}[finding.holds]
        console.print(f" {mark} {finding.text}", highlight=False)
    for failure in results.failures:
        console.print(f" [red]failed[/red] {failure.entry}: {failure.message.strip().splitlines()[-1]}")


def _columns(results: Results, width: int) -> list[list[str]]:
    """The learners, in as many tables as a terminal of this width needs."""
    tables: list[list[str]] = []
    room = 0
    for learner in dict.fromkeys(entry.learner for entry in results.entries):
        needed = 1 + max(5, *(len(line) for line in _label(learner).split("\n")))
        if room < needed:
            tables.append([])
            room = max(width - 20, needed)  # beside the channels
        tables[-1].append(learner)
        room -= needed
    return tables


def _label(learner: str) -> str:
    """A learner as a column's head: without its module, in short lines."""
    return learner.rpartition(":")[2].rpartition("/")[2].replace("-", "-\n")


def _leaderboard(results: Results, learners: list[str]) -> Table:
    """Risk by channel and learner; a dash where a learner does not read a channel, or has not finished."""
    some = results.entries[0]
    table = Table(
        title=f"Total KL (nats) over T = {some.horizon:,} rounds, {some.episodes} episodes, "
        "± half of a 95% interval",
        box=None,
        padding=(0, 0, 0, 1),
    )
    table.add_column("channel", no_wrap=True)
    for learner in learners:
        table.add_column(_label(learner), justify="right", no_wrap=True)
    failed = {(failure.entry.channel, failure.entry.learner) for failure in results.failures}
    for channel in dict.fromkeys(entry.channel for entry in results.entries):
        found = {played.entry.learner: played for played in results.of(channel=channel)}
        cells = [
            "[red]failed[/red]" if (channel, learner) in failed else _cell(found.get(learner))
            for learner in learners
        ]
        table.add_row(channel, *cells)
    return table


def _cell(played: Played | None) -> str:
    if played is None:
        return "-"
    risk = played.risk
    digits = 0 if risk.value >= 100 else 1
    return f"{risk.value:,.{digits}f}\n±{risk.half:.{digits}f}"
