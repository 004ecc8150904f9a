"""What a wrapper may be put around: the single environment, or the vector environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ldp_gym.core.validation import describe
from ldp_gym.engine.game import game_of


class VectorView(gym.vector.VectorWrapper):
    """A wrapper of the vector environment that shows what Gymnasium's own wrappers do not hand on."""

    @property
    def autoreset_mode(self) -> gym.vector.AutoresetMode:
        """When a game that is over begins again."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined]


def single_env(wrapper: object, env: Any) -> gym.Env[Any, Any]:
    """``env``, if it is a single environment of LDPDist-v0; the error names the wrapper to use instead."""
    name = type(wrapper).__name__
    if isinstance(env, gym.vector.VectorEnv):
        raise TypeError(
            f"{name} goes around a single environment; around a vector environment goes Vector{name}"
        )
    if not isinstance(env, gym.Env):
        raise TypeError(
            f'{name} goes around an environment, gym.make("LDPDist-v0", ...), got {describe(env)}'
        )
    game_of(env)
    return env


def vector_env(wrapper: object, env: Any) -> gym.vector.VectorEnv[Any, Any, Any]:
    """``env``, if it is a vector environment of LDPDist-v0; the error names the wrapper to use instead."""
    name = type(wrapper).__name__
    if isinstance(env, gym.Env):
        single = name.removeprefix("Vector")
        instead = f"; around a single environment goes {single}" if single != name else ""
        raise TypeError(
            f'{name} goes around a vector environment, gym.make_vec("LDPDist-v0", num_envs=B, ...){instead}'
        )
    if not isinstance(env, gym.vector.VectorEnv):
        raise TypeError(
            f'{name} goes around a vector environment, gym.make_vec("LDPDist-v0", num_envs=B, ...), got '
            f"{describe(env)}"
        )
    game_of(env)
    return env
