"""Results of a suite, experiment by experiment, and as one data frame."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ldp_bench.experiment import Experiment, make_scenario
from ldp_bench.store import Outcome, Store, join_outcomes
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

_RULES_WITH_COLUMNS = (
    "hypotheses",
    "num_hypotheses",
    "num_labels",
    "channel",
    "horizon",
    "epsilon",
    "delta",
)
"""Rules that a row shows in other columns than that of the game."""


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
        """Theorem's bound on the risk; NaN if none covers the learner, channel, options and truth."""
        experiment = self.experiment
        if experiment.options or experiment.rules.channel_kwargs or not experiment.has_member_truth:
            return math.nan

        num_hypotheses = experiment.num_hypotheses
        epsilon = experiment.epsilon
        match self.learner, self.channel:
            case "exp3", "laplace-single":
                return theory.exp3_bound(num_hypotheses, self.horizon, epsilon)
            case "wma", "laplace-vector":
                delta = float(experiment.rules.promise["delta"])
                return theory.wma_bound(num_hypotheses, self.horizon, epsilon, delta)
            case "bayes", "identity":
                return theory.nonprivate_bound(num_hypotheses)
        return math.nan


@dataclass(frozen=True)
class Failure:
    """Reason why an experiment has no result: a cell failed, or the learner does not play it."""

    experiment: Experiment
    message: str

    @property
    def summary(self) -> str:
        """First line of the message."""
        return next(iter(self.message.strip().splitlines()), "no message")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Lists of the items that share a key, by key; keys and items keep their order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_summary(failures: Iterable[Failure]) -> list[tuple[Failure, str]]:
    """First failure of each kind, with words for its experiment and the number of others like it."""

    def kind(failure: Failure) -> str:
        """Summary without a channel, such as Split(K=8, ...): on another one the failure is the same."""
        return re.sub(r"\w+\(K=[^)]*\)", "", failure.summary)

    described = []
    for first, *others in grouped(failures, kind).values():
        experiments = str(first.experiment)
        if others:
            experiments += f" and {len(others)} more"
        described.append((first, experiments))
    return described


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
        """Look up the cells of the experiments, and sort the experiments by their outcomes."""
        names = _names(experiment.learner for experiment in experiments)
        self.experiments = [replace(one, learner=names[one.learner]) for one in experiments]
        self.successes: list[ExperimentResult] = []
        self.failures: list[Failure] = []
        self.refusals: list[Failure] = []
        self.missing: list[Experiment] = []
        # The keys depend on the learner's full name, such as a model's path: `experiments` has these.
        keys_of_cells = [[cell.key for cell in one.cells(seed)] for one in experiments]
        stored = store.outcomes(list(chain.from_iterable(keys_of_cells)))
        for experiment, keys in zip(self.experiments, keys_of_cells, strict=True):
            outcomes = [stored[key] for key in keys if key in stored]
            self._add(experiment, outcomes, is_complete=len(outcomes) == len(keys))

    def _add(self, experiment: Experiment, outcomes: list[Outcome], is_complete: bool) -> None:
        """Add an experiment to the list that its cells' outcomes decide."""
        if not outcomes:
            self.missing.append(experiment)
            return
        joined = join_outcomes(outcomes)
        message = joined.message or ""
        if joined.status == "failed":
            self.failures.append(Failure(experiment, message))
        elif not is_complete:
            self.missing.append(experiment)
        elif joined.evaluation is not None:
            self.successes.append(ExperimentResult(experiment, joined.evaluation, joined.seconds))
        else:
            self.refusals.append(Failure(experiment, message))

    def select(
        self, *, learner: str | None = None, channel: str | None = None
    ) -> list[ExperimentResult]:
        """Results of a learner, on a channel, in the suite's order; None stands for all of them."""
        results = [result for result in self.successes if learner in (None, result.learner)]
        return [result for result in results if channel in (None, result.channel)]

    def line(
        self, learner: str, channel: str, position: Callable[[Experiment], float]
    ) -> list[ExperimentResult]:
        """Results of a learner on a channel, in the order of a quantity ``position(experiment)``.

        Results for the worst of all truths are left out: that truth may differ from game to game.
        """
        results = self.select(learner=learner, channel=channel)
        of_one_truth = [result for result in results if result.experiment.truth != "all"]
        return sorted(of_one_truth, key=lambda result: position(result.experiment))

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
        """Rows of :attr:`frame`, the smallest risk of a game first.

        Each quantity that has an interval is one :class:`Estimate`.
        """
        rows = []
        for results in self.group(lambda e: (e.rules, e.truth, e.episodes)).values():
            game = sorted(results, key=lambda result: result.risk.value)
            rows += [_row(result, game) for result in game]
        return rows

    @cached_property
    def frame(self) -> DataFrame:
        """One row per experiment that was played to the end; a number that does not apply is NaN.

        Risks are in nats. ``risk``, ``regret`` and ``over_bayes``, the paired difference to Bayes, have the
        ends of their 95% intervals as ``..._low`` and ``..._high``, and as ``..._unseen`` the share of
        episodes, 3/n, in which failures may be unseen where all episodes are nearly alike. ``tv``,
        ``tv_squared`` and any other loss that is stored are means per round. ``over_floor`` is the risk in
        multiples of the floor that is proved for the class. ``right`` is the share of episodes whose
        heaviest weight is on the best hypothesis. ``best`` marks Bayes and what is level with it, or else
        the smallest risk.
        """
        with extra("bench", "Results.frame"):
            from pandas import DataFrame
        flat_rows = []
        for row in self.rows:
            flat: dict[str, Any] = {}
            for name, value in row.items():
                flat.update(_columns(name, value))
            flat_rows.append(flat)
        return DataFrame(flat_rows)


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


class _AgainstBayes(NamedTuple):
    """A result next to the others of its game.

    Attributes:
        gap: total KL above that of Bayes, paired by episode; NaN if they cannot be compared.
        score: 0 is uniform and 1 is Bayes; NaN where Bayes barely learns or the truth is outside the class.
        is_best: True for Bayes and for what is level with it; without Bayes, for the smallest risk.
    """

    gap: Estimate
    score: float
    is_best: bool


def _compare(result: ExperimentResult, game: Sequence[ExperimentResult]) -> _AgainstBayes:
    """Compare a result with Bayes and with the uniform learner in the same game.

    Args:
        result: the result.
        game: all results of its game, the smallest risk first.
    """
    without_options = {r.learner: r for r in game if not r.experiment.options}
    uniform = without_options.get("uniform")
    bayes = without_options.get("bayes")
    unknown = Estimate(math.nan)

    # Where every truth was played the worst truths of two learners differ: nothing is paired.
    has_all_truths = result.experiment.truth == "all"
    if bayes is None or has_all_truths or not np.isfinite(bayes.totals).all():
        return _AgainstBayes(unknown, math.nan, is_best=result is game[0])

    # The intervals of all learners of a game, compared with Bayes, hold together.
    num_comparisons = max(1, len(game) - 1)
    gap = statistics.difference(result.totals, bayes.totals, num_comparisons)
    is_best = result is bayes or is_level(gap, bayes.risk.value)
    if uniform is None or not result.experiment.has_member_truth:
        return _AgainstBayes(gap, math.nan, is_best)

    bayes_learns = bayes.risk.value <= (1.0 - _LEAST_GAIN) * uniform.risk.value
    if not bayes_learns:
        return _AgainstBayes(gap, math.nan, is_best)
    score = statistics.score_totals(uniform.totals, result.totals, bayes.totals)
    if score is None:
        score = math.nan
    return _AgainstBayes(gap, score, is_best)


def _row(result: ExperimentResult, game: Sequence[ExperimentResult]) -> dict[str, Any]:
    """Row of a result, by the names of its columns.

    Args:
        result: the result.
        game: all results of its game, the smallest risk first.
    """
    experiment = result.experiment
    rules = experiment.rules
    evaluation = result.evaluation
    against_bayes = _compare(result, game)

    epsilon = experiment.epsilon
    if result.channel == "identity":  # it takes any eps, and keeps none
        epsilon = math.inf
    worst_truth: float = math.nan
    if experiment.truth == "all":
        worst_truth = evaluation.worst_truth
    right: float = math.nan
    if evaluation.identification_rate is not None:
        right = evaluation.identification_rate

    return {
        "learner": result.learner,
        "options": ", ".join(f"{name}={value}" for name, value in experiment.options.items()),
        "channel": result.channel,
        "epsilon": epsilon,
        "delta": float(rules.promise["delta"]),
        "hypotheses": experiment.family,
        "K": experiment.num_hypotheses,
        "M": experiment.num_labels,
        "T": result.horizon,
        "member": experiment.has_member_truth,
        "game": describe_game(experiment),
        "episodes": experiment.episodes,
        "risk": result.risk,
        "worst_truth": worst_truth,
        **_losses_per_round(result),
        "regret": result.regret,
        "over_bayes": against_bayes.gap,
        "best": against_bayes.is_best,
        "score": against_bayes.score,
        "right": right,
        "bound": result.bound,
        "over_floor": _risk_over_floor(result),
        "seconds": result.seconds,
    }


def _losses_per_round(result: ExperimentResult) -> dict[str, float]:
    """Mean per round of each stored loss, by name; KL is left out, which the risk is about."""
    evaluation = result.evaluation.at_worst_truth()
    means = {}
    for name, cumulative in evaluation.losses.items():
        if name != "kl":
            totals = cumulative[:, -1]
            means[name] = float(totals.mean()) / result.horizon
    return means


def _risk_over_floor(result: ExperimentResult) -> float:
    """Risk in multiples of the floor that is proved for the class; NaN where none is proved."""
    experiment = result.experiment
    draws_member = experiment.truth is None and "truth" not in experiment.rules.given
    if experiment.truth != "all" and not draws_member:
        return math.nan
    floor = make_scenario(experiment.rules).floor
    if floor is None:
        return math.nan
    return result.risk.value / floor.risk


def _columns(name: str, value: Any) -> dict[str, Any]:
    """Columns of a data frame for a value: one of its name, and three more for an estimate's interval."""
    if not isinstance(value, Estimate):
        return {name: value}
    return {
        name: value.value,
        f"{name}_low": value.low,
        f"{name}_high": value.high,
        f"{name}_unseen": value.unseen,
    }


def describe_game(experiment: Experiment) -> str:
    """Class with K and M, and every rule that has no column of its own and is not the default."""
    given = experiment.rules.given
    rules = {name: value for name, value in given.items() if name not in _RULES_WITH_COLUMNS}
    words = [experiment.hypotheses]
    if rules.pop("redraw_hypotheses", False):
        rules.pop("observe_candidates", None)  # redrawn hypotheses are always shown
        words.append("redrawn in every episode")
    for name, value in rules.items():
        options = {name: value}
        if isinstance(value, Mapping):  # such as channel_kwargs
            options = dict(value)
        words += [f"{option} = {_describe_value(options[option])}" for option in options]
    return ", ".join(words)


def _describe_value(value: Any) -> str:
    """Value of a rule as text; of an array with several axes, its shape."""
    if np.ndim(value) > 1:
        return f"table of shape {np.shape(value)}"
    return str(value)


def _names(learners: Iterable[str]) -> dict[str, str]:
    """Names to show, by learner: of a trained model its directory, in full if the short name is taken."""
    short_names = {learner: _shown(learner) for learner in learners}
    count = Counter(short_names.values())
    names = {}
    for learner, short_name in short_names.items():
        is_taken = count[short_name] > 1 or short_name in LEARNERS
        names[learner] = short_name
        if is_taken:
            names[learner] = in_one_line(learner)
    return names


def _shown(learner: str) -> str:
    """Name of a learner; of a trained model, given as an absolute path, the last part of the path."""
    path = Path(learner)
    if path.is_absolute():
        return in_one_line(path.name)
    return in_one_line(learner)
