"""Every learner on the main channels of the default game."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import Finding, Suite, on
from ldp_gym.learners import LEARNERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Results

CHANNELS = (
    "laplace-vector",
    "laplace-single",
    "randomized-response",
    "split",
    "wheel",
    "adaptive-split",
    "identity",
)
LEARNERS_SHOWN = ("uniform", "wma", "exp3", "centred-exp3", "mle", "ppo", "amortized", "bayes")


class Quick(Suite):
    """The leaderboard of the default game, in half a minute."""

    name: ClassVar[str] = "quick"
    title: ClassVar[str] = "Every learner on the main channels of the default game"
    claim: ClassVar[str] = (
        "Under a uniform truth no learner has less risk than Bayes on the same channel. The row without "
        "privacy (identity) shows the price of privacy."
    )

    def games(self, small: bool) -> list[Entry]:
        """The default game, softmax-linear with K = 8, M = 16, eps = 1."""
        horizon, episodes = (100, 10) if small else (1000, 100)
        known = LEARNERS.names()
        return [
            Entry({**on(channel), "horizon": horizon}, learner, episodes=episodes)
            for channel in CHANNELS
            for learner in LEARNERS_SHOWN
            if learner in known
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Who is best on each channel, and whether it is Bayes."""
        found = []
        for channel in dict.fromkeys(played.entry.channel for played in results.played):
            rows = results.of(channel=channel)
            best = min(rows, key=lambda played: played.totals.mean())
            bayes = [played for played in rows if played.entry.learner == "bayes"]
            # Pair by pair on the same tapes: whether the best is better than Bayes by more than its error.
            within = bool(bayes) and statistics.difference(best.totals, bayes[0].totals).high >= 0.0
            text = f"{channel}: the least risk is that of {best.entry.learner}, {best.risk} nats"
            if bayes and best is not bayes[0]:
                text += f"; Bayes has {bayes[0].risk}, {'within the error' if within else 'beyond the error'}"
            found.append(Finding(f"{text}.", within if bayes else None))
        return found

    def draw(self, results: Results) -> Figure:
        """Cumulative KL over the rounds, one panel a channel."""
        from ldp_gym.bench import figures

        channels = list(dict.fromkeys(played.entry.channel for played in results.played))
        columns = min(4, len(channels))
        drawn, axes = figures.figure(
            columns, -(-len(channels) // columns), width=2.9, height=2.5, sharex=True, sharey=True
        )
        for panel in axes.flat[len(channels) :]:
            panel.set_visible(False)
        learners = list(dict.fromkeys(played.entry.learner for played in results.played))
        for panel, channel in zip(axes.flat, channels, strict=False):
            for played in results.of(channel=channel):
                hue = figures.colour(played.entry.learner, learners.index(played.entry.learner))
                figures.band(panel, played.rounds, played.kl, played.entry.learner, hue)
            panel.set_title(channel)
            panel.tick_params(labelbottom=True)  # also where a panel below it is not shown
            figures.logarithmic(panel, "x")
            figures.logarithmic(panel, "y")
        figures.legend(drawn)
        drawn.supxlabel("round t")
        drawn.supylabel("cumulative KL (nats)")
        return drawn
