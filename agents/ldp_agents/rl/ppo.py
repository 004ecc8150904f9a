"""Training of ``ppo``: plain PPO of stable-baselines3 on LDPDistBox-v0, many games at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_agents.rl.policies import TrainedPolicy
from ldp_agents.rl.storage import ProgressCallback
from ldp_agents.rl.vec_env import ScoreCallback, make_sb3_env
from ldp_gym.core.errors import extra

if TYPE_CHECKING:
    from ldp_agents.rl.training import Config

with extra("rl", "training"):
    import torch
    from stable_baselines3 import PPO


STEPS = 300_000
"""Default number of rounds."""


@dataclass(frozen=True)
class PPOSettings:
    """PPOSettings of PPO; everything else is SB3's default.

    Attributes:
        num_envs: number of games in lock step.
        n_steps: rounds of each game between updates.
        batch_size: rounds of a gradient step.
        n_epochs: passes over the rounds of an update.
        learning_rate: learning rate.
        gamma: discount. An action never changes a message, so 0 loses nothing.
    """

    num_envs: int = 64
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3
    gamma: float = 0.0


def fit_ppo(
    config: Config,
    settings: PPOSettings,
    card: Mapping[str, Any],
    checkpoint: Path | None,
    progress: ProgressCallback,
) -> TrainedPolicy:
    """Train, or go on from a checkpoint. ``card`` goes with the model."""
    torch.set_num_threads(1)
    env = make_sb3_env("LDPDistBox-v0", settings.num_envs, **config.rules)
    if checkpoint is None:
        model = PPO(
            "MlpPolicy",
            env,
            learning_rate=settings.learning_rate,
            n_steps=settings.n_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            seed=config.seed,
            device="cpu",
        )
    else:
        model = PPO.load(checkpoint, env, device="cpu")
        model.set_random_seed(config.seed + model.num_timesteps)
    state = np.random.SeedSequence([config.seed, model.num_timesteps]).generate_state(1, np.uint64)
    env.seed(int(state[0] >> np.uint64(2)))  # far from the seeds of evaluations
    policy = TrainedPolicy(model, card)
    model.learn(
        config.steps - model.num_timesteps,
        callback=_Report(progress, policy),
        reset_num_timesteps=model.num_timesteps == 0,
    )
    return policy


class _Report(ScoreCallback):
    """Reports progress after every rollout."""

    def __init__(self, progress: ProgressCallback, policy: TrainedPolicy) -> None:
        super().__init__()
        self._progress, self._policy = progress, policy

    def _on_rollout_end(self) -> None:
        self._progress(self.num_timesteps, lambda: self._policy, self.model.save)
