"""LDPDist-v0 for one game, and the base class of all environments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.registry import plain
from ldp_gym.engine.referee import Referee, member_option
from ldp_gym.engine.rules import Rules, rule, takes
from ldp_gym.engine.scenario import episode_generator
from ldp_gym.envs.rendering.frames import Frame, Screen
from ldp_gym.envs.rendering.history import FrameHistory

Observation = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class EnvArguments(Rules):
    """Arguments of LDPDist-v0: the rules of the game, and how it is shown."""

    render_mode: str | None = rule(
        None, '``"human"`` (a window), ``"rgb_array"`` or ``"ansi"`` (text).'
    )


class RefereedEnv:
    """Base class of all environments: the referee, and the rendering."""

    metadata: dict[str, Any]
    _spec: EnvSpec | None = None

    def _make_games(self, arguments: Any, num_games: int = 1) -> None:
        """Make ``num_games`` games from :class:`EnvArguments`."""
        self.arguments = arguments
        self.render_mode = getattr(
            arguments, "render_mode", None
        )  # not every environment has pictures
        if self.render_mode is not None:
            validation.choice(
                "render_mode, if any,", self.render_mode, self.metadata["render_modes"]
            )
        self.scenario = arguments.scenario()
        validation.fits_memory("num_envs", num_games, self.scenario.footprint, "the games")
        self.game = self.scenario.game
        self._history = None if self.render_mode is None else FrameHistory(self.scenario, num_games)
        self._referee = self._make_referee(num_games)
        self._screen: Screen | None = None

    def _make_referee(self, num_games: int) -> Referee:
        return Referee(self.scenario, num_games, self._history)

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
        return self._referee.candidates

    def show(self, weights: npt.ArrayLike) -> None:
        """Draw a learner's weights, ``(K,)`` or ``(B, K)``, in the frames to come, if there are frames."""
        if self._history is not None:
            self._history.show(weights)

    def _frames(self) -> tuple[Frame | str | None, ...] | None:
        """A frame of each game; None, and a warning, without a render mode."""
        if self._history is None or self.render_mode is None:
            gym.logger.warn(
                'render() without a render mode: make the environment with render_mode="ansi"'
            )
            return None
        self._require_begun("render()")
        if self._screen is None:
            self._screen = Screen(self.render_mode, self.metadata["render_fps"])
        games = range(len(self._referee.begun))
        return tuple(self._screen.show(self._history.frame_data(game)) for game in games)

    def _require_begun(self, what: str) -> None:
        if not self._referee.begun.all():
            raise ResetNeeded(f"the game has not begun: call reset() before {what}")


class LDPDistEnv(RefereedEnv, gym.Env[Observation, FloatArray]):
    """Online distribution learning with locally private labels, as a Gymnasium environment.

    ## Description

    K functions ``f_1, ..., f_K`` from contexts in ``R^d`` to distributions over M labels are public. Nature
    hides a truth: one of them, or anything else (``truth=``). Each round it reveals a context ``x_t``; the
    agent outputs a distribution ``p_hat_t`` over the labels; a user draws a label from the truth's
    distribution ``p*_t`` and reveals only a privatized message; and the agent's loss is
    ``KL(p*_t, p_hat_t)``.

    ## Observation Space

    A ``Dict``:

    - ``round``: number of messages so far, ``0..T``. 0 means that there is no message yet;
    - ``context``: ``x_t`` in ``R^d``;
    - ``message``: the last round's message, a point of the channel's ``message_space``. In round 0 the zeros
      shown mean nothing (where the space has no zero, the point next to it);
    - ``candidates``, with ``observe_candidates=True``: the ``f_j(x_t)``, ``(K, M)``.

    When the game is over there is no next context: the last one is shown again, with the last message.

    ## Action Space

    A point of ``Simplex(M)``, checked and renormalised. ``ldp_gym.wrappers`` turns logits into one.

    ## Rewards

    ``-min(KL, max_loss)`` in nats, always finite. It is for training and scoring. It depends on the hidden
    truth and reveals something about it: **a learner that reads it, or ``info``, is cheating.**
    ``info["kl"]`` and ``info["tv"]`` are exact; with ``reveal=True`` info holds ``truth`` (the member, -1
    outside the class), ``label`` and ``comparator`` (the loss of each hypothesis) too.

    ## Starting State

    ``reset(seed=s)`` draws the truth (and the class, with ``redraw_hypotheses=True``) and the first context.
    ``reset(options={"truth": j})`` chooses the truth of one episode.

    ## Episode End

    The episode terminates after T rounds. It is never truncated.

    ## Rendering

    ``render_mode`` is ``"rgb_array"``, ``"human"`` (a window) or ``"ansi"`` (text). A frame shows the truth's
    distribution and the prediction, the posterior that the messages imply, the last message and the
    cumulative KL; and the learner's weights where it shows them, ``env.unwrapped.show(learner.weights)``.
    **Frames show the hidden truth:** they are for the person watching, never for the agent.

    ## Arguments

    ``render_mode``, and the rules of the game: see :class:`ldp_gym.engine.rules.Rules`, or ``help()``.

    ## Version History

    - v0: the first version.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = gym.make("LDPDist-v0", hypotheses=[[0.5, 0.5], [0.9, 0.1]], horizon=3)
        >>> observation, info = env.reset(seed=0)
        >>> observation["round"], observation["message"]
        (array([0]), array([0., 0.]))
        >>> observation, reward, terminated, truncated, info = env.step([0.6, 0.4])
        >>> round(reward, 4), sorted(info)
        (-0.2263, ['kl', 'tv'])
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 8}

    @takes(EnvArguments)
    def __init__(self, arguments: EnvArguments) -> None:
        self._make_games(arguments)
        self.observation_space = self.scenario.observation_space
        self._actions: Any = self.scenario.action_space
        self.action_space: gym.Space[Any] = self._actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: the same seed gives the same game. Without one, the next episode of the last seed begins.
            options: ``{"truth": j}`` chooses the truth.
        """
        member = member_option(self.scenario, options)  # a wrong call changes nothing
        super().reset(seed=None if seed is None else validation.seed("seed", seed))
        info = self._referee.begin(
            np.zeros(1, dtype=np.int64), [episode_generator(self.np_random)], member
        )
        if self.render_mode == "human":
            self.render()
        return self._referee.observe(0), _of_one_game(info)

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Predict the distribution of this round's label."""
        if self._referee.over.item():
            raise ResetNeeded("the game is over, or has not begun: call reset() before step()")
        rewards, judged = self._referee.judge(self._actions.distribution(action)[None])
        info, over = _of_one_game(judged), self._referee.over.item()
        if over:
            info |= _of_one_game(self._referee.episode_info())
        if self.render_mode == "human":
            self.render()
        return self._referee.observe(0), rewards.item(), over, False, info

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


def _of_one_game(info: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Info of the only game, without the axis of the games: numbers become Python's, arrays stay arrays."""
    return {key: value.item() if value.ndim == 1 else value[0] for key, value in info.items()}
