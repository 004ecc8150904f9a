"""Disjoint supports against the information limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ldp_gym import theory
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.suites.base import Finding, Suite
from ldp_gym.bench.suites.lower import pure_channels
from ldp_gym.channels.base import CHANNELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results

SIZES = (8, 32, 128)


class Limit(Suite):
    """Every pure channel with Bayes, as a multiple of what no eps-private system can go below."""

    name: ClassVar[str] = "limit"
    title: ClassVar[str] = "Against the information limit"
    claim: ClassVar[str] = (
        "An eps-private message tells at most C(eps) nats about the truth, so on disjoint supports the risk"
        " is at least sum_t max(0, log K - (t - 1) C(eps)), adaptive or not. eps = 1, uniform truth."
    )

    def games(self, small: bool) -> list[Entry]:
        """Disjoint supports of one label each."""
        horizon, episodes = (300, 20) if small else (900, 400)
        return [
            Entry(
                {"hypotheses": "disjoint", "num_hypotheses": size, "channel": channel, "horizon": horizon},
                "bayes",
                episodes=episodes,
                block=100,
            )
            for size in (SIZES[:1] if small else SIZES)
            for channel in pure_channels(adaptive=True)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """The best channel with and without interaction, and that none is below."""
        found = []
        for size, lines in _by_size(results).items():
            for kind, adaptive in (("non-adaptive", False), ("adaptive", True)):
                of_kind = [p for p in lines if CHANNELS[p.entry.channel].adaptive is adaptive]  # type: ignore[attr-defined]
                if of_kind:
                    best = min(of_kind, key=lambda played: played.totals.mean())
                    found.append(
                        Finding(
                            f"K = {size}, {kind}: {best.entry.channel} has {_multiple(best)} times the limit."
                        )
                    )
            below = [p.entry.channel for p in lines if _multiple(p).high < 1.0]
            found.append(
                Finding(
                    f"K = {size}: none of {len(lines)} channels is below the limit."
                    if not below
                    else f"K = {size}: below the limit: {', '.join(below)}.",
                    not below,
                )
            )
        return found

    def draw(self, results: Results) -> Figure:
        """Multiples of the limit, one panel a K."""
        from ldp_gym.bench import figures

        groups = _by_size(results)
        drawn, axes = figures.figure(len(groups), width=max(3.2, 5.0 / len(groups)), height=3.6, sharey=True)
        # The largest K decides the order, and a name stands for the learner too where that is not Bayes.
        last = {_name(p): p.risk.value for lines in groups.values() for p in lines}
        names = sorted(last, key=lambda name: last[name])
        for panel, (size, lines) in zip(axes.flat, groups.items(), strict=True):
            multiples = {_name(played): _multiple(played) for played in lines}
            figures.dots(panel, names, [multiples.get(name) for name in names], figures.colour("bayes"), 1.0)
            panel.set_title(f"K = {size}")
        drawn.supxlabel("risk of Bayes as a multiple of the information limit (dotted)")
        return drawn


def _name(played: Played) -> str:
    entry = played.entry
    return entry.channel if entry.learner == "bayes" else f"{entry.learner} on {entry.channel}"


def _multiple(played: Played) -> Estimate:
    game = played.entry.game
    limit = theory.information_limit(game["num_hypotheses"], game["horizon"], 1.0)
    risk = played.risk
    return Estimate(risk.value / limit, risk.low / limit, risk.high / limit)


def _by_size(results: Results) -> dict[int, list[Played]]:
    groups: dict[int, list[Played]] = {}
    for played in results.played:
        groups.setdefault(played.entry.game["num_hypotheses"], []).append(played)
    return groups
