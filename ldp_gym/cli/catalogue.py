"""``ldp-gym list``: everything that is registered, one sentence each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldp_gym.bench.suites import SUITES
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


def list_command(kind: Annotated[Kind | None, typer.Argument(help="Show only these.")] = None) -> None:
    """Show every suite, learner, channel, truth, class of hypotheses and nature that is installed."""
    console = Console()
    for title, registry in LISTED.items():
        for heading, names in headings(title, registry).items() if kind in (None, title) else ():
            table = Table(
                title=heading, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
            )
            for name in names:
                table.add_row(Text(name, style="bold"), Text(printable(_sentence(registry, name))))
            console.print(table, end="\n\n")
    group = "one of these groups, such as ldp_gym.channels" if kind is None else LISTED[kind].group
    console.print(f"Name others as 'module:Class', or by an entry point in {group}.", highlight=False)


def headings(title: Kind, registry: Registry[Any]) -> dict[str, list[str]]:
    """Names under their headings: channels by their subject, learners by their track."""
    heading_of = {Kind.CHANNELS: _subject, Kind.LEARNERS: _track}.get(title)
    if heading_of is None:
        return {title: list(registry)}
    groups: dict[str, list[str]] = {}
    for name in registry:
        groups.setdefault(f"{title} {heading_of(name)}", []).append(name)
    return groups


def _track(learner: str) -> str:
    if LEARNERS.package_of(learner) not in PACKAGES:
        return "of other packages"
    informed = track_of(LEARNERS[learner]) == "informed"
    return "that use the channel's likelihood (informed)" if informed else "that do not (uninformed)"


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
    return "about hypotheses, whatever M" if declared.free_of_num_labels else "about labels"


def _sentence(registry: Registry[Any], name: str) -> str:
    """First sentence of the documentation, or why there is none."""
    try:
        return first_sentence(registry[name])
    except BrokenPluginError as error:  # one broken package must not hide the others
        return f"cannot be loaded: {str(error).partition(chr(10))[0]}"
