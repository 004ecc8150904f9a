"""What a suite has measured, experiment by experiment."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from ldp_gym.bench import statistics
from ldp_gym.bench.certificates import ChannelAudit, audit_channels, certificate_key
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.store import Outcome, Store, join_outcomes
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import is_address
from ldp_gym.engine.learners import LEARNERS, Track, learner_maker, track_of
from ldp_gym.evaluation import Evaluation

T = TypeVar("T")


@dataclass(frozen=True)
class ExperimentResult:
    """An experiment's episodes, all of its cells together.

    Attributes:
        experiment: what was played.
        evaluation: its losses.
        seconds: how long its cells took together.
    """

    experiment: Experiment
    evaluation: Evaluation
    seconds: float

    @property
    def learner(self) -> str:
        """Who played."""
        return self.experiment.learner

    @property
    def channel(self) -> str:
        """On which channel."""
        return self.experiment.channel

    @property
    def horizon(self) -> int:
        """T."""
        return self.experiment.horizon

    @property
    def totals(self) -> FloatArray:
        """The episodes' total KL; of the worst truth, where every truth was played."""
        return self.evaluation.at_worst_truth().kl[:, -1]

    @cached_property
    def risk(self) -> Estimate:
        """The mean total KL with its 95% interval; over the worst truth, where every truth was played."""
        return statistics.largest_mean(np.atleast_2d(self.evaluation.kl[..., -1]))


@dataclass(frozen=True)
class Failure:
    """Why an experiment has no result: its learner or channel failed in some cell, or does not play it."""

    experiment: Experiment
    message: str

    @property
    def summary(self) -> str:
        """What happened, in one line: the message's first."""
        return next(iter(self.message.strip().splitlines()), "no message")


def by_summary(failures: Iterable[Failure]) -> list[tuple[Failure, str]]:
    """The first failure of each kind, and in words what else failed in the same way: it is said once.

    Which channel it was makes no other kind.
    """
    kinds: dict[str, list[Failure]] = {}
    for failure in failures:
        kind = re.sub(r"\w+\(K=[^)]*\)", "a channel", failure.summary)
        kinds.setdefault(kind, []).append(failure)
    return [
        (first, f"{first.experiment} and {len(others)} more" if others else str(first.experiment))
        for first, *others in kinds.values()
    ]


class Results:
    """The results of a suite's experiments.

    Args:
        store: where they are.
        experiments: which. A learner that is a model's directory goes by that directory's name from here on.
        seed: of the first episode.
        tracks: those of further learners, by name, as they declared them when the suite was run.

    Attributes:
        successes: the experiments that were played to the end, in the suite's order.
        broken: those whose channel breaks its promise: they are played, and out of every comparison.
        failures: those of which a cell failed.
        refusals: those that the learner does not play, such as on a channel that it does not read.
        missing: those of which a cell has not been played yet.
    """

    def __init__(
        self,
        store: Store,
        experiments: Sequence[Experiment],
        seed: int,
        tracks: Mapping[str, Track] | None = None,
    ) -> None:
        names = _names([*(experiment.learner for experiment in experiments), *(tracks or {})])
        self._addresses = {name: learner for learner, name in names.items()}
        self._tracks = {names[learner]: track for learner, track in (tracks or {}).items()}
        self.experiments = [
            replace(experiment, learner=names[experiment.learner]) for experiment in experiments
        ]
        self.seed = seed
        self.audits = audit_channels(self.experiments)
        self.successes: list[ExperimentResult] = []
        self.broken: list[ExperimentResult] = []
        self.failures: list[Failure] = []
        self.refusals: list[Failure] = []
        self.missing: list[Experiment] = []
        keys = [[cell.key for cell in experiment.cells(seed)] for experiment in experiments]
        known = store.outcomes([key for some in keys for key in some])
        for experiment, some in zip(self.experiments, keys, strict=True):
            self._gather(experiment, [known.get(key) for key in some])

    def _gather(self, experiment: Experiment, outcomes: Sequence[Outcome | None]) -> None:
        found = [outcome for outcome in outcomes if outcome is not None]
        whole = join_outcomes(found) if found else None
        if whole is not None and whole.status == "failed":
            self.failures.append(Failure(experiment, whole.message or ""))
        elif whole is None or len(found) < len(outcomes):
            self.missing.append(experiment)
        elif whole.evaluation is not None:
            result = ExperimentResult(experiment, whole.evaluation, whole.seconds)
            (self.broken if self.audit(experiment).broken else self.successes).append(result)
        else:
            self.refusals.append(Failure(experiment, whole.message or ""))

    def audit(self, experiment: Experiment) -> ChannelAudit:
        """What an audit says of the experiment's channel."""
        return self.audits[certificate_key(experiment)]

    def track(self, learner: str) -> Track:
        """Whether a learner is informed or not."""
        if learner not in self._tracks:
            address = self._addresses.get(learner, learner)
            self._tracks[learner] = "informed" if is_address(address) else track_of(learner_maker(address))
        return self._tracks[learner]

    @property
    def broken_promises(self) -> list[ChannelAudit]:
        """The channels that break their promise."""
        return [audit for audit in self.audits.values() if audit.broken]

    def select(self, *, learner: str | None = None, channel: str | None = None) -> list[ExperimentResult]:
        """The results of a learner, on a channel, in the suite's order."""
        return [
            result
            for result in self.successes
            if learner in (None, result.learner) and channel in (None, result.channel)
        ]

    def line(
        self,
        learner: str,
        channel: str,
        position: Callable[[Experiment], float] = operator.attrgetter("horizon"),
    ) -> list[ExperimentResult]:
        """The results of a learner on a channel along a quantity, the horizon unless another is given."""
        return sorted(self.select(learner=learner, channel=channel), key=lambda r: position(r.experiment))

    def group(self, key: Callable[[Experiment], T]) -> dict[T, list[ExperimentResult]]:
        """The results of the experiments that share a key, in the suite's order."""
        groups: dict[T, list[ExperimentResult]] = {}
        for result in self.successes:
            groups.setdefault(key(result.experiment), []).append(result)
        return groups

    @property
    def channels(self) -> list[str]:
        """The channels that have results, in the suite's order."""
        return list(self.group(lambda experiment: experiment.channel))

    @property
    def learners(self) -> list[str]:
        """The learners that have results, in the suite's order."""
        return list(self.group(lambda experiment: experiment.learner))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The learners and channels that have results together, in the suite's order."""
        return list(self.group(lambda experiment: (experiment.learner, experiment.channel)))

    def same_tapes(self, experiment: Experiment, learner: str) -> ExperimentResult | None:
        """Another learner in the same game on the same seeds, if it has played."""
        wanted = experiment.canonical_rules, experiment.truth, experiment.episodes
        for result in self.select(learner=learner):
            other = result.experiment
            if (other.canonical_rules, other.truth, other.episodes) == wanted:
                return result
        return None


def _names(learners: Iterable[str]) -> dict[str, str]:
    """What learners are called: a model by the name of its directory, if nobody else has that name."""
    names = {learner: Path(learner).name if Path(learner).is_absolute() else learner for learner in learners}
    shared = Counter(names.values())
    return {
        learner: learner if shared[name] > 1 or name in LEARNERS else name for learner, name in names.items()
    }
