"""A suite's results as rows: risks, scores, differences to Bayes and bounds, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, repeat
from operator import itemgetter

import numpy as np

from ldp_gym import theory
from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.page import NOTHING, Column, Value, count
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.splits import score_totals
from ldp_gym.bench.statistics import Estimate
from ldp_gym.engine.learners import Track
from ldp_gym.engine.rules import rule_value


@dataclass(frozen=True)
class Row:
    """A result beside the others in its game.

    Attributes:
        result: the experiment's results.
        best: whether no other learner in its game, on its channel, has less risk.
        score: (uniform - risk) / (uniform - Bayes); None where that says nothing, as where the truth is no
            member: there Bayes is no mark to reach.
        gap: risk less Bayes' on the same tapes; None for Bayes, and where Bayes has no result.
        track: whether the learner may use what the channel says about its messages.
        broken: how its channel breaks its promise, in words; such a row is out of the ranking.
    """

    result: ExperimentResult
    best: bool = False
    score: float | None = None
    gap: Estimate | None = None
    track: Track = "informed"
    broken: str = ""


def rows(results: Results) -> list[Row]:
    """Game by game and channel by channel in the suite's order, in each the least risk first.

    Results on channels that break their promise come last, and are not compared with others.
    """
    games = results.group(lambda experiment: experiment.canonical_rules).values()
    ranked = [sorted(game, key=lambda result: result.risk.value) for game in games]
    return [
        Row(result, i == 0, _score(results, result), _gap(results, result), results.track(result.learner))
        for game in ranked
        for i, result in enumerate(game)
    ] + [
        Row(result, track=results.track(result.learner), broken=str(results.audit(result.experiment)))
        for result in results.broken
    ]


def _score(results: Results, result: ExperimentResult) -> float | None:
    uniform, bayes = (results.same_tapes(result.experiment, name) for name in ("uniform", "bayes"))
    if uniform is None or bayes is None or _every_truth(result) or not result.experiment.has_member_truth:
        return None
    return score_totals(uniform.totals, result.totals, bayes.totals)


def _gap(results: Results, result: ExperimentResult) -> Estimate | None:
    bayes = results.same_tapes(result.experiment, "bayes")
    if bayes is None or bayes is result or _every_truth(result) or not np.isfinite(bayes.totals).all():
        return None
    return statistics.difference(result.totals, bayes.totals)


def _every_truth(result: ExperimentResult) -> bool:
    """Then the worst truths of two learners need not be the same, and their episodes are no pairs."""
    return result.experiment.truth == "all"


def caveat(results: Results) -> str:
    """What does not hold, where some truth is no member of its class; else nothing."""
    if all(result.experiment.has_member_truth for result in results.successes):
        return ""
    return (
        "Where the truth is no member of the class, neither Bayes' optimality nor the information limit nor "
        "a theorem's bound on the risk holds: those rows have no score and no bound, but the regret over the "
        "best hypothesis in hindsight."
    )


def describe_game(experiment: Experiment) -> str:
    """The class with K and M, and what else of the game is not the default; other columns have the rest."""
    facts = dict(experiment.rules)
    for said in ("hypotheses", "num_hypotheses", "num_labels", "channel", "horizon", "epsilon", "delta"):
        facts.pop(said, None)
    words = [experiment.hypotheses]
    if facts.pop("redraw_hypotheses", False):  # which needs that they are shown
        facts.pop("observe_candidates")
        words += ["redrawn in every episode"]
    words += [str(facts.pop("nature"))] if "nature" in facts else []
    for key, value in facts.items():
        options = value if isinstance(value, Mapping) else {key: value}
        words += [f"{name} = {_short(option)}" for name, option in options.items()]
    return ", ".join(words)


def _short(value: object) -> str:
    return str(value) if not isinstance(value, list) else " by ".join(map(str, np.shape(value))) + " table"


def _learner(row: Row) -> Value:
    learner, options = row.result.learner, row.result.experiment.options
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    return Value(f"{learner} ({given})" if given else learner)


def _promise(experiment: Experiment) -> tuple[float, float]:
    return float(rule_value(experiment.rules, "epsilon")), float(rule_value(experiment.rules, "delta"))


def _privacy(row: Row) -> Value:
    epsilon, delta = _promise(row.result.experiment)
    if row.result.channel == "identity":
        return Value("none", math.inf)
    if row.broken:
        return Value("broken promise", math.inf, "bad")
    return Value(f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else ""), epsilon)


def _risk(row: Row) -> Value:
    return Value(_split(row.result.risk)[0], row.result.risk.value, "best" if row.best else None)


def _split(estimate: Estimate) -> tuple[str, str]:
    """An estimate's value and interval, as it prints itself."""
    value, _, interval = str(estimate).partition(" ")
    return value, interval


def _number(estimate: Estimate | None) -> Value:
    return NOTHING if estimate is None else Value(_split(estimate)[0], estimate.value)


def _interval(estimate: Estimate | None) -> Value:
    if estimate is None or not math.isfinite(estimate.low):
        return NOTHING
    return Value(_split(estimate)[1], estimate.low)


def _worst(row: Row) -> Value:
    if not _every_truth(row.result):
        return NOTHING
    truth = row.result.evaluation.worst_truth
    return Value(str(truth), truth)


def _tv(row: Row) -> Value:
    value = float(row.result.evaluation.at_worst_truth().tv[:, -1].mean()) / row.result.horizon
    return Value(f"{value:.4f}", value)


def _bound(row: Row) -> Value:
    """The theorems are about members, and about the paper's pairs as they are, with no options."""
    experiment = row.result.experiment
    if experiment.options or experiment.rules.get("channel_kwargs") or not experiment.has_member_truth:
        return NOTHING
    epsilon, delta = _promise(experiment)
    match experiment.learner, experiment.channel:
        case "exp3", "laplace-single":
            bound = theory.exp3_bound(experiment.num_hypotheses, experiment.horizon, epsilon)
        case "wma", "laplace-vector":
            bound = theory.wma_bound(experiment.num_hypotheses, experiment.horizon, epsilon, delta)
        case "bayes", "identity":
            bound = theory.nonprivate_bound(experiment.num_hypotheses)
        case _:
            return NOTHING
    return _number(Estimate(bound, -math.inf, math.inf))


def _regret(row: Row) -> Value:
    """Where the truth is a member OPT is 0, and the risk says it already."""
    if row.result.experiment.has_member_truth:
        return NOTHING
    if not np.isfinite(row.result.evaluation.opt).all():
        return Value("OPT is infinite")
    return _number(statistics.mean(row.result.evaluation.regret))


def _score_value(row: Row) -> Value:
    return NOTHING if row.score is None else Value(f"{row.score:z.3f}", row.score)


def _seconds(row: Row) -> Value:
    return Value(f"{row.result.seconds:.2f}", row.result.seconds)


COLUMNS: tuple[Column[Row], ...] = (
    Column("Game", lambda row: Value(describe_game(row.result.experiment)), "class and nature", common=True),
    Column("T", lambda row: count(row.result.horizon), "rounds", numeric=True, common=True),
    Column("Privacy", _privacy, "what the channel promises", common=True),
    Column("Channel", lambda row: Value(row.result.channel), "how users privatize"),
    Column("Learner", _learner),
    Column("Track", lambda row: Value(row.track), "informed: may use the channel's likelihood"),
    Column("Risk", _risk, "mean total KL in nats; bold: the least in its game on its channel", numeric=True),
    Column("Risk, 95%", lambda row: _interval(row.result.risk), "its interval", numeric=True),
    Column("Worst truth", _worst, "the truth of the largest risk; the risk is this truth's", numeric=True),
    Column("TV per round", _tv, "mean total variation from the truth, over the rounds", numeric=True),
    Column("Regret", _regret, "risk less that of the best hypothesis in hindsight", numeric=True),
    Column("Score", _score_value, "(uniform - risk) / (uniform - Bayes), on the same tapes", numeric=True),
    Column("Over Bayes", lambda row: _number(row.gap), "risk less Bayes', on the same tapes", numeric=True),
    Column("Over Bayes, 95%", lambda row: _interval(row.gap), "of the paired difference", numeric=True),
    Column("Bound", _bound, "what a theorem promises; log K for Bayes without privacy", numeric=True),
    Column("Episodes", lambda row: count(row.result.experiment.episodes), numeric=True, common=True),
    Column("Seconds", _seconds, "of computing, with all that Nature and the users do", numeric=True),
)

BRIEF = ("Channel", "Learner", "Track", "Risk", "Risk, 95%", "Regret", "Score", "Over Bayes")
"""The columns that a terminal has room for."""


def by_game(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows that follow each other and agree in what a table's rows may share, and what that is, in words.

    What all rows agree in is left out.
    """
    values = {column: [column.value(row).text for row in rows] for column in COLUMNS if column.common}
    differ = {column: texts for column, texts in values.items() if len(set(texts)) > 1}
    games = zip(*differ.values(), strict=True) if differ else repeat((), len(rows))
    for game, of_game in groupby(zip(games, rows, strict=True), key=itemgetter(0)):
        title = "; ".join(
            f"{column.title}: {text}" for column, text in zip(differ, game, strict=True) if text
        )
        yield title, [row for _, row in of_game]


def grid(results: Results) -> tuple[list[Column[str]], list[str]] | None:
    """Risks of learners, one per column, on channels, one per row; None where that says nothing.

    A dash stands where a learner does not play on a channel, and its reason beside it.
    """
    places = [(result.experiment.channel, result.experiment.learner) for result in results.successes]
    channels, learners = dict.fromkeys(row for row, _ in places), dict.fromkeys(row for _, row in places)
    if len(set(places)) < len(places) or min(len(channels), len(learners)) < 2:
        return None
    columns = [Column("Channel", Value)]
    columns += [Column(name, partial(_grid_cell, results, name), numeric=True) for name in learners]
    return columns, list(channels)


def _grid_cell(results: Results, learner: str, channel: str) -> Value:
    played = results.select(channel=channel)
    least = min(result.risk.value for result in played)
    for result in played:
        if result.learner == learner:
            value, interval = _split(result.risk)
            return Value(value, result.risk.value, "best" if result.risk.value == least else None, interval)
    reasons = [
        unplayed.message.strip().splitlines()[-1]
        for unplayed in (*results.refusals, *results.failures)
        if (unplayed.experiment.channel, unplayed.experiment.learner) == (channel, learner)
    ]
    return Value("-", about=reasons[0] if reasons else "not played")
