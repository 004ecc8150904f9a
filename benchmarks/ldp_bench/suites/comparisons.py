"""Learners side by side: on channels, natures, games to test agents on, and truths outside the class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

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
        channels = (
            "laplace-vector",
            "laplace-single",
            "randomized-response",
            "split",
            "half-space",
            "wheel",
            "adaptive-split",
            "challenge",
            "identity",
        )
        learners = ("uniform", "wma", "exp3", "centred-exp3", "mle", "amortized", "bayes")
        horizon, episodes = 1000, 100
        if small:
            horizon, episodes = 100, 10
        return [
            Experiment(Rules(**channel_rules(channel), horizon=horizon), learner, episodes=episodes)
            for channel in channels
            for learner in learners
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        sentence, numbers = self.lead(results)
        if numbers:
            listed = ", ".join(f"{number} {meaning}" for meaning, number in numbers.items())
            yield Finding(f"{sentence}: {listed}.")
        yield from compare_with_bayes(results.group(lambda experiment: experiment.channel))

    def lead(self, results: Results) -> tuple[str, dict[str, str]]:
        horizon = results.successes[0].horizon
        sentence = (
            f"Loss in nats over {horizon:,} users who send one message each about a private label "
            "(ε = 1), read by Bayes' rule"
        )
        risks = {
            (result.learner, result.channel): result.risk.value for result in results.successes
        }
        numbers = {
            meaning: f"{risks[pair]:#.3g}".rstrip(".")
            for pair, meaning in self.story.items()
            if pair in risks
        }
        return sentence, numbers


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
        horizon, episodes = 1000, 64
        if small:
            horizon, episodes = 100, 8
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
            by_nature = {
                str(result.experiment.rules.nature): result
                for result in results.select(learner="bayes", channel=channel)
            }
            if {"iid", "adversary"} <= set(by_nature):
                yield _compare_natures(channel, by_nature)

        games = results.group(lambda e: (str(e.rules.nature), e.channel))
        hidden_truth = {
            f"{channel} under {nature}": game
            for (nature, channel), game in games.items()
            if not NATURES.class_of(nature).leaks_truth
        }
        yield from compare_with_bayes(hidden_truth, "Under no nature that hides the truth")

    def place(self, experiment: Experiment) -> tuple[str, str]:
        return experiment.channel, str(experiment.rules.nature)


def _compare_natures(channel: str, by_nature: Mapping[str, ExperimentResult]) -> Finding:
    """Risk of Bayes on i.i.d. contexts, and how many times as much it is under other natures."""
    iid = by_nature["iid"]
    ratios = [
        f"{result.risk.value / iid.risk.value:.2f} times as much under {nature}"
        for nature, result in by_nature.items()
        if nature != "iid"
    ]
    added = statistics.difference(by_nature["adversary"].totals, iid.totals)
    return Finding(
        f"{channel}: Bayes pays {iid.risk} nats on i.i.d. contexts, {', '.join(ratios)}. The adversary "
        f"adds {added} nats."
    )


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
        episodes = 128
        if small:
            episodes = 6
        return [
            Experiment(Rules.of(game.rules), learner, episodes=episodes)
            for game in _games(small)
            for learner in ("uniform", "bayes", "exp3", "centred-exp3", "amortized")
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        for learner, scores_by_split in _scores(results).items():
            means = {split: float(np.mean(scores)) for split, scores in scores_by_split.items()}
            worst = min(means, key=lambda split: means[split])
            mean = sum(means.values()) / len(means)
            yield Finding(
                f"{learner}: mean score {mean:.3f} over {len(means)} of {len(TESTS)} splits; least on "
                f"'{worst}', {means[worst]:.3f}."
            )

    def tables(self, results: Results) -> dict[str, DataFrame]:
        from pandas import DataFrame

        cells = {
            learner: {
                split: f"{np.mean(scores):.2f} ({min(scores):.2f})"
                for split, scores in scores_by_split.items()
            }
            for learner, scores_by_split in _scores(results).items()
        }
        table = DataFrame(cells, index=[*TESTS]).dropna(how="all").fillna("-")
        return {"Mean score of each split, and its worst game's": table.reset_index(names="split")}

    def draw(self, results: Results) -> figures.Figure:
        series: dict[str, dict[str, Estimate]] = {}
        for learner, scores_by_split in _scores(results).items():
            row = series.setdefault(learner, {})
            for split in TESTS:
                scores = scores_by_split.get(split)
                if scores:
                    row[split] = Estimate(
                        max(float(np.mean(scores)), _LEAST_SHOWN),
                        max(min(scores), _LEAST_SHOWN),
                        max(max(scores), _LEAST_SHOWN),
                    )
        label = (
            f"score: 0 for uniform, 1 for Bayes (dotted), cut at {_LEAST_SHOWN:g}; lines span the "
            "split's games"
        )
        return figures.draw_rows({"": series}, xlabel=label, reference=1.0, scale="linear")


_LEAST_SHOWN = -0.25
"""Least score in the figure of the suite ``splits``."""

_SMALL_HORIZON = 60
"""Longest horizon of the suite ``splits`` at the small size."""


class SplitGame(NamedTuple):
    """Rules of a test game, and the name of its split."""

    split: str
    rules: dict[str, Any]


def _games(small: bool) -> list[SplitGame]:
    """List the test games; at the small size they are shorter, and at most two of each split."""
    games = [SplitGame(split, rules) for split, tests in TESTS.items() for rules in tests.values()]
    if not small:
        return games
    first_two = [
        SplitGame(split, rules)
        for split, tests in TESTS.items()
        for rules in list(tests.values())[:2]
    ]
    return [
        SplitGame(split, {**rules, "horizon": min(rules["horizon"], _SMALL_HORIZON)})
        for split, rules in first_two
    ]


def _scores(results: Results) -> dict[str, dict[str, list[float]]]:
    """Scores in the games of each split, by learner and split."""
    scores: dict[str, dict[str, list[float]]] = {}
    results_by_rules = results.group(lambda experiment: experiment.rules)
    for game in (*_games(small=True), *_games(small=False)):
        played = results_by_rules.get(Rules.of(game.rules), [])
        totals = {result.learner: result.totals for result in played}
        if not {"uniform", "bayes"} <= set(totals):
            continue
        uniform = totals.pop("uniform")
        bayes = totals.pop("bayes")
        for learner, own_totals in totals.items():
            score = score_totals(uniform, own_totals, bayes)
            if score is not None:
                scores.setdefault(learner, {}).setdefault(game.split, []).append(score)
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
        horizon, episodes = 1000, 64
        horizons: tuple[int, ...] = (100, 300, 1000, 3000)
        if small:
            horizon, episodes = 100, 6
            horizons = (50, 100)

        usual = self.strengths[0]
        points = [(strength, horizon, 4.0) for strength in self.strengths]
        points += [(usual, other, 4.0) for other in horizons]
        points += [(usual, horizon, epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
        games = [
            self._rules(kind, channel, strength, rounds, epsilon)
            for kind in self.kinds
            for channel in ("laplace-single", "split")
            for strength, rounds, epsilon in points
        ]
        return [
            Experiment(game, learner, episodes=episodes)
            for learner in ("uniform", "bayes", "fixed-share", "soft-bayes", "robust")
            for game in games
        ]

    def _rules(
        self, kind: str, channel: str, strength: float, horizon: int, epsilon: float
    ) -> Rules:
        """Rules of a game with a truth of a kind at a strength; at strength 0 it is a member."""
        rules: dict[str, Any] = {
            "hypotheses": "dirichlet",
            **REDRAWN,
            "channel": channel,
            "horizon": horizon,
            "epsilon": epsilon,
        }
        if strength:
            rules["truth"] = kind
            rules["truth_kwargs"] = self.kinds[kind](strength)
        return Rules.of(rules)

    def varied(self, experiment: Experiment) -> dict[str, float]:
        """Quantities that are varied, by their symbols."""
        return {
            self.symbol: self._strength(experiment),
            "T": experiment.horizon,
            "eps": experiment.epsilon,
        }

    def _strength(self, experiment: Experiment) -> float:
        """Strength of the violation; 0 if the truth is a member."""
        given = experiment.rules.truth_kwargs
        for options in self.kinds.values():
            for strength in self.strengths:
                if options(strength) == given:
                    return strength
        return 0.0

    def _places(self, results: Results) -> dict[str, list[ExperimentResult]]:
        """Results by kind of truth and channel; a member counts as strength 0 of every kind."""
        places: dict[str, list[ExperimentResult]] = {}
        for kind in self.kinds:
            for result in results.successes:
                if result.experiment.rules.truth in (kind, Rules.truth):
                    places.setdefault(f"{kind}, {result.channel}", []).append(result)
        return places

    def findings(self, results: Results) -> Iterator[Finding]:
        members: dict[str, list[ExperimentResult]] = {}
        for result in results.successes:
            if result.experiment.has_member_truth:
                members.setdefault(result.channel, []).append(result)
        yield from compare_with_bayes(members, "On no channel, where the truth is a member,")

        for place, played in self._places(results).items():
            games: dict[Rules, dict[str, ExperimentResult]] = {}
            for result in played:
                if not result.experiment.has_member_truth:
                    games.setdefault(result.experiment.rules, {})[result.learner] = result
            if games:
                by_learner = list(games.values())
                yield self._find_behind(place, by_learner)
                yield self._find_regrets(place, by_learner)

    def _find_behind(self, place: str, games: Sequence[Mapping[str, ExperimentResult]]) -> Finding:
        """Games, as results by learner, in which Bayes pays more than the uniform mixture."""
        behind = list[str]()
        for game in games:
            if not {"bayes", "uniform"} <= set(game):
                continue
            gap = statistics.difference(game["bayes"].totals, game["uniform"].totals)
            if gap.low > 0.0:
                behind.append(_words(self.varied(game["bayes"].experiment)))
        text = (
            f"{place}: games in which Bayes falls behind uniform, beyond the error: {len(behind)}"
        )
        if behind:
            text += f" ({'; '.join(behind)})"
        return Finding(f"{text}.")

    def _find_regrets(self, place: str, games: Sequence[Mapping[str, ExperimentResult]]) -> Finding:
        """Regrets of all learners in the longest game, by their risk; games are results by learner."""

        def length_and_rest(game: Mapping[str, ExperimentResult]) -> tuple[float, ...]:
            varied = self.varied(next(iter(game.values())).experiment)
            return varied["T"], *varied.values()

        longest = max(games, key=length_and_rest)
        ranked = sorted(longest.values(), key=lambda result: result.risk.value)
        regrets = ", ".join(f"{result.learner} {result.regret}" for result in ranked)
        at = _words(self.varied(ranked[0].experiment))
        return Finding(f"{place}: regret at {at}: {regrets}.")

    def draw(self, results: Results) -> figures.Figure:
        panels: figures.Panels = {}
        for place, played in self._places(results).items():
            for result in played:
                row = panels.setdefault(place, {}).setdefault(result.learner, {})
                row[_words(self.varied(result.experiment))] = result.regret
        return figures.draw_rows(
            panels, xlabel="regret over the best member (nats)", scale="symlog"
        )


def _words(varied: Mapping[str, float]) -> str:
    """List quantities with their symbols."""
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
    symbol = "share"
    strengths = (0.5, 0.0, 0.1, 0.2, 0.3, 0.4)


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
    symbol = "switches"
    strengths = (1, 0, 2, 4, 8)


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
        # Raise now if a rule is wrong or an object.
        Rules.of({**self.rules, "epsilon": None}).to_json()
        self.parameters = {"rules": self.rules}

        given = self.rules.get("epsilon", EPSILONS)
        if np.ndim(given) == 0:
            given = [given]
        self.epsilons = [validation.positive("epsilon", epsilon) for epsilon in given]
        if not self.epsilons:
            raise ValueError("epsilon must be a number or a list of some, got an empty list")

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Every learner on every channel that fits, at every eps."""
        named = self.rules.get("channel")
        if named:
            channels = [named]
        else:
            channels = [name for name in CHANNELS if self._fits(name)]
        # An error in the game is raised now, not in every cell.
        first = channels[0] if channels else "split"
        make_scenario(self._rules_on(first, self.epsilons[0]))

        episodes = 8 if small else 64
        experiments = list[Experiment]()
        for channel in channels:
            epsilons = self.epsilons
            if channel == "identity":  # it has no eps
                epsilons = self.epsilons[:1]
            for epsilon in epsilons:
                rules = self._rules_on(channel, epsilon)
                experiments += [
                    Experiment(rules, learner, episodes=episodes) for learner in LEARNERS
                ]
        return experiments

    def experiments(self, size: str = "default", **options: Any) -> list[Experiment]:
        """Experiments; only of the learners and channels that are named, where some are."""
        learners = options.get("learners")
        channels = options.get("channels")
        experiments = super().experiments(size, **options)
        if channels:
            experiments = [one for one in experiments if one.channel in channels]
        if learners:
            experiments = [one for one in experiments if one.learner in learners]
        return experiments

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
