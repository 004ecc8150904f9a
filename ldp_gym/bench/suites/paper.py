"""Claims of the paper: upper bounds against T, K, eps and M, lower bounds, and total variation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ldp_gym import statistics, theory
from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import REDRAWN, TABLES, Suite, channel_rules
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import PValues, above, below, certain, every

_PLAYED = (
    *((name, "laplace-single") for name in ("exp3", "centred-exp3", "bayes")),
    ("bayes", "split"),
)
"""Learners and channels that several suites play."""

_FRESH = {**TABLES, **REDRAWN}
"""Rules of Dirichlet(0.3) tables, a new one in every episode."""


class Upper(Suite):
    """EXP3 and WMA as the paper has them, over four decades of T, with the bounds of Sections 4 and 5."""

    name = "upper"
    title = "Risk against T, below the theorems' bounds"
    claim = (
        "Algorithms 1 and 2 have risk of order sqrt(T) up to logarithms: at most the theorem's bound, and "
        "of slope less than 1 in log-log once they learn. Dirichlet(0.3) tables with K = 8, M = 16, eps = "
        "1; every episode has its own table, the same at every T: the intervals are over tables. There the "
        "bounds are vacuous: a learner that never learns keeps them. They are tested on two disjoint "
        "hypotheses, T = 20,000, at an eps so large that they say something."
    )
    axis = "T"
    fitted = 2
    pairs = (
        *(("exp3", "laplace-single", 10**7), ("wma", "laplace-vector", 10**6)),
        *(("centred-exp3", "laplace-single", 10**6), ("centred-exp3", "laplace-vector", 10**6)),
        *(("bayes", "laplace-single", 10**6), ("uniform", "laplace-single", 10**4)),
    )
    """Learner, channel and the longest horizon that it is worth playing."""

    episodes: ClassVar[dict[int, int]] = {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 8}
    """Number of tables, and episodes, at each horizon; the shorter ones share theirs with the longer."""

    telling: ClassVar[dict[tuple[str, str], float]] = {
        ("exp3", "laplace-single"): 50.0,
        ("wma", "laplace-vector"): 1000.0,
    }
    """An eps at which the bound is not vacuous for two disjoint hypotheses in 20,000 rounds."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        counts = {10**3: 8, 10**4: 4} if small else self.episodes
        tables = [
            Experiment(
                Rules.of({**_FRESH, **channel_rules(channel), "horizon": horizon}), learner, episodes=count
            )
            for learner, channel, end in self.pairs
            for horizon, count in counts.items()
            if horizon <= end
        ]
        pair = {"hypotheses": "disjoint", "num_hypotheses": 2, "horizon": 20_000}
        return tables + [
            Experiment(
                Rules.of({**pair, **channel_rules(channel), "epsilon": epsilon}),
                name,
                episodes=8,
                truth="all",
            )
            for (learner, channel), epsilon in self.telling.items()
            for name in (learner, "uniform")
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        yield from super().findings(results)
        idle = [r.totals / r.horizon for r in results.line("uniform", "laplace-single")[:1]]
        for learner, channel, _ in self.pairs[:-1]:
            line = results.line(learner, channel)
            if idle and line:
                shares = [r.totals.mean() / r.horizon / idle[0][: len(r.totals)].mean() for r in line]
                below_half = [r.horizon for r, share in zip(line, shares, strict=True) if share < 0.5]
                start = f"from T = {below_half[0]:,}" if below_half else "nowhere"
                text = f"below half of the uniform mixture's risk {start}; at the end it has"
                yield Finding(f"{learner} on {channel}: {text} {shares[-1]:.2g} of it.")
            if idle and line and np.isfinite(line[0].bound):
                never = [idle[0][: len(r.totals)] * r.horizon for r in line]  # without learning
                most, least = (
                    max(totals.mean() / r.bound for r, totals in zip(line, some, strict=True))
                    for some in ([r.totals for r in line], never)
                )
                text = f"{learner} on tables: at most {most:.2g} times the theorem's bound; without learning "
                parts = [below(r.totals, r.bound, control) for r, control in zip(line, never, strict=True)]
                yield Finding(f"{text}at most {least:.2g} times.", every(parts))
        for r, control in _with_controls(results.successes):
            if np.isfinite(r.bound):
                text = (
                    f"{r.learner} on two disjoint hypotheses, eps = {r.experiment.epsilon:g}: the worst risk "
                )
                text += f"is {r.risk / r.bound} times the theorem's bound; without learning "
                holds = below(r.evaluation.kl[..., -1], r.bound, control.evaluation.kl[..., -1])
                yield Finding(f"{text}{control.risk.value / r.bound:.2g} times.", holds)
        last = results.line("exp3", "laplace-single")[-2:]
        if len(last) == 2 and last[1].horizon == max(self.episodes):
            slopes = statistics.slope_contributions([r.horizon for r in last], [r.totals for r in last])
            yield Finding("exp3: the slope over the last decade is below 1.", below(slopes, 1.0))


class Sweep(Suite):
    """Base class of the suites along K and eps: the first three of the ``games`` make the small suite."""

    games: ClassVar[tuple[dict[str, Any], ...]]

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (200, 6) if small else (10_000, 32)
        games = [{**_FRESH, **rules, "horizon": horizon} for rules in self.games[: 3 if small else None]]
        return [
            Experiment(Rules.of({**game, "channel": channel}), learner, episodes=episodes)
            for learner, channel in (("uniform", "laplace-single"), *_PLAYED)
            for game in games
        ]


class NumHypotheses(Sweep):
    """Dirichlet(0.3) tables of 4 to 64 hypotheses over 64 labels."""

    name = "num-hypotheses"
    title = "Risk against K"
    claim = (
        "The bound of Algorithm 2 grows like sqrt(K) up to logarithms. Where one of K coordinates is "
        "revealed, Bayes needs K times as many rounds. T = 10,000, eps = 1; every episode has its own "
        "table."
    )
    axis = "K"
    predicted = {
        ("exp3", "laplace-single"): (0.5, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (0.5, "the bound's"),
        ("bayes", "laplace-single"): (1.0, "one coordinate of K per round"),
    }
    games = tuple({"num_labels": 64, "num_hypotheses": k} for k in (4, 8, 16, 32, 64))


class Epsilon(Sweep):
    """Dirichlet(0.3) tables with K = 8, M = 16 at privacy levels from 1/4 to 8."""

    name = "epsilon"
    title = "Risk against eps"
    claim = (
        "The bound of Algorithm 2 falls like 1/eps. A message tells about eps^2/8 nats at small eps, so "
        "that Bayes needs 1/eps^2 as many rounds. T = 10,000; every episode has its own table."
    )
    axis = "eps"
    predicted = {
        ("exp3", "laplace-single"): (-1.0, "the bound's, once it learns"),
        ("centred-exp3", "laplace-single"): (-1.0, "the bound's"),
        ("bayes", "laplace-single"): (-2.0, "information, at small eps"),
        ("bayes", "split"): (-2.0, "information, at small eps"),
    }
    games = tuple({"epsilon": epsilon} for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0))


class NumLabels(Suite):
    """Tables with every label cut into ever more equal parts: M grows and nothing else changes."""

    name = "num-labels"
    title = "Risk against M"
    claim = (
        "Randomized response pays for the number of labels; channels on the hypotheses do not, however "
        "many labels there are. Refined Dirichlet(0.3) tables, one per episode, K = 8, eps = 1, Bayes on "
        "each channel."
    )
    axis = "M"

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (300, 16) if small else (1000, 32)
        rules = {"hypotheses": "refined", "num_hypotheses": 8, **REDRAWN, "horizon": horizon}
        refined = [
            rules | {"num_labels": 16 * parts, "hypotheses_kwargs": {"parts": parts}}
            for parts in ((1, 4, 16, 64) if small else (1, 4, 16, 64, 256, 1024))
        ]
        channels = ("randomized-response", "subset-selection", "laplace-single", "vote", "split", "wheel")
        games = [{**game, "channel": channel} for channel in channels for game in refined]
        idle = Experiment(Rules.of({**refined[0], "channel": "split"}), "uniform", episodes=episodes)
        return [*(Experiment(Rules.of(game), "bayes", episodes=episodes) for game in games), idle]

    def findings(self, results: Results) -> Iterator[Finding]:
        idle = [result.totals for result in results.select(learner="uniform")]  # the same at every M
        for channel in results.channels:
            line = results.line("bayes", channel, self.position)
            if len(line) < 2:
                continue
            x, y = [r.experiment.num_labels for r in line], [r.totals for r in line]
            span = f"{channel}: from M = {x[0]} to {x[-1]:,}"
            if CHANNELS.class_of(channel).free_of_num_labels:
                change = max(float(np.abs(totals - y[0]).max()) for totals in y)
                text = f"{span} no episode's risk changes by more than {change:.0e} nats"
                learns = [below(statistics.paired(y[0], totals), 0.0) for totals in idle]
                text += (
                    f", and Bayes pays {y[0].mean() / idle[0].mean():.2g} of not learning." if idle else "."
                )
                yield Finding(text, every([certain(change < 1e-6), *learns]) if idle else None)
            else:
                claimed = channel == "randomized-response"
                grows = above(statistics.slope_contributions(x, y), 0.0) if claimed else None
                yield Finding(f"{span} the risk has slope {statistics.slope(x, y)} in M.", grows)


def _pure_channels(adaptive: bool) -> list[str]:
    """Pure channels of the package, with or without the adaptive ones."""
    ours = {name: CHANNELS.class_of(name) for name in CHANNELS.own if name != "identity"}
    return sorted(name for name, made in ours.items() if made.pure and (adaptive or not made.adaptive))


class Lower(Suite):
    """Every pure channel that a bound speaks of, in the worst truth, with Bayes and without learning."""

    name = "lower"
    title = "The lower bounds' classes"
    claim = (
        "On the Hadamard class every pure, non-adaptive channel pays at least a T / 132 for some truth, "
        "whatever the learner (Appendix A): tested at small eps, where that is more than Bayes pays without "
        "privacy. On the class hadamard-star every pure channel, adaptive or not, pays at least our bound "
        "(interactive_lower_bound)."
    )
    points = ((8, 10_000, 0.05), (8, 30_000, 0.05), (32, 10_000, 0.05), (8, 10_000, 0.1))
    """2K hypotheses, T and eps: a base point, and others that differ from it in one of them."""

    stars = ((8, 1_000, 1.0), (8, 1_000, 0.2), (32, 1_000, 0.2))
    """K hypotheses of a star, T and eps."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        episodes = 8 if small else 16
        points = ((2, 2_000, 0.02),) if small else self.points
        stars = ((8, 400, 0.2),) if small else self.stars
        games = [
            {"hypotheses": family, "num_hypotheses": k, "horizon": t, "epsilon": e, "channel": channel}
            for family, some in (("hadamard", points), ("hadamard-star", stars))
            for k, t, e in some
            for channel in _pure_channels(adaptive=family == "hadamard-star")
        ]
        learners = ("bayes", "uniform")
        return [
            Experiment(Rules.of(g), name, episodes=episodes, truth="all") for g in games for name in learners
        ]

    def _panels(self, results: Results) -> dict[str, tuple[float, list[ExperimentResult]]]:
        """Lower bound and results of each point, by its title."""
        panels = {}
        for (star, point), played in results.group(lambda e: (e.family != "hadamard", _point(e))).items():
            size, horizon, epsilon = point
            title = f"{'star, ' if star else '2'}K = {size}, T = {horizon:,}, eps = {epsilon:g}"
            amplitude = theory.star_amplitude(*point)
            bound = theory.interactive_lower_bound(*point, amplitude) if star else theory.lower_bound(*point)
            panels[title] = bound, played
        return panels

    def findings(self, results: Results) -> Iterator[Finding]:
        for title, (bound, played) in self._panels(results).items():
            best, count = min(played, key=lambda r: r.risk.value), len({r.channel for r in played})
            where = f"{title}: the best of {count} channels is {best.channel} ({best.learner})"
            text = f"{where}, with {best.risk.value / bound:,.3g} times the lower bound, {bound:.3g} nats."
            yield Finding(text, _never_below(played, bound))

    def draw(self, results: Results) -> figures.Figure:
        panels = self._panels(results).items()
        return figures.draw_ranking(
            {title.replace(", ", "\n"): panel for title, panel in panels},
            "worst truth, best learner: multiple of the lower bound",
        )


def _point(experiment: Experiment) -> tuple[int, int, float]:
    return experiment.num_hypotheses, experiment.horizon, experiment.epsilon


def _never_below(played: Sequence[ExperimentResult], bound: float) -> PValues:
    """Test that no result is below a bound; the control is Bayes without privacy, with log K at most."""
    control = theory.nonprivate_bound(played[0].experiment.num_hypotheses)
    return every(above(r.evaluation.kl[..., -1], bound, control) for r in played)


def _with_controls(played: Sequence[ExperimentResult]) -> Iterator[tuple[ExperimentResult, ExperimentResult]]:
    """Results for the worst truth, each with that of the uniform mixture in the same game, the control."""
    worst = [r for r in played if r.experiment.truth == "all"]
    controls = {r.experiment.rules: r for r in worst if r.learner == "uniform"}
    others = [r for r in worst if r.learner != "uniform" and r.experiment.rules in controls]
    return ((r, controls[r.experiment.rules]) for r in others)


class Limit(Suite):
    """Every pure channel with Bayes, as a multiple of what no eps-private system can go below."""

    name = "limit"
    title = "Against the information limit"
    claim = (
        "An eps-private message tells at most C(eps) nats about the truth, so on disjoint supports the "
        "risk is at least sum_t max(0, log K - (t - 1) C(eps)), adaptive or not. eps = 1, uniform truth."
    )

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (300, 20) if small else (900, 400)
        games = [
            {"hypotheses": "disjoint", "num_hypotheses": k, "channel": channel, "horizon": horizon}
            for k in ((8,) if small else (8, 32, 128))
            for channel in _pure_channels(adaptive=True)
            if channel != "designed" or k <= 32  # its limit
        ]
        return [Experiment(Rules.of(rules), "bayes", episodes=episodes) for rules in games]

    def findings(self, results: Results) -> Iterator[Finding]:
        for (k, horizon, _), lines in results.group(_point).items():
            limit = theory.information_limit(k, horizon, 1.0)
            for kind, adaptive in (("non-adaptive", False), ("adaptive", True)):
                if of_kind := [r for r in lines if CHANNELS.class_of(r.channel).adaptive is adaptive]:
                    best = min(of_kind, key=lambda result: result.risk.value)
                    yield Finding(
                        f"K = {k}, {kind}: {best.channel} pays {best.risk / limit} times the limit."
                    )
            text = f"K = {k}: the claim is that none of {len(lines)} channels is below the limit."
            yield Finding(text, _never_below(lines, limit))

    def draw(self, results: Results) -> figures.Figure:
        groups = sorted(results.group(_point).items(), reverse=True)
        panels = {f"K = {p[0]}": (theory.information_limit(p[0], p[1], 1.0), lines) for p, lines in groups}
        return figures.draw_ranking(panels, "risk as a multiple of the information limit")


class TV(Suite):
    """Averaged TV-risk against T, with Pinsker's bound."""

    name = "tv"
    title = "Total variation"
    claim = (
        "By Pinsker's inequality the averaged TV-risk is at most sqrt(KL-risk / 2T). Section 6 proves an "
        "averaged TV-risk of order T^(-1/4) and leaves open whether (1/eps) sqrt(K/T) can be had: the slopes "
        "in T are measured over 8 Dirichlet(0.3) tables, K = 8, M = 16, eps = 1. It can, on half-space: the "
        "sum of TV^2 is at most pi (K-1) log K / (4 tanh^2(eps/2)) for every T, class, truth and context: "
        "measured for the worst truth of 8 tables, and on contexts by two adversaries."
    )
    axis = "T"
    quantity = "averaged total variation"

    def own_experiments(self, small: bool) -> list[Experiment]:
        vectors = (("wma", "laplace-vector"), ("centred-exp3", "laplace-vector"))
        games = [
            (learner, {**_FRESH, **channel_rules(channel), "horizon": horizon})
            for learner, channel in (*_PLAYED, *vectors)
            for horizon in ((100, 300) if small else (1_000, 10_000, 100_000, 1_000_000))
        ]
        horizon, rounds, count = (300, 150, 4) if small else (10_000, 1_000, 32)
        theorem = [{**TABLES, "class_seed": i, "horizon": horizon} for i in range(8)]
        theorem += [{"hypotheses": _tilts(), "horizon": 1_000 if small else 4_000}]
        natures = [{"nature": n, "horizon": rounds} for n in ("omniscient", "adversary")[: 1 if small else 2]]
        return [Experiment(Rules.of(rules), learner, episodes=8) for learner, rules in games] + [
            Experiment(Rules.of({**rules, "channel": "half-space"}), name, episodes=number, truth="all")
            for some, most in ((theorem, 32), (natures, count))
            for rules in some
            for name, number in (("bayes", most), ("uniform", 4))
        ]

    def measure(self, result: ExperimentResult) -> FloatArray:
        """TV from the truth of each episode, averaged over its rounds."""
        return result.evaluation.tv[:, -1] / result.horizon

    def bound(self, result: ExperimentResult) -> float:
        """Pinsker's bound on the averaged TV-risk; infinite for an infinite risk."""
        risk = result.risk.value
        return theory.tv_bound(risk, result.horizon) if np.isfinite(risk) else np.inf

    def findings(self, results: Results) -> Iterator[Finding]:
        played = [r for r in results.successes if r.experiment.truth != "all"]
        above = [str(r.experiment) for r in played if self.measure(r).mean() > self.bound(r)]
        text = "The averaged TV-risk is below Pinsker's bound from the measured KL-risk everywhere."
        if above:  # a theorem about these very numbers
            text = f"Averaged TV-risk exceeds Pinsker's bound: {'; '.join(above)}"
        yield Finding(text, certain(False) if above else None)
        yield from _find_squares(results)
        for learner, channel in results.pairs:
            if len(line := results.line(learner, channel)) > 1:
                x, y = [r.horizon for r in line], [self.measure(r) for r in line]
                slopes = f"slope {statistics.slope(x, y)} in T from {x[0]:,} to {x[-1]:,}, and "
                slopes += f"{statistics.slope(x[-2:], y[-2:])} from {x[-2]:,} on"
                text = f"the averaged TV-risk has {slopes} (proved: -1/4 up to logarithms; asked for: -1/2)."
                yield Finding(f"{learner} on {channel}: {text}")


def _find_squares(results: Results) -> Iterator[Finding]:
    """Compare the sums of squared TV on half-space, for the worst truth, with their bound."""
    places: dict[str, list[tuple[FloatArray, ...]]] = {}
    bounds = {}
    bayes = results.select(learner="bayes", channel="half-space")
    for played in _with_controls([*bayes, *results.select(learner="uniform", channel="half-space")]):
        num_hypotheses, horizon, epsilon = _point(played[0].experiment)
        nature, family = played[0].experiment.rules.nature, played[0].experiment.family
        place = "15 Hadamard tilts of the uniform distribution" if family == "table" else "Dirichlet tables"
        place = f"contexts by {nature}" if nature else place
        bounds[place] = horizon * theory.half_space_tv_bound(num_hypotheses, horizon, epsilon) ** 2
        sums = tuple(np.asarray(r.evaluation.tv_squared)[..., -1] for r in played)
        places.setdefault(place, []).append(sums)
    for place, games in places.items():
        worst, never = (
            max(own.mean(axis=-1).max() for own in some) / bounds[place] for some in zip(*games, strict=True)
        )
        text = f"bayes on half-space, {place}: the sum of TV^2 is {worst:.2g} times the theorem's bound, "
        text += f"{bounds[place]:.1f}, for the worst truth; without learning {never:.2g} times."
        yield Finding(text, every(below(own, bounds[place], idle) for own, idle in games))


def _tilts() -> list[list[float]]:
    """The uniform distribution on 16 labels, and 15 that double the probability of half of them."""
    from scipy.linalg import hadamard

    return [[1.0 / 16] * 16, *((1.0 + hadamard(16)[1:]) / 16.0).tolist()]
