"""Channels against lower bounds on the risk: the suites ``lower`` and ``limit``."""

from __future__ import annotations

from ldp_gym import theory
from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, every
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import Suite
from ldp_gym.channels.base import CHANNELS


def _pure_channels(adaptive: bool) -> list[str]:
    """Pure channels of the package, with or without the adaptive ones."""
    ours = {name: CHANNELS.class_of(name) for name in CHANNELS.own if name != "identity"}
    return sorted(name for name, made in ours.items() if made.pure and (adaptive or not made.adaptive))


class Lower(Suite):
    """Every pure, non-adaptive channel, in the worst truth, with the better of Bayes and not learning."""

    name = "lower"
    title = "The lower bound's class"
    claim = (
        "On the Hadamard class every pure, non-adaptive channel pays at least a T / 132 for some truth, "
        "whatever the learner (Appendix A)."
    )
    order = 50
    points = ((8, 1_000, 1.0), (8, 10_000, 1.0), (32, 1_000, 1.0), (8, 1_000, 0.5))
    """2K hypotheses, T and eps: a base point, and others that differ from it in one of them."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        points, episodes = (((8, 200, 1.0), (8, 400, 1.0)), 8) if small else (self.points, 16)
        names = ("num_hypotheses", "horizon", "epsilon")
        return [
            Experiment(
                {"hypotheses": "hadamard", **dict(zip(names, point, strict=True)), "channel": channel},
                learner,
                episodes=episodes,
                truth="all",
                block=4,
            )
            for point in points
            for channel in _pure_channels(adaptive=False)
            for learner in ("bayes", "uniform")
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for point, played in results.group(_point).items():
            bound = theory.lower_bound(*point)
            best, count = min(played, key=lambda r: r.risk.value), len({r.channel for r in played})
            found.append(
                Finding(
                    f"{_title(point, ', ')}: the best of {count} channels is {best.channel} ({best.learner}), "
                    f"with {best.risk.value / bound:,.0f} times the lower bound, {bound:.3g} nats.",
                    every(above(result.evaluation.kl[..., -1], bound) for result in played),
                )
            )
        return found

    def draw(self, results: Results) -> figures.Figure:
        panels, bounds = {}, {}
        for point, played in results.group(_point).items():
            ranked = sorted(played, key=lambda result: -result.risk.value)
            better = {result.channel: result.risk for result in ranked}  # the last one is the better learner
            panels[_title(point)] = {"": dict(sorted(better.items(), key=lambda item: item[1].value))}
            bounds[_title(point)] = theory.lower_bound(*point)
        label = "total KL (nats), worst truth, best learner; dotted: the lower bound"
        return figures.draw_rows(panels, xlabel=label, references=bounds)


def _point(experiment: Experiment) -> tuple[int, int, float]:
    return experiment.num_hypotheses, experiment.horizon, experiment.rules["epsilon"]


def _title(point: tuple[int, int, float], separator: str = "\n") -> str:
    return f"2K = {point[0]}, T = {point[1]:,}{separator}eps = {point[2]:g}"


class Limit(Suite):
    """Every pure channel with Bayes, as a multiple of what no eps-private system can go below."""

    name = "limit"
    title = "Against the information limit"
    claim = (
        "An eps-private message tells at most C(eps) nats about the truth, so on disjoint supports the "
        "risk is at least sum_t max(0, log K - (t - 1) C(eps)), adaptive or not. eps = 1, uniform truth."
    )
    order = 80

    def own_experiments(self, small: bool) -> list[Experiment]:
        horizon, episodes = (300, 20) if small else (900, 400)
        return [
            Experiment(
                {"hypotheses": "disjoint", "num_hypotheses": k, "channel": channel, "horizon": horizon},
                "bayes",
                episodes=episodes,
                block=100,
            )
            for k in ((8,) if small else (8, 32, 128))
            for channel in _pure_channels(adaptive=True)
        ]

    def findings(self, results: Results) -> list[Finding]:
        found = []
        for k, lines in results.group(lambda experiment: experiment.num_hypotheses).items():
            for kind, adaptive in (("non-adaptive", False), ("adaptive", True)):
                if of_kind := [r for r in lines if CHANNELS.class_of(r.channel).adaptive is adaptive]:
                    best = min(of_kind, key=lambda result: result.risk.value)
                    times = best.risk / _limit(best)
                    found.append(Finding(f"K = {k}, {kind}: {best.channel} has {times} times the limit."))
            text = f"K = {k}: the claim is that none of {len(lines)} channels is below the limit."
            found.append(Finding(text, every(above(result.totals, _limit(result)) for result in lines)))
        return found

    def draw(self, results: Results) -> figures.Figure:
        panels = {}
        groups = results.group(lambda experiment: experiment.num_hypotheses)
        for k, lines in sorted(groups.items(), reverse=True):  # the largest K decides the order of the rows
            ranked = sorted(lines, key=lambda r: r.risk.value)
            panels[f"K = {k}"] = {"": {_row(r): r.risk / _limit(r) for r in ranked}}
        label = "risk of Bayes as a multiple of the information limit (dotted)"
        return figures.draw_rows(panels, xlabel=label, references=dict.fromkeys(panels, 1.0))


def _row(result: ExperimentResult) -> str:
    """Name of a row: the channel, with the learner where that is not Bayes."""
    return result.channel if result.learner == "bayes" else f"{result.learner} on {result.channel}"


def _limit(result: ExperimentResult) -> float:
    return theory.information_limit(result.experiment.num_hypotheses, result.horizon, 1.0)
