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
from ldp_bench.commands import STOPPED, arguments
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

_COLOURS = dict(zip(Verdict, ("green", "dim", "dim", "red"), strict=True))
"""Colours of the verdicts on findings."""

_PRINTED_COLUMNS = ("Channel", "Game", "Privacy", "Learner", "Risk", "Score", "Over Bayes")
"""Columns of the leaderboard that a terminal shows."""

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
    played: dict[str, tuple[Suite, Results]] = {}
    for one in suites:
        try:
            with one_line_errors(), _Bar(console) as bar:
                results = run(
                    one,
                    learners=learner or (),
                    channels=channel or (),
                    episodes=episodes,
                    seed=seed,
                    jobs=jobs,
                    out=out,
                    size=size,
                    dask=dask,
                    trust=trust,
                    on_start=bar.begin,
                    on_cell=bar.add_cell,
                )
        except KeyboardInterrupt:
            say(console, f"Stopped. The same command goes on from what is in {out}.")
            raise typer.Exit(STOPPED) from None
        played[one.address] = one, results

    report = Report(out, trust=trust, played=played)
    page = report.write()  # before anything is printed: printing can fail
    for section in report.sections:
        if section.name in played:
            suite_played, results = played[section.name]
            _print_section(console, section, suite_played, results)
    say(console, f"report: {page}")
    has_failures = any(results.failures for _, results in played.values())
    raise typer.Exit(int(has_failures))


def _suites(names: list[str], rules: dict[str, Any]) -> list[Suite]:
    """Make the suites of the given names, or that of the user's game, of which rules are given.

    Raises:
        ValueError: if names and rules are given, or neither.
    """
    if bool(names) == bool(rules):
        raise ValueError(
            "name a suite, or describe your game (--rule, --hypotheses, --epsilon, --horizon); not both. "
            f"Suites: {', '.join(SUITES)}, all"
        )
    if rules:
        return [YourGame(rules)]
    all_names: list[str] = []
    for name in names:
        if name == "all":
            all_names += SUITES
        else:
            all_names.append(name)
    return [SUITES[name]() for name in dict.fromkeys(all_names)]


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
    console = make_console()
    store = Store(directory, read_only=True)
    with one_line_errors():
        rows = store.export(file, all_code=all_code)
    for fault in store.faults:
        say(console, f" in {store.path}, {fault}", "red")
    say(console, f"{rows:,} rows: {file}")
    raise typer.Exit(int(bool(store.faults)))


class _Bar(Progress):
    """Progress bar of the cells; the time left is proportional to the rounds left."""

    def __init__(self, console: Console) -> None:
        """Show a bar of unknown length."""
        super().__init__(
            BarColumn(bar_width=12),  # characters
            TextColumn("{task.fields[done]}/{task.fields[cells]} cells"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
        )
        self._done = 0
        self._task = self.add_task("starting", total=None, done=0, cells="?")

    def begin(self, cells: int, done: int, rounds: int) -> None:
        """Show the number of cells, of those that are done, and of rounds that are to be played."""
        self._done = done
        text = "all in the store"
        if rounds:
            text = "playing"
        self.update(self._task, total=rounds, description=text, done=done, cells=cells)

    def add_cell(self, cell: Cell, outcome: Outcome) -> None:
        """Show that one more cell is done."""
        self._done += 1
        text = printable(f"{cell.experiment.learner} on {cell.experiment.channel}")
        if outcome.status == "failed":
            text += ", failed"
        self.update(self._task, advance=cell.rounds, description=text, done=self._done)


def _print_section(console: Console, section: Section, suite: Suite, results: Results) -> None:
    """Print the main finding of a suite, its tables, its other findings, and what was not played."""
    console.rule(Text(f"{suite.name}: {suite.title}"))
    findings = list(section.findings)
    if results.successes:
        _, numbers = suite.lead(results)
        if numbers:  # the suite has a main finding, which is its first
            main_finding, _ = findings.pop(0)
            say(console, main_finding.text)
        for title, table in _printed_tables(suite, results, has_findings=bool(findings)):
            say(console, f"\n{title}")
            typer.echo(f"{tables.to_text(table, console.width)}\n")

    for finding, verdict in findings:
        mark = Text("· ")
        if verdict is not None:
            mark = Text(f"{verdict.mark} ", _COLOURS[verdict])
        say(console, finding.text, mark=mark)
    for note in section.notes:
        say(console, note, "dim")
    if results.refusals:
        say(console, _describe_refusals(results.refusals), "dim")
    for failure, experiments in by_summary(results.failures):
        say(console, f"{experiments}: {failure.summary}", mark=Text("failed ", "red"))


def _describe_refusals(refusals: Sequence[Failure]) -> str:
    """One line on the experiments that learners refuse, with the first reason; the report has all."""
    by_learner = grouped(refusals, lambda refusal: refusal.experiment.learner)
    listed = ", ".join(f"{learner} ({len(refused)})" for learner, refused in by_learner.items())
    first = refusals[0]
    return f"not played: {listed}; the first, {first.experiment}: {first.summary}"


def _printed_tables(suite: Suite, results: Results, has_findings: bool) -> list[tuple[str, Any]]:
    """List the tables that are printed, with their titles: the suite's own, and one of the risks.

    The table of the risks has channels by learners; if that is not possible, and there are no findings to
    print in its place, it has all rows of the leaderboard.
    """
    titled = list(suite.tables(results).items())
    shared, rows = tables.leaderboard(results)
    risks = tables.grid(results)
    if risks is not None:
        title = "Mean loss of each learner on each channel, in nats; *: Bayes and what is level with it."
        titled.append((f"{title} {shared}", risks))
    elif not has_findings:
        columns = [title for title in _PRINTED_COLUMNS if title in rows]
        titled.append((shared, rows[columns]))
    return titled
