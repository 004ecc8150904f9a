"""``ldp-gym bench``, ``report`` and ``export``: play suites, and write reports and tables of results."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

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

from ldp_gym.bench import leaderboard
from ldp_gym.bench.contained import LIMITS
from ldp_gym.bench.experiment import Cell
from ldp_gym.bench.findings import Verdict, judge
from ldp_gym.bench.page import Column, layout
from ldp_gym.bench.report import write
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.runner import run
from ldp_gym.bench.sections import EVERYTHING, gather, texts_of
from ldp_gym.bench.store import DIRECTORY, Outcome, Store
from ldp_gym.bench.suites import SIZES, SUITES, Suite
from ldp_gym.bench.suites.own_game import OwnGame
from ldp_gym.cli.options import directory_of, option_of, search_here
from ldp_gym.core.errors import BrokenPromiseError

TRUST = "Run the code that files ask for: of a model in a directory, or of modules that a store names."

Directory = Annotated[Path, typer.Argument(help="The directory that `ldp-gym bench` wrote to.")]


def bench(
    suite: Annotated[
        list[str] | None, typer.Argument(help=f"One or more of {', '.join(SUITES.names())}; or all.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule of your own game instead, as name=value; models and data as module:object."
        ),
    ] = None,
    rules: Annotated[Path | None, typer.Option(help="A JSON file of such rules.")] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A privacy level of your own game, once for each.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="A further learner: a name, module:Class, or a trained model's directory. In your own game: "
            "this one alone, or these."
        ),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="A further channel: a name, or module:Class. In your own game: this one alone."),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Instead of the suite's own numbers.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first episode's seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Cells at a time; -1: one per core.")] = -1,
    out: Annotated[
        Path,
        typer.Option(
            parser=directory_of, metavar="DIR", help="Where results go, and where a killed run goes on."
        ),
    ] = DIRECTORY,
    size: Annotated[str, typer.Option(help=f"{' or '.join(SIZES)}.")] = "default",
    dask: Annotated[
        str | None, typer.Option(help="A Dask scheduler's address, to play there instead.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1e-3, help="Seconds per cell of a third-party learner.")
    ] = LIMITS.seconds,
    memory_limit: Annotated[
        float, typer.Option(help="GiB that a third-party learner may use.")
    ] = LIMITS.memory,
    strict: Annotated[bool, typer.Option(help="Refuse to play if a channel breaks its promise.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST)] = False,
) -> None:
    """Play suites, or your own game, print what follows from them, and write a report.

    Your own game is played by every learner on every channel that fits:

    ldp-gym bench --rule hypotheses=mine:models --rule truth=replay --rule
    'truth_kwargs={"contexts": "mine:X", "labels": "mine:y"}' --epsilon 1 --epsilon 4

    What is already in the output directory is not played again. Exit status 1 if a learner or channel failed,
    or a channel breaks its promise.
    """
    console = Console()
    search_here()
    failed = False
    # What this very command names may be imported for its report too.
    named = {text for text in (*(suite or []), *(channel or [])) if ":" in text}
    own_rules = _own_rules(rule or [], rules, epsilon or [])
    for name in _suites(suite or [], own_rules):
        try:
            chosen = OwnGame(own_rules) if own_rules else SUITES[name]()
            named |= {chosen.address, *(text for text in texts_of(chosen.parameters) if ":" in text)}
            with _Bar(console) as bar:
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
                    memory_limit=memory_limit,
                    strict=strict,
                    trust=trust,
                    on_start=bar.begin,
                    on_cell=bar.add_cell,
                )
        except BrokenPromiseError as error:
            console.print(Text(str(error), style="red"))
            raise typer.Exit(1) from error
        except (ImportError, TypeError, ValueError) as error:
            if isinstance(error, ImportError) and "all" in (suite or []):  # a suite's extra; the others go on
                console.print(Text(f"{name} is left out: {error}"))
                continue
            raise typer.BadParameter(str(error)) from error
        except KeyboardInterrupt:
            console.print(Text(f"stopped. What was played is in {out}: the same command goes on from there."))
            raise typer.Exit(130) from None
        _print_results(console, chosen, results, _with_earlier(chosen, results, out, named))
        failed = failed or bool(results.failures or results.broken_promises)
    _write_report(console, out, EVERYTHING if trust else named)
    raise typer.Exit(1 if failed else 0)


def _with_earlier(suite: Suite, results: Results, out: Path, named: Container[str]) -> Results:
    """The results with the learners of earlier runs like this one, for the leaderboard."""
    store = Store(out, read_only=True)
    return gather(store, suite.address, store.runs(), named).results or results


def _own_rules(given: list[str], file: Path | None, epsilons: list[float]) -> dict[str, Any]:
    """The rules of a file, those given one by one, and the privacy levels."""
    try:
        rules = json.loads(file.read_text("utf-8")) if file else {}
        if not isinstance(rules, dict):
            raise ValueError(f"must hold one JSON object, of rules by name; got {type(rules).__name__}")
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{file}: {error}") from error
    try:
        rules |= dict(option_of(text) for text in given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return rules | ({"epsilon": epsilons} if epsilons else {})


def _suites(names: list[str], rules: dict[str, Any]) -> list[str]:
    """The names of the suites that are asked for."""
    if bool(names) == bool(rules):
        raise typer.BadParameter(
            "name a suite, or describe your own game by --rule name=value or --rules game.json; not both. "
            f"Suites: {', '.join(SUITES.names())}, all"
        )
    if rules:
        return [OwnGame.name]
    every = [name for given in names for name in (SUITES.names() if given == "all" else [given])]
    return list(dict.fromkeys(every))


def report(
    directory: Directory = DIRECTORY, trust: Annotated[bool, typer.Option("--trust", help=TRUST)] = False
) -> None:
    """Write the report: one HTML page that opens offline, and its figures as SVG and PNG.

    Exit status 1 if some of the results are damaged: those are left out, and the page says which.
    """
    if trust:
        search_here()
    if _write_report(Console(), directory, EVERYTHING if trust else frozenset()):
        raise typer.Exit(1)


def _write_report(console: Console, directory: Path, trusted: Container[str]) -> list[str]:
    """Write it, and say where it is and what of its results is damaged."""
    path = write(directory, trusted=trusted)
    store = Store(directory, read_only=True)
    store.runs(), store.finished()  # whoever reads them all finds what is damaged
    _print_faults(console, store)
    console.print(Text(f"report: {path}"))
    return store.faults


def _print_faults(console: Console, store: Store) -> None:
    for fault in store.faults:
        console.print(Text(f" in {store.path}, {fault}", "red"))


def export(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet file to write.")],
    directory: Directory = DIRECTORY,
) -> None:
    """Write every episode's losses to a CSV or Parquet file; status 1 if some are damaged and left out."""
    console, store = Console(), Store(directory, read_only=True)
    try:
        rows = store.export(file)
    except (ImportError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    _print_faults(console, store)
    console.print(Text(f"{rows:,} rows: {file}"))
    if store.faults:
        raise typer.Exit(1)


class _Rate(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        played, seconds = task.fields["rounds"], task.elapsed or 0.0
        return Text(f"{played / seconds / 1e6:.2f} M rounds/s" if seconds and played else "")


class _Bar(Progress):
    """Cells done, rounds per second, and the time left, which goes with the rounds."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[cells]}"),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self.add_task("starting", total=None, rounds=0, cells="")
        self._cells = self._done = self._rounds = 0

    def begin(self, cells: int, done: int, rounds: int) -> None:
        self._cells, self._done = cells, done
        self.update(self._task, total=max(rounds, 1), completed=0 if rounds else 1)
        self._show("playing" if rounds else "all in the store")

    def add_cell(self, cell: Cell, outcome: Outcome) -> None:
        self._done += 1
        self._rounds += cell.rounds
        self.update(self._task, advance=cell.rounds, rounds=self._rounds)
        failed = ", failed" if outcome.status == "failed" else ""
        self._show(f"{cell.experiment}{failed}")

    def _show(self, text: str) -> None:
        self.update(self._task, description=text, cells=f"{self._done}/{self._cells} cells")


def _print_results(console: Console, suite: Suite, results: Results, together: Results) -> None:
    """The suite's leaderboard, with earlier learners, and its findings."""
    console.rule(Text(f"{suite.name}: {suite.title}"))
    if suite.ranks_learners and (together.successes or together.broken):
        _print_leaderboard(console, together)
    for audit in results.broken_promises:
        console.print(Text(f" BROKEN PROMISE {audit}: out of the ranking", style="bold red"))
    for own in suite.tables(results) if results.successes else []:
        if own.printed:
            _print_table(console, own.title, own.columns, own.rows)
    colours = {Verdict.SHOWN: "green", Verdict.NOT_CONTRADICTED: "dim", Verdict.CONTRADICTED: "red"}
    for finding, verdict in judge(suite.findings(results)):
        mark = Text(" · ") if verdict is None else Text(f" {verdict.mark} ", colours[verdict])
        console.print(mark + finding.text, highlight=False)
    for mark, failures in (
        (Text(" not played ", "dim"), results.refusals),
        (Text(" failed ", "red"), results.failures),
    ):
        for failure, which in by_summary(failures):
            console.print(mark + f"{which}: {failure.summary}", highlight=False)


def _print_leaderboard(console: Console, results: Results) -> None:
    """The report's leaderboard, as far as a terminal has room for it: channels by learners, or row by row."""
    rows = leaderboard.rows(results)
    shared, _ = layout(leaderboard.COLUMNS, rows)
    if found := leaderboard.grid(results):
        _print_table(console, f"Mean total KL in nats. {shared}", *found)
        return
    console.print(Text(shared), highlight=False)
    columns = [column for column in leaderboard.COLUMNS if column.title in leaderboard.BRIEF]
    for title, of_game in leaderboard.by_game(rows):
        _print_table(console, title, columns, of_game, _row_style)
    if leaderboard.caveat(results):
        console.print(Text(leaderboard.caveat(results)), "", sep="\n", highlight=False)


def _row_style(row: leaderboard.Row) -> str:
    return "red" if row.broken else "bold" if row.best else ""


def _print_table(
    console: Console,
    title: str,
    columns: Sequence[Column[Any]],
    rows: Sequence[Any],
    style_of: Callable[[Any], str] = lambda _: "",
) -> None:
    _, shown = layout(columns, rows)
    table = Table(box=None, padding=(0, 1, 0, 0))
    for column, values in shown.items():
        # In a narrow terminal a name may be cut short and a header folded, a number never.
        width = max((len(value.text) for value in values), default=0) if column.numeric else None
        justify: Literal["left", "right"] = "right" if column.numeric else "left"
        table.add_column(
            Text(column.title), justify=justify, no_wrap=not column.numeric, overflow="fold", min_width=width
        )
    for row, *cells in zip(rows, *shown.values(), strict=True):
        texts = [Text(cell.text, "bold" if cell.style == "best" else "") for cell in cells]
        table.add_row(*texts, style=style_of(row))
    console.print(Text(title), table, "", sep="\n", highlight=False)
