"""Risk against one number of the game: what the suites ``num-hypotheses`` and ``epsilon`` share."""

from __future__ import annotations

from typing import Any, ClassVar

from ldp_gym import theory
from ldp_gym.bench import figures, statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.suites.base import REDRAWN, Suite, channel_rules
from ldp_gym.engine.rules import rule_value

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

    def own_experiments(self, small: bool) -> list[Experiment]:
        """All pairs at all values, with a table of its own in every episode."""
        horizon, episodes = (200, 6) if small else (10_000, 32)
        return [
            Experiment(
                {
                    **self.settings,
                    **REDRAWN,
                    **channel_rules(channel),
                    self.argument: value,
                    "horizon": horizon,
                },
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
            line = results.line(learner, channel, self._position)
            if len(line) < 2 or learner == "uniform":
                continue
            slope = statistics.slope([self._position(r.experiment) for r in line], [r.totals for r in line])
            text = f"{learner} on {channel}: risk against {self.symbol} has slope {slope}"
            if (learner, channel) in self.predicted:
                value, why = self.predicted[learner, channel]
                text += f"; predicted {value:+g} ({why})"
            found.append(Finding(text + "."))
        return found

    def draw(self, results: Results) -> figures.Figure:
        """Risk against the argument."""
        drawing, axes = figures.new_figure(width=7.6, height=3.8)
        panel = axes[0, 0]
        figures.draw_lines(panel, results, self._position)
        line = results.line("exp3", "laplace-single", self._position)
        panel.plot(
            [self._position(r.experiment) for r in line],
            [_bound(r) for r in line],
            ":",
            color=figures.colour("exp3"),
            label="bound of EXP3",
        )
        panel.set_xlabel(self.symbol)
        figures.set_log_scale(panel, "x", sorted(results.group(self._position)))
        figures.set_log_scale(panel, "y")
        figures.add_legend(drawing)
        return drawing

    def _position(self, experiment: Experiment) -> float:
        return float(experiment.rules[self.argument])


def _bound(result: ExperimentResult) -> float:
    """Algorithm 2's theorem in this game."""
    epsilon = rule_value(result.experiment.rules, "epsilon")
    return theory.exp3_bound(result.experiment.num_hypotheses, result.horizon, epsilon)
