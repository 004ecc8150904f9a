"""Learners side by side: on channels, natures, games to test agents on, and truths outside the class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldp_bench import figures
from ldp_bench.experiment import Experiment, make_scenario
from ldp_bench.results import ExperimentResult, Results
from ldp_bench.splits import TESTS
from ldp_bench.suites.base import REDRAWN, Finding, Suite, channel_rules, compare_with_bayes
from ldp_gym import statistics
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.core.registry import plain
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import Rules
from ldp_gym.natures.base import NATURES
from ldp_gym.statistics import Estimate, score_totals

if TYPE_CHECKING:
    from pandas import DataFrame


class Quick(Suite):
    """A quick leaderboard of the default game."""

    name = "quick"
    title = "Learners on the main channels of the default game"
    claim = (
        "Each row is a channel, which turns labels into messages; each colour is a learner. Under a uniform "
        "truth Bayes has the least risk on every channel. 'identity' (no privacy) shows what privacy costs."
    )
    story = {
        ("uniform", "laplace-single"): "if nothing is learned",
        ("bayes", "laplace-single"): "with the paper's messages",
        ("bayes", "split"): "when users are asked about hypotheses",
        ("bayes", "identity"): "without privacy",
    }
    """Meaning of the numbers that come first, by learner and channel."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 10) if small else (1000, 100)
        fixed = (
            "laplace-vector",
            "laplace-single",
            "randomized-response",
            "split",
            "half-space",
            "wheel",
        )
        return [
            Experiment(Rules(**channel_rules(channel), horizon=horizon), learner, episodes=episodes)
            for channel in (*fixed, "adaptive-split", "challenge", "identity")
            for learner in ("uniform", "wma", "exp3", "centred-exp3", "mle", "amortized", "bayes")
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        sentence, numbers = self.lead(results)
        if numbers:
            told = ", ".join(f"{number} {meaning}" for meaning, number in numbers.items())
            yield Finding(f"{sentence}: {told}.")
        yield from compare_with_bayes(results.group(lambda experiment: experiment.channel))

    def lead(self, results: Results) -> tuple[str, dict[str, str]]:
        risks = {
            (r.learner, r.channel): f"{r.risk.value:#.3g}".rstrip(".") for r in results.successes
        }
        users = f"{results.successes[0].horizon:,} users who send one message each about a private label"
        return f"Loss in nats over {users} (ε = 1), read by Bayes' rule", {
            text: risks[pair] for pair, text in self.story.items() if pair in risks
        }


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
            Experiment(
                Rules(nature=nature, channel=channel, horizon=horizon), learner, episodes=episodes
            )
            for nature in ("iid", "drift", "adversary", "omniscient")
            for channel in ("laplace-single", "split")
            for learner in ("uniform", "exp3", "centred-exp3", "bayes")
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        for channel in results.channels:
            played = {
                r.experiment.rules.nature: r
                for r in results.select(learner="bayes", channel=channel)
            }
            if {"iid", "adversary"} <= set(played):
                iid = played.pop("iid")
                ratios = {name: r.risk.value / iid.risk.value for name, r in played.items()}
                times = [
                    f"{ratio:.2f} times as much under {name}" for name, ratio in ratios.items()
                ]
                more = statistics.difference(played["adversary"].totals, iid.totals)
                text = (
                    f"{channel}: Bayes pays {iid.risk} nats on i.i.d. contexts, {', '.join(times)}."
                )
                yield Finding(f"{text} The adversary adds {more} nats.")
        games = results.group(lambda e: (str(e.rules.nature), e.channel))
        fair = {
            place: game
            for place, game in games.items()
            if not NATURES.class_of(place[0]).leaks_truth
        }
        places = {f"{channel} under {nature}": game for (nature, channel), game in fair.items()}
        yield from compare_with_bayes(places, "Under no nature that hides the truth")

    def place(self, experiment: Experiment) -> tuple[str, str]:
        return experiment.channel, str(experiment.rules.nature)


class Splits(Suite):
    """Agents on games that they were not trained on, scored between the uniform mixture and Bayes."""

    name = "splits"
    title = "Agents on games that they were not trained on"
    claim = (
        "The score is 0 for the uniform mixture, which never learns, and 1 for Bayes, on the same episodes. "
        "Every split but 'familiar' and 'memory' changes one thing of the training games; on 'memory' the "
        "table is the same in every episode, so that a policy which reads raw messages can play it too."
    )

    def own_experiments(self, small: bool) -> list[Experiment]:
        return [
            Experiment(Rules.of(rules), learner, episodes=6 if small else 128)
            for _, rules in _games(small)
            for learner in ("uniform", "bayes", "exp3", "centred-exp3", "amortized")
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        for learner, splits in _scores(results).items():
            means = {name: float(np.mean(scores)) for name, scores in splits.items()}
            worst, mean = min(means, key=lambda name: means[name]), sum(means.values()) / len(means)
            text = f"{learner}: mean score {mean:.3f} over {len(means)} of {len(TESTS)} splits;"
            yield Finding(f"{text} least on '{worst}', {means[worst]:.3f}.")

    def tables(self, results: Results) -> dict[str, DataFrame]:
        from pandas import DataFrame

        cells = {
            learner: {name: f"{np.mean(own):.2f} ({min(own):.2f})" for name, own in splits.items()}
            for learner, splits in _scores(results).items()
        }
        scores = DataFrame(cells, index=[*TESTS]).dropna(how="all").fillna("-")
        return {"Mean score of each split, and its worst game's": scores.reset_index(names="split")}

    def draw(self, results: Results) -> figures.Figure:
        series: dict[str, dict[str, Estimate]] = {}
        for learner, splits in _scores(results).items():
            spans = {
                name: [float(np.mean(own)), min(own), max(own)] for name, own in splits.items()
            }
            series[learner] = {
                n: Estimate(*np.maximum(spans[n], -0.25)) for n in TESTS if n in spans
            }
        label = (
            "score: 0 for uniform, 1 for Bayes (dotted), cut at -0.25; lines span the split's games"
        )
        return figures.draw_rows({"": series}, xlabel=label, reference=1.0, scale="linear")


def _games(small: bool) -> list[tuple[str, dict[str, Any]]]:
    """Test games with the name of their split; small ones are shorter, and two of each split."""
    return [
        (name, {**rules, "horizon": min(rules["horizon"], 60)} if small else rules)
        for name, games in TESTS.items()
        for rules in list(games.values())[: 2 if small else None]
    ]


def _scores(results: Results) -> dict[str, dict[str, list[float]]]:
    """Scores in the games of each split, by learner and split."""
    scores: dict[str, dict[str, list[float]]] = {}
    played = results.group(lambda experiment: experiment.rules)
    for split, rules in (*_games(small=True), *_games(small=False)):
        totals = {r.learner: r.totals for r in played.get(Rules.of(rules), [])}
        if {"uniform", "bayes"} <= set(totals):
            uniform, bayes = totals.pop("uniform"), totals.pop("bayes")
            for learner, own in totals.items():
                if (score := score_totals(uniform, own, bayes)) is not None:
                    scores.setdefault(learner, {}).setdefault(split, []).append(score)
    return scores


class Violation(Suite):
    """Learners against truths outside the class, over T, eps and the distance of the truth from a member.

    Attributes:
        kinds: options of each truth, by its name, as a function of the strength of the violation.
        symbol: name of the strength in figures.
        strengths: the strength at which T and eps are varied, and others; 0 is a member.
    """

    kinds: ClassVar[Mapping[str, Callable[[float], dict[str, Any]]]]
    symbol: ClassVar[str]
    strengths: ClassVar[tuple[float, ...]]

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (100, 6) if small else (1000, 64)
        points, usual = [(strength, horizon, 4.0) for strength in self.strengths], self.strengths[0]
        points += [
            (usual, other, 4.0) for other in ((50, 100) if small else (100, 300, 1000, 3000))
        ]
        points += [(usual, horizon, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
        games: list[dict[str, Any]] = [
            {
                "hypotheses": "dirichlet",
                **REDRAWN,
                "channel": channel,
                "horizon": rounds,
                "epsilon": epsilon,
            }
            | ({"truth": kind, "truth_kwargs": options(strength)} if strength else {})
            for kind, options in self.kinds.items()
            for channel in ("laplace-single", "split")
            for strength, rounds, epsilon in points
        ]
        learners = ("uniform", "bayes", "fixed-share", "soft-bayes", "robust")
        return [
            Experiment(Rules.of(game), name, episodes=episodes)
            for name in learners
            for game in games
        ]

    def varied(self, experiment: Experiment) -> dict[str, float]:
        """Quantities that are varied, by their symbols."""
        given = experiment.rules.truth_kwargs
        same = (s for options in self.kinds.values() for s in self.strengths if options(s) == given)
        return {self.symbol: next(same, 0.0), "T": experiment.horizon, "eps": experiment.epsilon}

    def _places(self, results: Results) -> dict[str, list[ExperimentResult]]:
        """Results by kind of truth and channel; a member counts as strength 0 of every kind."""
        places: dict[str, list[ExperimentResult]] = {}
        for kind in self.kinds:
            for result in results.successes:
                if result.experiment.rules.truth in (kind, Rules.truth):
                    places.setdefault(f"{kind}, {result.channel}", []).append(result)
        return places

    def findings(self, results: Results) -> Iterator[Finding]:
        members = results.group(lambda e: e.channel if e.has_member_truth else "")
        members.pop("", None)
        yield from compare_with_bayes(members, "On no channel, where the truth is a member,")
        for place, played in self._places(results).items():
            games: dict[Rules, dict[str, ExperimentResult]] = {}  # by rules and learner
            for r in played:
                if not r.experiment.has_member_truth:
                    games.setdefault(r.experiment.rules, {})[r.learner] = r
            if not games:
                continue
            behind = [
                _words(self.varied(game["bayes"].experiment))
                for game in games.values()
                if {"bayes", "uniform"} <= set(game)
                and statistics.difference(game["bayes"].totals, game["uniform"].totals).low > 0.0
            ]
            text = f"{place}: games in which Bayes falls behind uniform, beyond the error: {len(behind)}"
            yield Finding(text + (f" ({'; '.join(behind)})." if behind else "."))
            ends = [
                (self.varied(next(iter(game.values())).experiment), game) for game in games.values()
            ]
            at, last = max(ends, key=lambda end: (end[0]["T"], *end[0].values()))
            regrets = [
                f"{r.learner} {r.regret}" for r in sorted(last.values(), key=lambda r: r.risk.value)
            ]
            yield Finding(f"{place}: regret at {_words(at)}: {', '.join(regrets)}.")

    def draw(self, results: Results) -> figures.Figure:
        panels: figures.Panels = {}
        for place, played in self._places(results).items():
            for r in played:
                row = panels.setdefault(place, {}).setdefault(r.learner, {})
                row[_words(self.varied(r.experiment))] = r.regret
        return figures.draw_rows(
            panels, xlabel="regret over the best member (nats)", scale="symlog"
        )


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
    kinds = {
        "mixture": lambda rho: {"weights": [1.0 - rho, rho]},
        "contaminated": lambda rho: {"rho": rho},
    }
    symbol, strengths = "share", (0.5, 0.0, 0.1, 0.2, 0.3, 0.4)


class Moving(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth changes to another member now and then."""

    name = "switching"
    title = "A truth that moves"
    claim = (
        "Bayes' optimality and the theorems speak of one member throughout. Here it changes to another at "
        "unknown rounds. Regret is over the single member that is best in hindsight, and is negative for a "
        "learner that follows the switches. T = 1,000, eps = 4, one switch, unless varied."
    )
    kinds = {"switching": lambda switches: {"num_switches": int(switches)}}
    symbol, strengths = "switches", (1, 0, 2, 4, 8)


EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""Privacy levels of a game whose rules name none."""


class YourGame(Suite):
    """A game by its rules, on all channels and with all learners unless some are named.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists; models and data
            by ``"module:object"``. ``epsilon`` may be a list.
    """

    name = address = "your-game"
    title = "Your game"
    claim = "An episode repeats the game with new contexts, labels and coins, as far as its rules draw them."

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules: dict[str, Any] = plain(dict(rules))
        Rules.of(
            {**self.rules, "epsilon": None}
        ).to_json()  # raises where a rule is wrong or an object
        self.parameters = {"rules": self.rules}
        given = self.rules.get("epsilon", EPSILONS)
        self.epsilons = [
            validation.positive("epsilon", e) for e in (given if np.ndim(given) else [given])
        ]
        if not self.epsilons:
            raise ValueError("epsilon must be a number or a list of some, got an empty list")

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Every learner on every channel that fits, at every eps."""
        named = self.rules.get("channel")
        channels = [named] if named else [name for name in CHANNELS if self._fits(name)]
        # An error in the game is raised now, not in every cell.
        make_scenario(self._rules_on(channels[0] if channels else "split", self.epsilons[0]))
        return [
            Experiment(rules, learner, episodes=8 if small else 64)
            for channel in channels
            for epsilon in (self.epsilons[:1] if channel == "identity" else self.epsilons)
            for rules in [self._rules_on(channel, epsilon)]
            for learner in LEARNERS
        ]

    def experiments(self, size: str = "default", **options: Any) -> list[Experiment]:
        """Experiments; only of the learners and channels that are named, where some are."""
        learners, channels = options.get("learners"), options.get("channels")
        heard = [
            e for e in super().experiments(size, **options) if not channels or e.channel in channels
        ]
        return [e for e in heard if not learners or e.learner in learners]

    def place(self, experiment: Experiment) -> tuple[str, str]:
        return f"eps = {experiment.epsilon:g}", experiment.channel

    def _rules_on(self, channel: str, epsilon: float) -> Rules:
        return Rules(
            **channel_rules(channel) | self.rules | {"channel": channel, "epsilon": epsilon}
        )

    def _fits(self, channel: str) -> bool:
        try:
            make_scenario(self._rules_on(channel, self.epsilons[0]))
        except (TypeError, ValueError):
            return False
        return True
