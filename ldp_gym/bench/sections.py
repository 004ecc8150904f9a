"""What there is to say about a suite: its latest run, and its results as they are now in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldp_gym.bench.experiment import learner_code, own_code
from ldp_gym.bench.results import Results
from ldp_gym.bench.store import Store
from ldp_gym.bench.suites import SUITES, Suite
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION
from ldp_gym.core.registry import PACKAGES


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING: Container[str] = _Everything()
"""Trust in all that a store names."""


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
    except Exception as error:  # a third-party module may fail in any way when it is imported
        section.notes.append(f"Its experiments are not known here: {error}")
        return section
    section.suite = suite
    then, now = run["versions"], {"ldp-gym": VERSION, "code": own_code()[:12]}
    version, code = then.get("ldp-gym"), then.get("code")
    if {"ldp-gym": version, "code": code} != now:
        section.notes.append(
            f"It was run with ldp-gym {version} (code {code}), and this is {now['ldp-gym']} (code "
            f"{now['code']}): results of another version or other code do not count."
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
