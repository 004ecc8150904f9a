"""Environments for stable-baselines3: games in lock step."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TRAINING

with extra("rl", "SB3VecEnv"):
    from stable_baselines3.common.vec_env import VecEnv, VecMonitor

RUNS_APART = 2**20
"""Distance between the first seeds of two training runs, and so the most games of a run."""


def make_sb3_env(
    env_id: str = "LDPDistBox-v0", num_envs: int = 64, *, seed: int | None = None, **rules: Any
) -> VecMonitor:
    """Make B games in lock step for stable-baselines3, with episode returns in its logs.

    They are for training: no score is taken on their seeds (:mod:`ldp_gym.core.seed_ranges`). Runs
    of different seeds share no game: game i of ``PPO(..., seed=s)`` begins with seed
    ``3,000,000 + 2^20 s + i``.

    Args:
        env_id: ``LDPDistBox-v0`` or another id, such as ``LDPDistBox-easy-v0``.
        num_envs: B, at most 2^20.
        seed: number s of the training run, below 2^32. The ``seed=`` of an algorithm, if it has
            one, replaces it.
        **rules: keyword arguments of ``gym.make``.

    Example:
        >>> make_sb3_env("LDPDistBox-easy-v0", num_envs=8).reset().shape
        (8, 5)
    """
    validation.whole("num_envs", num_envs, least=1, most=RUNS_APART)
    games = gym.make_vec(env_id, num_envs, autoreset_mode="SameStep", **rules)
    env = SB3VecEnv(games, first_seed=TRAINING.start, runs_apart=RUNS_APART)
    if seed is not None:
        env.seed(validation.whole("seed", seed, least=0, most=2**32 - 1))
    return VecMonitor(env)


class SB3VecEnv(VecEnv):
    """B games in lock step as an SB3 ``VecEnv``.

    With the default seeds it equals, step for step, a ``DummyVecEnv`` of B environments.

    Args:
        envs: ``gym.make_vec("LDPDistBox-v0", num_envs=B, autoreset_mode="SameStep")``, or
            LDPDist-v0 with any of the vector wrappers around it.
        first_seed: seed of game 0 after ``seed(0)``.
        runs_apart: distance between the seeds of game 0 after ``seed(s)`` and ``seed(s + 1)``.

    Attributes:
        observations: the observations of all games that were returned last.
        rewards: the rewards ``(B,)`` that were returned last, in double precision.
    """

    observations: Any = None
    rewards: FloatArray | None = None

    def __init__(
        self,
        envs: gym.vector.VectorEnv[Any, Any, Any],
        first_seed: int = 0,
        runs_apart: int = 1,
    ) -> None:
        what = 'a vector environment, gym.make_vec(..., autoreset_mode="SameStep")'
        validation.instance("envs", envs, gym.vector.VectorEnv, what)
        mode = envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f"SB3 restarts games at once: make the environment with "
                f'autoreset_mode="SameStep", got {mode}'
            )
        self.envs = envs
        self.metadata = envs.metadata
        self._first_seed = first_seed
        self._runs_apart = runs_apart
        self._actions: npt.NDArray[Any] | None = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def seed(self, seed: int | None = None) -> list[int]:
        """Choose the seeds of the next reset: game i gets ``first_seed + runs_apart * seed + i``.

        Without a number SB3 draws one, below 2^32. Returns the seeds of the games.
        """
        run = super().seed(seed)[0]
        return self.seed_games(self._first_seed + self._runs_apart * run)

    def seed_games(self, first_seed: int) -> list[int]:
        """Choose and return the seeds of the next reset: game i gets ``first_seed + i``."""
        self._seeds = [first_seed + i for i in range(self.num_envs)]
        return self._seeds

    def reset(self) -> Any:
        """Begin an episode in all games, and return their observations.

        The seeds and options that were chosen since the last reset are used once.
        """
        seeds = None
        if any(seed is not None for seed in self._seeds):
            seeds = list(self._seeds)
        options = self._shared_options()
        observations, infos = self.envs.reset(seed=seeds, options=options)  # type: ignore[arg-type]
        self.reset_infos = _split_infos(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        self.observations = observations
        return observations

    def _shared_options(self) -> dict[str, Any] | None:
        """Return the reset options of the games, None if there are none.

        Raises:
            ValueError: if they differ between games.
        """
        first = self._options[0]
        if any(options != first for options in self._options):
            raise ValueError(f"the games share their reset options, got {self._options}")
        return first or None

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions of all games for :meth:`step_wait`, which plays them."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play a round in all games: observations, rewards ``(B,)``, ends ``(B,)`` and infos.

        A game whose episode ends restarts at once. As SB3 expects, its observation is then the
        first of the next episode, and its info is that of the episode that has ended, with the
        last observation as ``terminal_observation``.
        """
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        final_obs = infos.pop("final_obs", None)
        final_info = infos.pop("final_info", {})
        ended = infos.pop("_final_obs", np.zeros(self.num_envs, dtype=np.bool_))
        infos.pop("_final_info", None)

        # One dict per game. Where an episode has ended, Gymnasium's info is of the reset.
        info_dicts = _split_infos(infos, self.num_envs)
        final_dicts = _split_infos(final_info, self.num_envs)
        for i in np.flatnonzero(ended):
            reset_info = info_dicts[i]
            final = final_dicts[i]
            final["terminal_observation"] = final_obs[i]
            # Statistics of a wrapper are about the episode that has ended.
            if "episode" in reset_info:
                final["episode"] = reset_info.pop("episode")
            self.reset_infos[i] = reset_info
            info_dicts[i] = final

        only_truncated = truncated & ~terminated
        for info, is_cut_off in zip(info_dicts, only_truncated.tolist(), strict=True):
            info["TimeLimit.truncated"] = is_cut_off
        self.observations = observations
        self.rewards = np.array(rewards, dtype=np.float64)  # a copy: SB3 writes into what it gets
        return observations, rewards.astype(np.float32), terminated | truncated, info_dicts

    def get_images(self) -> list[Any]:
        """Return a frame of each game, or None for each where games are not rendered."""
        frames = self.envs.render()
        if frames is None:
            return [None] * self.num_envs
        return list(frames)

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute once for each of the selected games, which share it."""
        value = getattr(self.envs.unwrapped, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all games.

        Raises:
            ValueError: if only a part of the games is selected: they share their attributes.
        """
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
        """Tell, once for each selected game, if the vector environment has a wrapper of a class."""
        is_wrapped = False
        env = self.envs
        while isinstance(env, gym.vector.VectorWrapper):
            is_wrapped = is_wrapped or isinstance(env, wrapper_class)
            env = env.env
        return [is_wrapped for _ in self._get_indices(indices)]


def _split_infos(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Split the info dict of a vector environment into one dict per game.

    Gymnasium pairs each key with a mask under the key with a leading underscore, which tells the
    games that have a value.

    >>> _split_infos({"kl": np.array([0.5, 0.0]), "_kl": np.array([True, False])}, 2)
    [{'kl': 0.5}, {}]
    """
    info_dicts: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if mask is None:  # the key of a mask
            continue

        value_of_game: list[Any]
        if isinstance(values, dict):  # such as the statistics of a wrapper
            masks = {f"_{inner_key}": mask for inner_key in values}
            value_of_game = _split_infos(values | masks, num_envs)
        else:
            value_of_game = values.tolist()

        # Without the mask where all games have the key: this runs once per round and key.
        if mask.all():
            for info, value in zip(info_dicts, value_of_game, strict=True):
                info[key] = value
        else:
            for i in np.flatnonzero(mask):
                info_dicts[i][key] = value_of_game[i]
    return info_dicts
