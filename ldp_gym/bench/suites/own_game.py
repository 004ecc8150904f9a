"""Suites that choose among models: their base class, and a game that a user gives by its rules."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldp_gym.bench import figures
from ldp_gym.bench.experiment import Experiment, make_scenario
from ldp_gym.bench.findings import Finding, find_right_model
from ldp_gym.bench.results import Results
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.suites.base import Suite, channel_rules
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import complete_rules

if TYPE_CHECKING:
    from pandas import DataFrame

EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""Privacy levels of a game whose rules name none."""


class SelectionSuite(Suite):
    """Learners as judges of models: the pick is the model of the heaviest weight after all rounds."""

    def findings(self, results: Results) -> list[Finding]:
        games = results.group(lambda experiment: experiment.family.rpartition(":")[2])
        return [find_right_model(game, played) for game, played in games.items()]

    def tables(self, results: Results) -> dict[str, DataFrame]:
        what = "how often the right model is picked, by eps"
        found = {title: shares.map("{:.0%}".format) for title, shares in _shares(results).items()}
        return {f"{title}: {what}": table.reset_index(names="channel") for title, table in found.items()}

    def draw(self, results: Results) -> figures.Figure:
        shares = _shares(results).items()
        panels = {title: table.map(Estimate).add_prefix("eps = ").to_dict() for title, table in shares}
        if not panels:  # no learner that played has weights to pick by
            return super().draw(results)
        return figures.draw_rows(panels, xlabel="right model picked, share of episodes", scale="linear")


def _shares(results: Results) -> dict[str, DataFrame]:
    """Shares of episodes with the right pick, channels by eps, of Bayes or else the best learner, by game."""
    found = {}
    picks = results.frame[results.frame["right"].notna()]
    for label, of_game in picks.groupby("hypotheses", sort=False):
        means = of_game.groupby("learner")["right"].mean()
        learner = "bayes" if "bayes" in means else str(means.idxmax())
        shares = of_game[of_game["learner"] == learner].pivot_table("right", "channel", "epsilon")
        if math.inf in shares and len(shares.columns) > 1:  # without privacy it is the same at every eps
            shares = shares.T.fillna(shares[math.inf]).T.drop(columns=math.inf)
        order = shares.mean(axis=1).sort_values(ascending=False, kind="stable").index
        name = f"{str(label).rpartition(':')[2]} ({learner})"
        found[name] = shares.loc[order].rename(columns="{:g}".format)
    return found


class OwnGame(SelectionSuite):
    """A game by its rules, on all channels and with all learners unless some are named.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists; models and data
            by ``"module:object"``. ``epsilon`` may be a list.
    """

    name = address = "own-game"
    title = "Your game"
    claim = (
        "The right model is the one that is charged least over all users. Picked is the model of the "
        "heaviest weight when all users have sent their message. An episode repeats the game with new "
        "private coins: the findings speak of these rules, and of these users where they are replayed."
    )

    def __init__(self, rules: Mapping[str, Any]) -> None:
        complete_rules(rules)
        try:
            self.rules: dict[str, Any] = json.loads(json.dumps(dict(rules)))
        except TypeError as error:
            raise TypeError(
                f"the rules of a benchmark are names, numbers and lists ({error}): put models and data into "
                "a module and name them as 'module:object'"
            ) from error
        self.parameters = {"rules": self.rules}
        given = self.rules.get("epsilon", EPSILONS)
        values = given if isinstance(given, list | tuple) else [given]
        self.epsilons = [validation.positive("epsilon", value) for value in values]
        if not self.epsilons:
            raise ValueError("epsilon must be a number or a list of some, got an empty list")

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Every learner on every channel that fits, at every eps."""
        named = self.rules.get("channel")
        channels = [named] if named else [name for name in CHANNELS if self._fits(name)]
        # An error in the game is raised now, not in every cell.
        make_scenario(**self._rules_on(channels[0] if channels else "split", self.epsilons[0]))
        return [
            Experiment(rules, learner, episodes=8 if small else 64, leaders=True)
            for channel in channels
            for epsilon in (self.epsilons[:1] if channel == "identity" else self.epsilons)
            for rules in [self._rules_on(channel, epsilon)]
            for learner in LEARNERS
        ]

    def experiments(self, size: str = "default", **options: Any) -> list[Experiment]:
        """Experiments; only of the learners and channels that are named, where some are."""
        learners, channels = options.get("learners"), options.get("channels")
        every = super().experiments(size, **options)
        heard = [e for e in every if not channels or e.channel in channels]
        return [e for e in heard if not learners or e.learner in learners]

    def _rules_on(self, channel: str, epsilon: float) -> dict[str, Any]:
        return channel_rules(channel) | self.rules | {"channel": channel, "epsilon": epsilon}

    def _fits(self, channel: str) -> bool:
        """Return True if the game can be played on a channel."""
        try:
            make_scenario(**self._rules_on(channel, self.epsilons[0]))
        except (TypeError, ValueError):
            return False
        return True
