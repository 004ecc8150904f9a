"""PPO (stable-baselines3) on the evidence.

An action never changes a message, so every round is a bandit of its own: gamma is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from ldp_agents.rl import network
from ldp_agents.rl.config import Config, Player, Watch
from ldp_agents.rl.games import make_games
from ldp_agents.rl.model import Model, facts
from ldp_agents.rl.vec_env import SB3VecEnv

FEATURES_OF = {"flat": "evidence", "equivariant": "matched"}
"""What each kind of network reads."""


@dataclass(frozen=True)
class Settings:
    """PPO's settings; those that are known to work.

    Attributes:
        network: ``"flat"`` on the evidence of one class, or ``"equivariant"`` on statistics matched to the
            candidates, which plays any class.
        hidden: the widths of the hidden layers.
        num_envs: games in lock step.
        n_steps: rounds of each game between updates.
        batch_size: of a gradient step.
        n_epochs: passes over the rounds of an update.
        learning_rate: at the beginning; it falls linearly to zero.
        log_std: the log standard deviation of the logits at the beginning.
        logit_range: the largest logit.
    """

    network: str = "equivariant"
    hidden: tuple[int, ...] = (32, 32)
    num_envs: int = 64
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3
    log_std: float = -0.5
    logit_range: float = 10.0


class TorchNetwork(nn.Module):
    """A network of :mod:`ldp_agents.rl.network` whose arrays are trained."""

    def __init__(
        self, kind: str, features: tuple[int, ...], outputs: int, hidden: tuple[int, ...], seed: int
    ) -> None:
        super().__init__()
        arrays = network.make(kind, features, outputs, hidden, np.random.default_rng(seed))
        self.arrays = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(array, dtype=torch.float32)) for name, array in arrays.items()}
        )
        self._shape = features

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The outputs of flat or shaped features."""
        outputs: torch.Tensor = network.apply(self.arrays, features.reshape(-1, *self._shape), torch)
        return outputs

    def numpy(self) -> dict[str, Any]:
        """The arrays."""
        return {name: array.detach().numpy().astype(np.float64) for name, array in self.arrays.items()}


class _Actor(TorchNetwork):
    """The mean action: logits over their range."""

    def __init__(
        self, kind: str, features: tuple[int, ...], size: int, settings: Settings, seed: int
    ) -> None:
        super().__init__(kind, features, 1 if kind == "equivariant" else size, settings.hidden, seed)
        self._range = settings.logit_range

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features).flatten(1) / self._range


class _Critic(TorchNetwork):
    """The expected reward: of an equivariant network, the mean over hypotheses."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward(features).flatten(1).mean(1, keepdim=True)


class _Features(nn.Module):
    """Actor and critic read the features themselves."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.latent_dim_pi = self.latent_dim_vf = width

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return features, features

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        return features

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        return features


class Policy(ActorCriticPolicy):  # type: ignore[misc] # SB3 is not typed strictly
    """Gaussian logits around an actor, beside a critic, both from :mod:`ldp_agents.rl.network`."""

    def __init__(self, *args: Any, settings: Settings, seed: int, **kwargs: Any) -> None:
        self._settings, self._seed = settings, seed
        log_std = settings.log_std - math.log(settings.logit_range)
        super().__init__(*args, log_std_init=log_std, **kwargs)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        shape, size = self.observation_space.shape, self.action_space.shape[0]
        kind, hidden = self._settings.network, self._settings.hidden
        self.mlp_extractor = _Features(self.features_dim)
        _, self.log_std = self.action_dist.proba_distribution_net(self.features_dim, self.log_std_init)
        self.action_net = _Actor(kind, shape, size, self._settings, 2 * self._seed)
        self.value_net = _Critic(kind, shape, 1, hidden, 2 * self._seed + 1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


class Report(BaseCallback):  # type: ignore[misc]
    """Tells the watch after every update."""

    def __init__(self, watch: Watch, player: Callable[[], Player]) -> None:
        super().__init__()
        self._watch, self._player = watch, player

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._watch(self.num_timesteps, self._player, self.model.save)


def fit(config: Config, watch: Watch, checkpoint: Path | None = None, logs: Path | None = None) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    settings = Settings(**config.settings)
    torch.set_num_threads(1)
    games = make_games(config, FEATURES_OF[settings.network], settings.num_envs, settings.logit_range)
    env = SB3VecEnv(games)
    if checkpoint is None:
        algorithm = PPO(
            Policy,
            env,
            learning_rate=_falling(settings.learning_rate),
            n_steps=settings.n_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.n_epochs,
            gamma=0.0,
            gae_lambda=1.0,
            seed=config.seed,
            device="cpu",
            policy_kwargs={"settings": settings, "seed": config.seed},
            tensorboard_log=None if logs is None else str(logs),
        )
    else:
        algorithm = PPO.load(checkpoint, env, device="cpu")
        # Other games than those that were played before.
        algorithm.set_random_seed(config.seed + algorithm.num_timesteps)

    trained_on = facts(config.scenario.game)

    def player() -> Model:
        parameters = algorithm.policy.action_net.numpy()
        return Model(parameters, FEATURES_OF[settings.network], trained_on, config.card())

    algorithm.learn(
        config.steps - algorithm.num_timesteps,
        callback=Report(watch, player),
        reset_num_timesteps=checkpoint is None,
        log_interval=10,
        tb_log_name="ppo",
    )
    return player()


class _falling:  # noqa: N801 - used as a function; a class so that SB3 can pickle it
    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, remaining: float) -> float:
        return self.start * remaining
