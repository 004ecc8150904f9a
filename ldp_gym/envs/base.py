"""Base of single and vector environments: the games of a role, and the rendering."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import plain
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.role import Role
from ldp_gym.engine.rules import Rules, rule
from ldp_gym.engine.seats import Seat
from ldp_gym.envs.rendering.frames import Frame, Screen
from ldp_gym.envs.rendering.history import FrameHistory


@dataclass(frozen=True, kw_only=True, eq=False)
class EnvArguments(Rules):
    """Arguments of LDPDist-v0: the rules of the game, and how it is shown."""

    render_mode: str | None = rule(
        None, '``"human"`` (a window), ``"rgb_array"`` or ``"ansi"`` (text).'
    )


class RefereedEnv:
    """Base class of all environments.

    Attributes:
        role: the agent's part: its seats, what it observes and what it is paid.
        history: the observer that keeps the data of frames.
        scenario: the game.
        game: its public rules.
        arguments: the environment's arguments.
    """

    role: ClassVar[type[Role]]
    history: ClassVar[type[FrameHistory]] = FrameHistory
    metadata: dict[str, Any]
    _spec: EnvSpec | None = None

    def _make_games(self, arguments: Any, num_games: int) -> None:
        """Make ``num_games`` games from :class:`EnvArguments`."""
        self.arguments = arguments
        self.render_mode = getattr(arguments, "render_mode", None)  # not all have pictures
        if self.render_mode is not None:
            known = self.metadata["render_modes"]
            validation.choice("render_mode, if any,", self.render_mode, known)
        self.scenario = arguments.scenario()
        validation.fits_memory("num_envs", num_games, self.scenario.footprint, "the games")
        self.game = self.scenario.game
        history = None if self.render_mode is None else self.history
        self._referee = Referee(self.scenario, num_games, self.role, arguments, history)
        self._observation = self._referee.role.observation
        self._screen: Screen | None = None

    @property
    def seats(self) -> frozenset[Seat]:
        """The seats that the agent plays."""
        return self.role.seats

    @property
    def spec(self) -> EnvSpec | None:
        """Gymnasium's record of the arguments, with arrays as lists so that ``spec.to_json()`` works."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else replace(spec, kwargs=plain(spec.kwargs))

    @property
    def candidates(self) -> FloatArray:
        """The public ``f_j(x_t)`` of the current round: ``(K, M)`` of one game, ``(B, K, M)`` of B."""
        self._require_begun("asking for candidates")
        return self._referee.playback.candidates

    def show(self, weights: npt.ArrayLike) -> None:
        """Draw a learner's weights, ``(K,)`` or ``(B, K)``, in the frames to come, if there are frames."""
        if isinstance(self._referee.history, FrameHistory):
            self._referee.history.show(weights)

    def _frames(self) -> tuple[Frame | str | None, ...] | None:
        """A frame of each game; None, and a warning, without a render mode."""
        history = self._referee.history
        if not isinstance(history, FrameHistory) or self.render_mode is None:
            gym.logger.warn(
                'render() without a render mode: make the environment with render_mode="ansi"'
            )
            return None
        self._require_begun("render()")
        if self._screen is None:
            self._screen = Screen(self.render_mode, self.metadata["render_fps"])
        games = range(len(self._referee.begun))
        return tuple(self._screen.show(history.frame_data(game)) for game in games)

    def _require_begun(self, what: str) -> None:
        if not self._referee.begun.all():
            raise ResetNeeded(f"the game has not begun: call reset() before {what}")
