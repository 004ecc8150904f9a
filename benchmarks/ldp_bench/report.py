"""Report of the results in a directory: one HTML page that needs no other file, and its figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ldp_bench import figures, tables
from ldp_bench.fingerprints import own_code
from ldp_bench.results import Results, by_summary
from ldp_bench.store import FILE, Store
from ldp_bench.suites import SUITES, Finding, Suite, YourGame, judge
from ldp_gym.core.errors import DamagedStoreError, extra
from ldp_gym.core.files import write_text
from ldp_gym.core.registry import addresses_in, is_address
from ldp_gym.engine.learners import LEARNERS, is_directory
from ldp_gym.statistics import Verdict

PAGE = "report.html"

Played = Mapping[str, tuple[Suite, Results]]
"""Suites by their address, with their results."""


@dataclass
class Section:
    """A suite's latest run, with its results as they are now in the store, if the suite can be found."""

    run: Mapping[str, Any]
    suite: Suite | None = None
    results: Results | None = None
    findings: list[tuple[Finding, Verdict | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.run["suite"])

    @property
    def title(self) -> str:
        if self.suite is None:
            return "A suite that is not known here"
        return self.suite.title

    @property
    def slug(self) -> str:
        """Name for files and links."""
        name = f"run-{self.run['id']}"
        if self.suite is not None:
            name = self.suite.name
        return re.sub(r"[^\w-]", "-", name)


class Report:
    """Latest run of every suite in a directory of results.

    Args:
        directory: directory that :func:`ldp_bench.run`, or ``ldp-gym bench``, has written to.
        trust: whether code that the results name, as ``module:object``, may be imported; else it is left out.
        played: suites that were just played.

    Raises:
        FileNotFoundError: if there are no results there.
        DamagedStoreError: if they cannot be read.
    """

    def __init__(
        self, directory: str | Path, *, trust: bool = False, played: Played | None = None
    ) -> None:
        """Read the runs, and look up the results of the latest one of each suite."""
        self.directory = Path(directory)
        self._store = Store(directory, read_only=True)
        self._trust = trust
        self._played = played or {}
        self.runs = self._store.runs()
        if not self.runs and self._store.faults:
            raise DamagedStoreError(
                f"{self._store.path} has no run that can be read: {self._store.faults}"
            )
        if not self.runs:
            raise FileNotFoundError(
                f"{directory} has no runs yet: run ldp-gym bench --out {directory}"
            )
        latest = {run["suite"]: run for run in self.runs}
        ours = [name for name in (YourGame.name, *SUITES.own) if name in latest]
        of_others = [name for name in latest if name not in ours]
        self.sections = [self._section(latest[name]) for name in (*ours, *of_others)]

    def write(self) -> Path:
        """Write ``report.html`` and ``figures/SUITE.svg``, ``.png`` into the directory."""
        with extra("bench", "a report"):
            from jinja2 import Environment, StrictUndefined
            from markupsafe import Markup

            pictures = {s.slug: Markup(_draw(s, self.directory / "figures")) for s in self.sections}
        package = files("ldp_bench")
        verdicts = [
            verdict for section in self.sections for _, verdict in section.findings if verdict
        ]
        page = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        html = page.from_string(package.joinpath("report.html.jinja").read_text("utf-8")).render(
            style=Markup(package.joinpath("report.css").read_text("utf-8")),
            script=Markup(package.joinpath("report.js").read_text("utf-8")),
            faults=self._store.faults,
            file=FILE,
            claims=", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict),
            num_claims=len(verdicts),
            sections=self.sections,
            pictures=pictures,
            by_summary=by_summary,
            tables=tables,
            runs=self.runs,
        )
        write_text(self.directory / PAGE, html)
        return self.directory / PAGE

    def _section(self, run: Mapping[str, Any]) -> Section:
        """Make the section of a run: with its suite and findings, or with a note why they are not known."""
        section = Section(run)
        try:
            known = self._played.get(section.name) or self._read(section, run["settings"])
        except Exception as error:  # a third-party module may fail in any way when it is imported
            section.notes.append(f"Its experiments are not known here: {error}")
            return section
        section.suite, section.results = known
        if run["versions"].get("code") != own_code()[:12]:
            section.notes.append(
                "It was run with other code, whose results do not count: run it again."
            )
        if section.results.successes:
            section.findings = judge(section.suite.findings(section.results))
        return section

    def _read(self, section: Section, settings: Mapping[str, Any]) -> tuple[Suite, Results]:
        """Suite of a run, and its results in the store; notes name learners that are not found now."""
        name = section.name
        parameters = settings["parameters"]
        channels = settings["channels"]
        code = addresses_in([name, channels, parameters])
        if code and not self._trust:
            raise ValueError(
                f"they name code ({', '.join(code)}), which ldp-gym report --trust imports"
            )
        suite: Suite
        if name == YourGame.name:
            suite = YourGame(**parameters)
        else:
            suite = SUITES[name]()

        learners = []
        for learner in settings["learners"]:
            # A learner's module:Class is not imported here.
            if learner in LEARNERS or is_address(learner) or is_directory(learner):
                learners.append(learner)
            else:
                section.notes.append(f"{learner} is not here any more.")
        experiments = suite.experiments(
            settings["size"],
            learners=learners,
            channels=channels,
            episodes=settings["episodes"],
        )
        return suite, Results(self._store, experiments, settings["seed"])


def _draw(section: Section, directory: Path) -> str:
    """Save the figure of a section; return it as part of a page, with ids that no other figure has."""
    if section.suite is None or section.results is None or not section.results.successes:
        return ""
    drawing = figures.in_style(section.suite.draw, section.results)
    directory.mkdir(exist_ok=True)
    svg = figures.save_figure(drawing, directory / section.slug)
    # Ids, and the references to them, begin with the name of the section.
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{section.slug}-", svg[svg.index("<svg") :])
