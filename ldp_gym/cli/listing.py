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
from ldp_gym.core.errors import BrokenPluginError
from ldp_gym.core.registry import PACKAGES, Registry, first_sentence
from ldp_gym.engine.learners import LEARNERS, track_of
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.natures.base import NATURES
from ldp_gym.truths.base import TRUTHS

Kind = StrEnum("Kind", ["SUITES", "LEARNERS", "CHANNELS", "TRUTHS", "HYPOTHESES", "NATURES"])
"""What is registered."""

REGISTRIES: dict[Kind, Registry[Any]] = {
    Kind.SUITES: SUITES,
    Kind.LEARNERS: LEARNERS,
    Kind.CHANNELS: CHANNELS,
    Kind.TRUTHS: TRUTHS,
    Kind.HYPOTHESES: HYPOTHESES,
    Kind.NATURES: NATURES,
}


def catalogue(kind: Annotated[Kind | None, typer.Argument(help="Show these alone.")] = None) -> None:
    """Show every suite, learner, channel, truth, class of hypotheses and nature by name, yours among them."""
    console = Console()
    for title, registry in REGISTRIES.items():
        if kind in (None, title):
            for heading, names in headings(title, registry).items():
                table = Table(
                    title=heading, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
                )
                for name in names:
                    table.add_row(Text(name, style="bold"), Text(_sentence(registry, name)))
                console.print(table, end="\n\n")
    group = "one of these groups, such as ldp_gym.engine.learners" if kind is None else REGISTRIES[kind].group
    console.print(f"Your own goes by 'module:Class', or by an entry point in {group}.", highlight=False)


def headings(title: Kind, registry: Registry[Any]) -> dict[str, list[str]]:
    """The names under their headings: channels by what they speak about, learners by what they read."""
    heading_of = {Kind.CHANNELS: _subject, Kind.LEARNERS: _track}.get(title)
    if heading_of is None:
        return {title: registry.names()}
    groups: dict[str, list[str]] = {}
    for name in registry.names():
        groups.setdefault(f"{title} {heading_of(name)}", []).append(name)
    return groups


def _track(learner: str) -> str:
    """What a learner reads."""
    if LEARNERS.package_of(learner) not in PACKAGES:
        return "of other packages"
    reads = {
        "informed": "that may use what the channel says about its messages (informed)",
        "uninformed": "that read messages, candidates and eps alone (uninformed)",
    }
    return reads[track_of(LEARNERS[learner])]


def _subject(channel: str) -> str:
    """What the messages of a channel speak about."""
    try:
        declared = CHANNELS.class_of(channel)
    except Exception:  # its own line says why it cannot be loaded
        return "that cannot be loaded"
    if declared.adaptive:
        return "that ask what earlier messages left open (adaptive)"
    if declared.reveals_losses:
        return "with noisy log-likelihoods of hypotheses"
    return "about hypotheses, whatever M" if declared.free_of_num_labels else "about labels"


def _sentence(registry: Registry[Any], name: str) -> str:
    """The first sentence of its documentation, or why there is none."""
    try:
        return first_sentence(registry[name])
    except BrokenPluginError as error:  # one broken package must not hide the others
        return f"cannot be loaded: {str(error).partition(chr(10))[0]}"
