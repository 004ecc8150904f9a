"""What a suite is: what is run, what follows from it, and its figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_gym.bench.experiment import Entry
from ldp_gym.channels.base import CHANNELS
from ldp_gym.numerics import validation
from ldp_gym.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Results

SUITES: Registry[Suite] = Registry("suite", group="ldp_gym.suites")

SIZES = ("default", "small")

DELTA = 1e-5
"""The delta of the channels that need one."""

_LONGEST = 100_000
"""Games of more rounds are not played by learners that a user adds: stepping would take hours."""


@dataclass(frozen=True)
class Finding:
    """A conclusion that was computed from the results.

    Attributes:
        text: the conclusion, with its numbers.
        holds: whether what the paper or the design says was found; None if it says nothing.
    """

    text: str
    holds: bool | None = None


class Suite(ABC):
    """One claim, and how it is measured.

    A suite of your own defines :meth:`games`, :meth:`findings` and :meth:`draw`. It is run as an instance by
    :func:`ldp_gym.bench.run`, or by ``ldp-gym bench module:Class``.

    Attributes:
        name: what it is called on the command line.
        title: a line about it.
        claim: what the paper, or theory, says.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]

    @property
    def address(self) -> str:
        """Where a report finds it again: its name if it is registered, else ``module:Class``."""
        maker = type(self)
        known = self.name in SUITES.names() and SUITES[self.name] is maker
        return self.name if known else f"{maker.__module__}:{maker.__qualname__}"

    @abstractmethod
    def games(self, small: bool) -> list[Entry]:
        """The suite's own entries."""

    @abstractmethod
    def findings(self, results: Results) -> list[Finding]:
        """What follows from the results."""

    @abstractmethod
    def draw(self, results: Results) -> Figure:
        """The figure."""

    def entries(
        self,
        size: str = "default",
        *,
        learners: Sequence[str] = (),
        channels: Sequence[str] = (),
        episodes: int | None = None,
    ) -> list[Entry]:
        """The suite's entries, with further learners and channels in its games."""
        if size not in SIZES:
            raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
        entries = self.games(small=size == "small")
        if episodes is not None:
            count = validation.whole("episodes", episodes, least=1)
            entries = [replace(entry, episodes=count) for entry in entries]
        entries += _unique(
            replace(entry, game=_on(channel, entry.game)) for channel in channels for entry in entries
        )
        entries += _unique(
            replace(entry, learner=learner, options={})
            for learner in learners
            for entry in entries
            if entry.horizon <= _LONGEST
        )
        return _unique(entries)


def _on(channel: str, game: Mapping[str, Any]) -> dict[str, Any]:
    """The same game on another channel."""
    kept = {key: value for key, value in game.items() if key not in ("channel_kwargs", "delta")}
    return kept | on(channel)


def on(channel: str) -> dict[str, Any]:
    """A channel with the delta it needs, as keyword arguments of a game."""
    pure = getattr(CHANNELS[channel], "pure", True)
    return {"channel": channel} if pure else {"channel": channel, "delta": DELTA}


def _unique(entries: Any) -> list[Entry]:
    """The entries without those that play the same again."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(
            repr(
                (
                    sorted(entry.game.items(), key=str),
                    entry.learner,
                    sorted(entry.options.items()),
                    entry.truth,
                    entry.estimates,
                )
            ),
            entry,
        )
    return list(found.values())
