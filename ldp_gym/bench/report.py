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

import json
import math
import shlex
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ldp_gym
from ldp_gym.bench import certificates, figures, leaderboard
from ldp_gym.bench.experiment import Experiment, learner_code, own_code
from ldp_gym.bench.findings import Verdict, judge
from ldp_gym.bench.page import Column, Html, Value, count, join, listing, page, picture, table, tag
from ldp_gym.bench.results import Results, by_summary
from ldp_gym.bench.store import FILE, HIDDEN, Store
from ldp_gym.bench.suites import SUITES, Suite, SuiteTable
from ldp_gym.channels.base import CHANNELS
from ldp_gym.errors import DamagedStoreError, extra
from ldp_gym.files import write_text
from ldp_gym.registry import PACKAGES

PAGE = "report.html"


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING: Container[str] = _Everything()
"""Trust in all that a store names."""


def write(directory: str | Path, *, trusted: Container[str] = frozenset()) -> Path:
    """Write ``report.html`` and ``figures/SUITE.svg``, ``.png`` into a directory of results.

    The page opens offline and needs no other file.

    Args:
        directory: where :func:`ldp_gym.bench.run`, or ``ldp-gym bench``, has put its results.
        trusted: the ``module:object`` that may be imported because a store names them; all with
            :data:`EVERYTHING`. A suite that needs another one is left out, and says so.

    Returns:
        The page's path.

    Raises:
        FileNotFoundError: if there are no results there.
        DamagedStoreError: if they cannot be read.
    """
    directory = Path(directory)
    if not (directory / FILE).exists():
        raise FileNotFoundError(f"{directory} has no {FILE}: run ldp-gym bench --out {directory} first")
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


# -- What there is to say about a suite ---------------------------------------------------------------------


@dataclass
class Section:
    """A suite's latest run, with its results as they are now in the store.

    Attributes:
        name: the suite's; ``module:Class`` for one that is not registered.
        run: the store's record of the run.
        others: those of earlier runs with other settings.
        suite: None if it cannot be found here.
        results: likewise.
        notes: what a reader should know about how complete they are.
        svg: the figure.
    """

    name: str
    run: Mapping[str, Any]
    others: list[Mapping[str, Any]]
    suite: Suite | None = None
    results: Results | None = None
    notes: list[str] = field(default_factory=list)
    svg: str | None = None

    @property
    def shown_name(self) -> str:
        """As a reader knows it: the name that a suite gives itself."""
        return self.suite.name if self.suite and self.suite.parameters else self.name

    @property
    def file(self) -> str:
        """What its figures are called."""
        return self.shown_name.replace(":", "-").replace(".", "-")


def gather(
    store: Store, name: str, runs: Sequence[Mapping[str, Any]], trusted: Container[str] = frozenset()
) -> Section:
    """What the store has of a suite: of its latest run, with the learners of like runs before it."""
    latest = {json.dumps(run["settings"], sort_keys=True): run for run in runs if run["suite"] == name}
    *others, run = sorted(latest.values(), key=lambda run: run["id"])
    section = Section(name, run, others)
    settings = run["settings"]
    foreign = [address for address in _addresses(run) if address not in trusted]
    if foreign:
        section.notes.append(
            f"It is left out: the store names code, {', '.join(foreign)}, and nobody has said that it may "
            f"run. If you trust the directory: ldp-gym report --trust"
        )
        return section
    like = [other for other in (*others, run) if _is_like(other["settings"], settings)]
    try:
        suite = SUITES[name](**settings["parameters"])
        experiments = suite.experiments(
            settings["size"],
            learners=_known("learner", _all_learners(like), learner_code, section),
            channels=_known("channel", settings["channels"], CHANNELS.class_of, section),
            episodes=settings["episodes"],
        )
    except Exception as error:  # somebody else's module may fail in any way when it is imported
        section.notes.append(f"Its experiments are not known here: {error}")
        return section
    section.suite = suite
    then, now = ((facts.get("ldp-gym"), facts.get("code")) for facts in (run["versions"], _code_here()))
    if then != now:
        section.notes.append(
            f"It was run with ldp-gym {then[0]} (code {then[1]}), and this is {now[0]} (code {now[1]}): "
            f"results of another version or other code do not count."
        )
    tracks = {name: track for other in like for name, track in other["settings"].get("tracks", {}).items()}
    section.results = Results(store, experiments, settings["seed"], tracks)
    return section


def _addresses(run: Mapping[str, Any]) -> list[str]:
    """The ``module:object`` of others that making a run's suite again would import."""
    settings = run["settings"]
    texts = [run["suite"], *settings["channels"], *texts_of(settings["parameters"])]
    return sorted({text for text in texts if ":" in text and text.partition(".")[0] not in PACKAGES})


def texts_of(value: object) -> Iterator[str]:
    """Every text in what JSON can hold."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*texts_of(key), *texts_of(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def _is_like(settings: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two runs differ in their learners alone."""
    shared = ("seed", "size", "episodes", "channels", "parameters")
    return all(settings[name] == others[name] for name in shared)


def _all_learners(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The further learners of all runs. Where one of one's own game names none, it has every learner."""
    named = [run["settings"]["learners"] for run in runs]
    if any(run["settings"]["parameters"] for run in runs) and not all(named):
        return []
    return list(dict.fromkeys(name for names in named for name in names))


def _code_here() -> dict[str, str]:
    return {"ldp-gym": ldp_gym.__version__, "code": own_code()[:12]}


def _known(kind: str, names: Sequence[str], find: Callable[[str], object], section: Section) -> list[str]:
    """The names that are found here; a note says of the others that they are left out."""
    found = []
    for name in names:
        try:
            find(name)
        except Exception as error:  # as above
            section.notes.append(f"The {kind} {name} is left out: {error}")
        else:
            found.append(name)
    return found


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
    by_ground = [section.results.audits for section in sections if section.results]
    audits = list({key: audit for group in by_ground for key, audit in group.items()}.values())
    title = "Online distribution learning under local differential privacy: benchmark"
    return page(
        title,
        tag(
            "header",
            tag("h1", title),
            *(tag("p", f"In {FILE}, {fault}.", class_="bad") for fault in faults),
            *(tag("p", f"Broken promise: {audit}.", class_="bad") for audit in audits if audit.broken),
            _summary(sections),
            _contents(sections) if len(sections) > 1 else Html(),
            tag("h3", "To reproduce it", id="reproduce"),
            tag("pre", tag("code", _commands([section.run for section in sections], directory))),
        ),
        tag(
            "main",
            *(_section(section, directory) for section in sections),
            _certificates(audits),
        ),
        tag("footer", _reading(), _provenance(runs)),
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
    failures = [section.name for section in sections if section.results and section.results.failures]
    facts: dict[str, str] = {
        "Last run": _time(last["finished"])
        if last["finished"]
        else f"{_time(last['started'])}, not finished",
        "Machine": last["machine"],
        "Versions": _versions(last),
        "Experiments": join([counts, *(part for name in failures for part in ("; ", _failures(name)))]),
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


def _failures(name: str) -> Html:
    return _link(f"{name}-failures", f"failures of {name}")


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
        earlier = _commands(section.others, directory)
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
            for part in _own_table(section, number, own)
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


def _own_table(section: Section, number: int, own: SuiteTable) -> list[str]:
    shown = table(own.columns, own.rows, label=own.title, identifier=f"{section.name}-table-{number}")
    return [tag("h3", own.title), shown]


def _unfinished(section: Section, results: Results, directory: Path) -> list[str]:
    parts: list[str] = []
    if results.failures:
        parts.append(tag("h3", f"Failed: {len(results.failures)}", id=f"{section.name}-failures"))
        parts += [
            tag(
                "details",
                tag("summary", _all_of(experiments), ": ", tag("code", failure.summary[:200])),
                tag("pre", tag("code", failure.message)),
            )
            for failure, experiments in by_summary(results.failures)
        ]
    if results.refusals:
        parts += [
            tag("h3", f"Not played: {len(results.refusals)}", id=f"{section.name}-refusals"),
            tag("p", "The learner does not play these games, and says why:"),
            listing(
                f"{_all_of(those)}: {refusal.summary}" for refusal, those in by_summary(results.refusals)
            ),
        ]
    if results.missing:
        parts += [
            tag("h3", f"Not finished: {len(results.missing)}", id=f"{section.name}-missing"),
            tag("p", "Running it again plays these alone:"),
            tag("pre", tag("code", _commands([section.run], directory))),
            tag(
                "details",
                tag("summary", "Which"),
                listing(f"{missing} ({leaderboard.describe_game(missing)})" for missing in results.missing),
            ),
        ]
    return parts


def _all_of(experiments: Sequence[Experiment]) -> str:
    return str(experiments[0]) + (f" and {len(experiments) - 1} more" if len(experiments) > 1 else "")


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


# -- How to read and repeat it ------------------------------------------------------------------------------


def _reading() -> Html:
    return tag(
        "section",
        tag("h2", "How to read it"),
        tag(
            "p",
            "In each round a learner predicts a label's distribution, and is charged the KL divergence of "
            "the truth from its prediction, in nats; it sees a private message about the label and never the "
            "charge. The risk is the sum over T rounds, in expectation: the mean over episodes, with a 95% "
            "interval over the episodes. Where every truth was played, it is that of the worst one, and the "
            "interval holds for all truths at once. All learners in a game play the same tapes (contexts, "
            "labels and messages), so that their differences are paired episode by episode.",
        ),
        tag(
            "p",
            "The score is (uniform - risk) / (uniform - Bayes) on the same tapes: 1 is Bayes, 0 has learned "
            "nothing; blank where the denominator is within its error, and where the truth is no member: "
            "Bayes is then no mark to reach, and no theorem's bound is shown. The regret is the risk less "
            "that of the best hypothesis in hindsight. A finding is marked where there is a "
            "claim to compare it with; the marks are computed from the data. Learners that do not understand "
            "a channel's messages are absent from it. A click on a header sorts a table.",
        ),
        class_="reading",
        id="reading",
    )


def _provenance(runs: Sequence[Mapping[str, Any]]) -> Html:
    columns: list[Column[Mapping[str, Any]]] = [
        Column("Run", lambda run: count(run["id"]), numeric=True),
        Column("Suite", lambda run: Value(run["suite"])),
        Column("Started", lambda run: Value(_time(run["started"]))),
        Column("Finished", lambda run: Value(_time(run["finished"]) if run["finished"] else "not finished")),
        Column("Cells", lambda run: count(len(run["keys"])), "blocks of episodes", numeric=True),
        Column("Seeds", lambda run: Value(_seeds(run["settings"]), style="wrap"), common=True),
        Column("Machine", lambda run: Value(run["machine"]), common=True),
        Column("Versions", lambda run: Value(_versions(run)), common=True),
        Column("Command line, as it was", lambda run: Value(run["command"], style="wrap"), common=True),
    ]
    return tag(
        "section",
        tag("h2", "Runs"),
        table(columns, runs, label="Runs", identifier="run-table"),
        id="runs",
    )


def _commands(runs: Sequence[Mapping[str, Any]], directory: Path) -> str:
    """The command lines that give the same results."""
    return "\n".join(_command(run, directory) for run in runs)


def _command(run: Mapping[str, Any], directory: Path) -> str:
    settings = run["settings"]
    rules = settings.get("parameters", {}).get("rules", {})
    words = ["ldp-gym", "bench", *([] if rules else [run["suite"]])]
    for name, value in rules.items():
        words += ["--rule", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for option, names in (("--learner", settings["learners"]), ("--channel", settings["channels"])):
        for name in names:
            words += [option, name]
    if settings["episodes"] is not None:
        words += ["--episodes", str(settings["episodes"])]
    if settings["size"] != "default":
        words += ["--size", settings["size"]]
    words += ["--secret"] if settings["seed"] == HIDDEN else ["--seed", str(settings["seed"])]
    words += ["--out", directory.name or "."]
    return shlex.join(words)


def _seeds(settings: Mapping[str, Any]) -> str:
    """Where the seeds of a run come from."""
    if "commitment" not in settings:
        return f"from {settings['seed']}"
    if "secret" not in settings:
        return f"from a secret with the commitment {settings['commitment']}, not revealed"
    return f"from {settings['seed']}, by the secret {settings['secret']}, commitment {settings['commitment']}"


def _versions(run: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in run["versions"].items())


def _time(stamp: str) -> str:
    """Of ISO 8601, what one reads."""
    return stamp[:19].replace("T", " ") + " UTC"
