"""Every learner on the main channels of the default game."""

from __future__ import annotations

from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.findings import Finding, find_least_risk
from ldp_gym.bench.results import Results
from ldp_gym.bench.suites.base import Suite, channel_rules

CHANNELS = (
    "laplace-vector",
    "laplace-single",
    "randomized-response",
    "split",
    "wheel",
    "adaptive-split",
    "identity",
)
LEARNERS = ("uniform", "wma", "exp3", "centred-exp3", "mle", "amortized", "bayes")


class Quick(Suite):
    """The leaderboard of the default game, in half a minute."""

    name = "quick"
    title = "Every learner on the main channels of the default game"
    claim = (
        "Under a uniform truth no learner has less risk than Bayes on the same channel. The row without "
        "privacy (identity) shows the price of privacy."
    )
    order = 10
    ranks_learners = True

    def own_experiments(self, small: bool) -> list[Experiment]:
        """The default game, softmax-linear with K = 8, M = 16, eps = 1."""
        horizon, episodes = (100, 10) if small else (1000, 100)
        return [
            Experiment({**channel_rules(channel), "horizon": horizon}, learner, episodes=episodes)
            for channel in CHANNELS
            for learner in LEARNERS
        ]

    def findings(self, results: Results) -> list[Finding]:
        """Who is best on each channel, and whether it is Bayes."""
        return [
            find_least_risk(channel, of_channel)
            for channel, of_channel in results.group(lambda experiment: experiment.channel).items()
        ]

    def draw(self, results: Results) -> figures.Figure:
        """Cumulative KL over the rounds, one panel per channel."""
        channels = results.channels
        columns = min(3, len(channels))
        drawing, axes = figures.new_figure(
            columns, -(-len(channels) // columns), width=3.9, height=2.6, sharex=True, sharey=True
        )
        for panel in axes.flat[len(channels) :]:
            panel.set_visible(False)
        learners = results.learners
        for panel, channel in zip(axes.flat, channels, strict=False):
            for result in results.select(channel=channel):
                hue = figures.colour(result.learner, learners.index(result.learner))
                figures.draw_band(panel, result.evaluation.rounds, result.evaluation.kl, result.learner, hue)
            panel.set_title(channel)
            panel.tick_params(labelbottom=True)  # also where a panel below it is not shown
            figures.set_log_scale(panel, "x")
            figures.set_log_scale(panel, "y")
        for panel in axes.flat[: len(channels)]:
            figures.label_ends(panel)
        drawing.supxlabel("round t")
        drawing.supylabel("cumulative KL (nats)")
        return drawing
