"""One game as a Gymnasium environment, for any role."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.referee import Info, member_option
from ldp_gym.engine.rules import takes
from ldp_gym.engine.scenario import episode_generator
from ldp_gym.envs.base import EnvArguments, RefereedEnv
from ldp_gym.envs.rendering.frames import Frame


class SingleEnv(RefereedEnv, gym.Env[Any, Any]):
    """One game in which an agent plays a role.

    A subclass names its :class:`~ldp_gym.engine.role.Role`, and its arguments if there are any of its own.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 8}

    @takes(EnvArguments)
    def __init__(self, arguments: EnvArguments) -> None:
        self._make(arguments)

    def _make(self, arguments: Any) -> None:
        self._make_games(arguments, 1)
        self._actions = self._referee.role.actions(())
        self.observation_space = self._observation.space
        self.action_space = self._actions.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: the same seed gives the same game. Without one, the next episode of the last seed begins.
            options: ``{"truth": j}`` chooses the truth.
        """
        member = member_option(self.scenario, options)  # a wrong call changes nothing
        super().reset(seed=None if seed is None else validation.seed("seed", seed))
        only_game = np.zeros(1, dtype=np.int64)
        info = self._referee.begin(only_game, [episode_generator(self.np_random)], member)
        if self.render_mode == "human":
            self.render()
        return self._observation.observe(0), _of_one_game(info)

    def step(self, action: npt.ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the agent's turn of this round, and the round to its end."""
        if self._referee.over.item():
            raise ResetNeeded("the game is over, or has not begun: call reset() before step()")
        rewards, judged = self._referee.judge(self._actions.read(action)[None])
        info = _of_one_game(judged)
        over = self._referee.over.item()
        if over:
            info |= _of_one_game(self._referee.role.end_info())
        if self.render_mode == "human":
            self.render()
        return self._observation.observe(0), rewards.item(), over, False, info

    @property
    def candidates(self) -> FloatArray:
        return super().candidates[0]

    def render(self) -> Frame | str | None:
        """Frame of the last round for a person who watches; it shows the hidden truth."""
        frames = self._frames()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None


def _of_one_game(info: Info) -> dict[str, Any]:
    """Info of the only game, without the axis of the games: numbers become Python's, arrays stay arrays."""
    return {key: value.item() if value.ndim == 1 else value[0] for key, value in info.items()}
