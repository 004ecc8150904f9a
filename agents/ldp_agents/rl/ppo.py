"""PPO (stable-baselines3) on label evidence: what the slopes count, learned from rewards alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ldp_agents.rl import network, sb3
from ldp_agents.rl.games import describe_games, make_rules
from ldp_agents.rl.model import Model
from ldp_agents.rl.run import Run
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_agents.rl.training_env import ManyGames, make_training_env
from ldp_gym.core.errors import extra
from ldp_gym.engine.scenario import Scenario
from ldp_gym.wrappers.features.evidence import SLOPES

with extra("rl", "training"):
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.policies import ActorCriticPolicy
    from torch import nn


STEPS = 8_000_000
"""How many rounds are enough."""

_SHAPE = (8, 16)
"""K and M of the games that it trains on."""

_GAMES = ((0.25, 1000), (0.5, 1000), (1.0, 1000), (2.0, 500), (4.0, 300), (8.0, 300))
"""Their eps and T: an episode is about as long as there is something to learn."""

_FAMILIES = ("dirichlet(0.3)", "dirichlet(1)", "softmax-linear")
"""Their class families: not those that rule labels out, where the paper's smoothing forgives a wrong leader,
nor that of the lower bound, where there is nothing to learn from."""


@dataclass(frozen=True)
class Settings(sb3.OnPolicySettings):
    """PPO's settings, beside those of :class:`ldp_agents.rl.sb3.OnPolicySettings`.

    Attributes:
        num_envs: environments in lock step, of every game that it trains on.
        copies: how many of them play the same episode, two or more; what the others earn is the baseline.
        channels: those of the games that it trains on.
        hidden: the widths of the hidden layers.
    """

    num_envs: int = 32
    copies: int = 4
    n_steps: int = 4
    batch_size: int = 3840
    n_epochs: int = 1
    learning_rate: float = 2e-3
    log_std: float = -1.5
    channels: tuple[str, ...] = (
        "laplace-single",
        "split",
        "one-bit",
        "gaussian-vector",
        "subset-selection",
    )
    hidden: tuple[int, ...] = (32, 32)

    def __post_init__(self) -> None:
        """See whether every copy has others."""
        if self.copies < 2 or self.num_envs % self.copies:
            raise ValueError(
                f"copies must be at least 2, because what the others earn is the baseline, and num_envs a "
                f"multiple of them; got copies={self.copies}, num_envs={self.num_envs}"
            )


class _Actor(TorchNetwork):
    """The mean action: log-weights by the evidence at all slopes, between -1 and 1.

    A weight of one is the action 1, and one of ``e^(-2 range)`` or less is -1: below that none matters.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(
            network.make(
                network.CHANNEL_INPUTS, settings.hidden, network.SLOPE_OUTPUTS, np.random.default_rng(seed)
            )
        )
        self._range = settings.logit_range
        self._slopes = torch.tensor(SLOPES, dtype=torch.float32)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        game, seen = observations.tensor_split([network.CHANNEL_INPUTS], dim=1)
        seen = seen.unflatten(1, (-1, len(SLOPES) + 1))  # of each hypothesis
        counts = network.counts_of(super().forward(game), torch.arange(len(SLOPES))) * self._slopes
        log_weights = torch.log_softmax((seen[..., :-1] * counts[:, None]).sum(dim=-1), dim=-1)
        return (1.0 + log_weights / self._range).clamp_min(-1.0)


class _NoCritic(nn.Module):
    """A value of zero: what the other copies of a game earn is the baseline; what is left has mean zero."""

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(observations), 1)


class Policy(ActorCriticPolicy):
    """Gaussian logits around an actor, which :mod:`ldp_agents.rl.network` plays, beside a critic."""

    def __init__(self, *args: Any, settings: Settings, seed: int, **kwargs: Any) -> None:
        self._settings, self._seed = settings, seed
        super().__init__(*args, net_arch=[], log_std_init=settings.log_std_init, **kwargs)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self._build_mlp_extractor()  # of no layers: actor and critic read the observations themselves
        _, self.log_std = self.action_dist.proba_distribution_net(self.features_dim, self.log_std_init)
        self.log_std.requires_grad_(False)
        self.action_net = _Actor(self._settings, self._seed)
        self.value_net = _NoCritic()
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def list_rules(settings: Settings) -> list[dict[str, Any]]:
    """The rules of its games: every channel at every eps; the class families take turns in both."""
    return [
        make_rules(_FAMILIES[(i + j) % len(_FAMILIES)], channel, epsilon, *_SHAPE, horizon)
        for (i, channel), (j, (epsilon, horizon)) in product(enumerate(settings.channels), enumerate(_GAMES))
    ]


def make_games(settings: Settings) -> ManyGames:
    """A few environments of every game."""
    games, descriptions = [], []
    for rules in list_rules(settings):
        games.append(
            make_training_env(rules, "slopes", settings.num_envs, settings.logit_range, settings.copies)
        )
        descriptions.append(network.describe(Scenario(**rules).channel))
    return ManyGames(games, descriptions, settings.copies)


def fit(run: Run[Settings]) -> Model:
    """Train, or go on from a checkpoint; returns the model."""
    settings = run.settings
    # The worst mistakes are rare, and whatever makes them count less leaves the agent too sure: a gradient
    # that is cut to some length, advantages in units of their own spread, and, after the first pass over the
    # rounds of an update, PPO's clip of the ratio. So there is one pass, over all of them.
    agent = sb3.begin(
        PPO,
        Policy,
        make_games(settings),
        run,
        policy_kwargs={"settings": settings, "seed": run.config.seed},
        max_grad_norm=math.inf,
        normalize_advantage=False,
        vf_coef=0.0,
        **settings.arguments,
    )
    trained_on = describe_games(list_rules(settings))

    def make_model() -> Model:
        return Model(agent.policy.action_net.numpy(), "slopes", trained_on, run.card)

    return sb3.learn(agent, run, make_model, log_interval=10)
