"""Views of the action for RL agents: logits in, a distribution over the labels out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.core.simplex import Simplex
from ldp_gym.engine.game import game_of
from ldp_gym.envs.features import DEFAULT_LOGIT_RANGE, Logits
from ldp_gym.wrappers.sources import VectorView, single_env, vector_env


def _require_distributions(env: Any, space: gym.Space[Any]) -> None:
    if not isinstance(space, Simplex):
        raise TypeError(f"a view of the action goes around what takes distributions; {env} takes {space}")


class SoftmaxAction(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Action wrapper: M logits of the labels.

    Args:
        env: an LDPDist environment.
        logit_range: bound of the action space; a larger logit is accepted.
    """

    def __init__(self, env: gym.Env[Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, logit_range=logit_range)
        gym.ActionWrapper.__init__(self, single_env(self, env))
        _require_distributions(env, env.action_space)
        self._logits = Logits(self._num_logits(), logit_range)
        self.action_space = self._logits.space

    def _num_logits(self) -> int:
        return game_of(self.env).num_labels

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """The distribution over the labels that an action stands for."""
        return self._logits.distribution(action)


class MixtureAction(SoftmaxAction):
    """Action wrapper: K logits of a mixture of the hypotheses. 0 is the uniform mixture.

    Args:
        env: an LDPDist environment.
        logit_range: bound of the action space; a larger logit is accepted.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = MixtureAction(gym.make("LDPDist-v0"))
        >>> env.action_space
        Box(-5.0, 5.0, (8,), float32)
    """

    def _num_logits(self) -> int:
        return game_of(self.env).num_hypotheses

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """The mixture that an action stands for."""
        return mixture(super().action(action), self.unwrapped.candidates)  # type: ignore[attr-defined]


class VectorSoftmaxAction(VectorView, gym.vector.VectorActionWrapper):
    """:class:`SoftmaxAction` for the vector environment."""

    def __init__(
        self, env: gym.vector.VectorEnv[Any, Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE
    ) -> None:
        super().__init__(vector_env(self, env))
        _require_distributions(env, env.single_action_space)
        self._logits = Logits(self._num_logits(), logit_range, (env.num_envs,))
        self.single_action_space, self.action_space = self._logits.space, self._logits.batched_space

    def _num_logits(self) -> int:
        return game_of(self.env).num_labels

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """The distributions over the labels that actions stand for."""
        return self._logits.distribution(actions)


class VectorMixtureAction(VectorSoftmaxAction):
    """:class:`MixtureAction` for the vector environment."""

    def _num_logits(self) -> int:
        return game_of(self.env).num_hypotheses

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """The mixtures that actions stand for."""
        return mixture(super().actions(actions), self.env.unwrapped.candidates)  # type: ignore[attr-defined]
