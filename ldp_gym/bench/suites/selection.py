"""Which channel and eps pick the right model: what the suite ``replay`` and one's own game share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.page import NOTHING, Column, Value, count
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.suites.base import Suite, SuiteTable
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.intervals import share_interval
from ldp_gym.engine.rules import rule_value

RELIABLE = 0.8
"""How often the right model must be picked, at least, for a recommendation."""


@dataclass(frozen=True)
class Pick:
    """Which model a learner picks on a channel: the one of the heaviest weight when all users have come.

    Attributes:
        result: of the experiment, with its leaders.
    """

    result: ExperimentResult

    @property
    def epsilon(self) -> float:
        """The privacy level; infinite without privacy."""
        private = self.result.channel != "identity"
        return float(rule_value(self.result.experiment.rules, "epsilon")) if private else math.inf

    @property
    def leaders(self) -> IntArray:
        """Who leads at each checkpoint, ``(episodes, checkpoints)``."""
        leaders = self.result.evaluation.leaders
        assert leaders is not None, "a pick is made of a result that has them"
        return leaders

    @property
    def right(self) -> IntArray:
        """The right model of each episode: the one that is charged least over all rounds, if one is."""
        return self.result.evaluation.best

    @cached_property
    def hits(self) -> int:
        """In how many episodes the right model is picked."""
        return int((self.leaders[:, -1] == self.right).sum())

    @property
    def episodes(self) -> int:
        """How many there are."""
        return len(self.leaders)

    @property
    def found(self) -> Estimate:
        """How often the right model is picked, with its exact 95% interval."""
        interval = share_interval(self.hits, self.episodes, statistics.CONFIDENCE)
        return Estimate(self.hits / self.episodes, *interval)

    def least(self, among: int) -> float:
        """What :attr:`found` is at least, with 95% confidence for so many picks at once."""
        return share_interval(self.hits, self.episodes, 1.0 - 2.0 * (1.0 - statistics.CONFIDENCE) / among)[0]

    @cached_property
    def users(self) -> float:
        """By how many users half of the episodes had the right model for good; infinite where fewer had."""
        right = self.leaders == self.right[:, None]
        kept = np.logical_and.accumulate(right[:, ::-1], axis=1)[:, ::-1]
        since = np.where(kept[:, -1], self.result.evaluation.rounds[kept.argmax(axis=1)], np.inf)
        return float(np.sort(since)[(len(since) - 1) // 2])

    @property
    def favourite(self) -> tuple[int, float]:
        """The model that is picked most often, and how often."""
        model, times = Counter(self.leaders[:, -1].tolist()).most_common(1)[0]
        return int(model), times / self.episodes

    @property
    def excess(self) -> float:
        """What the picked model is charged more than the right one, in nats per user; NaN without the two."""
        evaluation, judged = self.result.evaluation, (self.leaders[:, -1] >= 0) & (self.right >= 0)
        if not judged.any():
            return math.nan
        picked = self.leaders[judged, -1:]
        charged = np.take_along_axis(evaluation.comparator[judged], picked, axis=-1)[:, 0]
        return float((charged - evaluation.opt[judged]).mean()) / self.result.horizon

    def __str__(self) -> str:
        privacy = f" at eps = {self.epsilon:g}" if math.isfinite(self.epsilon) else ""
        return f"{self.result.learner} on {self.result.channel}{privacy}"


class Selection(Suite):
    """Learners as judges of models: their experiments keep the leaders."""

    def findings(self, results: Results) -> list[Finding]:
        """The right model of each game, and how to pick it."""
        return [
            Finding(f"{label}: {text}")
            for label, of_game in results.group(_label).items()
            for text in _conclusions(of_game)
        ]

    def tables(self, results: Results) -> list[SuiteTable]:
        """Channels against eps in each game; and every pick."""
        games = _picks_by_game(results)
        every = sorted(
            (pick for picks in games.values() for pick in picks),
            key=lambda pick: (_label(pick.result.experiment), pick.epsilon, -pick.hits, pick.users),
        )
        overviews = [_overview(label, _Grid(picks)) for label, picks in games.items()]
        return [*overviews, SuiteTable("Who picks which model", _COLUMNS, every)] if every else []

    def draw(self, results: Results) -> figures.Figure:
        """How often the right model is picked, by channel and eps; one panel per game."""
        grids = {label: _Grid(picks) for label, picks in _picks_by_game(results).items()}
        if not grids:
            drawing, axes = figures.new_figure()
            axes[0, 0].set_axis_off()
            text = "no learner that played has weights to pick by"
            axes[0, 0].text(0.5, 0.5, text, ha="center", va="center")
            return drawing
        rows = max(len(grid.rows) for grid in grids.values())
        columns = max(len(grid.epsilons) for grid in grids.values())
        drawing, axes = figures.new_figure(
            len(grids), width=max(3.6, 2.0 + 0.75 * columns), height=1.3 + 0.34 * rows
        )
        for panel, (label, grid) in zip(axes.flat, grids.items(), strict=True):
            cells = list(grid.rows.values())
            shares = np.array([[cell.number for cell in row] for row in cells], dtype=np.float64)
            image = panel.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
            for (i, j), share in np.ndenumerate(shares):
                hue = "w" if share > 0.6 else "k"
                panel.text(j, i, cells[i][j].text, ha="center", va="center", size=7, color=hue)
            panel.set_xticks(range(len(grid.epsilons)), [f"{epsilon:g}" for epsilon in grid.epsilons])
            panel.set_yticks(range(len(grid.rows)), grid.rows)
            panel.set_title(f"{label} ({grid.learner})")
            panel.set_xlabel("eps")
            panel.grid(visible=False)
        drawing.colorbar(image, ax=axes, label="share of episodes")
        drawing.supxlabel("how often the right model is picked,\nand by how many users")
        return drawing


# -- Conclusions --------------------------------------------------------------------------------------------


def _conclusions(of_game: Sequence[ExperimentResult]) -> list[str]:
    """What follows in one game. Only what the intervals support is claimed."""
    evaluation, experiment = of_game[0].evaluation, of_game[0].experiment
    if not np.isfinite(evaluation.opt).all():
        missed = int((~np.isfinite(evaluation.opt)).sum())
        return [
            f"no model is right: in {missed} of {len(evaluation.opt)} episodes each gave probability 0 to a "
            "label that came. Mix a little of the uniform distribution into every model."
        ]
    return [_right_model(experiment, evaluation.comparator), _recommendation(_picks(of_game))]


def _right_model(experiment: Experiment, comparator: FloatArray) -> str:
    model, times = Counter(comparator.argmin(axis=-1).tolist()).most_common(1)[0]
    charges = np.sort(comparator.mean(axis=0)) / experiment.horizon
    if times < len(comparator):
        return (
            f"the right model differs between episodes; most often, in {times} of {len(comparator)}, it is "
            f"{experiment.describe_hypothesis(model)}."
        )
    worst = f"{charges[-1]:.3f}" if np.isfinite(charges[-1]) else "infinite, for a label of probability 0"
    return (
        f"the right model is {experiment.describe_hypothesis(model)}: {charges[0]:.3f} nats per user, the "
        f"next {charges[1]:.3f}, the worst {worst}; {experiment.horizon:,} users."
    )


def _recommendation(picks: Sequence[Pick]) -> str:
    """The least eps at which the right model is picked reliably, on which channels."""
    private = [pick for pick in picks if math.isfinite(pick.epsilon)]
    if not private:
        return "no recommendation: no learner with weights played on a private channel."
    reliable = [pick for pick in private if pick.least(len(private)) >= RELIABLE]
    if not reliable:
        best = max(private, key=lambda pick: (pick.hits, -pick.epsilon))
        return (
            f"no recommendation: none of {len(private)} choices of channel, eps and learner is shown to pick "
            f"the right model in {RELIABLE:.0%} of the episodes. The most hits has {best}: {best.hits} of "
            f"{best.episodes}. More users, more episodes or a larger eps may show one."
        )
    epsilon = min(pick.epsilon for pick in reliable)
    first, *others = sorted(
        (pick for pick in reliable if pick.epsilon == epsilon), key=lambda pick: (pick.users, -pick.hits)
    )
    text = (
        f"recommended: {first}. It picks the right model in {first.hits} of {first.episodes} episodes (at "
        f"least {first.least(len(private)):.0%}, with 95% confidence for {len(private)} choices at once), in "
        f"half of all episodes by {first.users:,.0f} user{'s' if first.users > 1 else ''}."
    )
    if others:
        text += f" As reliable at this eps: {_name_pairs(others)}."
    smaller = sorted({pick.epsilon for pick in private if pick.epsilon < epsilon})
    if smaller:
        text += f" At eps = {', '.join(f'{e:g}' for e in smaller)} none is shown to."
    return text


def _name_pairs(picks: Sequence[Pick]) -> str:
    """Learners and channels, those of one channel together; the first few of many."""
    by_channel: dict[str, list[str]] = {}
    for pick in picks:
        by_channel.setdefault(pick.result.channel, []).append(pick.result.learner)
    names = [f"{', '.join(learners)} on {channel}" for channel, learners in by_channel.items()]
    return "; ".join(names[:5]) + (f"; and {len(names) - 5} channels more" if len(names) > 5 else "")


def _label(experiment: Experiment) -> str:
    """What a game is called: by its class."""
    name = rule_value(experiment.rules, "hypotheses")
    return str(name).rpartition(":")[2] if isinstance(name, str) else "table"


def _picks_by_game(results: Results) -> dict[str, list[Pick]]:
    """The picks of the games that have some."""
    games = {label: _picks(of_game) for label, of_game in results.group(_label).items()}
    return {label: picks for label, picks in games.items() if picks}


def _picks(results: Sequence[ExperimentResult]) -> list[Pick]:
    """The results of learners that prefer some model to others."""
    led = [result for result in results if result.evaluation.leaders is not None]
    return [pick for pick in map(Pick, led) if (pick.leaders[:, -1] >= 0).any()]


# -- Tables -------------------------------------------------------------------------------------------------


class _Grid:
    """What one learner picks by channel and eps: Bayes, or else the one that picks right most often.

    A channel without privacy is the same at every eps.
    """

    def __init__(self, picks: Sequence[Pick]) -> None:
        hits: Counter[str] = Counter()
        for pick in picks:
            hits[pick.result.learner] += pick.hits
        self.learner = "bayes" if "bayes" in hits else hits.most_common(1)[0][0]
        own = [pick for pick in picks if pick.result.learner == self.learner]
        self.epsilons = sorted({p.epsilon for p in own if math.isfinite(p.epsilon)}) or [math.inf]
        cells = {(pick.result.channel, pick.epsilon): _cell(pick) for pick in own}
        channels = dict.fromkeys(pick.result.channel for pick in own)
        means = {c: float(np.mean([p.found.value for p in own if p.result.channel == c])) for c in channels}
        self.rows = {
            channel: [cells.get((channel, e), cells.get((channel, math.inf), NOTHING)) for e in self.epsilons]
            for channel in sorted(means, key=lambda channel: -means[channel])
        }


def _overview(label: str, grid: _Grid) -> SuiteTable:
    columns = [Column("Channel", itemgetter(0))]
    for j, epsilon in enumerate(grid.epsilons, start=1):
        columns.append(Column(f"eps = {epsilon:g}", itemgetter(j), numeric=True))
    rows = [[Value(channel), *cells] for channel, cells in grid.rows.items()]
    title = f"{label}: how often {grid.learner} picks the right model, and by how many users"
    return SuiteTable(title, columns, rows, printed=True)


def _cell(pick: Pick) -> Value:
    by = f" by {pick.users:,.0f}" if math.isfinite(pick.users) else ""
    return Value(f"{pick.found.value:.0%}{by}", pick.found.value)


def _privacy(pick: Pick) -> Value:
    return Value(f"ε = {pick.epsilon:g}" if math.isfinite(pick.epsilon) else "none", pick.epsilon)


def _favourite(pick: Pick) -> Value:
    model, share = pick.favourite
    name = "none" if model < 0 else pick.result.experiment.describe_hypothesis(model)
    return Value(f"{name}, {share:.0%}", model)


def _users(pick: Pick) -> Value:
    return count(int(pick.users)) if math.isfinite(pick.users) else NOTHING


def _found_interval(pick: Pick) -> Value:
    found = pick.found
    return Value(f"[{found.low:.0%}, {found.high:.0%}]", found.low)


_COLUMNS: tuple[Column[Pick], ...] = (
    Column("Game", lambda pick: Value(_label(pick.result.experiment)), common=True),
    Column("Privacy", _privacy, common=True),
    Column("Channel", lambda pick: Value(pick.result.channel)),
    Column("Learner", lambda pick: Value(pick.result.learner)),
    Column("Picked most", _favourite, "the model with the heaviest weight in the end, most often"),
    Column(
        "Right",
        lambda pick: Value(f"{pick.found.value:.0%}", pick.found.value),
        "share of episodes",
        numeric=True,
    ),
    Column("Right, 95%", _found_interval, "its exact interval", numeric=True),
    Column("Users", _users, "by how many users half of the episodes had it, and kept it", numeric=True),
    Column(
        "Excess",
        lambda pick: NOTHING if math.isnan(pick.excess) else Value(f"{pick.excess:.4f}", pick.excess),
        "what the picked model is charged more than the right one, in nats per user",
        numeric=True,
    ),
    Column("Users in all", lambda pick: count(pick.result.horizon), numeric=True, common=True),
    Column("Episodes", lambda pick: count(pick.episodes), numeric=True, common=True),
)
