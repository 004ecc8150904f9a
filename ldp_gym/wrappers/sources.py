"""Checks of the environment that a wrapper goes around."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ldp_gym.core.validation import describe
from ldp_gym.engine.game import game_of


class VectorView(gym.vector.VectorWrapper):
    """Vector wrapper that hands on ``autoreset_mode``, which Gymnasium's own wrappers do not."""

    @property
    def autoreset_mode(self) -> gym.vector.AutoresetMode:
        """When a game that is over begins again."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined]


def single_env(wrapper: object, env: Any) -> gym.Env[Any, Any]:
    """``env``, checked to be a single environment of LDPDist-v0."""
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
    """``env``, checked to be a vector environment of LDPDist-v0."""
    name = type(wrapper).__name__
    if not isinstance(env, gym.vector.VectorEnv):
        single = name.removeprefix("Vector")
        raise TypeError(
            f'{name} goes around a vector environment, gym.make_vec("LDPDist-v0", num_envs=B, ...); around a '
            f"single environment goes {single}; got {describe(env)}"
        )
    game_of(env)
    return env
