"""Report of the results in a directory: one HTML page that needs no other file, and its figures.

>>> from ldp_gym import bench
>>> from ldp_gym.bench import report
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     results = bench.run("limit", size="small", episodes=2, jobs=1, out=directory)
...     report.write(directory).name
'report.html'
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_gym.bench import figures, tables
from ldp_gym.bench.experiment import own_code
from ldp_gym.bench.findings import Finding, Verdict, judge
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.store import FILE, Store
from ldp_gym.bench.suites import SUITES, OwnGame, Suite
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION
from ldp_gym.core.errors import DamagedStoreError, extra
from ldp_gym.core.files import write_text
from ldp_gym.core.registry import is_address
from ldp_gym.engine.learners import LEARNERS

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = "report.html"


@dataclass
class Section:
    """A suite's latest run, earlier runs with other settings, and its results as they are now in the store.

    Where the suite is not known here, ``plain`` has the risks as the store has them.
    """

    name: str
    run: Mapping[str, Any]
    others: list[Mapping[str, Any]]
    suite: Suite | None = None
    results: Results | None = None
    findings: list[tuple[Finding, Verdict | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plain: DataFrame | None = None

    @property
    def title(self) -> str:
        return self.suite.title if self.suite else "A suite that is not known here"

    @property
    def slug(self) -> str:
        """Name for files and links."""
        return re.sub(r"[^\w-]", "-", self.suite.name if self.suite else f"run-{self.run['id']}")


def read(
    directory: str | Path,
    *,
    use: Collection[str] = (),
    played: Mapping[str, tuple[Suite, Results]] | None = None,
) -> list[Section]:
    """Read the latest run of every suite from a directory of results.

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
    store = Store(directory, read_only=True)
    runs = store.runs()
    if not runs and store.faults:
        raise DamagedStoreError(f"{store.path} has no run that can be read: {'; '.join(store.faults)}")
    if not runs:
        raise FileNotFoundError(f"{store.path} has no runs yet: run ldp-gym bench --out {directory}")
    names = dict.fromkeys(str(run["suite"]) for run in runs)
    sections = [_section(store, name, runs, set(use), played or {}) for name in names]
    return sorted(sections, key=lambda section: section.suite.order if section.suite else math.inf)


def write(
    directory: str | Path, *, use: Collection[str] = (), sections: Sequence[Section] | None = None
) -> Path:
    """Write ``report.html`` and ``figures/SUITE.svg``, ``.png`` into a directory of results.

    Args:
        directory: as for :func:`read`.
        use: as for :func:`read`.
        sections: sections that have been read already.
    """
    directory = Path(directory)
    sections = read(directory, use=use) if sections is None else sections
    with extra("bench", "a report"):
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

        pictures = {section.slug: Markup(_draw(section, directory / "figures")) for section in sections}
    store = Store(directory, read_only=True)
    runs, package = store.runs(), files("ldp_gym.bench")
    store.finished()  # reads every row, and notes those that it cannot read
    audits = {key: audit for s in sections if s.results for key, audit in s.results.audits.items()}
    verdicts = [verdict for section in sections for _, verdict in section.findings if verdict]
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = page.from_string(package.joinpath("report.html.jinja").read_text("utf-8"))
    html = template.render(
        style=Markup(package.joinpath("report.css").read_text("utf-8")),
        script=Markup(package.joinpath("report.js").read_text("utf-8")),
        faults=store.faults,
        file=FILE,
        broken=[str(audit) for audit in audits.values() if audit.broken],
        last=max(runs, key=lambda run: run["id"]),
        versions=_versions,
        claims=", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict),
        num_claims=len(verdicts),
        sections=sections,
        pictures=pictures,
        command=lambda run: _command(run, directory),
        by_summary=by_summary,
        tables=tables,
        audits=tables.certificates(audits.values()),
        runs=_run_table(runs),
    )
    write_text(directory / PAGE, html)
    return directory / PAGE


# -- From the store to sections -----------------------------------------------------------------------------


def _section(
    store: Store,
    name: str,
    runs: Sequence[Mapping[str, Any]],
    use: Collection[str],
    played: Mapping[str, tuple[Suite, Results]],
) -> Section:
    """The latest run of a suite, with the learners of like runs before it."""
    latest = {json.dumps(run["settings"], sort_keys=True): run for run in runs if run["suite"] == name}
    *others, run = sorted(latest.values(), key=lambda run: run["id"])
    section = Section(name, run, others)
    suite, results = played.get(name, (None, None))
    try:
        suite = suite or _suite(name, run["settings"]["parameters"], use)
        experiments, tracks = _experiments(section, suite, use)
    except Exception as error:  # a third-party module may fail in any way when it is imported
        section.notes.append(f"Its experiments are not known here: {error}")
        section.plain = _plain(store, run["keys"])
        return section
    if results is None or len(experiments) != len(results.experiments):
        results = Results(store, experiments, run["settings"]["seed"], tracks, suite.name)
    section.suite, section.results = suite, results
    now = {"ldp-gym": VERSION, "code": own_code()[:12]}
    if {key: run["versions"].get(key) for key in now} != now:
        section.notes.append(
            f"It was run with ldp-gym {run['versions'].get('ldp-gym')} (code "
            f"{run['versions'].get('code')}), and this is {VERSION} (code {now['code']}): results of "
            "another version or other code do not count."
        )
    if results.successes:
        section.findings = judge(suite.findings(results))
    return section


def _suite(name: str, parameters: Mapping[str, Any], use: Collection[str]) -> Suite:
    """Suite of a name that a store gives, if it is registered or named by the caller."""
    foreign = {text for text in (*texts_of(parameters), name) if ":" in text} - set(use)
    if foreign:
        again = " ".join(f"--use {shlex.quote(text)}" for text in sorted(foreign))
        raise ValueError(f"the store names code. To use it: ldp-gym report {again}")
    return OwnGame(**parameters) if name == OwnGame.name else SUITES[name]()


def texts_of(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*texts_of(key), *texts_of(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def _experiments(section: Section, suite: Suite, use: Collection[str]) -> tuple[list[Any], dict[str, Any]]:
    """Experiments of a section and the tracks of its learners; a note says who is left out."""
    settings = section.run["settings"]
    shared = ("seed", "size", "episodes", "channels", "parameters")
    like = [
        run["settings"]
        for run in (*section.others, section.run)
        if all(run["settings"][name] == settings[name] for name in shared)
    ]
    named = [other["learners"] for other in like]
    if isinstance(suite, OwnGame) and not all(named):
        named = []  # one of the runs had every learner
    learners, channels = dict.fromkeys(name for names in named for name in names), settings["channels"]
    # A learner's module:Class is looked up, but not imported; a channel would be.
    known = [name for name in learners if name in LEARNERS or name in use or is_address(name)]
    heard = [name for name in channels if name in CHANNELS or name in use]
    for name in [name for name in (*learners, *channels) if name not in (*known, *heard)]:
        section.notes.append(f"{name} is left out. To show it: ldp-gym report --use {shlex.quote(str(name))}")
    tracks = {
        name: track for other in like for name, track in other.get("tracks", {}).items() if name in known
    }
    found = suite.experiments(settings["size"], learners=known, channels=heard, episodes=settings["episodes"])
    return found, tracks


def _plain(store: Store, keys: Collection[str]) -> DataFrame:
    """Mean total KL of every learner, channel and game of a run, from its cells only."""
    from pandas import DataFrame

    rows = DataFrame(store.rows(keys))
    if not len(rows):
        return rows
    last = (
        rows.sort_values("round")
        .groupby(["learner", "channel", "rules", "truth", "seed"], dropna=False)
        .last()
    )
    means = last.groupby(["learner", "channel", "rules"])["kl"].agg(["mean", "size"]).reset_index()
    means["mean"] = means["mean"].map("{:,.3f}".format)
    titles = {"mean": "mean total KL", "size": "episodes"}
    return means[["learner", "channel", "mean", "size", "rules"]].rename(columns=titles).astype(str)


def _draw(section: Section, directory: Path) -> str:
    """Save the figure of a section; return it as part of a page, with ids that no other figure has."""
    if section.suite is None or section.results is None or not section.results.successes:
        return ""
    drawing = figures.in_style(section.suite.draw, section.results)
    directory.mkdir(exist_ok=True)
    svg = figures.save(drawing, directory / section.slug)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{section.slug}-", svg[svg.index("<svg") :])


# -- Runs ---------------------------------------------------------------------------------------------------


def _command(run: Mapping[str, Any], directory: Path) -> str:
    """The command line that gives the same results."""
    settings = run["settings"]
    rules = settings["parameters"].get("rules", {}) if isinstance(settings["parameters"], Mapping) else {}
    rules = rules if isinstance(rules, Mapping) else {}
    words = ["ldp-gym", "bench", *([] if rules else [str(run["suite"])])]
    for name, value in rules.items():
        words += ["--rule", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for option, names in (("--learner", settings["learners"]), ("--channel", settings["channels"])):
        for name in names:
            words += [option, str(name)]
    if settings["episodes"] is not None:
        words += ["--episodes", str(settings["episodes"])]
    if settings["size"] != "default":
        words += ["--size", settings["size"]]
    return shlex.join([*words, "--seed", str(settings["seed"]), "--out", directory.name or "."])


def _versions(run: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in run["versions"].items())


def _run_table(runs: Sequence[Mapping[str, Any]]) -> DataFrame:
    from pandas import DataFrame

    return DataFrame(
        {
            "Run": str(run["id"]),
            "Suite": run["suite"],
            "Started": run["started"],
            "Finished": run["finished"] or "not finished",
            "Cells": f"{len(run['keys']):,}",
            "Machine": run["machine"],
            "Versions": _versions(run),
            "Command line": run["command"],
        }
        for run in runs
    )
