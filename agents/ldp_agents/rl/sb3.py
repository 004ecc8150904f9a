"""What the runs of stable-baselines3 share.

An action never changes a message, so every round is a bandit of its own: gamma is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ldp_agents.rl.run import ProgressCallback, Run, TrainedModel
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    import torch
    from stable_baselines3.common.callbacks import BaseCallback


Model = TypeVar("Model", bound=TrainedModel)


@dataclass(frozen=True)
class OnPolicySettings:
    """The settings of PPO, with a memory or without; those that are known to work.

    Attributes:
        num_envs: environments in lock step.
        n_steps: rounds of each between updates.
        batch_size: of a gradient step.
        n_epochs: passes over the rounds of an update.
        learning_rate: at the start; it falls linearly to zero.
        log_std: the log standard deviation of the logits at the start.
        logit_range: the largest logit.
    """

    num_envs: int = 64
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3
    log_std: float = -0.5
    logit_range: float = 10.0

    @property
    def log_std_init(self) -> float:
        """The log standard deviation of an action, which is a logit over its range."""
        return self.log_std - math.log(self.logit_range)

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings as stable-baselines3 takes them."""
        return {
            "learning_rate": LinearDecay(self.learning_rate),
            "n_steps": self.n_steps,
            "batch_size": self.batch_size,
            "n_epochs": self.n_epochs,
            "gae_lambda": 1.0,
        }


class LinearDecay:
    """A learning rate that falls linearly to zero; a class, so that SB3 can store it.

    Args:
        start: the rate at the start.
    """

    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, remaining: float) -> float:
        """The rate when this share of the run remains; the last update may end beyond it."""
        return self.start * max(remaining, 0.0)


def begin(algorithm: Any, policy: Any, env: Any, run: Run[Any], **arguments: Any) -> Any:
    """SB3's algorithm, new with these arguments or from the run's checkpoint."""
    torch.set_num_threads(1)
    seed = run.config.seed
    if run.checkpoint is None:
        agent = algorithm(
            policy, env, gamma=0.0, seed=seed, device="cpu", tensorboard_log=str(run.logs), **arguments
        )
    else:
        agent = algorithm.load(run.checkpoint, env, device="cpu")
        agent.set_random_seed(seed + agent.num_timesteps)
    state = np.random.SeedSequence([seed, agent.num_timesteps]).generate_state(1, np.uint64)
    env.seed(int(state[0] >> np.uint64(2)))  # far from the seeds that anyone evaluates on
    return agent


def learn(agent: Any, run: Run[Any], make_model: Callable[[], Model], log_interval: int) -> Model:
    """Play what is left of the run's rounds; returns the model."""
    agent.learn(
        run.config.steps - agent.num_timesteps,
        callback=_Report(run.progress, make_model),
        reset_num_timesteps=agent.num_timesteps == 0,
        log_interval=log_interval,
        tb_log_name=run.config.algorithm,
    )
    return make_model()


class _Report(BaseCallback):
    """Reports progress whenever the algorithm has collected rounds."""

    def __init__(self, progress: ProgressCallback, make_model: Callable[[], TrainedModel]) -> None:
        super().__init__()
        self._progress, self._make_model = progress, make_model

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._progress(self.num_timesteps, self._make_model, self.model.save)
