"""PPO (stable-baselines3) on sums of the messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from ldp_agents.rl import network, sb3
from ldp_agents.rl.model import Model, game_parameters
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_agents.rl.training_env import make_training_env

STEPS = 500_000
"""How many rounds are enough for the default game."""


@dataclass(frozen=True)
class Settings(sb3.OnPolicySettings):
    """PPO's settings, beside those of :class:`ldp_agents.rl.sb3.OnPolicySettings`.

    Attributes:
        network: ``"flat"`` on the evidence of one class, or ``"equivariant"`` on statistics matched to the
            candidates, which plays any class.
        hidden: the widths of the hidden layers.
    """

    network: str = "equivariant"
    hidden: tuple[int, ...] = (32, 32)

    def __post_init__(self) -> None:
        """A network that exists."""
        network.features_of(self.network)


class _Actor(TorchNetwork):
    """The mean action: logits over their range."""

    def __init__(self, features: tuple[int, ...], num_logits: int, settings: Settings, seed: int) -> None:
        kind = settings.network
        super().__init__(kind, features, network.num_outputs(kind, num_logits), settings.hidden, seed)
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
        super().__init__(*args, log_std_init=settings.log_std_init, **kwargs)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        shape, settings = self.observation_space.shape, self._settings
        self.mlp_extractor = _Features(self.features_dim)
        _, self.log_std = self.action_dist.proba_distribution_net(self.features_dim, self.log_std_init)
        self.action_net = _Actor(shape, self.action_space.shape[0], settings, 2 * self._seed)
        self.value_net = _Critic(settings.network, shape, 1, settings.hidden, 2 * self._seed + 1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def fit(run: Run[Settings]) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    config, settings = run.config, run.settings
    features = network.features_of(settings.network)
    env = make_training_env(config, features, settings.num_envs, settings.logit_range)
    policy_kwargs = {"settings": settings, "seed": config.seed}
    agent = sb3.begin(PPO, Policy, env, run, policy_kwargs=policy_kwargs, **settings.arguments)
    trained_on = game_parameters(config.scenario.game)

    def make_model() -> Model:
        return Model(agent.policy.action_net.numpy(), features, trained_on, run.card)

    return sb3.learn(agent, run, make_model, log_interval=10)
