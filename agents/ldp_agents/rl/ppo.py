"""Training of ``ppo``: plain PPO of stable-baselines3 on LDPDistBox-v0, many games at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ldp_agents.rl.vec_env import make_sb3_env
from ldp_gym.core import validation
from ldp_gym.core.errors import extra

if TYPE_CHECKING:
    from ldp_agents.rl.training import Config, ProgressCallback

with extra("rl", "training"):
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback


@dataclass(frozen=True)
class PPOSettings:
    """Settings of PPO; everything else is SB3's default.

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

    def __post_init__(self) -> None:
        """Check the settings: SB3 normalises advantages within a batch, so one round is not enough."""
        validation.whole("batch_size", self.batch_size, least=2)
        validation.whole("num_envs * n_steps", self.num_envs * self.n_steps, least=2)
        validation.positive("learning_rate", self.learning_rate)
        validation.probability("gamma", self.gamma)


def fit_ppo(config: Config, settings: PPOSettings, progress: ProgressCallback) -> PPO:
    """Train an agent on the game of the configuration."""
    torch.set_num_threads(1)
    env = make_sb3_env("LDPDistBox-v0", settings.num_envs, **config.rules)
    options = {name: value for name, value in asdict(settings).items() if name != "num_envs"}
    model = PPO("MlpPolicy", env, seed=config.seed, device="cpu", **options)
    return model.learn(config.steps, callback=_Report(progress))


class _Report(BaseCallback):
    """Reports progress after every update."""

    def __init__(self, progress: ProgressCallback) -> None:
        super().__init__()
        self._progress = progress

    def _on_rollout_start(self) -> None:  # the update of the rollout before is done
        self._progress(self.num_timesteps, lambda: self.model)

    def _on_step(self) -> bool:
        return True
