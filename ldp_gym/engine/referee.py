"""The referee of B games: lets them be played round by round, and computes the losses of predictions.

One game is the case B = 1. The single and the vector environment are thin views of :class:`Referee`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import kl_to_each
from ldp_gym.engine.losses import charge_each, further_losses
from ldp_gym.engine.playback import Observer, Playback
from ldp_gym.engine.role import Role
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.seats import Seat

Info = dict[str, npt.NDArray[Any]]
"""Values ``(B, ...)`` by name."""


class Referee:
    """Referee of B games of a scenario, in which an agent plays a role.

    Args:
        scenario: the game.
        num_games: B.
        role: the agent's part.
        rules: the arguments of the environment, for the role.
        history: makes the observer that keeps the data of frames, if there are any.

    Attributes:
        begun: True where a game has begun, ``(B,)``.
        over: True where a game has played all its rounds, or has not begun, ``(B,)``.
    """

    def __init__(
        self,
        scenario: Scenario,
        num_games: int,
        role: type[Role],
        rules: Any = None,
        history: Callable[[Playback], Observer] | None = None,
    ) -> None:
        self.scenario = scenario
        self.playback = Playback(scenario, num_games, role.seats)
        self.role = role(self.playback, rules)
        observers: list[Observer] = [self.role.observation, self.role]
        self.history = None if history is None else history(self.playback)
        if self.history is not None:
            observers.append(self.history)
        for observer in observers:
            self.playback.add_observer(observer)
        # Those that override watch(): calls that do nothing would slow down every step.
        self._watchers = [
            observer for observer in observers if type(observer).watch is not Observer.watch
        ]
        self._further_losses = further_losses(scenario.losses)
        self.begun = np.zeros(num_games, dtype=np.bool_)
        self.over = self.playback.over

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> Info:
        """Begin new episodes in the given games, each with its own generator; returns their info."""
        self.playback.begin(games, self.scenario.start_episodes(generators, member))
        self.begun[games] = True
        self.role.ready()
        known = Seat.NATURE not in self.role.seats  # else the first round waits for its context
        if self.scenario.reveal and known:
            return {"truth": self.playback.now("members").copy()}
        return {}

    def judge(self, actions: npt.NDArray[Any]) -> tuple[FloatArray, Info]:
        """Play the current round with the agents' checked actions ``(B, ...)``, and go on to the next.

        Returns:
            The rewards ``(B,)``, and the info: the losses of the round's predictions, and the hidden truth
            where it is revealed.
        """
        playback = self.playback
        moves = self.role.moves(actions)
        playback.complete(moves)
        predictions = moves.predictions
        if predictions is None:
            predictions = playback.posterior_mean

        distributions = playback.now("distributions")
        negentropies = playback.now("negentropies")
        info: Info = charge_each(self._further_losses, distributions, predictions, negentropies)
        losses = info["kl"]
        if self.scenario.reveal:
            info |= self._revealed()

        rewards = self.role.rewards(losses)
        for observer in self._watchers:
            observer.watch(playback, predictions, losses)
        playback.advance()
        self.role.ready()
        return rewards, info

    def _revealed(self) -> Info:
        """Hidden values of the current round."""
        playback = self.playback
        distributions = playback.now("distributions")
        comparator = kl_to_each(distributions, playback.candidates, playback.now("negentropies"))
        return {
            "truth": playback.now("members").copy(),
            "distribution": distributions.copy(),
            "label": playback.now("labels").copy(),
            "comparator": comparator,
        }


def member_option(scenario: Scenario, options: Mapping[str, Any] | None) -> int | None:
    """Member that ``reset(options={"truth": j})`` asks for, checked."""
    options = validation.options_dict("options", options)
    unknown = set(options) - {"truth"}
    if unknown:
        raise ValueError(f"unknown reset options {sorted(unknown)}; the known one is 'truth'")
    if "truth" not in options:
        return None
    return scenario.valid_member(options["truth"])
