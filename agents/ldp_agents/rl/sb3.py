"""Training of algorithms of stable-baselines3 on LDPDistBox-v0, many games at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldp_agents.rl.policies import algorithm_class
from ldp_agents.rl.settings import NUM_ROUNDS
from ldp_agents.rl.vec_env import make_sb3_env
from ldp_gym.core import validation
from ldp_gym.core.errors import extra

if TYPE_CHECKING:
    from ldp_agents.rl.training import Config, ProgressCallback

with extra("rl", "training"):
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv

SB3_ALGORITHMS = {"ppo": "PPO", "a2c": "A2C", "sac": "SAC", "recurrent-ppo": "RecurrentPPO"}
"""Class names of the algorithms, in stable-baselines3 or sb3-contrib."""

_OF_THE_RUN = ("policy", "n_envs", NUM_ROUNDS)
"""Settings that are not keyword arguments of the algorithm."""


def make_algorithm(
    name: str, env: VecEnv, settings: Mapping[str, Any], seed: int, **options: Any
) -> Any:
    """Make an untrained algorithm with settings as in ``settings.yaml``, on the CPU.

    Args:
        name: a key of :data:`SB3_ALGORITHMS`.
        env: the environment that it will train on.
        settings: all its settings.
        seed: seed of the network and of the games.
        **options: further keyword arguments of its class, such as ``policy_kwargs``.
    """
    arguments = {key: value for key, value in settings.items() if key not in _OF_THE_RUN}
    make = algorithm_class(SB3_ALGORITHMS[name])
    return make(settings["policy"], env, seed=seed, device="cpu", **arguments, **options)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Check the settings that SB3 does not check, or rejects with an unclear message."""
    validation.probability("gamma", settings["gamma"])
    if "learning_rate" in settings:
        validation.positive("learning_rate", settings["learning_rate"])
    # PPO normalises advantages within a batch, so one round is not enough.
    if "batch_size" in settings:
        validation.whole("batch_size", settings["batch_size"], least=2)
    if "n_steps" in settings:
        rounds = settings["n_envs"] * settings["n_steps"]
        validation.whole("n_envs * n_steps", rounds, least=2)


def fit_sb3(config: Config, progress: ProgressCallback) -> Any:
    """Train an algorithm of stable-baselines3 on the configuration's game, and return it."""
    torch.set_num_threads(1)
    num_envs = config.settings["n_envs"]
    env = make_sb3_env("LDPDistBox-v0", num_envs, **config.rules, observation=config.observation)
    model = make_algorithm(config.algorithm, env, config.settings, config.seed)
    return model.learn(config.steps, callback=_Report(progress))


class _Report(BaseCallback):
    """Reports progress at the start of each rollout."""

    def __init__(self, progress: ProgressCallback) -> None:
        super().__init__()
        self._progress = progress

    def _on_rollout_start(self) -> None:
        # The update after the rollout before is done: the model is as good as its rounds.
        self._progress(self.num_timesteps, lambda: self.model)

    def _on_step(self) -> bool:
        return True
