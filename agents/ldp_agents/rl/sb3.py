"""What the runs of stable-baselines3 share."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from ldp_agents.rl.config import Player, Watch


class Report(BaseCallback):
    """Tells the watch after every stretch of rounds that the algorithm has collected.

    Args:
        watch: who is told.
        player: gives the model as it is.
    """

    def __init__(self, watch: Watch, player: Callable[[], Player]) -> None:
        super().__init__()
        self._watch, self._player = watch, player

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._watch(self.num_timesteps, self._player, self.model.save)


class Falling:
    """A learning rate that falls linearly to zero; a class, so that SB3 can store it.

    Args:
        start: the rate at the beginning.
    """

    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, remaining: float) -> float:
        """The rate when so much of the run remains; the last update may end beyond it."""
        return self.start * max(remaining, 0.0)
