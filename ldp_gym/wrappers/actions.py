"""Views of the action for RL agents: numbers in [-1, 1] in, a distribution over the labels out.

Each comes for the single and for the vector environment, around one implementation. None of them sees the
label, the truth or the reward.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, softmax
from ldp_gym.core.simplex import Simplex
from ldp_gym.engine.game import Game, game_of
from ldp_gym.wrappers.sources import VectorView, single_env, vector_env


class _Softmax:
    """Numbers in [-1, 1], scaled to logits: M of them to a distribution over the labels."""

    def __init__(self, game: Game, logit_range: float) -> None:
        self.space = gym.spaces.Box(-1.0, 1.0, (self._num_logits(game),), dtype=np.float32)
        self._scale = validation.positive("logit_range", logit_range)

    def _num_logits(self, game: Game) -> int:
        return game.num_labels

    def predict(self, action: npt.ArrayLike, candidates: FloatArray) -> FloatArray:
        logits = validation.numbers("an action", action)
        expected = (*candidates.shape[:-2], *self.space.shape)
        if logits.shape != expected or not np.isfinite(logits).all():
            raise ValueError(
                f"an action is finite numbers in [-1, 1] of shape {expected}, got shape {logits.shape}: "
                f"{validation.describe(action)}"
            )
        return softmax(self._scale * logits)


class _Mixture(_Softmax):
    """K logits to ``(1 - 1/T) sum_j w_j f_j(x_t) + (1/T) l / N'``."""

    def __init__(self, game: Game, logit_range: float) -> None:
        super().__init__(game, logit_range)
        self._clipping = game.clipping

    def _num_logits(self, game: Game) -> int:
        return game.num_hypotheses

    def predict(self, action: npt.ArrayLike, candidates: FloatArray) -> FloatArray:
        return self._clipping.smooth(super().predict(action, candidates), candidates)


def _require_distributions(env: Any, space: gym.Space[Any]) -> None:
    if not isinstance(space, Simplex):
        raise TypeError(f"a view of the action goes around what takes distributions; {env} takes {space}")


class _ActionView(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    view: type[_Softmax]

    def __init__(self, env: gym.Env[Any, Any], logit_range: float = 10.0) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, logit_range=logit_range)
        gym.ActionWrapper.__init__(self, single_env(self, env))
        _require_distributions(env, env.action_space)
        self.logit_range = logit_range
        self._view = self.view(game_of(env), logit_range)
        self.action_space = self._view.space

    def action(self, action: npt.ArrayLike) -> FloatArray:
        return self._view.predict(action, self.unwrapped.candidates)  # type: ignore[attr-defined]


class _VectorActionView(VectorView, gym.vector.VectorActionWrapper):
    view: type[_Softmax]

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any], logit_range: float = 10.0) -> None:
        super().__init__(vector_env(self, env))
        _require_distributions(env, env.single_action_space)
        self.logit_range = logit_range
        self._view = self.view(game_of(env), logit_range)
        self.single_action_space = self._view.space
        self.action_space = batch_space(self._view.space, env.num_envs)

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        return self._view.predict(actions, self.env.unwrapped.candidates)  # type: ignore[attr-defined]


class MixtureAction(_ActionView):
    """The action is K numbers in [-1, 1], the hypotheses' logits over ``logit_range``.

    The prediction is their mixture with the paper's 1/T smoothing, so that its KL is always finite.

    Args:
        env: an LDPDist environment.
        logit_range: the logit that an action of 1 stands for.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = MixtureAction(gym.make("LDPDist-v0"))
        >>> env.action_space
        Box(-1.0, 1.0, (8,), float32)
        >>> _ = env.reset(seed=0)
        >>> _ = env.step(env.action_space.sample())
    """

    view = _Mixture


class SoftmaxAction(_ActionView):
    """The action is M numbers in [-1, 1], the labels' logits over ``logit_range``.

    Args:
        env: an LDPDist environment.
        logit_range: the logit that an action of 1 stands for.
    """

    view = _Softmax


class VectorMixtureAction(_VectorActionView):
    """:class:`MixtureAction` for the vector environment."""

    view = _Mixture


class VectorSoftmaxAction(_VectorActionView):
    """:class:`SoftmaxAction` for the vector environment."""

    view = _Softmax
