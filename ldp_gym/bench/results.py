"""What a suite has measured, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.store import Store
from ldp_gym.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Played:
    """An entry's episodes, all of its cells together.

    Attributes:
        entry: what was played.
        rounds: the checkpoints.
        kl: cumulative KL, ``(episodes, len(rounds))``, or ``(K, episodes, len(rounds))`` with every truth.
        tv: cumulative total variation, likewise.
        estimates: average predictions ``(episodes, M)``, of an entry that asked for them.
        seconds: how long its cells took together.
    """

    entry: Entry
    rounds: IntArray
    kl: FloatArray
    tv: FloatArray
    estimates: FloatArray
    seconds: float

    @property
    def totals(self) -> FloatArray:
        """The episodes' total KL; of the worst truth, where every truth was played."""
        totals: FloatArray = self.kl[..., -1]
        return totals if totals.ndim == 1 else totals[totals.mean(axis=-1).argmax()]

    @cached_property
    def risk(self) -> Estimate:
        """The mean total KL with its 95% interval; over the worst truth, where every truth was played."""
        return statistics.mean(self.totals) if self.kl.ndim == 2 else statistics.worst(self.kl[..., -1])


@dataclass(frozen=True)
class Failure:
    """Why an entry has no result: its learner or channel failed in some cell."""

    entry: Entry
    message: str


class Results:
    """The results of a suite's entries.

    Args:
        store: where they are.
        entries: which.
        seed: of the first episode.
    """

    def __init__(self, store: Store, entries: Sequence[Entry], seed: int) -> None:
        self.entries = list(entries)
        self.seed = seed
        self.played: list[Played] = []
        self.failures: list[Failure] = []
        self.missing: list[Entry] = []
        for entry in self.entries:
            self._gather(store, entry)

    def _gather(self, store: Store, entry: Entry) -> None:
        outcomes = [store.outcome(cell.key) for cell in entry.cells(self.seed)]
        found = [outcome for outcome in outcomes if outcome is not None]
        failed = [outcome for outcome in found if outcome.status == "failed"]
        if failed:
            self.failures.append(Failure(entry, failed[0].message or "no message"))
        elif len(found) < len(outcomes):
            self.missing.append(entry)
        elif all(outcome.status == "done" for outcome in found):
            arrays = {
                # Along the episodes: the axis before the last.
                name: np.concatenate(
                    [o.arrays[name] for o in found], axis=max(found[0].arrays[name].ndim - 2, 0)
                )
                for name in found[0].arrays
                if name != "rounds"
            }
            nothing = np.empty((0, 0))
            self.played.append(
                Played(
                    entry,
                    found[0].arrays.get("rounds", np.empty(0, dtype=np.int64)),
                    arrays.get("kl", nothing),
                    arrays.get("tv", nothing),
                    arrays.get("estimates", nothing),
                    sum(outcome.seconds for outcome in found),
                )
            )

    def of(
        self, *, learner: str | None = None, channel: str | None = None, estimates: bool = False
    ) -> list[Played]:
        """What was played by a learner, on a channel, for losses or for estimates, in the suite's order."""
        return [
            played
            for played in self.played
            if learner in (None, played.entry.learner)
            and channel in (None, played.entry.channel)
            and played.entry.estimates is estimates
        ]

    def same_tapes(self, entry: Entry, learner: str) -> Played | None:
        """Another learner in the same game on the same seeds, if it has played."""
        for played in self.of(learner=learner):
            other = played.entry
            if (other.game, other.truth, other.episodes) == (entry.game, entry.truth, entry.episodes):
                return played
        return None
