"""The suite ``limit``: Bayes on every pure channel against the information limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results
from ldp_bench.suites.base import Finding, Suite
from ldp_gym import theory
from ldp_gym.channels.base import CHANNELS
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import PValues, above, conjunction


class Limit(Suite):
    """Bayes on every pure channel: risk as a multiple of the lower bound for all eps-private systems."""

    name = "limit"
    title = "Against the information limit"
    claim = (
        "An eps-private message tells at most C(eps) nats about the truth, so on disjoint supports the "
        "risk is at least sum_t max(0, log K - (t - 1) C(eps)), adaptive or not. eps = 1, uniform truth."
    )

    def own_experiments(self, small: bool) -> list[Experiment]:
        sizes: tuple[int, ...] = (8, 32, 128)
        horizon, episodes = 900, 400
        if small:
            sizes = (8,)
            horizon, episodes = 300, 20
        games = [
            Rules(hypotheses="disjoint", num_hypotheses=size, channel=channel, horizon=horizon)
            for size in sizes
            for channel in pure_channels(adaptive=True)
        ]
        return [Experiment(rules, "bayes", episodes=episodes) for rules in games]

    def findings(self, results: Results) -> Iterator[Finding]:
        games = results.group(lambda experiment: (experiment.num_hypotheses, experiment.horizon))
        for (size, horizon), played in games.items():
            limit = theory.information_limit(size, horizon, 1.0)
            fixed = [result for result in played if not _is_adaptive(result)]
            adaptive = [result for result in played if _is_adaptive(result)]
            if fixed:
                yield Finding(f"K = {size}, non-adaptive: {_describe_best(fixed, limit)}")
            if adaptive:
                yield Finding(f"K = {size}, adaptive: {_describe_best(adaptive, limit)}")

            count = len({result.channel for result in played})
            text = f"K = {size}: the claim is that none of {count} channels is below the limit."
            yield Finding(text, never_below(played, limit))

    def draw(self, results: Results) -> figures.Figure:
        panels: figures.Panels = {}
        ordered = sorted(
            results.successes,
            key=lambda result: (-result.experiment.num_hypotheses, result.risk.value),
        )
        for result in ordered:
            size = result.experiment.num_hypotheses
            limit = theory.information_limit(size, result.horizon, 1.0)
            rows = panels.setdefault(f"K = {size}", {}).setdefault("", {})
            rows.setdefault(result.channel, result.risk / limit)
        label = "risk as a multiple of the information limit (dotted)"
        return figures.draw_rows(panels, xlabel=label, reference=1.0)


def _is_adaptive(result: ExperimentResult) -> bool:
    return CHANNELS.class_of(result.channel).adaptive


def _describe_best(played: Sequence[ExperimentResult], limit: float) -> str:
    """Name the channel with the least risk, in multiples of the limit."""
    best = min(played, key=lambda result: result.risk.value)
    return f"{best.channel} pays {best.risk / limit} times the limit."


def pure_channels(adaptive: bool) -> list[str]:
    """List the pure channels of the package, with or without the adaptive ones."""
    names = []
    for name in CHANNELS.own:
        channel = CHANNELS.class_of(name)
        if name == "identity" or not channel.pure:
            continue
        if adaptive or not channel.adaptive:
            names.append(name)
    return sorted(names)


def never_below(played: Sequence[ExperimentResult], bound: float) -> PValues:
    """Test that no result is below a bound; the control is log K, which bounds Bayes without privacy."""
    control = theory.nonprivate_bound(played[0].experiment.num_hypotheses)
    return conjunction(
        above(result.evaluation.kl[..., -1], bound, control=control) for result in played
    )
