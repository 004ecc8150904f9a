"""LDPDist-v0: the agent in the learner's seat sees the transcript, and predicts distributions."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import ZERO, FloatArray, IntArray
from ldp_gym.engine.playback import LEARNER_ONLY, Playback
from ldp_gym.engine.role import Actions, Observation, Role
from ldp_gym.engine.rules import takes
from ldp_gym.engine.scenario import EpisodeStart
from ldp_gym.engine.seats import Moves
from ldp_gym.engine.simplex import Simplex
from ldp_gym.envs.base import EnvArguments
from ldp_gym.envs.single import SingleEnv
from ldp_gym.envs.vector import LockStepEnv, VectorArguments


class Transcript(Observation):
    """The round, its context and the last message; and the candidates if the rules show them."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self._shows_candidates = playback.scenario.observe_candidates
        self._placeholder = playback.scenario.channel.placeholder
        repeats = (playback.num_games, *[1] * self._placeholder.ndim)
        self._messages = np.tile(self._placeholder, repeats)
        self.space = playback.scenario.observation_space

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        self._messages[games] = self._placeholder

    def watch(self, playback: Playback, predictions: FloatArray, losses: FloatArray) -> None:
        self._messages[...] = playback.now("messages")

    def observe(self, game: int | EllipsisType = ...) -> dict[str, npt.NDArray[Any]]:
        observations = {
            "round": self._playback.rounds[game].copy(),
            "context": self._playback.now("contexts")[game].copy(),
            "message": self._messages[game].copy(),
        }
        if self._shows_candidates:
            observations["candidates"] = self._playback.candidates[game]
        return observations


class Distributions(Actions):
    """Distributions over the labels: points of a simplex."""

    def __init__(self, num_labels: int, batch_shape: tuple[int, ...]) -> None:
        self.space = Simplex(num_labels)
        self.placeholder = 1.0 / num_labels
        self._batch = Simplex(num_labels, batch_shape)

    def read(self, action: npt.ArrayLike) -> FloatArray:
        """The distributions, renormalised."""
        return self._batch.distribution(action)


class Predictor(Role):
    """The learner's seat: a loss of ``min(KL, max_loss)`` in each round."""

    seats = LEARNER_ONLY

    def __init__(self, playback: Playback, rules: Any) -> None:
        super().__init__(playback, rules)
        self.observation = Transcript(playback)
        self._max_loss = np.array(playback.scenario.max_loss)

    def actions(self, batch_shape: tuple[int, ...]) -> Actions:
        return Distributions(self.playback.scenario.game.num_labels, batch_shape)

    def moves(self, actions: FloatArray) -> Moves:
        return Moves(predictions=actions)

    def rewards(self, losses: FloatArray) -> FloatArray:
        return np.subtract(ZERO, np.minimum(losses, self._max_loss))  # 0 - x is never -0.0


class LDPDistEnv(SingleEnv):
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
    outside the class), ``distribution`` (p*), ``label`` and ``comparator`` (the loss of each hypothesis) too.

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

    role = Predictor

    @takes(EnvArguments)
    def __init__(self, arguments: EnvArguments) -> None:
        self._make(arguments)


class LDPDistVectorEnv(LockStepEnv):
    """B games of :class:`ldp_gym.LDPDistEnv` at once, in NumPy throughout.

    ``reset(seed=s)`` makes game i the one that the single environment plays under ``reset(seed=s + i)``. The
    arguments are ``num_envs``, ``autoreset_mode``, ``render_mode`` (:class:`VectorArguments`), and the rules
    of the game (:class:`ldp_gym.engine.rules.Rules`). For stable-baselines3, wrap it:
    ``ldp_agents.rl.SB3VecEnv(envs)``.

    Example:
        >>> import gymnasium as gym, numpy as np, ldp_gym
        >>> envs = gym.make_vec("LDPDist-v0", num_envs=3, horizon=10)
        >>> observations, _ = envs.reset(seed=0)
        >>> observations["context"].shape
        (3, 4)
        >>> _, rewards, *_ = envs.step(np.full((3, 16), 1 / 16))
        >>> rewards.shape
        (3,)
    """

    role = Predictor

    @takes(VectorArguments)
    def __init__(self, arguments: VectorArguments) -> None:
        self._make(arguments)
