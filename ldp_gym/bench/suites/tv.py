"""Total variation: the averaged risk, an estimate from many rounds, and one from many runs (Section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldp_gym import batch, theory
from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import Finding, Suite
from ldp_gym.engine.scenario import Scenario
from ldp_gym.numerics import divergences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results
    from ldp_gym.numerics.arrays import FloatArray

GAME: dict[str, Any] = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16}
PAIRS = (
    ("exp3", "laplace-single"),
    ("centred-exp3", "laplace-single"),
    ("bayes", "laplace-single"),
    ("bayes", "split"),
)
RUNS = 9
"""How many runs the median trick takes."""

ALPHA = 0.1
"""The accuracy in TV at which sample complexities are compared."""


class TV(Suite):
    """Averaged TV-risk, online-to-batch conversion, hypothesis selection and the median trick."""

    name: ClassVar[str] = "tv"
    title: ClassVar[str] = "Total variation, and estimates from a batch"
    claim: ClassVar[str] = (
        "By Pinsker's inequality the averaged TV-risk is at most sqrt(KL-risk / 2T). The average prediction"
        " is an estimate no worse than that, and T_alpha rounds make it alpha-good; the run that most "
        "others are near makes it so with high probability. One Dirichlet(0.3) table, K = 8, M = 16, eps = "
        "1."
    )

    def games(self, small: bool) -> list[Entry]:
        """Losses at every T, and estimates at every T for one truth."""
        horizons, episodes = ((100, 300), 18) if small else ((100, 300, 1_000, 3_000, 10_000, 100_000), 90)
        return [
            Entry(
                {**GAME, "channel": channel, "horizon": horizon},
                learner,
                episodes=episodes if horizon <= 10_000 else 18,
                truth=0,
                estimates=estimates,
                block=18,
            )
            for estimates in (False, True)
            for learner, channel in PAIRS
            for horizon in horizons
        ]

    def findings(self, results: Results) -> list[Finding]:
        """The bound, the conversion, T_alpha and the trick."""
        found = []
        above = [
            f"{p.entry}"
            for p in results.of()
            if p.tv[:, -1].mean() / p.entry.horizon > theory.tv_bound(float(p.totals.mean()), p.entry.horizon)
        ]
        found.append(
            Finding(
                "Averaged TV-risk exceeds Pinsker's bound: " + "; ".join(above)
                if above
                else "The averaged TV-risk is below Pinsker's bound from the measured KL-risk everywhere.",
                False if above else None,  # it is a theorem about these very numbers
            )
        )
        for learner, channel in PAIRS:
            line = _line(results, learner, channel, estimates=True)
            good = [p.entry.horizon for p in line if _distances(p).mean() <= ALPHA]
            if line:
                needed = f"at T = {good[0]:,}" if good else f"nowhere up to T = {line[-1].entry.horizon:,}"
                complexity = theory.sample_complexity(8, ALPHA, 1.0)
                last = line[-1]
                right = float((batch.nearest_hypothesis(last.estimates, _table(last)) == 0).mean())
                found.append(
                    Finding(
                        f"{learner} on {channel}: the average prediction is within {ALPHA} in TV on "
                        f"average {needed} "
                        f"(T_alpha of Algorithm 2's bound: {complexity:,}); at T = {last.entry.horizon:,} "
                        f"the nearest "
                        f"hypothesis is the truth in {right:.0%} of runs."
                    )
                )
        for played in _line(results, "bayes", "laplace-single", estimates=True):
            single, boosted = _distances(played), _boosted(played)
            found.append(
                Finding(
                    f"Median trick, Bayes on laplace-single, T = {played.entry.horizon:,}: the 90th "
                    f"percentile of the TV distance is {np.quantile(single, 0.9):.3f} with one run and "
                    f"{np.quantile(boosted, 0.9):.3f} with the median of {RUNS}."
                )
            )
        return found

    def draw(self, results: Results) -> Figure:
        """Averaged TV-risk with Pinsker's bound; estimates and the trick."""
        from ldp_gym.bench import figures

        drawn, axes = figures.figure(2, width=4.8, height=3.4, sharey=True)
        pairs = list(dict.fromkeys((p.entry.learner, p.entry.channel) for p in results.played))
        for i, (learner, channel) in enumerate(pairs):
            hue = figures.pair_colour(learner, channel, i)
            line = _line(results, learner, channel, estimates=False)
            x = [p.entry.horizon for p in line]
            beside = figures.apart(x, i, len(pairs))
            risks = [statistics.mean(p.tv[:, -1] / p.entry.horizon) for p in line]
            figures.points(axes[0, 0], beside, risks, f"{learner} on {channel}", hue)
            pinsker = [theory.tv_bound(float(p.totals.mean()), p.entry.horizon) for p in line]
            axes[0, 0].plot(x, pinsker, ":", color=hue)
            line = _line(results, learner, channel, estimates=True)
            x = [p.entry.horizon for p in line]
            beside = figures.apart(x, i, len(pairs))
            figures.points(
                axes[0, 1],
                beside,
                [statistics.mean(_distances(p)) for p in line],
                f"{learner} on {channel}",
                hue,
            )
            axes[0, 1].plot(x, [_boosted(p).mean() for p in line], "--", color=hue)
        axes[0, 0].set(title="averaged TV-risk\n(dotted: Pinsker's bound)", ylabel="total variation")
        axes[0, 1].set(title=f"TV of the average prediction\n(dashed: median of {RUNS} runs)")
        horizons = sorted({p.entry.horizon for p in results.played})
        for panel in axes.flat:
            panel.set_xlabel("T")
            figures.logarithmic(panel, "x", horizons)
            figures.logarithmic(panel, "y")
        figures.legend(drawn)
        return drawn


def _line(results: Results, learner: str, channel: str, *, estimates: bool) -> list[Played]:
    line = results.of(learner=learner, channel=channel, estimates=estimates)
    return sorted(line, key=lambda played: played.entry.horizon)


def _table(played: Played) -> FloatArray:
    return Scenario(**played.entry.game).hypotheses(np.zeros(1))


def _distances(played: Played) -> FloatArray:
    """TV between each run's average prediction and the truth, the first hypothesis."""
    return divergences.tv(_table(played)[0], played.estimates)


def _boosted(played: Played) -> FloatArray:
    """The same of the run that the median trick picks, out of every ``RUNS``."""
    groups = len(played.estimates) // RUNS
    if groups == 0:
        return np.array([np.nan])
    runs = played.estimates[: groups * RUNS].reshape(groups, RUNS, -1)
    picked = np.stack([group[batch.median_run(group)] for group in runs])
    return divergences.tv(_table(played)[0], picked)
