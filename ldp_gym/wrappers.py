"""Actions of LDPDist-v0 as logits, for the single and for the vector environment.

LDPDistBox-v0 has logits of a mixture built in, is faster, and shows features of the transcript.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.core.validation import describe
from ldp_gym.engine.game import game_of
from ldp_gym.engine.simplex import Simplex
from ldp_gym.envs.features import DEFAULT_LOGIT_RANGE, Logits

__all__ = ["MixtureAction", "SoftmaxAction", "VectorMixtureAction", "VectorSoftmaxAction"]


def _checked(wrapper: object, env: Any, kind: type[Any]) -> Any:
    """Check that a wrapper fits its environment, which must be of LDPDist-v0; return the environment.

    Args:
        wrapper: the wrapper, whose class is named in errors.
        env: the environment.
        kind: ``gym.Env`` for a single environment, ``gym.vector.VectorEnv`` for a vector of them.
    """
    if not isinstance(env, kind):
        name = type(wrapper).__name__.removeprefix("Vector")
        raise TypeError(
            f"around a single environment goes {name}, around a vector environment goes Vector{name}; "
            f"{type(wrapper).__name__} got {describe(env)}"
        )
    game_of(env)
    if kind is gym.Env:
        space = env.action_space
    else:
        space = env.single_action_space
    if not isinstance(space, Simplex):
        raise TypeError(f"logits go around what takes distributions; {env} takes {space}")
    return env


class SoftmaxAction(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Action wrapper: M logits of the labels.

    Args:
        env: an LDPDist environment.
        logit_range: bound of the action space; a larger logit is accepted.
    """

    _size = "num_labels"

    def __init__(self, env: gym.Env[Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, logit_range=logit_range)
        gym.ActionWrapper.__init__(self, _checked(self, env, gym.Env))
        num_logits = getattr(game_of(env), self._size)
        self._logits = Logits(num_logits, logit_range)
        self.action_space = self._logits.space

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """Softmax of M logits, a distribution over the labels ``(M,)``."""
        return self._logits.read(action)


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

    _size = "num_hypotheses"

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """Mixture ``(M,)`` of the candidates, whose weights are the softmax of K logits."""
        weights = super().action(action)
        return mixture(weights, self.unwrapped.candidates)  # type: ignore[attr-defined]


class VectorSoftmaxAction(gym.vector.VectorActionWrapper):
    """:class:`SoftmaxAction` for the vector environment."""

    _size = "num_labels"

    def __init__(
        self, env: gym.vector.VectorEnv[Any, Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE
    ) -> None:
        super().__init__(_checked(self, env, gym.vector.VectorEnv))
        num_logits = getattr(game_of(env), self._size)
        self._logits = Logits(num_logits, logit_range, (env.num_envs,))
        self.single_action_space = self._logits.space
        self.action_space = batch_space(self._logits.space, env.num_envs)

    @property
    def autoreset_mode(self) -> gym.vector.AutoresetMode:
        """Time at which a finished game begins again; Gymnasium's own vector wrappers do not pass it on."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined]

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """Softmax of each game's M logits, distributions over the labels ``(B, M)``."""
        return self._logits.read(actions)


class VectorMixtureAction(VectorSoftmaxAction):
    """:class:`MixtureAction` for the vector environment."""

    _size = "num_hypotheses"

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """Mixtures ``(B, M)`` of the candidates, whose weights are the softmax of each game's K logits."""
        weights = super().actions(actions)
        return mixture(weights, self.env.unwrapped.candidates)  # type: ignore[attr-defined]
