"""PPO (stable-baselines3) on label evidence: what the slopes count, learned from rewards alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ldp_agents.rl import network, sb3
from ldp_agents.rl.games import CLASSES, make_rules
from ldp_agents.rl.model import Model
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_agents.rl.training_env import ManyGames, make_training_env
from ldp_gym.engine.scenario import Scenario
from ldp_gym.errors import extra
from ldp_gym.features.evidence import SLOPES

with extra("rl", "training"):
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.policies import ActorCriticPolicy
    from torch import nn


STEPS = 1_500_000
"""How many rounds are enough."""

_SHAPE = (8, 16)
"""K and M of the games that it trains on."""

_GAMES = ((0.25, 1000), (0.5, 1000), (1.0, 500), (2.0, 200), (4.0, 100), (8.0, 100))
"""Their eps and T: an episode is about as long as there is something to learn."""


_FAMILIES = [name for name in CLASSES if name != "hadamard"]
"""Their class families: in that of the lower bound there is nothing to learn from."""


@dataclass(frozen=True)
class Settings(sb3.OnPolicySettings):
    """PPO's settings, beside those of :class:`ldp_agents.rl.sb3.OnPolicySettings`.

    Attributes:
        num_envs: environments in lock step, of every game that it trains on.
        channels: those of the games that it trains on.
        hidden: the widths of the hidden layers.
    """

    num_envs: int = 4
    batch_size: int = 1152
    channels: tuple[str, ...] = ("laplace-single", "split", "one-bit")
    hidden: tuple[int, ...] = (32, 32)


class _Split(nn.Module):
    """An observation as what describes the game, and what was seen of each hypothesis."""

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        game, seen = observations.tensor_split([network.NUM_INPUTS], dim=1)
        return game, seen.unflatten(1, (-1, len(SLOPES) + 1))


class _Actor(TorchNetwork):
    """The mean action: log-weights by the evidence at all slopes, between -1 and 1.

    A weight of one is the action 1, and one of ``e^(-2 range)`` or less is -1: below that none matters.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(network.make(settings.hidden, 1 + len(SLOPES), np.random.default_rng(seed)))
        self._range = settings.logit_range

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        game, seen = _Split()(observations)
        counts = network.counts_of(super().forward(game))
        log_weights = torch.log_softmax((seen[..., :-1] * counts[:, None]).sum(dim=-1), dim=-1)
        return (1.0 + log_weights / self._range).clamp_min(-1.0)


class _Critic(nn.Module):
    """The expected reward: of each hypothesis' evidence and stake, the mean over hypotheses."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self._each = nn.Sequential(
            nn.Linear(network.NUM_INPUTS + 2 * (len(SLOPES) + 1), width), nn.ReLU(), nn.Linear(width, width)
        )
        self._all = nn.Sequential(nn.ReLU(), nn.Linear(width, 1))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        game, seen = _Split()(observations)
        seen = torch.sign(seen) * torch.log1p(seen.abs())
        mean = seen.mean(dim=1, keepdim=True).expand_as(seen)
        rows = torch.cat([game[:, None].expand(-1, seen.shape[1], -1), seen, mean], dim=-1)
        value: torch.Tensor = self._all(self._each(rows).mean(dim=1))
        return value


class _Observations(nn.Module):
    """Actor and critic read the observations themselves."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.latent_dim_pi = self.latent_dim_vf = width

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return observations, observations

    def forward_actor(self, observations: torch.Tensor) -> torch.Tensor:
        return observations

    def forward_critic(self, observations: torch.Tensor) -> torch.Tensor:
        return observations


class Policy(ActorCriticPolicy):
    """Gaussian logits around an actor, which :mod:`ldp_agents.rl.network` plays, beside a critic."""

    def __init__(self, *args: Any, settings: Settings, seed: int, **kwargs: Any) -> None:
        self._settings, self._seed = settings, seed
        super().__init__(*args, log_std_init=settings.log_std_init, **kwargs)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor = _Observations(self.features_dim)
        _, self.log_std = self.action_dist.proba_distribution_net(self.features_dim, self.log_std_init)
        self.action_net = _Actor(self._settings, self._seed)
        self.value_net = _Critic(self._settings.hidden[0])
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def make_games(settings: Settings) -> ManyGames:
    """A few environments of every channel at every eps; the class families take turns."""
    games, descriptions = [], []
    for i, (channel, (epsilon, horizon)) in enumerate(product(settings.channels, _GAMES)):
        rules = make_rules(_FAMILIES[i % len(_FAMILIES)], channel, epsilon, *_SHAPE, horizon)
        games.append(make_training_env(rules, "slopes", settings.num_envs, settings.logit_range))
        descriptions.append(network.describe(Scenario(**rules).channel))
    return ManyGames(games, descriptions)


def fit(run: Run[Settings]) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    config, settings = run.config, run.settings
    policy_kwargs = {"settings": settings, "seed": config.seed}
    env = make_games(settings)
    agent = sb3.begin(PPO, Policy, env, run, policy_kwargs=policy_kwargs, **settings.arguments)
    num_hypotheses, num_labels = _SHAPE
    epsilons, horizons = zip(*_GAMES, strict=True)
    trained_on = {
        "classes": sorted({CLASSES[name]["hypotheses"] for name in _FAMILIES}),
        "epsilon": [min(epsilons), max(epsilons)],
        "K": [num_hypotheses, num_hypotheses],
        "M": [num_labels, num_labels],
        "T": [min(horizons), max(horizons)],
    }

    def make_model() -> Model:
        return Model(agent.policy.action_net.numpy(), "slopes", trained_on, run.card)

    return sb3.learn(agent, run, make_model, log_interval=10)
