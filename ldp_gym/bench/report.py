"""The report: one HTML page that holds all it shows, made from what the store has.

>>> from ldp_gym import bench
>>> from ldp_gym.bench import report
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     results = bench.run("limit", size="small", episodes=2, jobs=1, out=directory)
...     report.write(directory).name
'report.html'
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from ldp_gym.bench import certificates, figures, leaderboard
from ldp_gym.bench.findings import Verdict, judge
from ldp_gym.bench.page import Html, join, listing, picture, table, tag, whole_page
from ldp_gym.bench.provenance import commands, explain, format_time, list_runs, versions
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.sections import Section, gather
from ldp_gym.bench.store import FILE, Store
from ldp_gym.bench.suites import Suite
from ldp_gym.core.errors import DamagedStoreError, extra
from ldp_gym.core.files import write_text

PAGE = "report.html"


def write(directory: str | Path, *, trusted: Container[str] = frozenset()) -> Path:
    """Write ``report.html`` and ``figures/SUITE.svg``, ``.png`` into a directory of results.

    The page opens offline and needs no other file.

    Args:
        directory: where :func:`ldp_gym.bench.run`, or ``ldp-gym bench``, has put its results.
        trusted: the ``module:object`` that may be imported because a store names them; all with
            :data:`~ldp_gym.bench.sections.EVERYTHING`. A suite that needs another one is left out, and says
            so.

    Returns:
        The page's path.

    Raises:
        FileNotFoundError: if there are no results there.
        DamagedStoreError: if they cannot be read.
    """
    directory = Path(directory)
    store = Store(directory, read_only=True)
    runs = store.runs()
    if not runs and store.faults:
        raise DamagedStoreError(f"{directory / FILE} has no sound run: {'; '.join(store.faults)}")
    if not runs:
        raise FileNotFoundError(f"{directory / FILE} has no runs yet: run ldp-gym bench --out {directory}")
    sections = [gather(store, name, runs, trusted) for name in sorted({run["suite"] for run in runs})]
    sections.sort(key=lambda section: section.suite.order if section.suite else math.inf)
    for section in sections:
        _draw(section, directory / "figures")
    path = directory / PAGE
    write_text(path, _report(sections, runs, directory, store.faults))
    return path


def _draw(section: Section, directory: Path) -> None:
    if section.suite is None or section.results is None or not section.results.successes:
        return
    with extra("bench", "a report"):
        drawing = figures.in_style(section.suite.draw, section.results)
    directory.mkdir(exist_ok=True)
    section.svg = figures.save(drawing, directory / section.file)


# -- The page -----------------------------------------------------------------------------------------------


def _report(
    sections: Sequence[Section], runs: Sequence[Mapping[str, Any]], directory: Path, faults: Sequence[str]
) -> Html:
    audit_groups = [section.results.audits for section in sections if section.results]
    audits = list({key: audit for group in audit_groups for key, audit in group.items()}.values())
    title = "Online distribution learning under local differential privacy: benchmark"
    return whole_page(
        title,
        tag(
            "header",
            tag("h1", title),
            *(tag("p", f"In {FILE}, {fault}.", class_="bad") for fault in faults),
            *(tag("p", f"Broken promise: {audit}.", class_="bad") for audit in audits if audit.broken),
            _summary(sections),
            _contents(sections) if len(sections) > 1 else Html(),
            tag("h3", "To reproduce it", id="reproduce"),
            tag("pre", tag("code", commands([section.run for section in sections], directory))),
        ),
        tag(
            "main",
            *(_section(section, directory) for section in sections),
            _certificates(audits),
        ),
        tag("footer", explain(), list_runs(runs)),
    )


def _summary(sections: Sequence[Section]) -> Html:
    last = max((section.run for section in sections), key=lambda run: run["id"])
    results = [section.results for section in sections if section.results is not None]
    verdicts = [
        verdict
        for section in sections
        if section.suite and section.results and section.results.successes
        for _, verdict in judge(section.suite.findings(section.results))
        if verdict is not None
    ]
    played = sum(len(result.successes) for result in results)
    failed = sum(len(result.failures) for result in results)
    missing = sum(len(result.missing) for result in results)
    counts = f"{played} played, {failed} failed, {missing} not finished (a learner in a game on a channel)"
    failures = [
        _link(f"{section.name}-failures", f"failures of {section.name}")
        for section in sections
        if section.results and section.results.failures
    ]
    facts: dict[str, str] = {
        "Last run": format_time(last["finished"])
        if last["finished"]
        else f"{format_time(last['started'])}, not finished",
        "Machine": last["machine"],
        "Versions": versions(last),
        "Experiments": join([counts, *(part for link in failures for part in ("; ", link))]),
        "Findings": f"of {len(verdicts)} claims "
        + ", ".join(f"{verdicts.count(verdict)} are {verdict.value}" for verdict in Verdict),
    }
    return tag("dl", *(join([tag("dt", name), tag("dd", value)]) for name, value in facts.items()))


def _contents(sections: Sequence[Section]) -> Html:
    links = [
        join([_link(section.name, _title(section)), " ", tag("code", section.shown_name, class_="quiet")])
        for section in sections
    ]
    links += [
        _link("certificates", "Certificates"),
        _link("reading", "How to read it"),
        _link("runs", "Runs"),
    ]
    return tag("nav", listing(links), aria_label="Contents")


def _link(identifier: str, text: str) -> Html:
    return tag("a", text, href=f"#{identifier}")


def _title(section: Section) -> str:
    return section.suite.title if section.suite else section.name


def _section(section: Section, directory: Path) -> Html:
    parts: list[str] = [
        tag("h2", _title(section), " ", tag("code", section.shown_name)),
        *(tag("p", note, class_="bad") for note in section.notes),
    ]
    if section.others:
        earlier = commands(section.others, directory)
        parts += [
            tag("p", "Shown is the latest run. The suite was also run with other settings:", class_="quiet"),
            tag("pre", tag("code", earlier)),
        ]
    if section.suite and section.results:
        parts.append(tag("p", section.suite.claim, class_="claim"))
        if section.results.successes or section.results.broken:
            parts += _measurements(section, section.suite, section.results)
        else:
            parts.append(tag("p", "Nothing of it has been played to the end yet."))
        parts += _unfinished(section, section.results, directory)
    return tag("section", *parts, id=section.name)


def _measurements(section: Section, suite: Suite, results: Results) -> list[str]:
    styles = {Verdict.SHOWN: "good", Verdict.NOT_CONTRADICTED: "open", Verdict.CONTRADICTED: "bad"}
    findings = [
        tag(
            "li",
            finding.text,
            *([" ", tag("span", f"[{verdict.value}]", class_="mark")] if verdict is not None else []),
            class_=None if verdict is None else styles[verdict],
        )
        for finding, verdict in judge(suite.findings(results))
    ]
    files = f"figures/{section.file}.svg and .png, beside this page"
    figure = tag(
        "figure",
        tag("div", picture(section.svg or "", label=suite.title, prefix=section.name)),
        tag("figcaption", f"{suite.title}. Bands and bars are 95% intervals. The same in {files}."),
    )
    heading = "Leaderboard" if suite.ranks_learners else "Every experiment"
    return [
        tag("h3", "Findings"),
        tag("ul", *findings, class_="findings"),
        figure,
        *(
            part
            for number, own in enumerate(suite.tables(results))
            for part in (
                tag("h3", own.title),
                table(own.columns, own.rows, label=own.title, identifier=f"{section.name}-table-{number}"),
            )
        ),
        tag("h3", heading),
        tag("p", leaderboard.caveat(results)) if leaderboard.caveat(results) else Html(),
        *_grid(section, suite, results),
        table(
            leaderboard.COLUMNS,
            leaderboard.rows(results),
            label=f"{heading}: {suite.title}",
            identifier=f"{section.name}-experiments",
        ),
    ]


def _grid(section: Section, suite: Suite, results: Results) -> list[str]:
    """Channels by learners, above the long table."""
    found = leaderboard.grid(results) if suite.ranks_learners else None
    if found is None:
        return []
    label = f"Channels by learners: {suite.title}"
    explained = (
        "Mean total KL in nats; bold: the least on the channel; a dash: the learner does not play there. "
        "Point at a number for its 95% interval, at a dash for the reason. The table below has all of it."
    )
    return [
        tag("p", explained, class_="quiet"),
        table(*found, label=label, identifier=f"{section.name}-grid"),
    ]


def _unfinished(section: Section, results: Results, directory: Path) -> list[str]:
    parts: list[str] = []
    if results.failures:
        parts.append(tag("h3", f"Failed: {len(results.failures)}", id=f"{section.name}-failures"))
        parts += [
            tag(
                "details",
                tag("summary", which, ": ", tag("code", failure.summary[:200])),
                tag("pre", tag("code", failure.message)),
            )
            for failure, which in by_summary(results.failures)
        ]
    if results.refusals:
        parts += [
            tag("h3", f"Not played: {len(results.refusals)}", id=f"{section.name}-refusals"),
            tag("p", "The learner does not play these games, and says why:"),
            listing(f"{which}: {refusal.summary}" for refusal, which in by_summary(results.refusals)),
        ]
    if results.missing:
        parts += [
            tag("h3", f"Not finished: {len(results.missing)}", id=f"{section.name}-missing"),
            tag("p", "Running it again plays these alone:"),
            tag("pre", tag("code", commands([section.run], directory))),
            tag(
                "details",
                tag("summary", "Which"),
                listing(f"{missing} ({leaderboard.describe_game(missing)})" for missing in results.missing),
            ),
        ]
    return parts


def _certificates(audits: Sequence[certificates.ChannelAudit]) -> Html:
    return tag(
        "section",
        tag("h2", "Certificates of the channels used"),
        tag(
            "p",
            "Each channel once per promise and kind of class, on the smallest class of that kind, at "
            "one context (and the uniform posterior, for an adaptive channel). It is about one round in "
            "real arithmetic, and protects the label alone. ",
            tag("code", "ldp-gym audit CHANNEL"),
            " audits any game at many contexts.",
            class_="claim",
        ),
        table(
            certificates.COLUMNS,
            audits,
            label="Certificates",
            identifier="certificate-table",
        ),
        id="certificates",
    )
