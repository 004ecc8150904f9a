"""One's own game: every learner and channel that fits, and which of them pick the right model.

>>> suite = OwnGame({"hypotheses": [[0.9, 0.1], [0.1, 0.9]], "truth": 1, "horizon": 50, "epsilon": [1, 4]})
>>> experiments = suite.experiments("small", learners=["bayes"], channels=["split"])
>>> [(str(experiment), experiment.rules["epsilon"]) for experiment in experiments]
[('bayes on split, T = 50', 1.0), ('bayes on split, T = 50', 4.0)]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ldp_gym.bench.experiment import CHANNEL_RULES, Experiment, make_scenario
from ldp_gym.bench.suites.base import channel_rules
from ldp_gym.bench.suites.selection import Selection
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import validation
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import complete_rules
from ldp_gym.engine.scenario import Scenario

EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""The privacy levels where the rules do not say."""


class OwnGame(Selection):
    """A game by its rules, on all channels and with all learners unless some are named.

    Args:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists; models and data
            by ``"module:object"``. ``epsilon`` may be a list.

    Raises:
        TypeError: for a rule that there is not, or that is not a name, a number or a list.
    """

    name = "own-game"
    title = "Your own game"
    claim = (
        "The right model is the one that is charged least over all users. Picked is the model of the "
        "heaviest weight when all users have sent their message. An episode repeats the game with new "
        "private coins: what is found speaks of these rules, and of these users where they are replayed."
    )
    order = 0

    def __init__(self, rules: Mapping[str, Any]) -> None:
        complete_rules(rules)
        try:
            self.rules: dict[str, Any] = json.loads(json.dumps(dict(rules)))
        except TypeError as error:
            raise TypeError(
                f"the rules of a benchmark are names, numbers and lists ({error}): put models and data into "
                f"a module of yours and name them as 'module:object'"
            ) from error
        given = self.rules.get("epsilon")
        values = given if isinstance(given, list) else EPSILONS if given is None else [given]
        self.epsilons = [validation.positive("epsilon", value) for value in values]
        if not self.epsilons:
            raise ValueError("epsilon must be a number or a list of some, got an empty list")

    @property
    def parameters(self) -> dict[str, Any]:
        """Its rules."""
        return {"rules": self.rules}

    def own_experiments(self, small: bool) -> list[Experiment]:
        """Every learner on every channel that fits, at every eps."""
        self._check()
        named = self.rules.get("channel")
        channels = [named] if named else [name for name in CHANNELS if self._fits(name)]
        return [
            Experiment(
                self._rules_on(channel, epsilon), learner, episodes=8 if small else 64, leaders=True, block=64
            )
            for channel in channels
            for epsilon in (self.epsilons[:1] if channel == "identity" else self.epsilons)
            for learner in LEARNERS
        ]

    def experiments(
        self,
        size: str = "default",
        *,
        learners: Sequence[str] = (),
        channels: Sequence[str] = (),
        episodes: int | None = None,
    ) -> list[Experiment]:
        """The experiments; of the learners and channels that are named, where some are."""
        every = super().experiments(size, learners=learners, channels=channels, episodes=episodes)
        return [
            experiment
            for experiment in every
            if (not learners or experiment.learner in learners)
            and (not channels or experiment.channel in channels)
        ]

    def _rules_on(self, channel: str, epsilon: float) -> dict[str, Any]:
        return channel_rules(channel) | self.rules | {"channel": channel, "epsilon": epsilon}

    def _check(self) -> None:
        """What is wrong with the game on any channel is an error now, not in every cell."""
        Scenario(**{name: value for name, value in self.rules.items() if name not in CHANNEL_RULES})

    def _fits(self, channel: str) -> bool:
        """Whether the game can be played on a channel."""
        try:
            make_scenario(**self._rules_on(channel, self.epsilons[0]))
        except (TypeError, ValueError):
            return False
        return True
