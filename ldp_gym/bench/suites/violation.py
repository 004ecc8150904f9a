"""Regret where the truth is no member of the class: what ``misspecified`` and ``switching`` share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, least_risk
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import Suite
from ldp_gym.learners import LEARNERS

CHANNELS = ("laplace-single", "split")
LEARNERS_SHOWN = ("uniform", "bayes", "fixed-share", "soft-bayes", "robust", "any-truth")
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

    @abstractmethod
    def strength_of(self, experiment: Experiment) -> float:
        """The strength that an experiment has."""

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
            for learner in LEARNERS_SHOWN
            if learner in LEARNERS
            for strength, rounds, epsilon in dict.fromkeys(points)
        ]

    def _rules(self, kind: str, strength: float) -> dict[str, Any]:
        """A violation of strength 0 is the truth of the paper, and is played as that."""
        return CLASS | ({"truth": kind, "truth_kwargs": self.truth(kind, strength)} if strength else {})

    # -- What follows ---------------------------------------------------------------------------------------

    def findings(self, results: Results) -> list[Finding]:
        """Where Bayes falls behind uniform, how its regret grows, and which learner has the least."""
        found = []
        for kind, channel in self._panels(results):
            of_kind = [r for r in results.select(channel=channel) if self._is_of(kind, r.experiment)]
            members = [r for r in of_kind if r.experiment.has_member_truth]
            found += _members_finding(f"{kind}, {channel}", members)
            others = [r for r in of_kind if not r.experiment.has_member_truth]
            if others:
                found.append(Finding(f"{kind}, {channel}: {self._behind(results, others)}."))
                found.append(Finding(f"{kind}, {channel}: {self._least(others)}."))
        return found

    def _behind(self, results: Results, others: Sequence[ExperimentResult]) -> str:
        """Where Bayes has more risk than uniform, by more than the error of the pairs."""
        bayes = [result for result in others if result.learner == "bayes"]
        behind = [result for result in bayes if _is_behind_uniform(results, result)]
        if not behind:
            return f"Bayes falls behind uniform in none of {len(bayes)} games"
        places = []
        for quantity in self._quantities(results):
            values = sorted({quantity.position(r.experiment) for r in quantity.choose(behind)})
            places += [f"{quantity.symbol} {', '.join(f'{x:,g}' for x in values)}"] if values else []
        return f"Bayes falls behind uniform, beyond the error, at {'; '.join(places)}"

    def _least(self, others: Sequence[ExperimentResult]) -> str:
        """Regrets where the violation is strongest at the largest T."""
        last = max(others, key=lambda r: (r.experiment.horizon, self.strength_of(r.experiment))).experiment
        same = [r for r in others if r.experiment.canonical_rules == last.canonical_rules]
        ranked = sorted(same, key=lambda result: result.totals.mean())
        return f"regret at {self._place(last)}: " + ", ".join(
            f"{result.learner} {statistics.mean(result.evaluation.regret)}" for result in ranked
        )

    def _place(self, experiment: Experiment) -> str:
        strength, epsilon = self.strength_of(experiment), experiment.rules["epsilon"]
        return f"{self.symbol} {strength:g}, T = {experiment.horizon:,}, eps = {epsilon:g}"

    def _is_of(self, kind: str, experiment: Experiment) -> bool:
        """A member belongs to every kind, as its strength 0."""
        return experiment.rules.get("truth", kind) == kind

    def _panels(self, results: Results) -> list[tuple[str, str]]:
        return [(kind, channel) for kind in self.kinds for channel in results.channels]

    def _quantities(self, results: Results) -> list[Quantity]:
        """What is varied: the strength, T and eps."""
        horizon = max(e.horizon for e in results.experiments if self.strength_of(e) != self.strength)

        def at(experiment: Experiment) -> tuple[float, int, float]:
            return self.strength_of(experiment), experiment.horizon, experiment.rules["epsilon"]

        return [
            Quantity(self.symbol, lambda e: at(e)[0], lambda e: at(e)[1:] == (horizon, EPSILON)),
            Quantity("T", lambda e: at(e)[1], lambda e: at(e)[::2] == (self.strength, EPSILON)),
            Quantity("eps", lambda e: at(e)[2], lambda e: at(e)[:2] == (self.strength, horizon)),
        ]

    # -- Figure ---------------------------------------------------------------------------------------------

    def draw(self, results: Results) -> figures.Figure:
        """Regret against the strength, T and eps; one row per kind and channel."""
        panels, quantities = self._panels(results), self._quantities(results)
        drawing, axes = figures.new_figure(3, len(panels), width=2.9, height=2.3, sharex="col")
        for row, (kind, channel) in zip(axes, panels, strict=True):
            of_kind = [r for r in results.select(channel=channel) if self._is_of(kind, r.experiment)]
            for panel, quantity in zip(row, quantities, strict=True):
                _draw_regrets(panel, quantity, of_kind, results.learners)
                panel.set_title(f"{kind}, {channel}")
                panel.tick_params(labelbottom=True)
        for panel, quantity in zip(axes[-1], quantities, strict=True):
            panel.set_xlabel(quantity.symbol)
        figures.add_legend(drawing)
        drawing.supylabel("regret over the best member (nats)")
        return drawing


@dataclass(frozen=True)
class Quantity:
    """What is varied while all else stays.

    Attributes:
        symbol: what it is called.
        position: its value in an experiment.
        belongs: whether all else is as it stays.
    """

    symbol: str
    position: Callable[[Experiment], float]
    belongs: Callable[[Experiment], bool]

    def choose(self, results: Iterable[ExperimentResult]) -> list[ExperimentResult]:
        """The results along it, in its order."""
        chosen = [result for result in results if self.belongs(result.experiment)]
        return sorted(chosen, key=lambda result: self.position(result.experiment))


def _is_behind_uniform(results: Results, result: ExperimentResult) -> bool:
    uniform = results.same_tapes(result.experiment, "uniform")
    return uniform is not None and statistics.difference(result.totals, uniform.totals).low > 0.0


def _draw_regrets(
    panel: figures.Axes, quantity: Quantity, of_kind: Sequence[ExperimentResult], learners: Sequence[str]
) -> None:
    """Regret along a quantity, one line per learner. It may be negative: a mixture beats every member."""
    for i, learner in enumerate(learners):
        line = quantity.choose(result for result in of_kind if result.learner == learner)
        places = [quantity.position(result.experiment) for result in line]
        regrets = [statistics.mean(result.evaluation.regret) for result in line]
        figures.draw_points(panel, places, regrets, learner, figures.colour(learner, i))
    panel.axhline(0.0, color="black", linewidth=0.6)
    panel.set_yscale("symlog", linthresh=30.0)
    if quantity.symbol in ("T", "eps"):
        places = sorted({quantity.position(result.experiment) for result in quantity.choose(of_kind)})
        figures.set_log_scale(panel, "x", places)


def _members_finding(place: str, members: Sequence[ExperimentResult]) -> list[Finding]:
    """Where the truth is a member, Bayes must not be beaten."""
    bayes = next((result for result in members if result.learner == "bayes"), None)
    if bayes is None:
        return []
    best = min(members, key=lambda result: result.totals.mean())
    text = f"{place}, a member: the least risk is that of {best.learner}, {best.risk}; Bayes {bayes.risk}."
    return [Finding(text, least_risk(bayes, members))]
