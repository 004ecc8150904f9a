"""PPO (stable-baselines3) on the evidence.

An action never changes a message, so every round is a bandit of its own: gamma is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from ldp_agents.rl import sb3
from ldp_agents.rl.config import Config, ProgressCallback
from ldp_agents.rl.games import make_games
from ldp_agents.rl.model import Model, facts, features_of
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_agents.rl.vec_env import SB3VecEnv

STEPS = 500_000
"""How many rounds are enough for the default game."""


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

    def __post_init__(self) -> None:
        """A network that there is."""
        features_of(self.network)


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


class Policy(ActorCriticPolicy):
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


def fit(
    config: Config, watch: ProgressCallback, checkpoint: Path | None = None, logs: Path | None = None
) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    settings = config.read(Settings)
    games = make_games(config, features_of(settings.network), settings.num_envs, settings.logit_range)
    run = sb3.begin(
        PPO,
        Policy,
        SB3VecEnv(games),
        config,
        checkpoint,
        logs,
        learning_rate=sb3.LinearDecay(settings.learning_rate),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        gae_lambda=1.0,
        policy_kwargs={"settings": settings, "seed": config.seed},
    )
    trained_on = facts(config.scenario.game)

    def player() -> Model:
        parameters = run.policy.action_net.numpy()
        return Model(parameters, features_of(settings.network), trained_on, config.card(settings))

    sb3.learn(run, config, watch, player, log_interval=10)
    return player()
