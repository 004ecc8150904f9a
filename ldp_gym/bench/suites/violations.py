"""Truths that are not one member of the class: the suites ``misspecified`` and ``switching``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, find_least_risk
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import REDRAWN, Suite

_LEARNERS = ("uniform", "bayes", "fixed-share", "soft-bayes", "robust", "any-truth")

_MOST_PANELS = 6
"""Largest number of panels of a figure."""


class Violation(Suite):
    """Learners against truths outside the class, over T, eps and the distance of the truth from a member.

    Every episode has a new Dirichlet(0.3) table with K = 8, M = 16.

    Attributes:
        kinds: names of the truths.
        strengths: strengths of the violation; 0 is a member.
        strength: strength at which T and eps are varied.
        symbol: name of the strength in figures.
    """

    kinds: ClassVar[tuple[str, ...]]
    strengths: ClassVar[tuple[float, ...]]
    strength: ClassVar[float]
    symbol: ClassVar[str]

    @abstractmethod
    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        """Options of the truth of this kind and strength."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 6) if small else (1000, 64)
        points = [
            *((strength, horizon, 4.0) for strength in self.strengths),
            *((self.strength, other, 4.0) for other in ((50, 100) if small else (100, 300, 1000, 3000))),
            *((self.strength, horizon, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)),
        ]
        experiments = []
        for kind in self.kinds:
            for channel in ("laplace-single", "split"):
                for learner in _LEARNERS:
                    for strength, rounds, epsilon in dict.fromkeys(points):
                        rules: dict[str, Any] = {"hypotheses": "dirichlet", **REDRAWN, "channel": channel}
                        rules |= {"horizon": rounds, "epsilon": epsilon}
                        if strength:  # strength 0 is the truth of the paper
                            rules |= {"truth": kind, "truth_kwargs": self.truth(kind, strength)}
                        experiments.append(Experiment(rules, learner, episodes=episodes, block=64))
        return experiments

    def varied(self, experiment: Experiment) -> dict[str, float]:
        """Quantities that are varied, by their symbols."""
        options = experiment.rules.get("truth_kwargs")
        same = (s for kind in self.kinds for s in self.strengths if self.truth(kind, s) == options)
        return {self.symbol: next(same, 0.0), "T": experiment.horizon, "eps": experiment.rules["epsilon"]}

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for place, played in self._places(results).items():
            if members := [result for result in played if result.experiment.has_member_truth]:
                found.append(find_least_risk(f"{place}, a member", members))
            if others := [result for result in played if not result.experiment.has_member_truth]:
                found.append(Finding(f"{place}: {self._behind(results, others)}."))
                last = max(others, key=lambda r: (r.horizon, *self.varied(r.experiment).values())).experiment
                same = [r for r in others if r.experiment.canonical_rules == last.canonical_rules]
                regrets = [f"{r.learner} {r.regret}" for r in sorted(same, key=lambda r: r.risk.value)]
                found.append(
                    Finding(f"{place}: regret at {_words(self.varied(last))}: {', '.join(regrets)}.")
                )
        return found

    def _behind(self, results: Results, others: Sequence[ExperimentResult]) -> str:
        """Games in which Bayes has more risk than uniform, by more than the error of the pairs."""
        bayes, behind = [result for result in others if result.learner == "bayes"], []
        for result in bayes:
            uniform = results.same_tapes(result.experiment, "uniform")
            if uniform is not None and statistics.difference(result.totals, uniform.totals).low > 0.0:
                behind.append(_words(self.varied(result.experiment)))
        text = f"Bayes falls behind uniform, beyond the error, in {len(behind)} of {len(bayes)} games"
        return text + (f": {'; '.join(behind)}" if behind else "")

    def _places(self, results: Results) -> dict[str, list[ExperimentResult]]:
        """Results by kind and channel. A member belongs to every kind, as its strength 0."""
        places: dict[str, list[ExperimentResult]] = {}
        for kind in self.kinds:
            for result in results.successes:
                if result.experiment.rules.get("truth", kind) == kind:
                    places.setdefault(f"{kind}, {result.channel}", []).append(result)
        return places

    def draw(self, results: Results) -> figures.Figure:
        """Regret along each quantity, the others as usual; with many places, along the strength only."""
        places = self._places(results)
        rounds = [e.horizon for e in results.experiments if self.varied(e)[self.symbol] != self.strength]
        usual = {self.symbol: self.strength, "T": max(rounds), "eps": 4.0}
        symbols = list(usual)[: 3 if 3 * len(places) <= _MOST_PANELS else 1]
        panels: dict[str, list[figures.Line]] = {}
        for place, played in list(places.items())[:_MOST_PANELS]:
            for symbol in symbols:
                lines = panels[place if len(symbols) == 1 else f"{place}: {symbol}"] = []
                for i, learner in enumerate(results.learners):
                    along = {
                        self.varied(r.experiment)[symbol]: r.regret
                        for r in played
                        if r.learner == learner
                        and {**self.varied(r.experiment), symbol: 0} == usual | {symbol: 0}
                    }
                    x = sorted(along)
                    line = figures.Line(learner, x, [along[at] for at in x], figures.colour(learner, i))
                    lines.append(line)
        return figures.draw_lines(
            panels,
            xlabel=[symbol for _ in places for symbol in symbols],
            ylabel="regret over the\nbest member (nats)",
            columns=len(symbols) if len(symbols) > 1 else 2,
            scale="symlog",
            size=(8.4, 2.7),
        )


def _words(varied: dict[str, float]) -> str:
    return ", ".join(f"{symbol} = {value:,g}" for symbol, value in varied.items())


class Misspecified(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth lies between a member and another distribution."""

    name = "misspecified"
    title = "A truth outside the class"
    claim = (
        "Bayes' optimality and the theorems speak of members only. Here a share of the labels comes from a "
        "second member (mixture), or from the uniform distribution (contaminated); at share 0 the truth is "
        "a member. Regret is over the member that is best in hindsight, and is negative where a mixture of "
        "members beats each of them. K = 8, M = 16; T = 1,000, eps = 4, half of the labels, unless varied."
    )
    order = 92
    kinds = ("mixture", "contaminated")
    strengths = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    strength, symbol = 0.5, "share"

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        return {"weights": [1.0 - strength, strength]} if kind == "mixture" else {"rho": strength}


class Switching(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth changes to another member now and then."""

    name = "switching"
    title = "A truth that moves"
    claim = (
        "Bayes' optimality and the theorems speak of one member throughout. Here it changes to another at "
        "rounds that the learner does not know. Regret is over the single member that is best in "
        "hindsight, and is negative for a learner that follows the switches. K = 8, M = 16; T = 1,000, eps "
        "= 4, one switch, unless varied."
    )
    order = 94
    kinds = ("switching",)
    strengths = (0, 1, 2, 4, 8)
    strength, symbol = 1, "switches"

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        return {"num_switches": int(strength)}
