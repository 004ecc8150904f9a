"""Suite of a game that a user describes by its rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldp_gym.bench.experiment import Experiment, make_scenario
from ldp_gym.bench.suites.base import Suite, channel_rules
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.core.registry import plain
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import Rules

EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""Privacy levels of a game whose rules name none."""


class YourGame(Suite):
    """A game by its rules, on all channels and with all learners unless some are named.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists; models and data
            by ``"module:object"``. ``epsilon`` may be a list.
    """

    name = address = "your-game"
    title = "Your game"
    claim = "An episode repeats the game with new contexts, labels and coins, as far as its rules draw them."
    ranks_learners = True

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules: dict[str, Any] = plain(dict(rules))
        Rules.of({**self.rules, "epsilon": None}).to_json()  # raises where a rule is wrong or an object
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
        make_scenario(self._rules_on(channels[0] if channels else "split", self.epsilons[0]))
        return [
            Experiment(rules, learner, episodes=8 if small else 64)
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

    def place(self, experiment: Experiment) -> tuple[str, str]:
        return f"eps = {experiment.epsilon:g}", experiment.channel

    def _rules_on(self, channel: str, epsilon: float) -> Rules:
        return Rules(**channel_rules(channel) | self.rules | {"channel": channel, "epsilon": epsilon})

    def _fits(self, channel: str) -> bool:
        try:
            make_scenario(self._rules_on(channel, self.epsilons[0]))
        except (TypeError, ValueError):
            return False
        return True
