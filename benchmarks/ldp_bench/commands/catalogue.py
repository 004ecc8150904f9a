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

LISTED: dict[Kind, Registry[Any]] = dict(
    zip(Kind, (SUITES, LEARNERS, CHANNELS, TRUTHS, HYPOTHESES, NATURES), strict=True)
)


def list_command(
    kind: Annotated[
        Kind | None, typer.Argument(metavar="KIND", help="What to list; by default all.")
    ] = None,
) -> None:
    """List suites, learners, channels, truths, classes and natures."""
    console = make_console()
    group = LISTED[kind or Kind.CHANNELS].group
    say(
        console,
        f"Names that ldp-gym knows. Give yours as module:Class, or by an entry point ({group}).\n",
    )
    for title in [kind] if kind else Kind:
        registry = LISTED[title]
        for heading, names in headings(title, registry).items():
            table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), pad_edge=False)
            for name in names:
                table.add_row(Text(name, style="bold"), Text(printable(_sentence(registry, name))))
            console.print(Text(heading, "italic"), table, "", sep="\n")


def headings(title: str, registry: Registry[Any]) -> dict[str, list[str]]:
    """Names under their headings: channels by their subject, learners by their track."""
    kind, groups = {"channels": _subject, "learners": _track}.get(title), dict[str, list[str]]()
    for name in registry:
        groups.setdefault(f"{title} {kind(name)}" if kind else title, []).append(name)
    return groups


def _track(learner: str) -> str:
    if LEARNERS.package_of(learner) not in PACKAGES:
        return "of other packages"
    uses = "use" if track_of(LEARNERS[learner]) == "informed" else "do not use"
    return f"that {uses} the channel's likelihood or loss estimates"


def _subject(channel: str) -> str:
    """Subject of a channel's messages."""
    try:
        declared = CHANNELS.class_of(channel)
    except BrokenPluginError:
        return "that cannot be loaded"
    if declared.adaptive:
        return "that ask what earlier messages left open (adaptive)"
    if declared.reveals_losses:
        return "with noisy log-likelihoods of hypotheses"
    return (
        "about hypotheses, for any number of labels"
        if declared.free_of_num_labels
        else "about labels"
    )


def _sentence(registry: Registry[Any], name: str) -> str:
    """First sentence of the documentation, or why there is none."""
    try:
        return first_sentence(registry[name])
    except BrokenPluginError as error:  # one broken package must not hide the others
        return f"cannot be loaded: {str(error).partition(chr(10))[0]}"
