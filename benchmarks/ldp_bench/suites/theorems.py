"""The suite ``theorems``: upper bounds at the worst truth, lower bounds, and slopes in T."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results, grouped
from ldp_bench.suites.base import REDRAWN, TABLES, Finding, Suite, channel_rules
from ldp_bench.suites.limit import never_below, pure_channels
from ldp_gym import statistics, theory
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import Estimate, below, certain, conjunction

_LONG = 10**7
"""Horizon at whose end the slope of Algorithm 2 is claimed to be below 1."""

_GUARDED = 0.25
"""Share of the questions that ``challenge`` asks by Theorem 1 if its guard is on."""


class PaperScheme(NamedTuple):
    """A learner on a channel, and the longest horizon at which it plays redrawn tables."""

    learner: str
    channel: str
    longest: int


class BoundedScheme(NamedTuple):
    """Options of Bayes, and rules of the channel, for which one of our theorems holds."""

    options: dict[str, Any]
    rules: dict[str, Any]


class Theorems(Suite):
    """The paper's learners, half-space and challenge on hard classes, between upper and lower bounds."""

    name = "theorems"
    title = "Theorems of the paper and ours, and lower bounds"
    claim = (
        "Theorems 4 and 5 bound the KL-risk of WMA and EXP3; ours bound KL-risk and sum of TV^2 on "
        "half-space, and for Bayes at rate 1/2 on challenge, for every class, truth and context: tested for "
        "the worst truth. No pure channel is below the lower bounds: the paper's on its Hadamard class "
        "(channels fixed in advance), ours on hadamard-star (interactive ones too). Tables are "
        "Dirichlet(0.3), K = 8, M = 16, one per episode. eps = 1 unless said."
    )
    paper_schemes: ClassVar[tuple[PaperScheme, ...]] = (
        PaperScheme("exp3", "laplace-single", _LONG),
        PaperScheme("wma", "laplace-vector", 10**6),
        PaperScheme("centred-exp3", "laplace-single", 10**6),
        PaperScheme("centred-exp3", "laplace-vector", 10**6),
        PaperScheme("bayes", "laplace-single", 10**6),
        PaperScheme("bayes", "split", 10**6),
        PaperScheme("uniform", "laplace-single", 10**4),
    )
    """Schemes in games with a new table in every episode."""

    half_space = BoundedScheme({}, {"channel": "half-space"})
    challenge = BoundedScheme(
        {"rate": 0.5}, {"channel": "challenge", "channel_kwargs": {"turns": 0}}
    )
    guarded_challenge = BoundedScheme({"rate": 0.5}, {"channel": "challenge"})
    challenge_to_all = BoundedScheme(
        {"rate": 0.5}, {"channel": "challenge", "channel_kwargs": {"question": "all", "turns": 0}}
    )

    tilts: ClassVar[dict[str, Any]] = {
        "hypotheses": "hadamard-star",
        "hypotheses_kwargs": {"loss": "tv", "amplitude": 1.0},
    }
    """Full Hadamard class: the uniform distribution, and K - 1 that are uniform on half of the labels."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        return [
            *self._redrawn_tables(small),
            *self._upper_bounds(small),
            *self._lower_bounds(small),
        ]

    def _redrawn_tables(self, small: bool) -> Iterator[Experiment]:
        """Experiments along T, with fewer episodes of longer games."""
        episodes_by_horizon = {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 8}
        if small:
            episodes_by_horizon = {10**3: 8, 10**4: 4}
        for scheme in self.paper_schemes:
            for horizon, episodes in episodes_by_horizon.items():
                if horizon > scheme.longest:
                    continue
                channel = channel_rules(scheme.channel)
                rules = Rules.of({**TABLES, **REDRAWN, **channel, "horizon": horizon})
                yield Experiment(rules, scheme.learner, episodes=episodes)

    def _upper_bounds(self, small: bool) -> Iterator[Experiment]:
        """Experiments at the worst truth, each with the uniform mixture as control."""
        # At smaller eps the paper's bounds exceed the loss of the uniform mixture in 20,000 rounds.
        pair = {"hypotheses": "disjoint", "num_hypotheses": 2, "horizon": 20_000}
        for scheme, epsilon in zip(self.paper_schemes[:2], (50.0, 1000.0), strict=True):
            rules = {**pair, **channel_rules(scheme.channel), "epsilon": epsilon}
            yield from _with_control(scheme.learner, {}, rules, episodes=8)

        rounds, episodes, size, num_tables = 1_000, 32, 16, 8
        natures: tuple[str, ...] = ("omniscient", "adversary")
        schemes = [self.half_space, self.challenge, self.guarded_challenge, self.challenge_to_all]
        if small:
            rounds, episodes, size, num_tables = 400, 4, 4, 1
            natures = ()
            schemes = schemes[:3]

        tilts = {**self.tilts, "num_hypotheses": size, "horizon": 4 * rounds}
        for bounded in schemes:
            rules = {**tilts, **bounded.rules}
            yield from _with_control("bayes", bounded.options, rules, episodes)

        tables: list[dict[str, Any]] = [
            {**TABLES, "class_seed": seed, "horizon": rounds} for seed in range(num_tables)
        ]
        contexts: list[dict[str, Any]] = [{"nature": nature, "horizon": 400} for nature in natures]
        for game in (*tables, *contexts):
            for bounded in (self.half_space, self.challenge):
                rules = {**game, **bounded.rules}
                yield from _with_control("bayes", bounded.options, rules, episodes)

    def _lower_bounds(self, small: bool) -> Iterator[Experiment]:
        """Experiments with Bayes on every channel that a lower bound covers."""
        pairs = [(8, 10_000, 0.05), (8, 10_000, 0.1)]
        stars = [(8, 1_000, 1.0), (8, 1_000, 0.2)]
        episodes = 24
        if small:
            pairs, stars, episodes = [(2, 2_000, 0.02)], [(8, 400, 0.2)], 8
        games = [("hadamard", point, False) for point in pairs]
        games += [("hadamard-star", point, True) for point in stars]
        for family, (size, horizon, epsilon), adaptive in games:
            for channel in pure_channels(adaptive=adaptive):
                rules = Rules(
                    hypotheses=family,
                    num_hypotheses=size,
                    horizon=horizon,
                    epsilon=epsilon,
                    channel=channel,
                )
                yield Experiment(rules, "bayes", {}, episodes, "all")

    def findings(self, results: Results) -> Iterator[Finding]:
        parts = results.group(_part)
        yield from _find_slopes(_lines(parts.get("tables", [])))
        yield from _find_upper_bounds(results)
        yield from _find_lower_bounds("2K", parts.get("2K", []))
        yield from _find_lower_bounds("star, K", parts.get("star, K", []))

    def draw(self, results: Results) -> figures.Figure:
        """Draw risks at the worst truth in multiples of their bounds, and the control's."""
        panels: figures.Panels = {}
        for claim in _bounded_games(results):
            games = [game for games in claim.places.values() for game in games]
            panel = panels.setdefault(claim.loss, {})
            measured = panel.setdefault("measured", {})
            idle = panel.setdefault("uniform (never learns)", {})
            measured[claim.scheme] = Estimate(max(game.share for game in games))
            idle[claim.scheme] = Estimate(max(game.control_share for game in games))
        if not panels:
            return super().draw(results)
        label = "largest loss at the worst truth, in multiples of its bound"
        return figures.draw_rows(panels, xlabel=label, reference=1.0)


def _with_control(
    learner: str, options: Mapping[str, Any], rules: dict[str, Any], episodes: int
) -> Iterator[Experiment]:
    """Yield a learner's experiment at the worst truth, and that of the uniform mixture."""
    yield Experiment(Rules.of(rules), learner, options, episodes, "all")
    yield Experiment(Rules.of(rules), "uniform", {}, 4, "all")


# -- Parts of the results -----------------------------------------------------------------------------------


def _part(experiment: Experiment) -> str:
    """Name the part of the suite that an experiment belongs to."""
    if experiment.truth != "all":
        return "tables"
    if experiment.family == "hadamard":
        return "2K"
    if experiment.family == "hadamard-star" and not experiment.rules.hypotheses_kwargs:
        return "star, K"
    return "upper bounds"


class _Point(NamedTuple):
    """K, T and eps of a game: the arguments of the bounds."""

    num_hypotheses: int
    horizon: int
    epsilon: float


def _point(result: ExperimentResult) -> _Point:
    experiment = result.experiment
    return _Point(experiment.num_hypotheses, result.horizon, experiment.epsilon)


def _scheme(result: ExperimentResult) -> str:
    """Name the learner and the channel, with their options in brackets."""
    experiment = result.experiment
    learner = _with_options(experiment.learner, experiment.options)
    channel = _with_options(experiment.channel, experiment.rules.channel_kwargs or {})
    return f"{learner} on {channel}"


def _with_options(name: str, options: Mapping[str, Any]) -> str:
    if not options:
        return name
    listed = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{name} ({listed})"


def _lines(played: Iterable[ExperimentResult]) -> dict[str, list[ExperimentResult]]:
    """Results by scheme, along K and T."""
    return grouped(sorted(played, key=_point), _scheme)


def _averaged_tv(result: ExperimentResult) -> FloatArray:
    """TV averaged over the rounds of each episode, ``(n,)``."""
    return result.evaluation.tv[:, -1] / result.horizon


# -- Redrawn tables along T ---------------------------------------------------------------------------------


def _find_slopes(lines: Mapping[str, Sequence[ExperimentResult]]) -> Iterator[Finding]:
    """Slopes in T on tables, where the paper's bounds are vacuous, and Pinsker's inequality."""
    played = [result for line in lines.values() for result in line]
    above_pinsker = [str(result.experiment) for result in played if not _obeys_pinsker(result)]
    if above_pinsker:
        listed = "; ".join(above_pinsker)
        yield Finding(
            f"Tables: the averaged TV-risk is above Pinsker's bound: {listed}.", certain(False)
        )
    else:
        yield Finding("Tables: the averaged TV-risk is below Pinsker's bound everywhere.")

    idle = next((line[0] for line in lines.values() if line[0].learner == "uniform"), None)
    if idle is None:
        return
    idle_per_round = idle.totals / idle.horizon
    for scheme, line in lines.items():
        if len(line) > 1 and line[0].learner != "uniform":
            yield from _find_slope(scheme, line, idle_per_round)


def _obeys_pinsker(result: ExperimentResult) -> bool:
    if not np.isfinite(result.risk.value):
        return True
    averaged_tv = _averaged_tv(result).mean()
    return not averaged_tv > theory.tv_bound(result.risk.value, result.horizon)


def _find_slope(
    scheme: str, line: Sequence[ExperimentResult], idle_per_round: FloatArray
) -> Iterator[Finding]:
    """Slopes of a scheme over the last two horizons, and its risk in multiples of its bound."""
    first, last = line[-2:]
    horizons = [first.horizon, last.horizon]
    totals = [first.totals, last.totals]
    kl_slope = statistics.slope(horizons, totals)
    tv_slope = statistics.slope(horizons, [_averaged_tv(first), _averaged_tv(last)])
    controls = [idle_per_round[: len(result.totals)] * result.horizon for result in line]
    share = last.totals.mean() / controls[-1].mean()
    yield Finding(
        f"{scheme}, tables: from T = {horizons[0]:,} to {horizons[1]:,} the KL-risk has slope {kl_slope}, "
        f"the averaged TV-risk {tv_slope}; at the end the KL-risk is {share:.2g} of not learning."
    )

    if np.isfinite(line[0].bound):
        games = [
            BoundedGame(result.totals, result.bound, control)
            for result, control in zip(line, controls, strict=True)
        ]
        yield _compare(f"KL-risk of {scheme}", {"tables": games})
    if last.horizon == _LONG:
        text = f"{scheme}, tables: the slope over the last decade is below 1."
        yield Finding(text, below(statistics.slope_contributions(horizons, totals), 1.0))


# -- Upper bounds -------------------------------------------------------------------------------------------


class BoundedGame(NamedTuple):
    """Losses in a game with an upper bound on their expectation.

    Attributes:
        totals: total losses of the episodes, ``(n,)`` or ``(K, n)`` for all truths.
        bound: upper bound on the expectation, at every truth.
        control: total losses of the uniform mixture, in either shape.
    """

    totals: FloatArray
    bound: float
    control: FloatArray

    @property
    def share(self) -> float:
        """Mean loss at the worst truth, in multiples of the bound."""
        return float(np.mean(self.totals, axis=-1).max() / self.bound)

    @property
    def control_share(self) -> float:
        """The same of the uniform mixture."""
        return float(np.mean(self.control, axis=-1).max() / self.bound)


class BoundedLoss(NamedTuple):
    """Games with a bound on one loss of one scheme, by their contexts or class."""

    loss: str
    scheme: str
    places: dict[str, list[BoundedGame]]


def _bounded_games(results: Results) -> list[BoundedLoss]:
    """Games at the worst truth for which a theorem bounds a loss, with their controls."""
    worst = [result for result in results.successes if result.experiment.truth == "all"]
    controls = {
        result.experiment.rules: result.evaluation
        for result in worst
        if result.learner == "uniform"
    }
    by_claim: dict[tuple[str, str], BoundedLoss] = {}
    for result in worst:
        control = controls.get(result.experiment.rules)
        if control is None:
            continue
        for loss, bound in _theorems(result).items():
            name = _LOSS_NAMES[loss]
            scheme = _scheme(result)
            claim = by_claim.setdefault((name, scheme), BoundedLoss(name, scheme, {}))
            totals = result.evaluation.losses[loss][..., -1]
            control_totals = control.losses[loss][..., -1]
            game = BoundedGame(totals, bound, control_totals)
            claim.places.setdefault(_place(result.experiment), []).append(game)
    return list(by_claim.values())


_LOSS_NAMES = {"kl": "KL-risk", "tv_squared": "sum of TV^2"}
"""Names of the losses that the theorems bound."""


def _place(experiment: Experiment) -> str:
    """Name the contexts or the class of a game."""
    if experiment.rules.nature:
        return f"contexts by {experiment.rules.nature}"
    return (
        f"{experiment.family}, K = {experiment.num_hypotheses}, T = {experiment.horizon:,}, "
        f"eps = {experiment.epsilon:g}"
    )


def _find_upper_bounds(results: Results) -> Iterator[Finding]:
    """Compare results for the worst truth with the theorems; the uniform mixture is the control."""
    for claim in _bounded_games(results):
        yield _compare(f"{claim.loss} of {claim.scheme} for the worst truth", claim.places)


def _compare(what: str, places: Mapping[str, Sequence[BoundedGame]]) -> Finding:
    """Claim that all losses are below their bounds; the text has the largest share of each place."""
    texts = list[str]()
    tests = []
    for place, games in places.items():
        share = max(game.share for game in games)
        control_share = max(game.control_share for game in games)
        texts.append(f"{share:.2g} on {place} ({control_share:.2g} without learning)")
        tests += [below(game.totals, game.bound, game.control) for game in games]
    return Finding(f"{what}, in multiples of its bound: {'; '.join(texts)}.", conjunction(tests))


def _theorems(result: ExperimentResult) -> dict[str, float]:
    """Bounds on ``kl`` and ``tv_squared`` that a theorem proves for a result."""
    if np.isfinite(result.bound):
        return {"kl": result.bound}
    experiment = result.experiment
    point = _point(result)
    channel_options = dict(experiment.rules.channel_kwargs or {})
    scheme = experiment.learner, dict(experiment.options), experiment.channel

    if scheme == ("bayes", {}, "half-space") and not channel_options:
        squares = point.horizon * theory.half_space_tv_bound(*point) ** 2
        return {"tv_squared": squares, "kl": theory.half_space_worst_kl_bound(*point)}
    if scheme != ("bayes", {"rate": 0.5}, "challenge"):
        return {}

    squares = point.horizon * theory.challenge_tv_bound(*point) ** 2
    if "turns" not in channel_options:  # the default guard
        return {"tv_squared": squares / _GUARDED}
    question = channel_options.get("question", "one")
    bounds = {"kl": theory.challenge_kl_bound(*point, question=question)}
    if question == "one":
        bounds["tv_squared"] = squares
    return bounds


# -- Lower bounds -------------------------------------------------------------------------------------------


def _lower_bound(result: ExperimentResult) -> float:
    """Lower bound on the risk at the worst truth of the class."""
    point = _point(result)
    if result.experiment.family == "hadamard":
        return theory.lower_bound(*point)
    return theory.interactive_kl_lower_bound(*point, theory.star_amplitude(*point))


def _find_lower_bounds(size_name: str, results: Sequence[ExperimentResult]) -> Iterator[Finding]:
    """Name the channel nearest to the lower bound in each game: the claim is that none is below."""
    games = grouped(results, lambda result: (_point(result).num_hypotheses, _point(result).epsilon))
    for (size, epsilon), played in games.items():
        nearest = min(played, key=lambda result: result.risk.value / _lower_bound(result))
        bound = _lower_bound(nearest)
        num_channels = len({result.channel for result in played})
        text = (
            f"{size_name} = {size}, eps = {epsilon:g}: of {num_channels} channels nearest to the lower "
            f"bound is {_scheme(nearest)}, T = {nearest.horizon:,}: {nearest.risk / bound} times "
            f"{bound:.3g} nats."
        )
        tests = [never_below([result], _lower_bound(result)) for result in played]
        yield Finding(text, conjunction(tests))
