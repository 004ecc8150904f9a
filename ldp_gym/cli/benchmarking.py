"""``ldp-gym bench``, ``report`` and ``export``: play suites, and write reports and tables of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from ldp_gym.bench import tables
from ldp_gym.bench.contained import LIMITS
from ldp_gym.bench.experiment import Cell
from ldp_gym.bench.report import Report, Section, texts_of
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.runner import run
from ldp_gym.bench.store import Outcome, Store
from ldp_gym.bench.suites import SIZES, SUITES, Suite, YourGame
from ldp_gym.cli import arguments
from ldp_gym.cli.arguments import allow_local_imports, one_line_errors, rules_of, say, value_of
from ldp_gym.core.errors import printable
from ldp_gym.core.files import DIRECTORY
from ldp_gym.statistics import Verdict

TRUST = "Load a trained model that holds a pickle, which can run any code."

Directory = Annotated[Path, typer.Argument(help="Directory that `ldp-gym bench` wrote to.")]


def bench_command(
    suite: Annotated[
        list[str] | None,
        typer.Argument(help=f"One or more of {', '.join(SUITES)}; all; or module:Class."),
    ] = None,
    rule: arguments.RuleOption = None,
    rules: Annotated[Path | None, typer.Option(help="A JSON file of rules.")] = None,
    hypotheses: arguments.HypothesesOption = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="A privacy level of your game.")] = None,
    horizon: arguments.HorizonOption = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="A further learner: a name, module:Class, or a model's directory. Your game: only these."
        ),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="A further channel: a name, or module:Class. Your game: only these."),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Number of episodes.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first episode.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes at a time; -1: one per core.")] = -1,
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Directory of results; a stopped run resumes there.")
    ] = DIRECTORY,
    size: Annotated[str, typer.Option(help=f"{' or '.join(SIZES)}.")] = "default",
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to play there.")] = None,
    time_limit: Annotated[
        float, typer.Option(min=1e-3, help="Seconds per cell of a module:Class learner.")
    ] = LIMITS.seconds,
    memory_limit: Annotated[
        float, typer.Option(help="GiB of memory of a module:Class learner.")
    ] = LIMITS.memory,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST)] = False,
) -> None:
    """Play suites, or the game of your rules, print the findings, and write a report.

    Your game is played by every learner on every channel that fits:

    ldp-gym bench --rule hypotheses=mine:models --rule truth=replay --rule
    'truth_kwargs={"contexts": "mine:X", "labels": "mine:y"}' --epsilon 1 --epsilon 4

    Results that are already in the directory are not played again. Exit status 1 if a learner or channel
    failed, or a channel breaks its promise; 2 for a wrong call.
    """
    console = Console()
    allow_local_imports()
    with one_line_errors():
        given = rules_of(rule, hypotheses=hypotheses, epsilon=epsilon or None, horizon=horizon)
        suites = _suites(suite or [], _read_rules(rules) | given)
    played: dict[str, tuple[Suite, Results]] = {}
    for chosen in suites:
        try:
            with one_line_errors(), _Bar(console) as bar:
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
                    trust=trust,
                    on_start=bar.begin,
                    on_cell=bar.add_cell,
                )
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ImportError) and "all" in (suite or []):  # the others go on
                say(console, f"{chosen.name} is left out: {error.__cause__}")
                continue
            raise
        except KeyboardInterrupt:
            say(console, f"Stopped. The same command goes on from what is in {out}.")
            raise typer.Exit(130) from None
        played[chosen.address] = chosen, results
    # The report may use what this command itself names.
    use = {text for made in suites for text in texts_of(made.parameters)} | {*(suite or []), *(channel or [])}
    use |= {name for given in learner or [] for name in (given, str(Path(given).resolve()))}
    written = Report(out, use=use, played=played)
    page = written.write()  # before anything is printed: printing can fail
    for section in written.sections:
        if section.name in played:
            _print_section(console, section)
    say(console, f"report: {page}")
    found = [results for _, results in played.values()]
    raise typer.Exit(1 if any(results.failures or results.broken_promises for results in found) else 0)


def _read_rules(file: Path | None) -> dict[str, Any]:
    """Rules of a JSON file, if there is one."""
    try:
        rules = value_of(file.read_text("utf-8")) if file else {}
        if not isinstance(rules, dict):
            raise ValueError(f"one JSON object of rules by name is needed, got {type(rules).__name__}")
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    return rules


def _suites(names: list[str], rules: dict[str, Any]) -> list[Suite]:
    """Suites of the given names, or of the user's game."""
    if bool(names) == bool(rules):
        raise ValueError(
            "name a suite, or describe your game by --rule name=value or --rules game.json; not both. "
            f"Suites: {', '.join(SUITES)}, all"
        )
    if rules:
        return [YourGame(rules)]
    every = [name for given in names for name in (SUITES if given == "all" else [given])]
    return [SUITES[name]() for name in dict.fromkeys(every)]


def report_command(
    directory: Directory = DIRECTORY,
    use: Annotated[
        list[str] | None,
        typer.Option(
            help="A module:object, or a model's directory, that the results name and the report may use."
        ),
    ] = None,
) -> None:
    """Write the report: one HTML page that opens offline, and its figures as SVG and PNG.

    Results name registered parts. Others are left out unless you name them here again.
    """
    if use:
        allow_local_imports()
    with one_line_errors():
        path = Report(directory, use=use or ()).write()
    say(Console(), f"report: {path}")


def export_command(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet file to write.")],
    directory: Directory = DIRECTORY,
) -> None:
    """Write the losses of every episode to a CSV or Parquet file; status 1 if some cannot be read."""
    console, store = Console(), Store(directory, read_only=True)
    with one_line_errors():
        rows = store.export(file)
    for fault in store.faults:
        say(console, f" in {store.path}, {fault}", "red")
    say(console, f"{rows:,} rows: {file}")
    raise typer.Exit(1 if store.faults else 0)


class _Bar(Progress):
    """Progress bar of the cells; the time left is proportional to the rounds left."""

    def __init__(self, console: Console) -> None:
        cells = TextColumn("{task.fields[done]}/{task.fields[cells]} cells")
        text = TextColumn("{task.description}", markup=False)
        columns = (BarColumn(12), cells, TimeElapsedColumn(), TimeRemainingColumn(), text)
        super().__init__(*columns, console=console)
        self._task = self.add_task("starting", total=None, done=0, cells="?")

    def begin(self, cells: int, done: int, rounds: int) -> None:
        text = "playing" if rounds else "all in the store"
        self.update(self._task, total=max(rounds, 1), completed=0 if rounds else 1)
        self.update(self._task, description=text, done=done, cells=cells)

    def add_cell(self, cell: Cell, outcome: Outcome) -> None:
        failed = ", failed" if outcome.status == "failed" else ""
        text = printable(f"{cell.experiment.learner} on {cell.experiment.channel}{failed}")
        done = self.tasks[0].fields["done"] + 1
        self.update(self._task, advance=cell.rounds, description=text, done=done)


def _print_section(console: Console, section: Section) -> None:
    """Print the findings of a suite, then its tables, then what was not played."""
    suite, results = section.suite, section.results
    assert suite is not None
    assert results is not None
    console.rule(Text(f"{suite.name}: {suite.title}"))
    for audit in results.broken_promises:
        say(console, f" BROKEN PROMISE {audit}: left out of the ranking", "bold red")
    colours = dict(zip(Verdict, ("green", "dim", "dim", "red"), strict=True))
    for finding, verdict in section.findings:
        mark = Text(" · ") if verdict is None else Text(f" {verdict.mark} ", colours[verdict])
        say(console, finding.text, mark=mark)
    if results.successes or results.broken:
        for title, table in _printed_tables(suite, results):
            tables.print_table(console, title, table)
    for note in section.notes:
        say(console, f" {note}", "dim")
    for mark, failures in (
        (Text(" not played ", "dim"), results.refusals),
        (Text(" failed ", "red"), results.failures),
    ):
        for failure, which in by_summary(failures):
            say(console, f"{which}: {failure.summary}", mark=mark)


def _printed_tables(suite: Suite, results: Results) -> Sequence[tuple[str, Any]]:
    """Tables of a suite that are printed, with their titles."""
    found = list(suite.tables(results).items())
    if not suite.ranks_learners and not results.broken:
        return found
    shared, rows = tables.leaderboard(results)
    if (cells := tables.grid(results)) is not None:
        title = f"\nMean total KL in nats; bold: Bayes and what is level with it. {shared}"
        return [*found, (title, cells)]
    wanted = ("Game", "Channel", "Learner", "Risk", "Risk, 95%", "Score", "Over Bayes")
    return [*found, (f"\n{shared}", rows[[title for title in wanted if title in rows]])]
