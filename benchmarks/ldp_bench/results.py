"""Results of a suite, experiment by experiment, and as one data frame."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldp_bench.experiment import Experiment, make_scenario
from ldp_bench.store import Store, join_outcomes
from ldp_gym import statistics, theory
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra, in_one_line
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.evaluation import Evaluation
from ldp_gym.statistics import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")
K = TypeVar("K")

_LEAST_GAIN = 0.1
"""Share of the uniform mixture's risk that Bayes must save for a game to have scores."""

_CLOSE = 0.25
"""Largest share of Bayes' risk that a learner level with Bayes may still pay more."""


@dataclass(frozen=True)
class ExperimentResult:
    """Losses of an experiment, all of its cells together, and the seconds that they took."""

    experiment: Experiment
    evaluation: Evaluation
    seconds: float

    @property
    def learner(self) -> str:
        return self.experiment.learner

    @property
    def channel(self) -> str:
        return self.experiment.channel

    @property
    def horizon(self) -> int:
        return self.experiment.horizon

    @property
    def totals(self) -> FloatArray:
        """Total KL of each episode; only the worst truth's if every truth was played."""
        return self.evaluation.at_worst_truth().kl[:, -1]

    @cached_property
    def risk(self) -> Estimate:
        """Mean total KL with its 95% interval; over the worst truth, where every truth was played."""
        return self.evaluation.estimate()

    @property
    def regret(self) -> Estimate:
        """Mean risk above the best hypothesis in hindsight; NaN if that one's is infinite in an episode."""
        if self.experiment.has_member_truth:
            return self.risk
        if not np.isfinite(self.evaluation.opt).all():
            return Estimate(math.nan)
        return statistics.largest_mean(np.atleast_2d(self.evaluation.regret))

    @property
    def bound(self) -> float:
        """A theorem's bound on the risk; NaN if none covers the learner, channel, options and truth."""
        experiment = self.experiment
        if experiment.options or experiment.rules.channel_kwargs or not experiment.has_member_truth:
            return math.nan
        game = experiment.num_hypotheses, self.horizon, experiment.epsilon
        match self.learner, self.channel:
            case "exp3", "laplace-single":
                return theory.exp3_bound(*game)
            case "wma", "laplace-vector":
                return theory.wma_bound(*game, float(experiment.rules.promise["delta"]))
            case "bayes", "identity":
                return theory.nonprivate_bound(experiment.num_hypotheses)
        return math.nan


@dataclass(frozen=True)
class Failure:
    """Reason why an experiment has no result: a cell failed, or the learner does not play it."""

    experiment: Experiment
    message: str

    @property
    def summary(self) -> str:
        return next(iter(self.message.strip().splitlines()), "no message")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items that share a key, in their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_summary(failures: Iterable[Failure]) -> list[tuple[Failure, str]]:
    """First failure of each kind, with words for its experiment and the number of others like it."""
    # The same on another channel is of the same kind.
    kinds = grouped(failures, lambda failure: re.sub(r"\w+\(K=[^)]*\)", "", failure.summary))
    return [
        (first, f"{first.experiment} and {len(others)} more" if others else str(first.experiment))
        for first, *others in kinds.values()
    ]


class Results:
    """Results of a suite's experiments.

    Args:
        store: store of the cells.
        experiments: experiments to look up. A trained model is shown by its directory's name.
        seed: seed of the first episode.

    Attributes:
        successes: experiments that were played to the end, in the suite's order.
        failures: experiments of which a cell failed, or whose cells ended differently.
        refusals: experiments that the learner does not play, such as on a channel that it cannot read.
        missing: experiments of which a cell has not been played yet.
    """

    def __init__(self, store: Store, experiments: Sequence[Experiment], seed: int) -> None:
        names = _names(experiment.learner for experiment in experiments)
        self.experiments = [replace(each, learner=names[each.learner]) for each in experiments]
        self.successes: list[ExperimentResult] = []
        self.failures: list[Failure] = []
        self.refusals: list[Failure] = []
        self.missing: list[Experiment] = []
        keys = [[cell.key for cell in experiment.cells(seed)] for experiment in experiments]
        known = store.outcomes([key for some in keys for key in some])
        for experiment, some in zip(self.experiments, keys, strict=True):
            found = [known[key] for key in some if key in known]
            whole = join_outcomes(found) if found else None
            if whole is not None and whole.status == "failed":
                self.failures.append(Failure(experiment, whole.message or ""))
            elif whole is None or len(found) < len(some):
                self.missing.append(experiment)
            elif whole.evaluation is not None:
                self.successes.append(ExperimentResult(experiment, whole.evaluation, whole.seconds))
            else:
                self.refusals.append(Failure(experiment, whole.message or ""))

    def select(
        self, *, learner: str | None = None, channel: str | None = None
    ) -> list[ExperimentResult]:
        """Results of a learner, on a channel, in the suite's order."""
        found = [result for result in self.successes if learner in (None, result.learner)]
        return [result for result in found if channel in (None, result.channel)]

    def line(
        self, learner: str, channel: str, position: Callable[[Experiment], float]
    ) -> list[ExperimentResult]:
        """Results of a learner on a channel along a quantity.

        Results for the worst of all truths are left out: that truth may differ from game to game.
        """
        found = [
            r for r in self.select(learner=learner, channel=channel) if r.experiment.truth != "all"
        ]
        return sorted(found, key=lambda r: position(r.experiment))

    def group(self, key: Callable[[Experiment], K]) -> dict[K, list[ExperimentResult]]:
        """Results of the experiments that share a key, in the suite's order."""
        return grouped(self.successes, lambda result: key(result.experiment))

    @property
    def channels(self) -> list[str]:
        return list(dict.fromkeys(result.channel for result in self.successes))

    @property
    def learners(self) -> list[str]:
        return list(dict.fromkeys(result.learner for result in self.successes))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs of learner and channel that have results, in the suite's order."""
        return list(dict.fromkeys((result.learner, result.channel) for result in self.successes))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Rows of :attr:`frame`, in which each quantity that has an interval is one :class:`Estimate`."""
        games = self.group(lambda e: (e.rules, e.truth, e.episodes)).values()
        ranked = [sorted(game, key=lambda result: result.risk.value) for game in games]
        return [_row(result, game) for game in ranked for result in game]

    @cached_property
    def frame(self) -> DataFrame:
        """One row per experiment that was played to the end; a number that does not apply is NaN.

        Risks are in nats. ``risk``, ``regret`` and ``over_bayes``, the paired difference to Bayes, have the
        ends of their 95% intervals as ``..._low`` and ``..._high``, and as ``..._unseen`` the share of
        episodes, 3/n, in which failures may be unseen where all episodes are nearly alike; ``tv`` is per
        round; ``over_floor`` is the risk in multiples of the floor that is proved for the class; ``right`` is
        the share of episodes whose heaviest weight is on the best hypothesis; ``best`` marks Bayes and what
        is level with it, or else the least risk.
        """
        with extra("bench", "Results.frame"):
            from pandas import DataFrame
        return DataFrame(
            [{k: v for name in row for k, v in _columns(name, row[name])} for row in self.rows]
        )


def is_level(gap: Estimate, bayes_risk: float) -> bool:
    """Tell if a learner is level with Bayes, from the interval of its paired difference.

    The interval contains 0, and no excess above a quarter of Bayes' risk: with few episodes it may contain
    nearly everything.

    Example:
        >>> is_level(Estimate(1.0, -2.0, 4.0), bayes_risk=70.0)
        True
        >>> is_level(Estimate(72.0, -10.0, 154.0), bayes_risk=70.0)
        False
    """
    return gap.contains(0.0) and gap.high <= _CLOSE * bayes_risk


def _row(result: ExperimentResult, others: Sequence[ExperimentResult]) -> dict[str, Any]:
    """Row of a result, with its gap to Bayes and its score from the other results of the game."""
    experiment, rules = result.experiment, result.experiment.rules
    same = {other.learner: other for other in others if not other.experiment.options}
    uniform, bayes = same.get("uniform"), same.get("bayes")
    gap, score = Estimate(math.nan), None
    # Where every truth was played the worst truths of two learners differ: nothing is paired.
    paired = bayes is not None and experiment.truth != "all" and np.isfinite(bayes.totals).all()
    if paired and bayes:  # the intervals of a game hold together
        gap = statistics.difference(result.totals, bayes.totals, max(1, len(others) - 1))
        learns = uniform and bayes.risk.value <= (1.0 - _LEAST_GAIN) * uniform.risk.value
        if uniform and learns and experiment.has_member_truth:
            score = statistics.score_totals(uniform.totals, result.totals, bayes.totals)
        is_best = result is bayes or is_level(gap, bayes.risk.value)
    else:
        is_best = result in others[:1]
    uniform_truth = experiment.truth == "all" or (
        experiment.truth is None and "truth" not in rules.given
    )
    floor = make_scenario(rules).floor if uniform_truth else None
    return {
        "learner": result.learner,
        "options": ", ".join(f"{name}={value}" for name, value in experiment.options.items()),
        "channel": result.channel,
        "epsilon": math.inf if result.channel == "identity" else experiment.epsilon,
        "delta": float(rules.promise["delta"]),
        "hypotheses": experiment.family,
        "K": experiment.num_hypotheses,
        "M": experiment.num_labels,
        "T": result.horizon,
        "member": experiment.has_member_truth,
        "game": describe_game(experiment),
        "episodes": experiment.episodes,
        "risk": result.risk,
        "worst_truth": result.evaluation.worst_truth if experiment.truth == "all" else math.nan,
        "tv": float(result.evaluation.at_worst_truth().tv[:, -1].mean()) / result.horizon,
        "regret": result.regret,
        "over_bayes": gap,
        "best": is_best,
        "score": math.nan if score is None else score,
        "right": math.nan
        if result.evaluation.identification_rate is None
        else result.evaluation.identification_rate,
        "bound": result.bound,
        "over_floor": math.nan if floor is None else result.risk.value / floor.risk,
        "seconds": result.seconds,
    }


def _columns(name: str, value: Any) -> list[tuple[str, Any]]:
    """A value under its name; an estimate as its four numbers."""
    if not isinstance(value, Estimate):
        return [(name, value)]
    ends = [(f"{name}_{part}", getattr(value, part)) for part in ("low", "high", "unseen")]
    return [(name, value.value), *ends]


def describe_game(experiment: Experiment) -> str:
    """Class with K and M, and every rule that has no column of its own and is not the default."""
    said = ("hypotheses", "num_hypotheses", "num_labels", "channel", "horizon", "epsilon", "delta")
    facts = {name: value for name, value in experiment.rules.given.items() if name not in said}
    words = [experiment.hypotheses]
    if facts.pop("redraw_hypotheses", False):  # it implies that they are shown
        facts.pop("observe_candidates", None)
        words += ["redrawn in every episode"]
    for key, value in facts.items():
        for name, option in (value if isinstance(value, Mapping) else {key: value}).items():
            table = np.ndim(option) > 1
            words.append(
                f"{name} = " + (f"table of shape {np.shape(option)}" if table else str(option))
            )
    return ", ".join(words)


def _names(learners: Iterable[str]) -> dict[str, str]:
    """Names to show: a trained model's is its directory's name, unless another learner has it."""
    names = {learner: _shown(learner) for learner in learners}
    count = Counter([*names.values(), *LEARNERS])
    return {
        learner: name if count[name] == 1 else in_one_line(learner)
        for learner, name in names.items()
    }


def _shown(learner: str) -> str:
    """Name of a learner; of a trained model, that of its directory."""
    path = Path(learner)
    return in_one_line(path.name if path.is_absolute() else learner)
