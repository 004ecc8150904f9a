"""``ldp-gym bench``, ``report`` and ``export``: play suites, and write reports and tables of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text
from typer import Argument, Option

from ldp_bench import tables
from ldp_bench.commands import arguments
from ldp_bench.commands.arguments import (
    allow_local_imports,
    make_console,
    one_line_errors,
    rules_of,
    say,
)
from ldp_bench.experiment import Cell
from ldp_bench.report import Report, Section
from ldp_bench.results import Failure, Results, by_summary, grouped
from ldp_bench.runner import run
from ldp_bench.store import Outcome, Store
from ldp_bench.suites import SIZES, SUITES, Suite, YourGame
from ldp_gym.core.errors import printable
from ldp_gym.core.files import DIRECTORY
from ldp_gym.statistics import Verdict

_SUITES = f"One or more of {', '.join(SUITES)}; all; or module:Class."
_LEARNER = "A further learner: a name, module:Class, or a model's directory. Your game: only these."
_CHANNEL = "A further channel: a name, or module:Class. Your game: only these."

Names = list[str] | None
Directory = Annotated[
    Path, Argument(metavar="DIR", help="Directory that `ldp-gym bench` wrote to.")
]


def bench_command(
    suite: Annotated[Names, Argument(metavar="SUITE", help=_SUITES)] = None,
    rule: arguments.RuleOption = None,
    hypotheses: arguments.HypothesesOption = None,
    epsilon: Annotated[
        list[float] | None, Option(metavar="EPS", help="Privacy level; repeatable.")
    ] = None,
    horizon: arguments.HorizonOption = None,
    learner: Annotated[Names, Option(metavar="NAME", help=_LEARNER)] = None,
    channel: Annotated[Names, Option(metavar="NAME", help=_CHANNEL)] = None,
    episodes: Annotated[int | None, Option(metavar="N", help="Number of episodes.")] = None,
    seed: Annotated[int, Option(metavar="N", help="Seed of the first episode.")] = 0,
    jobs: Annotated[int, Option(metavar="N", help="Processes at a time; -1: one per core.")] = -1,
    out: Annotated[Path, Option(metavar="DIR", help="Results, to go on after a stop.")] = DIRECTORY,
    size: Annotated[str, Option(metavar="SIZE", help=f"{' or '.join(SIZES)}.")] = "default",
    dask: Annotated[
        str | None, Option(metavar="HOST", help="A Dask scheduler, to play there.")
    ] = None,
    trust: arguments.TrustOption = False,
) -> None:
    """Play suites, or your game; print the findings and write a report.

    Your game is played by every learner on every channel that fits:

    ldp-gym bench --rule hypotheses=mine:models --rule truth=replay --rule
    'truth_kwargs={"contexts": "mine:X", "labels": "mine:y"}' --epsilon 1

    Results that are in the directory are not played again. Exit status 1 if a
    learner or channel failed, or a channel breaks its promise; 2 for a wrong call.
    """
    console = make_console()
    allow_local_imports()
    with one_line_errors():
        given = rules_of(rule, hypotheses=hypotheses, epsilon=epsilon or None, horizon=horizon)
        suites = _suites(suite or [], given)
    added: dict[str, Any] = {
        "learners": learner or (),
        "channels": channel or (),
        "episodes": episodes,
    }
    where: dict[str, Any] = {"jobs": jobs, "out": out, "dask": dask, "trust": trust}
    played: dict[str, tuple[Suite, Results]] = {}
    for chosen in suites:
        try:
            with one_line_errors(), _Bar(console) as bar:
                told: dict[str, Any] = {"on_start": bar.begin, "on_cell": bar.add_cell}
                results = run(chosen, **added, seed=seed, size=size, **where, **told)
        except KeyboardInterrupt:
            say(console, f"Stopped. The same command goes on from what is in {out}.")
            raise typer.Exit(130) from None
        played[chosen.address] = chosen, results
    written = Report(out, trust=trust, played=played)
    page = written.write()  # before anything is printed: printing can fail
    for section in written.sections:
        if section.name in played:
            _print_section(console, section, *played[section.name])
    say(console, f"report: {page}")
    raise typer.Exit(1 if any(results.failures for _, results in played.values()) else 0)


def _suites(names: list[str], rules: dict[str, Any]) -> list[Suite]:
    """Suites of the given names, or of the user's game."""
    if bool(names) == bool(rules):
        raise ValueError(
            "name a suite, or describe your game (--rule, --hypotheses, --epsilon, --horizon); not both. "
            f"Suites: {', '.join(SUITES)}, all"
        )
    if rules:
        return [YourGame(rules)]
    every = [name for given in names for name in (SUITES if given == "all" else [given])]
    return [SUITES[name]() for name in dict.fromkeys(every)]


def report_command(directory: Directory = DIRECTORY, trust: arguments.TrustOption = False) -> None:
    """Write the report: an HTML page that opens offline, and figures.

    Code that the results name as module:object is imported only with --trust.
    """
    if trust:
        allow_local_imports()
    with one_line_errors():
        path = Report(directory, trust=trust).write()
    say(make_console(), f"report: {path}")


def export_command(
    file: Annotated[Path, Argument(metavar="FILE", help="A .csv file to write.")],
    directory: Directory = DIRECTORY,
    all_code: Annotated[
        bool, Option("--all-code", help="Results of older code too: see the column code.")
    ] = False,
) -> None:
    """Write every episode's losses to a CSV file; status 1 for faults.

    Where an episode was played by several versions of the code, the latest one's
    result is written.
    """
    console, store = make_console(), Store(directory, read_only=True)
    with one_line_errors():
        rows = store.export(file, all_code=all_code)
    for fault in store.faults:
        say(console, f" in {store.path}, {fault}", "red")
    say(console, f"{rows:,} rows: {file}")
    raise typer.Exit(1 if store.faults else 0)


class _Bar(Progress):
    """Progress bar of the cells; the time left is proportional to the rounds left."""

    def __init__(self, console: Console) -> None:
        count = TextColumn("{task.fields[done]}/{task.fields[cells]} cells")
        text = TextColumn("{task.description}", markup=False)
        columns = (BarColumn(12), count, TimeElapsedColumn(), TimeRemainingColumn(), text)
        super().__init__(*columns, console=console)
        self._task, self._done = self.add_task("starting", total=None, done=0, cells="?"), 0

    def begin(self, cells: int, done: int, rounds: int) -> None:
        text, self._done = "playing" if rounds else "all in the store", done
        self.update(self._task, total=rounds, description=text, done=done, cells=cells)

    def add_cell(self, cell: Cell, outcome: Outcome) -> None:
        text = f"{cell.experiment.learner} on {cell.experiment.channel}"
        text, self._done = (
            printable(text) + ", failed" * (outcome.status == "failed"),
            self._done + 1,
        )
        self.update(self._task, advance=cell.rounds, description=text, done=self._done)


def _print_section(console: Console, section: Section, suite: Suite, results: Results) -> None:
    """Print what comes first, the tables, the findings, and what was not played."""
    console.rule(Text(f"{suite.name}: {suite.title}"))
    findings = list(section.findings)
    if results.successes and suite.lead(results)[1]:
        say(console, findings.pop(0)[0].text)
    for title, table in (
        _printed_tables(suite, results, bool(findings)) if results.successes else ()
    ):
        say(console, f"\n{title}")
        typer.echo(f"{tables.to_text(table, console.width)}\n")
    colours = dict(zip(Verdict, ("green", "dim", "dim", "red"), strict=True))
    for finding, verdict in findings:
        mark = Text("· ") if verdict is None else Text(f"{verdict.mark} ", colours[verdict])
        say(console, finding.text, mark=mark)
    for note in section.notes:
        say(console, note, "dim")
    if results.refusals:
        say(console, _describe_refusals(results.refusals), "dim")
    for failure, which in by_summary(results.failures):
        say(console, f"{which}: {failure.summary}", mark=Text("failed ", "red"))


def _describe_refusals(refusals: Sequence[Failure]) -> str:
    """One line on the experiments that learners refuse, with the first reason; the report has all."""
    by_learner = grouped(refusals, lambda refusal: refusal.experiment.learner)
    listed = ", ".join(f"{learner} ({len(refused)})" for learner, refused in by_learner.items())
    first = refusals[0]
    return f"not played: {listed}; the first, {first.experiment}: {first.summary}"


def _printed_tables(suite: Suite, results: Results, has_findings: bool) -> list[tuple[str, Any]]:
    """Tables that are printed, with their titles: channels by learners, or every row if nothing is found."""
    found, (shared, rows) = list(suite.tables(results).items()), tables.leaderboard(results)
    if (cells := tables.grid(results)) is not None:
        title = "Mean loss of each learner on each channel, in nats; *: Bayes and what is level with it."
        found.append((f"{title} {shared}", cells))
    elif not has_findings:
        wanted = ("Channel", "Game", "Privacy", "Learner", "Risk", "Score", "Over Bayes")
        found.append((shared, rows[[title for title in wanted if title in rows]]))
    return found
