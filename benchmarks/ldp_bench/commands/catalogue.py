"""``ldp-gym list``: everything that is registered, one sentence each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ldp_bench.commands.arguments import make_console, say
from ldp_bench.suites import SUITES
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.errors import BrokenPluginError, printable
from ldp_gym.core.registry import PACKAGES, Registry, first_sentence
from ldp_gym.engine.learners import LEARNERS, track_of
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.natures.base import NATURES
from ldp_gym.truths.base import TRUTHS

Kind = StrEnum("Kind", ["SUITES", "LEARNERS", "CHANNELS", "TRUTHS", "HYPOTHESES", "NATURES"])
"""Kinds of parts that are registered."""

_FIRST = Kind.CHANNELS
"""Kind whose group of entry points is the example if all kinds are listed."""

LISTED: dict[Kind, Registry[Any]] = dict(
    zip(Kind, (SUITES, LEARNERS, CHANNELS, TRUTHS, HYPOTHESES, NATURES), strict=True)
)


def list_command(
    kind: Annotated[
        Kind | None, typer.Argument(metavar="KIND", help="What to list; by default all.")
    ] = None,
) -> None:
    """List suites, learners, channels, truths, classes and natures."""
    kinds = list(Kind)
    example = _FIRST
    if kind is not None:
        kinds = [kind]
        example = kind

    console = make_console()
    group = LISTED[example].group
    say(
        console,
        f"Names that ldp-gym knows. Give yours as module:Class, or by an entry point ({group}).\n",
    )
    for listed in kinds:
        registry = LISTED[listed]
        for heading, names in headings(listed, registry).items():
            console.print(Text(heading, "italic"), _table(registry, names), "", sep="\n")


def headings(kind: str, registry: Registry[Any]) -> dict[str, list[str]]:
    """Registered names by their heading: channels by their subject, learners by their track."""
    names_by_heading: dict[str, list[str]] = {}
    for name in registry:
        heading = _heading(kind, name)
        names_by_heading.setdefault(heading, []).append(name)
    return names_by_heading


def _heading(kind: str, name: str) -> str:
    """Heading of a part of this kind, such as "channels about labels"; the kind if it has no headings."""
    if kind == Kind.CHANNELS:
        return f"{kind} {_subject(name)}"
    if kind == Kind.LEARNERS:
        return f"{kind} {_track(name)}"
    return kind


def _table(registry: Registry[Any], names: list[str]) -> Table:
    """Table of names, each with its sentence."""
    spaces_between = (0, 2, 0, 0)  # top, right, bottom, left
    table = Table(show_header=False, box=None, padding=spaces_between, pad_edge=False)
    for name in names:
        sentence = printable(_sentence(registry, name))
        table.add_row(Text(name, style="bold"), Text(sentence))
    return table


def _track(learner: str) -> str:
    """Track of a learner in words: whether it uses the channel's formulas, or another package's."""
    if LEARNERS.package_of(learner) not in PACKAGES:
        return "of other packages"
    if track_of(LEARNERS[learner]) == "informed":
        return "that use the channel's likelihood or loss estimates"
    return "that do not use the channel's likelihood or loss estimates"


def _subject(channel: str) -> str:
    """Subject of a channel's messages, as the end of a heading."""
    try:
        declared = CHANNELS.class_of(channel)
    except BrokenPluginError:
        return "that cannot be loaded"
    if declared.adaptive:
        return "that ask what earlier messages left open (adaptive)"
    if declared.reveals_losses:
        return "with noisy log-likelihoods of hypotheses"
    if declared.free_of_num_labels:
        return "about hypotheses, for any number of labels"
    return "about labels"


def _sentence(registry: Registry[Any], name: str) -> str:
    """First sentence of a part's documentation, or why there is none."""
    try:
        return first_sentence(registry[name])
    except BrokenPluginError as error:  # one broken package must not hide the others
        first_line, _, _ = str(error).partition("\n")
        return f"cannot be loaded: {first_line}"
