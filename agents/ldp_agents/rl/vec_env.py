"""Environments for stable-baselines3: games in lock step."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from ldp_gym.core import validation
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TRAINING

with extra("rl", "SB3VecEnv"):
    from stable_baselines3.common.vec_env import VecEnv, VecMonitor


def make_sb3_env(env_id: str = "LDPDistBox-v0", num_envs: int = 64, **rules: Any) -> VecMonitor:
    """Make B games in lock step for stable-baselines3, with episode returns in its logs.

    They are for training: game i of ``PPO(..., seed=s)`` begins with seed 3,000,000 + s + i, on which no
    score is taken (:mod:`ldp_gym.core.seed_ranges`).

    Args:
        env_id: ``LDPDistBox-v0`` or a named game such as ``LDPDistBox-easy-v0``.
        num_envs: B.
        **rules: keyword arguments of ``gym.make``.

    Example:
        >>> make_sb3_env("LDPDistBox-easy-v0", num_envs=8).reset().shape
        (8, 5)
    """
    games = gym.make_vec(env_id, num_envs, autoreset_mode="SameStep", **rules)
    return VecMonitor(SB3VecEnv(games, TRAINING.start))


class SB3VecEnv(VecEnv):
    """B games in lock step as an SB3 ``VecEnv``, equal step for step to a ``DummyVecEnv`` of B environments.

    Args:
        envs: ``gym.make_vec("LDPDistBox-v0", num_envs=B, autoreset_mode="SameStep")``, or LDPDist-v0 with
            any of the vector wrappers around it.
        first_seed: number that is added to every seed.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any], first_seed: int = 0) -> None:
        what = 'a vector environment, gym.make_vec(..., autoreset_mode="SameStep")'
        mode = validation.instance("envs", envs, gym.vector.VectorEnv, what).metadata.get(
            "autoreset_mode"
        )
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f'SB3 restarts games at once: make the environment with autoreset_mode="SameStep", got {mode}'
            )
        self.envs = envs
        self.first_seed = first_seed
        self.metadata = envs.metadata
        self._actions: npt.NDArray[Any] | None = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def seed(self, seed: int | None = None) -> list[int]:
        """Choose the seeds of the next reset: game i gets ``first_seed + seed + i``."""
        self._seeds = [self.first_seed + one for one in super().seed(seed)]
        return self._seeds

    def reset(self) -> Any:
        """Begin an episode in every game, with the seeds of a call of :meth:`seed` since the last reset."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        observations, infos = self.envs.reset(seed=seeds, options=self._shared_options())  # type: ignore[arg-type]
        self.reset_infos = _rows(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observations

    def _shared_options(self) -> dict[str, Any] | None:
        if any(options != self._options[0] for options in self._options):
            raise ValueError(f"the games share their reset options, got {self._options}")
        return self._options[0] or None

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        observations, rewards, over, truncated, infos = self.envs.step(self._actions)
        final_obs, final_info = infos.pop("final_obs", None), infos.pop("final_info", {})
        ended = infos.pop("_final_obs", np.zeros(self.num_envs, dtype=np.bool_))
        infos.pop("_final_info", None)
        rows, last = _rows(infos, self.num_envs), _rows(final_info, self.num_envs)
        for i in np.flatnonzero(ended):
            last[i] |= {"terminal_observation": final_obs[i]}
            if "episode" in rows[i]:  # statistics of a wrapper, of the episode that has ended
                last[i]["episode"] = rows[i].pop("episode")
            self.reset_infos[i], rows[i] = rows[i], last[i]
        for row, cut in zip(rows, (truncated & ~over).tolist(), strict=True):
            row["TimeLimit.truncated"] = cut
        return observations, rewards.astype(np.float32), (over | truncated), rows

    def get_images(self) -> list[Any]:
        frames = self.envs.render()
        return [None] * self.num_envs if frames is None else list(frames)

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs.unwrapped, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if len(list(self._get_indices(indices))) < self.num_envs:
            raise ValueError(
                f"the games share their attributes: {attr_name!r} cannot differ between them"
            )
        setattr(self.envs.unwrapped, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError(
            f"games in lock step have no {method_name!r}: call it on SB3VecEnv.envs"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        env, found = self.envs, False
        while isinstance(env, gym.vector.VectorWrapper):
            found, env = found or isinstance(env, wrapper_class), env.env
        return [found for _ in self._get_indices(indices)]


def _rows(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Gymnasium's vector infos, each key with a mask, as one dict per game."""
    rows: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, values in infos.items():
        if f"_{key}" not in infos:
            continue
        if isinstance(values, dict):  # such as the statistics of a wrapper
            values = np.array(
                _rows(values | {f"_{inner}": infos[f"_{key}"] for inner in values}, num_envs)
            )
        listed: list[Any] = values.tolist()
        if infos[f"_{key}"].all():
            for row, value in zip(rows, listed, strict=True):
                row[key] = value
        else:
            for i in np.flatnonzero(infos[f"_{key}"]):
                rows[i][key] = listed[i]
    return rows
