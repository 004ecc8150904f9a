"""Claims of the paper and the theory: rates between upper and lower bounds, growth with K, eps and M."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results, grouped
from ldp_bench.suites.base import REDRAWN, TABLES, Finding, Suite, channel_rules
from ldp_gym import statistics, theory
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import Estimate, PValues, above, below, certain, conjunction

_FRESH = {**TABLES, **REDRAWN}
"""Rules of Dirichlet(0.3) tables, a new one in every episode."""


class Sweep(Suite):
    """Base class of the suites along K and eps: the first three of the ``games`` make the small suite."""

    games: ClassVar[tuple[dict[str, Any], ...]]

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (200, 6) if small else (10_000, 32)
        games = [
            {**_FRESH, **rules, "horizon": horizon} for rules in self.games[: 3 if small else None]
        ]
        return [
            Experiment(Rules.of({**game, "channel": channel}), learner, episodes=episodes)
            for learner in ("uniform", "exp3", "centred-exp3", "bayes")
            for channel in ("laplace-single", "split")[: 2 if learner == "bayes" else 1]
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
        channels = (
            "randomized-response",
            "subset-selection",
            "laplace-single",
            "vote",
            "split",
            "wheel",
        )
        games = [{**game, "channel": channel} for channel in channels for game in refined]
        idle = Experiment(
            Rules.of({**refined[0], "channel": "split"}), "uniform", episodes=episodes
        )
        return [*(Experiment(Rules.of(game), "bayes", episodes=episodes) for game in games), idle]

    def findings(self, results: Results) -> Iterator[Finding]:
        idle = [
            result.totals for result in results.select(learner="uniform")
        ]  # the same at every M
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
                share = (
                    f", and Bayes pays {y[0].mean() / idle[0].mean():.2g} of not learning"
                    if idle
                    else ""
                )
                yield Finding(
                    f"{text}{share}.",
                    conjunction([certain(change < 1e-6), *learns]) if idle else None,
                )
            else:
                claimed = channel == "randomized-response"
                grows = above(statistics.slope_contributions(x, y), 0.0) if claimed else None
                yield Finding(f"{span} the risk has slope {statistics.slope(x, y)} in M.", grows)


def _pure_channels(adaptive: bool) -> list[str]:
    """Pure channels of the package, with or without the adaptive ones."""
    ours = {name: CHANNELS.class_of(name) for name in CHANNELS.own if name != "identity"}
    return sorted(
        name for name, made in ours.items() if made.pure and (adaptive or not made.adaptive)
    )


def _point(result: ExperimentResult) -> tuple[int, int, float]:
    """K, T and eps of an experiment."""
    return result.experiment.num_hypotheses, result.horizon, result.experiment.epsilon


def _never_below(played: Sequence[ExperimentResult], bound: float) -> PValues:
    """Test that no result is below a bound; the control is log K, which bounds Bayes without privacy."""
    control = theory.nonprivate_bound(played[0].experiment.num_hypotheses)
    return conjunction(above(r.evaluation.kl[..., -1], bound, control) for r in played)


class Limit(Suite):
    """Bayes on every pure channel: risk as a multiple of the lower bound for all eps-private systems."""

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
        ]
        return [Experiment(Rules.of(rules), "bayes", episodes=episodes) for rules in games]

    def findings(self, results: Results) -> Iterator[Finding]:
        for (k, horizon), lines in results.group(lambda e: (e.num_hypotheses, e.horizon)).items():
            limit = theory.information_limit(k, horizon, 1.0)
            for kind, adaptive in (("non-adaptive", False), ("adaptive", True)):
                if of_kind := [
                    r for r in lines if CHANNELS.class_of(r.channel).adaptive is adaptive
                ]:
                    best = min(of_kind, key=lambda result: result.risk.value)
                    pays = f"{best.channel} pays {best.risk / limit} times the limit."
                    yield Finding(f"K = {k}, {kind}: {pays}")
            count = len({r.channel for r in lines})
            text = f"K = {k}: the claim is that none of {count} channels is below the limit."
            yield Finding(text, _never_below(lines, limit))

    def draw(self, results: Results) -> figures.Figure:
        panels: figures.Panels = {}
        for r in sorted(
            results.successes, key=lambda r: (-r.experiment.num_hypotheses, r.risk.value)
        ):
            k = r.experiment.num_hypotheses
            rows = panels.setdefault(f"K = {k}", {}).setdefault("", {})
            rows.setdefault(r.channel, r.risk / theory.information_limit(k, r.horizon, 1.0))
        label = "risk as a multiple of the information limit (dotted)"
        return figures.draw_rows(panels, xlabel=label, reference=1.0)


class Rates(Suite):
    """The paper's learners, half-space and challenge on hard classes, between upper and lower bounds."""

    name = "rates"
    title = "Rates: measured risks between upper and lower bounds"
    claim = (
        "Theorems 4 and 5 bound the KL-risk of WMA and EXP3; ours bound KL-risk and sum of TV^2 on "
        "half-space, and for Bayes at rate 1/2 on challenge, for every class, truth and context: tested for "
        "the worst truth. No pure channel is below the lower bounds: the paper's on its Hadamard class "
        "(channels fixed in advance), ours on hadamard-star (interactive ones too). Tables are "
        "Dirichlet(0.3), K = 8, M = 16, one per episode. eps = 1 unless said."
    )
    paper = (
        *(("exp3", "laplace-single", 10**7), ("wma", "laplace-vector", 10**6)),
        *(("centred-exp3", "laplace-single", 10**6), ("centred-exp3", "laplace-vector", 10**6)),
        *(("bayes", "laplace-single", 10**6), ("bayes", "split", 10**6)),
        ("uniform", "laplace-single", 10**4),
    )
    """Learner, channel, and longest horizon played, in games with a new table in every episode."""

    schemes: ClassVar[list[tuple[dict[str, Any], dict[str, Any]]]] = [
        ({}, {"channel": "half-space"}),
        ({"rate": 0.5}, {"channel": "challenge", "channel_kwargs": {"turns": 0}}),
        ({"rate": 0.5}, {"channel": "challenge"}),
        (
            {"rate": 0.5},
            {"channel": "challenge", "channel_kwargs": {"question": "all", "turns": 0}},
        ),
    ]
    """Options of Bayes and rules of the channel in our theorems."""

    tilts: ClassVar[dict[str, Any]] = {
        "hypotheses": "hadamard-star",
        "hypotheses_kwargs": {"loss": "tv", "amplitude": 1.0},
    }
    """Full Hadamard class: the uniform distribution, and K - 1 that are uniform on half of the labels."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        counts = (
            {10**3: 8, 10**4: 4} if small else {10**3: 64, 10**4: 32, 10**5: 16, 10**6: 8, 10**7: 8}
        )
        tables = [
            Experiment(
                Rules.of({**_FRESH, **channel_rules(channel), "horizon": t}),
                learner,
                episodes=count,
            )
            for learner, channel, end in self.paper
            for t, count in counts.items()
            if t <= end
        ]
        growth = [
            Experiment(
                Rules.of({**self.tilts, "num_hypotheses": k, "horizon": 150 * k, **rules}),
                *("bayes", options, 4 if small else 96),
            )
            for options, rules in self.schemes[:2]
            for k in ((2, 4) if small else (4, 16, 64))
        ]
        return [*tables, *self._upper_bounds(small), *growth, *self._lower_bounds(small)]

    def _upper_bounds(self, small: bool) -> Iterator[Experiment]:
        """Games for the worst truth, each with the uniform mixture as control."""
        pair = {"hypotheses": "disjoint", "num_hypotheses": 2, "horizon": 20_000}
        games: list[tuple[str, dict[str, Any], dict[str, Any], int]] = [
            (learner, {}, {**pair, **channel_rules(channel), "epsilon": epsilon}, 8)
            for (learner, channel, _), epsilon in zip(self.paper, (50.0, 1000.0), strict=False)
        ]  # at smaller eps the bounds are vacuous in 20,000 rounds
        rounds, count, tables, natures = (400, 4, 1, 0) if small else (1_000, 32, 8, 2)
        size, every_scheme = (4, 3) if small else (16, 4)
        places = [
            ({**self.tilts, "num_hypotheses": size, "horizon": 4 * rounds}, every_scheme, count)
        ]
        places += [
            ({**TABLES, "class_seed": i, "horizon": rounds}, 2, count) for i in range(tables)
        ]
        places += [
            ({"nature": n, "horizon": 400}, 2, count) for n in ("omniscient", "adversary")[:natures]
        ]
        for place, end, episodes in places:
            games += [
                ("bayes", given, {**place, **rules}, episodes)
                for given, rules in self.schemes[:end]
            ]
        for learner, options, rules, episodes in games:
            yield Experiment(Rules.of(rules), learner, options, episodes, "all")
            yield Experiment(Rules.of(rules), "uniform", {}, 4, "all")

    def _lower_bounds(self, small: bool) -> Iterator[Experiment]:
        """Experiments with Bayes on every channel that a lower bound covers, and on two along T."""
        pairs = [(2, 2_000, 0.02)] if small else [(8, 10_000, 0.05), (8, 10_000, 0.1)]
        stars = [(8, 400, 0.2)] if small else [(8, 1_000, 1.0), (8, 1_000, 0.2)]
        line = [(16, t, 1.0) for t in ((100, 316) if small else (100, 316, 1_000, 3_162, 10_000))]
        for family, points, channels in (
            ("hadamard", pairs, _pure_channels(adaptive=False)),
            ("hadamard-star", stars, _pure_channels(adaptive=True)),
            ("hadamard-star", line, ["half-space", "challenge"]),
        ):
            for (k, t, e), channel in itertools.product(points, channels):
                game = {"hypotheses": family, "num_hypotheses": k, "horizon": t, "epsilon": e}
                episodes = 8 if small or k == 16 else 24
                yield Experiment(
                    Rules.of({**game, "channel": channel}), "bayes", {}, episodes, "all"
                )

    def findings(self, results: Results) -> Iterator[Finding]:
        parts = results.group(_part)
        yield from _find_slopes(_lines(parts.get("tables", [])))
        yield from _find_upper_bounds(results)
        for scheme, line in _lines(parts.get("growth", [])).items():
            sizes, shares = [_point(r)[0] for r in line], [_squares(r) for r in line]
            logs = [
                f"{share.value / np.log(k):.2f}" for k, share in zip(sizes, shares, strict=True)
            ]
            text = f"{scheme}, full Hadamard class, K = {', '.join(map(str, sizes))}: the sum of TV^2, times "
            text += f"tanh^2(eps/2) / (K-1), is {', '.join(map(str, shares))}; that over log K: "
            yield Finding(f"{text}{', '.join(logs)}.")
        for part in ("2K", "star, K"):
            for (size, epsilon), played in grouped(
                parts.get(part, []), lambda r: _point(r)[::2]
            ).items():
                near = min(played, key=lambda r: r.risk.value / _lower_bound(r))
                bound, count = _lower_bound(near), len({r.channel for r in played})
                text = f"{part} = {size}, eps = {epsilon:g}: of {count} channels nearest to "
                text += "the lower bound "
                text += f"is {_scheme(near)}, T = {near.horizon:,}: {near.risk / bound} times "
                text += f"{bound:.3g} nats."
                yield Finding(text, conjunction(_never_below([r], _lower_bound(r)) for r in played))

    def draw(self, results: Results) -> figures.Figure:
        drawing, ((risks, squares),) = figures.new_figure(2, width=4.4, height=4.2)
        parts, blue, red = (
            results.group(_part),
            figures.colour("half-space"),
            figures.colour("challenge"),
        )
        line = [r for r in parts.get("star, K", []) if _point(r)[::2] == (16, 1.0)]
        growth = parts.get("growth", [])
        horizons, sizes = sorted({r.horizon for r in line}), sorted({_point(r)[0] for r in growth})
        bounds: list[tuple[str, Any, Any, str, str]] = [
            ("paper, at most", theory.exp3_bound, None, "#8c8c8c", "--"),
            (
                "fixed channel, at most",
                theory.half_space_kl_bound,
                theory.half_space_tv_bound,
                blue,
                "--",
            ),
            (
                "interactive, at most",
                theory.interactive_kl_bound,
                theory.interactive_tv_bound,
                red,
                "--",
            ),
            (
                "fixed channel, at least",
                theory.noninteractive_kl_lower_bound,
                theory.noninteractive_tv_lower_bound,
                blue,
                ":",
            ),
            (
                "interactive, at least",
                theory.interactive_kl_lower_bound,
                theory.interactive_tv_lower_bound,
                red,
                ":",
            ),
            ("paper, at least", theory.lower_bound, None, "#8c8c8c", ":"),
        ]
        for label, kl_bound, tv_bound, hue, style in bounds:
            risks.plot(
                horizons, [kl_bound(16, t, 1.0) for t in horizons], style, color=hue, label=label
            )
            if tv_bound:  # on the square root of the mean of TV^2 over 150 K rounds
                roots = [np.sqrt(150 * k / (k - 1)) * tv_bound(k, 150 * k, 1.0) for k in sizes]
                squares.plot(sizes, np.square(np.tanh(0.5) * np.array(roots)), style, color=hue)
        for panel, played, x, y in (
            (risks, line, lambda r: r.horizon, lambda r: r.risk),
            (squares, growth, lambda r: _point(r)[0], _squares),
        ):
            for i, (label, some) in enumerate(_lines(played).items()):
                hue = figures.pair_colour(some[0].learner, some[0].channel, i)
                style = "s-" if panel is squares else "o-"
                dots = figures.Line(label, [*map(x, some)], [*map(y, some)], hue, style)
                figures.draw_line(panel, dots, 2.0 * i)
        risks.set(
            xlabel="T", ylabel="KL-risk for the worst truth (nats)", title="hadamard-star, K = 16"
        )
        label = "sum of TV², times tanh²(eps/2) / (K - 1)"
        squares.set(xlabel="K", ylabel=label, title="full Hadamard class, T = 150 K")
        for panel, ticks in ((risks, horizons), (squares, sizes)):
            figures.set_log_scale(panel, "x", ticks)
            figures.set_log_scale(panel, "y")
        figures.add_legend(drawing)
        return drawing


def _part(experiment: Experiment) -> str:
    """Part of the rates that an experiment belongs to."""
    star, worst = experiment.family == "hadamard-star", experiment.truth == "all"
    if not worst:
        return "growth" if star else "tables"
    own_size = star and not experiment.rules.hypotheses_kwargs
    return "2K" if experiment.family == "hadamard" else "star, K" if own_size else "theorems"


def _scheme(result: ExperimentResult) -> str:
    """Learner and channel with their options, in words."""
    e = result.experiment
    parts = (e.learner, e.options), (e.channel, e.rules.channel_kwargs or {})
    words = [
        (name, ", ".join(f"{key}={value}" for key, value in given.items())) for name, given in parts
    ]
    return " on ".join(name + (f" ({given})" if given else "") for name, given in words)


def _lines(played: Sequence[ExperimentResult]) -> dict[str, list[ExperimentResult]]:
    """Results by scheme, along K and T."""
    return grouped(sorted(played, key=_point), _scheme)


def _lower_bound(result: ExperimentResult) -> float:
    point = _point(result)
    if result.experiment.family == "hadamard":
        return theory.lower_bound(*point)
    return theory.interactive_kl_lower_bound(*point, theory.star_amplitude(*point))


def _averaged_tv(result: ExperimentResult) -> FloatArray:
    return result.evaluation.tv[:, -1] / result.horizon


def _squares(result: ExperimentResult) -> Estimate:
    """Mean of ``sum_t TV_t^2 tanh^2(eps/2) / (K-1)``."""
    size, _, epsilon = _point(result)
    unit = (size - 1) / np.tanh(epsilon / 2.0) ** 2
    return statistics.mean(result.evaluation.losses["tv_squared"][:, -1] / unit, least=0.0)


def _find_slopes(lines: Mapping[str, Sequence[ExperimentResult]]) -> Iterator[Finding]:
    """Slopes in T on tables, where the paper's bounds are vacuous, and Pinsker's inequality."""
    high = [
        str(r.experiment)
        for r in itertools.chain(*lines.values())
        if np.isfinite(r.risk.value)
        and _averaged_tv(r).mean() > theory.tv_bound(r.risk.value, r.horizon)
    ]
    text = (
        f"above Pinsker's bound: {'; '.join(high)}" if high else "below Pinsker's bound everywhere"
    )
    yield Finding(f"Tables: the averaged TV-risk is {text}.", certain(False) if high else None)
    idle = {line[0].learner: line[0].totals / line[0].horizon for line in lines.values()}.get(
        "uniform"
    )
    for scheme, line in lines.items():
        if len(line) < 2 or line[0].learner == "uniform" or idle is None:
            continue
        x, totals = [r.horizon for r in line[-2:]], [r.totals for r in line[-2:]]
        kl, tv = (
            statistics.slope(x, totals),
            statistics.slope(x, [_averaged_tv(r) for r in line[-2:]]),
        )
        never = [idle[: len(r.totals)] * r.horizon for r in line]
        text = f"{scheme}, tables: from T = {x[0]:,} to {x[1]:,} the KL-risk has slope {kl}, the averaged "
        share = totals[1].mean() / never[-1].mean()
        yield Finding(f"{text}TV-risk {tv}; at the end the KL-risk is {share:.2g} of not learning.")
        if np.isfinite(line[0].bound):
            games = [(r.totals, r.bound, control) for r, control in zip(line, never, strict=True)]
            yield _compare(f"KL-risk of {scheme}", {"tables": games})
        if x[1] == 10**7:
            text = f"{scheme}, tables: the slope over the last decade is below 1."
            yield Finding(text, below(statistics.slope_contributions(x, totals), 1.0))


def _find_upper_bounds(results: Results) -> Iterator[Finding]:
    """Compare results for the worst truth with the theorems; the uniform mixture is the control."""
    worst = [r for r in results.successes if r.experiment.truth == "all"]
    controls = {r.experiment.rules: r.evaluation for r in worst if r.learner == "uniform"}
    claims: dict[str, dict[str, list[Any]]] = {}
    for r in worst:
        e = r.experiment
        words = f"{e.family}, K = {e.num_hypotheses}, T = {e.horizon:,}, eps = {e.epsilon:g}"
        words = f"contexts by {e.rules.nature}" if e.rules.nature else words
        for name, bound in (_theorems(r) if e.rules in controls else {}).items():
            both = (each.losses[name] for each in (r.evaluation, controls[e.rules]))
            own, control = (np.asarray(values)[..., -1] for values in both)
            what = "sum of TV^2" if name == "tv_squared" else "KL-risk"
            places = claims.setdefault(f"{what} of {_scheme(r)} for the worst truth", {})
            places.setdefault(words, []).append((own, bound, control))
    yield from (_compare(what, places) for what, places in claims.items())


def _compare(what: str, places: Mapping[str, Sequence[Any]]) -> Finding:
    """Compare samples with their bounds, and with a control's samples: the claim is that all are below."""
    texts = []
    for place, games in places.items():
        most, never = (
            max(np.mean(game[i], axis=-1).max() / game[1] for game in games) for i in (0, 2)
        )
        texts.append(f"{most:.2g} on {place} ({never:.2g} without learning)")
    tested = conjunction(below(*game) for games in places.values() for game in games)
    return Finding(f"{what}, in multiples of its bound: {'; '.join(texts)}.", tested)


def _theorems(result: ExperimentResult) -> dict[str, float]:
    """Bounds on ``kl`` and ``tv_squared`` that a theorem proves for a result."""
    if np.isfinite(result.bound):
        return {"kl": result.bound}
    e, point = result.experiment, _point(result)
    scheme, given = (e.learner, dict(e.options), e.channel), dict(e.rules.channel_kwargs or {})
    if scheme == ("bayes", {}, "half-space") and not given:
        squares = e.horizon * theory.half_space_tv_bound(*point) ** 2
        return {"tv_squared": squares, "kl": theory.half_space_worst_kl_bound(*point)}
    if scheme != ("bayes", {"rate": 0.5}, "challenge"):
        return {}
    squares = e.horizon * theory.challenge_tv_bound(*point) ** 2
    if "turns" not in given:  # the default guard
        return {"tv_squared": squares / 0.25}
    question = given.get("question", "one")
    by_theorem = {"kl": theory.challenge_kl_bound(*point, question=question)}
    if question == "one":
        by_theorem["tv_squared"] = squares
    return by_theorem
