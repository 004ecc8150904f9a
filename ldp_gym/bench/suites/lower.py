"""The Hadamard class of Appendix A against its lower bound."""

from __future__ import annotations

from ldp_gym import theory
from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, every
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import Suite
from ldp_gym.channels.base import CHANNELS

POINTS = ((8, 1_000, 1.0), (8, 10_000, 1.0), (32, 1_000, 1.0), (8, 1_000, 0.5))
"""num_hypotheses = 2K, T and eps."""

LEARNERS = ("bayes", "uniform")


def pure_channels(adaptive: bool) -> list[str]:
    """The pure channels that come with the package, adaptive ones among them or not."""
    ours = {name: CHANNELS.class_of(name) for name in sorted(CHANNELS.own)}
    pure = [name for name, channel in ours.items() if channel.pure and name != "identity"]
    return pure if adaptive else [name for name in pure if not ours[name].adaptive]


class Lower(Suite):
    """Every pure, non-adaptive channel, in the worst truth, with the better of Bayes and not learning."""

    name = "lower"
    title = "The lower bound's class"
    claim = (
        "On the Hadamard class every pure, non-adaptive channel pays at least a T / 132 for some truth, "
        "whatever the learner (Appendix A)."
    )
    order = 50

    def own_experiments(self, small: bool) -> list[Experiment]:
        """All truths, at a base point and at others that differ from it in T, K or eps."""
        points, episodes = (((8, 200, 1.0), (8, 400, 1.0)), 8) if small else (POINTS, 16)
        return [
            Experiment(
                {
                    "hypotheses": "hadamard",
                    "num_hypotheses": num_hypotheses,
                    "horizon": horizon,
                    "epsilon": epsilon,
                    "channel": channel,
                },
                learner,
                episodes=episodes,
                truth="all",
                block=4,
            )
            for num_hypotheses, horizon, epsilon in points
            for channel in pure_channels(adaptive=False)
            for learner in LEARNERS
        ]

    def findings(self, results: Results) -> list[Finding]:
        """The least multiple of the bound, at each point: every channel and learner has to be above it."""
        found = []
        played = results.group(_point)
        for point, lines in _by_point(results).items():
            bound = theory.lower_bound(*point)
            best = min(lines, key=lambda result: result.risk.value)
            found.append(
                Finding(
                    f"{_title(point)}: the best of {len(lines)} channels, {best.channel} with "
                    f"{best.learner}, has {best.risk.value / bound:,.0f} times the lower bound "
                    f"({bound:.3g} nats).",
                    every(above(result.evaluation.kl[..., -1], bound) for result in played[point]),
                )
            )
        return found

    def draw(self, results: Results) -> figures.Figure:
        """The worst truth's risk on each channel, and the bound."""
        groups = _by_point(results)
        drawing, axes = figures.new_figure(
            len(groups), width=max(2.6, 5.0 / len(groups)), height=3.4, sharey=True
        )
        best = {r.channel: r.risk.value for lines in reversed(groups.values()) for r in lines}
        names = sorted(best, key=lambda channel: best[channel])
        for panel, (point, lines) in zip(axes.flat, groups.items(), strict=True):
            risks = {result.channel: result.risk for result in lines}
            bound = theory.lower_bound(*point)
            figures.draw_dots(
                panel, names, [risks.get(name) for name in names], figures.colour("bayes"), bound
            )
            panel.set_title(_title(point))
        drawing.supxlabel("total KL (nats), worst truth, best learner; dotted: the lower bound")
        return drawing


def _point(experiment: Experiment) -> tuple[int, int, float]:
    return experiment.num_hypotheses, experiment.horizon, experiment.rules["epsilon"]


def _title(point: tuple[int, int, float]) -> str:
    return f"2K = {point[0]}, T = {point[1]:,}, eps = {point[2]:g}"


def _by_point(results: Results) -> dict[tuple[int, int, float], list[ExperimentResult]]:
    """For each point, the better learner on every channel."""
    groups: dict[tuple[int, int, float], list[ExperimentResult]] = {}
    for (point, _), lines in results.group(lambda e: (_point(e), e.channel)).items():
        groups.setdefault(point, []).append(min(lines, key=lambda result: result.risk.value))
    return groups
