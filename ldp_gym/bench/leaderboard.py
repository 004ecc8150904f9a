"""A suite's entries as rows: risks, scores, differences to Bayes and bounds, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ldp_gym import theory
from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.page import NOTHING, Column, Value, count
from ldp_gym.bench.results import Played, Results
from ldp_gym.bench.statistics import Estimate
from ldp_gym.engine.rules import rule_value


@dataclass(frozen=True)
class Row:
    """An entry that was played, beside the others in its game.

    Attributes:
        played: the entry's results.
        best: whether nobody in its game, on its channel, has less risk.
        score: (uniform - risk) / (uniform - Bayes); None where that says nothing.
        gap: risk less Bayes' on the same tapes; None for Bayes, and where Bayes has not played.
    """

    played: Played
    best: bool
    score: float | None
    gap: Estimate | None


def rows(results: Results) -> list[Row]:
    """Game by game and channel by channel in the suite's order, in each the least risk first."""
    games: dict[str, list[Played]] = {}
    for played in results.of():
        games.setdefault(repr(sorted(played.entry.game.items())), []).append(played)
    ranked = [sorted(lines, key=lambda played: played.totals.mean()) for lines in games.values()]
    return [
        Row(played, i == 0, _score(results, played), _gap(results, played))
        for lines in ranked
        for i, played in enumerate(lines)
    ]


def _score(results: Results, played: Played) -> float | None:
    uniform, bayes = (results.same_tapes(played.entry, name) for name in ("uniform", "bayes"))
    if uniform is None or bayes is None or _every_truth(played):
        return None
    return statistics.score(uniform.totals, played.totals, bayes.totals)


def _gap(results: Results, played: Played) -> Estimate | None:
    bayes = results.same_tapes(played.entry, "bayes")
    if bayes is None or bayes is played or _every_truth(played):
        return None
    return statistics.difference(played.totals, bayes.totals)


def _every_truth(played: Played) -> bool:
    """Then the worst truths of two learners need not be the same, and their episodes are no pairs."""
    return played.kl.ndim > 2


def game(entry: Entry) -> str:
    """The class with its size, and what else of the game is not the default; other columns have the rest."""
    facts = dict(entry.game)
    for said in ("hypotheses", "num_hypotheses", "num_labels", "channel", "horizon", "epsilon", "delta"):
        facts.pop(said, None)
    words = [entry.kind]
    words += [str(facts.pop("nature"))] if "nature" in facts else []
    for key, value in facts.items():
        options = value if isinstance(value, Mapping) else {key: value}
        words += [f"{name} = {_short(option)}" for name, option in options.items()]
    return ", ".join(words)


def _short(value: object) -> str:
    return str(value) if not isinstance(value, list) else " by ".join(map(str, np.shape(value))) + " table"


def _learner(row: Row) -> Value:
    entry = row.played.entry
    options = ", ".join(f"{name}={value}" for name, value in entry.options.items())
    return Value(f"{entry.learner} ({options})" if options else entry.learner)


def _promise(entry: Entry) -> tuple[float, float]:
    return float(rule_value(entry.game, "epsilon")), float(rule_value(entry.game, "delta"))


def _privacy(row: Row) -> Value:
    epsilon, delta = _promise(row.played.entry)
    if row.played.entry.channel == "identity":
        return Value("none", math.inf)
    return Value(f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else ""), epsilon)


def _risk(row: Row) -> Value:
    return Value(_split(row.played.risk)[0], row.played.risk.value, "best" if row.best else None)


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
    if not _every_truth(row.played):
        return NOTHING
    truth = int(row.played.kl[..., -1].mean(axis=-1).argmax())
    return Value(str(truth), truth)


def _tv(row: Row) -> Value:
    played = row.played
    totals = played.tv[..., -1]
    if _every_truth(played):
        totals = totals[played.kl[..., -1].mean(axis=-1).argmax()]
    value = float(totals.mean()) / played.entry.horizon
    return Value(f"{value:.4f}", value)


def _bound(row: Row) -> Value:
    """The theorems are about the paper's pairs as they are, with no options."""
    entry = row.played.entry
    if entry.options or entry.game.get("channel_kwargs"):
        return NOTHING
    num_hypotheses, _ = entry.size
    epsilon, delta = _promise(entry)
    match entry.learner, entry.channel:
        case "exp3", "laplace-single":
            bound = theory.exp3_bound(num_hypotheses, entry.horizon, epsilon)
        case "wma", "laplace-vector":
            bound = theory.wma_bound(num_hypotheses, entry.horizon, epsilon, delta)
        case "bayes", "identity":
            bound = theory.nonprivate_bound(num_hypotheses)
        case _:
            return NOTHING
    return _number(Estimate(bound, -math.inf, math.inf))


def _scored(row: Row) -> Value:
    return NOTHING if row.score is None else Value(f"{row.score:z.3f}", row.score)


def _seconds(row: Row) -> Value:
    return Value(f"{row.played.seconds:.2f}", row.played.seconds)


COLUMNS: tuple[Column[Row], ...] = (
    Column("Game", lambda row: Value(game(row.played.entry)), "class and nature", common=True),
    Column("T", lambda row: count(row.played.entry.horizon), "rounds", numeric=True, common=True),
    Column("Privacy", _privacy, "what the channel promises", common=True),
    Column("Channel", lambda row: Value(row.played.entry.channel), "how users privatize"),
    Column("Learner", _learner),
    Column("Risk", _risk, "mean total KL in nats; bold: the least in its game on its channel", numeric=True),
    Column("Risk, 95%", lambda row: _interval(row.played.risk), "its interval", numeric=True),
    Column("Worst truth", _worst, "the truth of the largest risk; the risk is this truth's", numeric=True),
    Column("TV a round", _tv, "mean total variation from the truth, over the rounds", numeric=True),
    Column("Score", _scored, "(uniform - risk) / (uniform - Bayes), on the same tapes", numeric=True),
    Column("Over Bayes", lambda row: _number(row.gap), "risk less Bayes', on the same tapes", numeric=True),
    Column("Over Bayes, 95%", lambda row: _interval(row.gap), "of the paired difference", numeric=True),
    Column("Bound", _bound, "what a theorem promises; log K for Bayes without privacy", numeric=True),
    Column("Episodes", lambda row: count(row.played.entry.episodes), numeric=True, common=True),
    Column("Seconds", _seconds, "of computing", numeric=True),
)
