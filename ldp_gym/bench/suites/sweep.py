"""Risk against one number of the game: what the suites ``classes`` and ``epsilon`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ldp_gym import theory
from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.suites.base import Finding, Suite, on
from ldp_gym.engine.rules import rule_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ldp_gym.bench.results import Played, Results

PAIRS = (
    ("uniform", "laplace-single"),
    ("exp3", "laplace-single"),
    ("centred-exp3", "laplace-single"),
    ("bayes", "laplace-single"),
    ("bayes", "split"),
)


class Sweep(Suite):
    """The same learners over several values of one keyword argument.

    Attributes:
        argument: which.
        values: its values, and at the small size the first three of them.
        symbol: how figures call it.
        predicted: the slope that theory predicts in log-log, of the pairs of learner and channel.
        settings: the rest of the game.
    """

    argument: ClassVar[str]
    values: ClassVar[tuple[float, ...]]
    symbol: ClassVar[str]
    predicted: ClassVar[dict[tuple[str, str], tuple[float, str]]]
    settings: ClassVar[dict[str, Any]]

    def games(self, small: bool) -> list[Entry]:
        """All pairs at all values."""
        horizon, episodes = (200, 6) if small else (10_000, 32)
        return [
            Entry(
                {**self.settings, **on(channel), self.argument: value, "horizon": horizon},
                learner,
                episodes=episodes,
                block=8,
            )
            for learner, channel in PAIRS
            for value in (self.values[:3] if small else self.values)
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Measured slopes beside the predicted ones."""
        found = []
        for learner, channel in PAIRS:
            line = self._line(results, learner, channel)
            if len(line) < 2 or learner == "uniform":
                continue
            slope = statistics.slope([p.entry.game[self.argument] for p in line], [p.totals for p in line])
            text = f"{learner} on {channel}: risk against {self.symbol} has slope {slope}"
            if (learner, channel) in self.predicted:
                value, why = self.predicted[learner, channel]
                text += f"; predicted {value:+g} ({why})"
            found.append(Finding(text + "."))
        return found

    def draw(self, results: Results) -> Figure:
        """Risk against the argument."""
        from ldp_gym.bench import figures

        drawn, axes = figures.figure(width=7.6, height=3.8)
        panel = axes[0, 0]
        pairs = list(dict.fromkeys((p.entry.learner, p.entry.channel) for p in results.of()))
        for i, (learner, channel) in enumerate(pairs):
            line = self._line(results, learner, channel)
            x = [p.entry.game[self.argument] for p in line]
            label, hue = f"{learner} on {channel}", figures.pair_colour(learner, channel, i)
            if len(line) > 1:
                label += f"\n{figures.sloped(statistics.slope(x, [p.totals for p in line]))}"
            figures.points(panel, figures.apart(x, i, len(pairs)), [p.risk for p in line], label, hue)
        line = self._line(results, "exp3", "laplace-single")
        panel.plot(
            [p.entry.game[self.argument] for p in line],
            [_bound(p) for p in line],
            ":",
            color=figures.colour("exp3"),
            label="bound of EXP3",
        )
        panel.set(xlabel=self.symbol, ylabel="total KL (nats)")
        figures.logarithmic(panel, "x", sorted({p.entry.game[self.argument] for p in results.of()}))
        figures.logarithmic(panel, "y")
        figures.legend(drawn)
        return drawn

    def _line(self, results: Results, learner: str, channel: str) -> list[Played]:
        line = results.of(learner=learner, channel=channel)
        return sorted(line, key=lambda played: played.entry.game[self.argument])


def _bound(played: Played) -> float:
    """Algorithm 2's theorem in this game."""
    entry = played.entry
    return theory.exp3_bound(entry.size[0], entry.horizon, rule_value(entry.game, "epsilon"))
