"""Regret where the truth is no member of the class: what ``misspecified`` and ``switching`` share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, ClassVar

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, find_least_risk
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import Suite

CHANNELS = ("laplace-single", "split")
LEARNERS = ("uniform", "bayes", "fixed-share", "soft-bayes", "robust")
HORIZONS = (100, 300, 1000, 3000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
HORIZON, EPSILON = 1000, 4.0
"""What stays as it is while another quantity changes."""

CLASS = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True}
"""A new Dirichlet(0.3) table with K = 8, M = 16 in each episode."""


class Violation(Suite):
    """Learners against truths outside the class, over T, eps and how far the truth is from a member.

    Attributes:
        kinds: the truths, by name.
        strengths: how strong the violation is; 0 is a member.
        strength: the one that T and eps are varied at.
        symbol: what a strength is called.
    """

    kinds: ClassVar[tuple[str, ...]]
    strengths: ClassVar[tuple[float, ...]]
    strength: ClassVar[float]
    symbol: ClassVar[str]

    @abstractmethod
    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        """The options of the truth of this kind and strength."""

    def strength_of(self, experiment: Experiment) -> float:
        """The strength that an experiment has; 0 where the truth is a member."""
        options = experiment.rules.get("truth_kwargs")
        same = (s for kind in self.kinds for s in self.strengths if self.truth(kind, s) == options)
        return next(same, 0.0)

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Each quantity over its values, the others as they are."""
        horizon, episodes = (100, 6) if small else (HORIZON, 64)
        points = [
            *((strength, horizon, EPSILON) for strength in self.strengths),
            *((self.strength, other, EPSILON) for other in ((50, 100) if small else HORIZONS)),
            *((self.strength, horizon, epsilon) for epsilon in EPSILONS),
        ]
        return [
            Experiment(
                self._rules(kind, strength) | {"channel": channel, "horizon": rounds, "epsilon": epsilon},
                learner,
                episodes=episodes,
                block=64,
            )
            for kind in self.kinds
            for channel in CHANNELS
            for learner in LEARNERS
            for strength, rounds, epsilon in dict.fromkeys(points)
        ]

    def _rules(self, kind: str, strength: float) -> dict[str, Any]:
        """A violation of strength 0 is the truth of the paper, and is played as that."""
        return CLASS | ({"truth": kind, "truth_kwargs": self.truth(kind, strength)} if strength else {})

    # -- What follows ---------------------------------------------------------------------------------------

    def findings(self, results: Results) -> list[Finding]:
        """Where Bayes falls behind uniform, how its regret grows, and which learner has the least."""
        found = []
        for place, played in self._panels(results).items():
            members = [result for result in played if result.experiment.has_member_truth]
            if members:
                found.append(find_least_risk(f"{place}, a member", members))
            others = [result for result in played if not result.experiment.has_member_truth]
            if others:
                found.append(Finding(f"{place}: {self._behind(results, others)}."))
                found.append(Finding(f"{place}: {self._least(others)}."))
        return found

    def _behind(self, results: Results, others: Sequence[ExperimentResult]) -> str:
        """Where Bayes has more risk than uniform, by more than the error of the pairs."""
        bayes = [result for result in others if result.learner == "bayes"]
        behind = [result for result in bayes if _is_behind_uniform(results, result)]
        if not behind:
            return f"Bayes falls behind uniform in none of {len(bayes)} games"
        places = [
            f"{symbol} {', '.join(f'{value:,g}' for value, _ in line)}"
            for symbol, line in self._lines(results, behind).items()
            if line
        ]
        return f"Bayes falls behind uniform, beyond the error, at {'; '.join(places)}"

    def _least(self, others: Sequence[ExperimentResult]) -> str:
        """Regrets where the violation is strongest at the largest T."""
        last = max(others, key=lambda r: (r.horizon, self.strength_of(r.experiment))).experiment
        same = [r for r in others if r.experiment.canonical_rules == last.canonical_rules]
        ranked = sorted(same, key=lambda result: result.risk.value)
        strength, horizon, epsilon = self._varied(last).values()
        return f"regret at {self.symbol} {strength:g}, T = {horizon:,}, eps = {epsilon:g}: " + ", ".join(
            f"{result.learner} {statistics.mean(result.evaluation.regret)}" for result in ranked
        )

    def _panels(self, results: Results) -> dict[str, list[ExperimentResult]]:
        """The results by kind and channel. A member belongs to every kind, as its strength 0."""
        return {
            f"{kind}, {channel}": [
                result
                for result in results.select(channel=channel)
                if result.experiment.rules.get("truth", kind) == kind
            ]
            for kind in self.kinds
            for channel in results.channels
        }

    def _varied(self, experiment: Experiment) -> dict[str, float]:
        """The quantities that are varied, by their symbols."""
        strength, epsilon = self.strength_of(experiment), experiment.rules["epsilon"]
        return {self.symbol: strength, "T": experiment.horizon, "eps": epsilon}

    def _lines(
        self, results: Results, chosen: Sequence[ExperimentResult]
    ) -> dict[str, list[tuple[float, ExperimentResult]]]:
        """For each quantity the chosen results in which all others stay as they are, by its value."""
        horizon = max(e.horizon for e in results.experiments if self.strength_of(e) != self.strength)
        usual = {self.symbol: self.strength, "T": horizon, "eps": EPSILON}
        lines: dict[str, list[tuple[float, ExperimentResult]]] = {symbol: [] for symbol in usual}
        for result in chosen:
            varied = self._varied(result.experiment)
            for symbol, value in varied.items():
                if varied == usual | {symbol: value}:
                    lines[symbol].append((value, result))
        return {symbol: sorted(line, key=itemgetter(0)) for symbol, line in lines.items()}

    # -- Figure ---------------------------------------------------------------------------------------------

    def draw(self, results: Results) -> figures.Figure:
        """Regret against the strength, T and eps; one row per kind and channel."""
        panels = self._panels(results)
        drawing, axes = figures.new_figure(3, len(panels), width=2.9, height=2.3, sharex="col")
        for row, (place, played) in zip(axes, panels.items(), strict=True):
            for panel, (symbol, line) in zip(row, self._lines(results, played).items(), strict=True):
                _draw_regrets(panel, line, results.learners)
                if symbol in ("T", "eps"):
                    figures.set_log_scale(panel, "x", sorted({value for value, _ in line}))
                panel.set_title(place)
                panel.tick_params(labelbottom=True)
        for panel, symbol in zip(axes[-1], (self.symbol, "T", "eps"), strict=True):
            panel.set_xlabel(symbol)
        figures.add_legend(drawing)
        drawing.supylabel("regret over the best member (nats)")
        return drawing


def _is_behind_uniform(results: Results, result: ExperimentResult) -> bool:
    uniform = results.same_tapes(result.experiment, "uniform")
    return uniform is not None and statistics.difference(result.totals, uniform.totals).low > 0.0


def _draw_regrets(
    panel: figures.Axes, line: Sequence[tuple[float, ExperimentResult]], learners: Sequence[str]
) -> None:
    """Regret along a quantity, one line per learner. It may be negative: a mixture beats every member."""
    for i, learner in enumerate(learners):
        own = [(value, result) for value, result in line if result.learner == learner]
        regrets = [statistics.mean(result.evaluation.regret) for _, result in own]
        figures.draw_points(panel, [value for value, _ in own], regrets, learner, figures.colour(learner, i))
    panel.axhline(0.0, color="black", linewidth=0.6)
    panel.set_yscale("symlog", linthresh=30.0)
