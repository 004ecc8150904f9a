"""Learners side by side: on channels, natures, games to test agents on, and truths outside the class."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, find_least_risk
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.splits import TESTS, SplitScore, score_totals
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.suites.base import REDRAWN, Suite, channel_rules
from ldp_gym.natures.base import NATURES


class Quick(Suite):
    """The leaderboard of the default game, in half a minute."""

    name = "quick"
    title = "Every learner on the main channels of the default game"
    claim = (
        "Under a uniform truth no learner has less risk than Bayes on the same channel. The row without "
        "privacy (identity) shows the price of privacy."
    )
    ranks_learners = True
    story = {
        ("uniform", "laplace-single"): "without learning",
        ("bayes", "laplace-single"): "with the paper's messages",
        ("bayes", "split"): "when users are asked about hypotheses",
        ("bayes", "identity"): "without privacy",
    }
    """Meaning of the numbers that come first, by learner and channel."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 10) if small else (1000, 100)
        channels = ("randomized-response", "split", "wheel", "adaptive-split", "identity")
        return [
            Experiment({**channel_rules(channel), "horizon": horizon}, learner, episodes=episodes)
            for channel in ("laplace-vector", "laplace-single", *channels)
            for learner in ("uniform", "wma", "exp3", "centred-exp3", "mle", "amortized", "bayes")
        ]

    def findings(self, results: Results) -> list[Finding]:
        risks = {(r.learner, r.channel): f"{r.risk.value:.3g}" for r in results.successes}
        known = [pair for pair in self.story if pair in risks]
        told = [f"{risks[pair]} {self.story[pair]} ({' on '.join(pair)})" for pair in known]
        rounds = f"Loss in nats over {results.successes[0].horizon:,} rounds"
        story = [Finding(f"{rounds}: {', '.join(told)}.")] if told else []
        channels = results.group(lambda experiment: experiment.channel)
        return story + [find_least_risk(channel, played) for channel, played in channels.items()]


class Contexts(Suite):
    """The default class against four natures."""

    name = "contexts"
    title = "Who picks the contexts"
    claim = (
        "The theorems hold for arbitrary contexts. The adversary weighs what Bayes is charged against what "
        "a message tells, on the public transcript only: Bayes stays optimal, and pays more than on i.i.d. "
        "contexts. The omniscient takes the largest charge from the truth at once: it leaks the truth, so "
        "that neither Bayes' optimality nor the information limit holds, and it is not a worst case."
    )

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 8) if small else (1000, 64)
        return [
            Experiment({"nature": nature, "channel": channel, "horizon": horizon}, learner, episodes=episodes)
            for nature in ("iid", "drift", "adversary", "omniscient")
            for channel in ("laplace-single", "split")
            for learner in ("uniform", "exp3", "centred-exp3", "bayes")
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for channel in results.channels:
            played = {_nature(r.experiment): r for r in results.select(learner="bayes", channel=channel)}
            if {"iid", "adversary"} <= set(played):
                iid = played.pop("iid")
                times = [f"{name} {r.risk.value / iid.risk.value:.2f}" for name, r in played.items()]
                text = f"{channel}: Bayes has {iid.risk} on i.i.d. contexts; times that: {', '.join(times)}."
                harder = above(played["adversary"].totals - iid.totals, 0.0)
                found.append(Finding(f"{text} The claim is that the adversary's is above 1.", harder))
        for (nature, channel), lines in results.group(lambda e: (_nature(e), e.channel)).items():
            finding = find_least_risk(f"{nature}, {channel}", lines)
            if NATURES.class_of(nature).leaks_truth:
                finding = Finding(f"{finding.text} This nature leaks the truth.")
            found.append(finding)
        return found

    def draw(self, results: Results) -> figures.Figure:
        panels: figures.Panels = {}
        for r in results.successes:
            panels.setdefault(r.channel, {}).setdefault(r.learner, {})[_nature(r.experiment)] = r.risk
        return figures.draw_rows(panels, xlabel="total KL (nats)")


def _nature(experiment: Experiment) -> str:
    return str(experiment.rules["nature"])


class Splits(Suite):
    """Agents on the test splits of :mod:`ldp_gym.bench.splits`, scored between uniform mixture and Bayes."""

    name = "splits"
    title = "Agents on games that they were not trained on"
    claim = (
        "The score is 0 for the uniform mixture, which never learns, and 1 for Bayes, on the same episodes. "
        "Every split but 'familiar' and 'memory' changes one thing of the training games; on 'memory' the "
        "table is the same in every episode, so that a policy which reads raw messages can play it too."
    )
    ranks_learners = True

    def own_experiments(self, small: bool) -> list[Experiment]:
        return [
            Experiment(rules, learner, episodes=6 if small else 128)
            for rules in _games(small).values()
            for learner in ("uniform", "bayes", "exp3", "centred-exp3", "amortized")
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for learner, splits in _scores(results).items():
            mean = sum(score.mean for score in splits.values()) / len(splits)
            worst = min(splits, key=lambda name: splits[name].mean)
            text = f"{learner}: mean score {mean:.3f} over {len(splits)} of {len(TESTS)} splits;"
            found.append(Finding(f"{text} least on '{worst}', {splits[worst].mean:.3f}."))
        return found

    def draw(self, results: Results) -> figures.Figure:
        series = {
            learner: {name: _span(splits[name]) for name in TESTS if name in splits}
            for learner, splits in _scores(results).items()
        }
        label = "score: 0 for uniform, 1 for Bayes (dotted); the line spans the split's games"
        return figures.draw_rows({"": series}, xlabel=label, references={"": 1.0}, log=False)


def _span(score: SplitScore) -> Estimate:
    """Mean score with the least and the largest of a split's games; scores below -0.25 stand at that edge."""
    values = [value for value in score.games.values() if value is not None]
    return Estimate(*(max(value, -0.25) for value in (score.mean, min(values), max(values))))


def _games(small: bool) -> dict[tuple[str, str], dict[str, Any]]:
    """Test games by split and title; small ones are shorter, and two of each split."""
    return {
        (split.name, title): {**rules, "horizon": min(rules["horizon"], 60)} if small else rules
        for split in TESTS.values()
        for title, rules in list(split)[: 2 if small else None]
    }


def _scores(results: Results) -> dict[str, dict[str, SplitScore]]:
    """Scores by learner and split, as far as there are some."""
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    played = results.group(lambda experiment: experiment.canonical_rules)
    for (split, title), rules in (*_games(small=True).items(), *_games(small=False).items()):
        totals = {r.learner: r.totals for r in played.get(Experiment(rules, "bayes").canonical_rules, [])}
        if not {"uniform", "bayes"} <= set(totals):
            continue
        uniform, bayes = totals.pop("uniform"), totals.pop("bayes")
        for learner, own in totals.items():
            if (score := score_totals(uniform, own, bayes)) is not None:
                found.setdefault(learner, {}).setdefault(split, {})[title] = score
    return {name: {split: SplitScore(games) for split, games in of.items()} for name, of in found.items()}


class Violation(Suite):
    """Learners against truths outside the class, over T, eps and the distance of the truth from a member.

    Every episode has a new Dirichlet(0.3) table with K = 8, M = 16.

    Attributes:
        kinds: names of the truths.
        symbol: name of the strength of the violation in figures.
        strengths: the strength at which T and eps are varied, and others; 0 is a member.
    """

    kinds: ClassVar[tuple[str, ...]]
    symbol: ClassVar[str]
    strengths: ClassVar[tuple[float, ...]]

    @abstractmethod
    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        """Options of the truth of this kind and strength."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 6) if small else (1000, 64)
        usual, horizons = self.strengths[0], (50, 100) if small else (100, 300, 1000, 3000)
        points = [(strength, horizon, 4.0) for strength in self.strengths]
        points += [(usual, other, 4.0) for other in horizons]
        points += [(usual, horizon, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
        games: list[dict[str, Any]] = [
            {"hypotheses": "dirichlet", **REDRAWN, "channel": channel, "horizon": rounds, "epsilon": epsilon}
            | ({"truth": kind, "truth_kwargs": self.truth(kind, strength)} if strength else {})
            for kind in self.kinds
            for channel in ("laplace-single", "split")
            for strength, rounds, epsilon in points
        ]
        learners = ("uniform", "bayes", "fixed-share", "soft-bayes", "robust")
        return [Experiment(game, name, episodes=episodes) for name in learners for game in games]

    def varied(self, experiment: Experiment) -> dict[str, float]:
        """Quantities that are varied, by their symbols."""
        options = experiment.rules.get("truth_kwargs")
        same = (s for kind in self.kinds for s in self.strengths if self.truth(kind, s) == options)
        return {self.symbol: next(same, 0.0), "T": experiment.horizon, "eps": experiment.epsilon}

    def _places(self, results: Results) -> dict[str, list[ExperimentResult]]:
        """Results by kind and channel. A member belongs to every kind, as its strength 0."""
        places: dict[str, list[ExperimentResult]] = {}
        for kind in self.kinds:
            for result in results.successes:
                if result.experiment.rules.get("truth", kind) == kind:
                    places.setdefault(f"{kind}, {result.channel}", []).append(result)
        return places

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for place, played in self._places(results).items():
            if members := [r for r in played if r.experiment.has_member_truth]:
                found.append(find_least_risk(f"{place}, a member", members))
            others = [r for r in played if not r.experiment.has_member_truth]
            uniform = {r.experiment.canonical_rules: r.totals for r in others if r.learner == "uniform"}
            pairs = [(r, uniform.get(r.experiment.canonical_rules)) for r in others if r.learner == "bayes"]
            behind = [
                _words(self.varied(bayes.experiment))
                for bayes, totals in pairs
                if totals is not None and statistics.difference(bayes.totals, totals).low > 0.0
            ]
            if others:
                text = f"{place}: games in which Bayes falls behind uniform, beyond the error: {len(behind)}"
                found.append(Finding(text + (f" ({'; '.join(behind)})." if behind else ".")))
                last = max(others, key=lambda r: (r.horizon, *self.varied(r.experiment).values())).experiment
                same = [r for r in others if r.experiment.canonical_rules == last.canonical_rules]
                regrets = [f"{r.learner} {r.regret}" for r in sorted(same, key=lambda r: r.risk.value)]
                text = f"regret at {_words(self.varied(last))}: {', '.join(regrets)}"
                found.append(Finding(f"{place}: {text}."))
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Regret along the strength, T and eps; of several kinds on the channel split only."""
        others = [e.horizon for e in results.experiments if self.varied(e)[self.symbol] != self.strengths[0]]
        usual = {self.symbol: self.strengths[0], "T": max(others), "eps": 4.0}
        places = self._places(results)
        shown = [place for place in places if len(places) < 3 or place.endswith("split")] or list(places)
        panels: dict[str, list[figures.Line]] = {}
        for place, symbol in [(place, symbol) for place in shown[:2] for symbol in usual]:
            lines = panels[f"{place}: {symbol}"] = []
            fixed = {name: value for name, value in usual.items() if name != symbol}.items()
            for i, learner in enumerate(results.learners):
                own = [(self.varied(r.experiment), r) for r in places[place] if r.learner == learner]
                along = {at[symbol]: r.regret for at, r in own if fixed <= at.items()}
                x = sorted(along)
                lines.append(figures.Line(learner, x, [along[at] for at in x], figures.colour(learner, i)))
        label, labels = "regret over the\nbest member (nats)", [*usual] * len(shown)
        return figures.draw_lines(panels, labels, label, columns=3, scale="symlog", size=(8.4, 2.7))


def _words(varied: dict[str, float]) -> str:
    return ", ".join(f"{symbol} = {value:,g}" for symbol, value in varied.items())


class Misspecified(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth lies between a member and another distribution."""

    name = "misspecified"
    title = "A truth outside the class"
    claim = (
        "Bayes' optimality and the theorems speak of members only. Here a share of the labels comes from a "
        "second member (mixture), or from the uniform distribution (contaminated). Regret is over the member "
        "that is best in hindsight, and is negative where a mixture of members beats each of them. T = "
        "1,000, eps = 4, half of the labels, unless varied."
    )
    kinds, symbol = ("mixture", "contaminated"), "share"
    strengths = (0.5, 0.0, 0.1, 0.2, 0.3, 0.4)

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        return {"weights": [1.0 - strength, strength]} if kind == "mixture" else {"rho": strength}


class Moving(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth changes to another member now and then."""

    name = "switching"
    title = "A truth that moves"
    claim = (
        "Bayes' optimality and the theorems speak of one member throughout. Here it changes to another at "
        "unknown rounds. Regret is over the single member that is best in hindsight, and is negative for a "
        "learner that follows the switches. T = 1,000, eps = 4, one switch, unless varied."
    )
    kinds, symbol, strengths = ("switching",), "switches", (1, 0, 2, 4, 8)

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        return {"num_switches": int(strength)}
