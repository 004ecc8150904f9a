"""Report of the results in a directory: one HTML page that needs no other file, and its figures."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_gym.bench import figures, tables
from ldp_gym.bench.experiment import Experiment, own_code
from ldp_gym.bench.findings import Finding, judge
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.store import FILE, Store
from ldp_gym.bench.suites import SUITES, Suite, YourGame
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION
from ldp_gym.core.errors import DamagedStoreError, extra
from ldp_gym.core.files import write_text
from ldp_gym.core.registry import is_address
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.statistics import Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = "report.html"


@dataclass
class Section:
    """A suite's latest run, and its results as they are now in the store, where the suite is known here."""

    name: str
    run: Mapping[str, Any]
    suite: Suite | None = None
    results: Results | None = None
    findings: list[tuple[Finding, Verdict | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.suite.title if self.suite else "A suite that is not known here"

    @property
    def slug(self) -> str:
        """Name for files and links."""
        return re.sub(r"[^\w-]", "-", self.suite.name if self.suite else f"run-{self.run['id']}")


class Report:
    """Latest run of every suite in a directory of results.

    A store names registered suites, channels and learners. Code, data and model directories that it names
    otherwise are used only if the caller names them again.

    Args:
        directory: directory that :func:`ldp_gym.bench.run`, or ``ldp-gym bench``, has written to.
        use: ``module:object`` and model directories that may be used.
        played: suites that were just played, by their address, with their results.

    Raises:
        FileNotFoundError: if there are no results there.
        DamagedStoreError: if they cannot be read.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        use: Collection[str] = (),
        played: Mapping[str, tuple[Suite, Results]] | None = None,
    ) -> None:
        self.directory, self._store = Path(directory), Store(directory, read_only=True)
        self._use, self._played, self.runs = set(use), played or {}, self._store.runs()
        if not self.runs and self._store.faults:
            raise DamagedStoreError(f"{self._store.path} has no run that can be read: {self._store.faults}")
        if not self.runs:
            raise FileNotFoundError(f"{directory} has no runs yet: run ldp-gym bench --out {directory}")
        named = {text for run in self.runs for text in (run["suite"], *texts_of(run["settings"]))}
        if played is None and (unknown := sorted(self._use - named)):
            foreign = sorted(text for text in named if ":" in text or Path(text).is_absolute())
            raise ValueError(
                f"the results in {directory} do not name {unknown[0]!r}; they name "
                f"{', '.join(foreign) or 'registered parts only'}"
            )
        sections = [self._section(name) for name in dict.fromkeys(run["suite"] for run in self.runs)]
        order = [YourGame.name, *SUITES.own]  # and then other packages' suites
        self.sections = sorted(sections, key=lambda s: order.index(s.name) if s.name in order else len(order))

    def write(self) -> Path:
        """Write ``report.html`` and ``figures/SUITE.svg``, ``.png`` into the directory."""
        with extra("bench", "a report"):
            from jinja2 import Environment, StrictUndefined
            from markupsafe import Markup

            pictures = {s.slug: Markup(_draw(s, self.directory / "figures")) for s in self.sections}
        package, results = files("ldp_gym.bench"), [s.results for s in self.sections if s.results]
        audits = {key: audit for one in results for key, audit in one.audits.items()}
        verdicts = [verdict for section in self.sections for _, verdict in section.findings if verdict]
        page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        html = page.from_string(package.joinpath("report.html.jinja").read_text("utf-8")).render(
            style=Markup(package.joinpath("report.css").read_text("utf-8")),
            script=Markup(package.joinpath("report.js").read_text("utf-8")),
            faults=self._store.faults,
            file=FILE,
            broken=[str(audit) for audit in audits.values() if audit.broken],
            last=self.runs[-1],
            versions=_listed(self.runs[-1]["versions"]),
            claims=", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict),
            num_claims=len(verdicts),
            sections=self.sections,
            pictures=pictures,
            by_summary=by_summary,
            tables=tables,
            audits=tables.certificate_table(audits.values()),
            runs=_run_table(self.runs),
        )
        write_text(self.directory / PAGE, html)
        return self.directory / PAGE

    def _section(self, name: str) -> Section:
        """The latest run of a suite, with the learners of like runs before it."""
        *others, run = (run for run in self.runs if run["suite"] == name)
        section = Section(name, run)
        suite, results = self._played.get(name, (None, None))
        try:
            suite = suite or self._suite(name, run["settings"]["parameters"])
            experiments, tracks = self._experiments(section, suite, others)
        except Exception as error:  # a third-party module may fail in any way when it is imported
            section.notes.append(f"Its experiments are not known here: {error}")
            return section
        if results is None or len(experiments) != len(results.experiments):
            results = Results(self._store, experiments, run["settings"]["seed"], tracks)
        section.suite, section.results = suite, results
        now = {"ldp-gym": VERSION, "code": own_code()[:12]}
        then = {key: run["versions"].get(key) for key in now}
        if then != now:
            section.notes.append(
                f"It was run with ldp-gym {then['ldp-gym']} (code {then['code']}), and this is {VERSION} "
                f"(code {now['code']}): results of another version or other code do not count."
            )
        if results.successes:
            section.findings = judge(suite.findings(results))
        return section

    def _suite(self, name: str, parameters: Mapping[str, Any]) -> Suite:
        """Suite of a name that a store gives, if it is registered or named by the caller."""
        foreign = {text for text in (*texts_of(parameters), name) if ":" in text} - self._use
        if foreign:
            again = " ".join(f"--use {shlex.quote(text)}" for text in sorted(foreign))
            raise ValueError(f"the store names code. To use it: ldp-gym report {again}")
        return YourGame(**parameters) if name == YourGame.name else SUITES[name]()

    def _experiments(
        self, section: Section, suite: Suite, others: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Experiment], dict[str, Any]]:
        """Experiments of a section and the tracks of its learners; a note says who is left out."""
        settings = section.run["settings"]
        free = ("learners", "tracks")
        like = [
            run["settings"]
            for run in (*others, section.run)
            if all(run["settings"].get(name) == settings[name] for name in settings if name not in free)
        ]
        named = [other["learners"] for other in like]
        if isinstance(suite, YourGame) and not all(named):
            named = []  # one of the runs had every learner
        learners, channels = dict.fromkeys(name for names in named for name in names), settings["channels"]
        # A learner's module:Class is looked up, but not imported; a channel would be.
        known = [name for name in learners if name in LEARNERS or name in self._use or is_address(name)]
        heard = [name for name in channels if name in CHANNELS or name in self._use]
        for name in [name for name in (*learners, *channels) if name not in (*known, *heard)]:
            section.notes.append(f"{name} is left out. To show it: ldp-gym report --use {shlex.quote(name)}")
        tracks = {name: track for other in like for name, track in other.get("tracks", {}).items()}
        found = suite.experiments(
            settings["size"], learners=known, channels=heard, episodes=settings["episodes"]
        )
        return found, {name: tracks[name] for name in known if name in tracks}


def texts_of(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        items = (*value, *value.values()) if isinstance(value, Mapping) else value
        for item in items:
            yield from texts_of(item)


def _draw(section: Section, directory: Path) -> str:
    """Save the figure of a section; return it as part of a page, with ids that no other figure has."""
    if section.suite is None or section.results is None or not section.results.successes:
        return ""
    drawing = figures.in_style(section.suite.draw, section.results)
    directory.mkdir(exist_ok=True)
    svg = figures.save_figure(drawing, directory / section.slug)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{section.slug}-", svg[svg.index("<svg") :])


def _run_table(runs: Sequence[Mapping[str, Any]]) -> DataFrame:
    from pandas import DataFrame

    table = DataFrame(runs)
    table["settings"] = [json.dumps({k: v for k, v in run["settings"].items() if v}) for run in runs]
    table["cells"] = [f"{len(run['keys']):,}" for run in runs]
    table["versions"] = table["versions"].map(_listed)
    columns = ["id", "suite", "settings", "started", "finished", "cells", "machine", "versions", "command"]
    return table[columns].fillna("not finished").astype(str).rename(columns=str.capitalize)


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
