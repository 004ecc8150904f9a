"""Disjoint supports against the information limit."""

from __future__ import annotations

import operator

from ldp_gym import theory
from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, above, every
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.suites.base import Suite
from ldp_gym.bench.suites.lower import pure_channels
from ldp_gym.channels.base import CHANNELS

NUMS_HYPOTHESES = (8, 32, 128)
"""The values of K."""

_POSITION = operator.attrgetter("num_hypotheses")


class Limit(Suite):
    """Every pure channel with Bayes, as a multiple of what no eps-private system can go below."""

    name = "limit"
    title = "Against the information limit"
    claim = (
        "An eps-private message tells at most C(eps) nats about the truth, so on disjoint supports the risk"
        " is at least sum_t max(0, log K - (t - 1) C(eps)), adaptive or not. eps = 1, uniform truth."
    )
    order = 80

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Disjoint supports of one label each."""
        horizon, episodes = (300, 20) if small else (900, 400)
        return [
            Experiment(
                {"hypotheses": "disjoint", "num_hypotheses": k, "channel": channel, "horizon": horizon},
                "bayes",
                episodes=episodes,
                block=100,
            )
            for k in (NUMS_HYPOTHESES[:1] if small else NUMS_HYPOTHESES)
            for channel in pure_channels(adaptive=True)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """The best adaptive and non-adaptive channel, and that none is below."""
        found = []
        for k, lines in results.group(_POSITION).items():
            for kind, adaptive in (("non-adaptive", False), ("adaptive", True)):
                of_kind = [r for r in lines if CHANNELS.class_of(r.channel).adaptive is adaptive]
                if of_kind:
                    best = min(of_kind, key=lambda result: result.totals.mean())
                    found.append(
                        Finding(f"K = {k}, {kind}: {best.channel} has {_multiple(best)} times the limit.")
                    )
            least = min(lines, key=lambda result: _multiple(result).low)
            found.append(
                Finding(
                    f"K = {k}: of {len(lines)} channels {_name(least)} comes closest to the limit, with "
                    f"{_multiple(least)} times it. The claim is that none is below.",
                    every(above(result.totals, _limit(result)) for result in lines),
                )
            )
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Multiples of the limit, one panel per K."""
        groups = results.group(_POSITION)
        drawing, axes = figures.new_figure(
            len(groups), width=max(3.2, 5.0 / len(groups)), height=3.6, sharey=True
        )
        # The largest K decides the order, and a name stands for the learner too where that is not Bayes.
        last = {_name(r): r.risk.value for lines in groups.values() for r in lines}
        names = sorted(last, key=lambda name: last[name])
        for panel, (k, lines) in zip(axes.flat, groups.items(), strict=True):
            multiples = {_name(result): _multiple(result) for result in lines}
            figures.draw_dots(
                panel, names, [multiples.get(name) for name in names], figures.colour("bayes"), 1.0
            )
            panel.set_title(f"K = {k}")
        drawing.supxlabel("risk of Bayes as a multiple of the information limit (dotted)")
        return drawing


def _name(result: ExperimentResult) -> str:
    return result.channel if result.learner == "bayes" else f"{result.learner} on {result.channel}"


def _limit(result: ExperimentResult) -> float:
    return theory.information_limit(result.experiment.num_hypotheses, result.horizon, 1.0)


def _multiple(result: ExperimentResult) -> Estimate:
    limit, risk = _limit(result), result.risk
    return Estimate(risk.value / limit, risk.low / limit, risk.high / limit)
