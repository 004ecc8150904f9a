"""What the runs of stable-baselines3 share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from ldp_agents.rl.config import Config, Player, ProgressCallback
from ldp_agents.rl.games import game_seed


def begin(
    algorithm: Any,
    policy: Any,
    env: Any,
    config: Config,
    checkpoint: Path | None,
    logs: Path | None,
    **more: Any,
) -> Any:
    """A new run of an algorithm, with further settings, or one that goes on from a checkpoint.

    Gamma is 0: actions never change the messages, so that every round is a bandit of its own.
    """
    torch.set_num_threads(1)
    if checkpoint is None:
        written = None if logs is None else str(logs)
        run = algorithm(
            policy, env, gamma=0.0, seed=config.seed, device="cpu", tensorboard_log=written, **more
        )
    else:
        run = algorithm.load(checkpoint, env, device="cpu")
        run.set_random_seed(config.seed + run.num_timesteps)
    env.seed(game_seed(config, run.num_timesteps))
    return run


def learn(
    run: Any, config: Config, watch: ProgressCallback, player: Callable[[], Player], log_interval: int
) -> None:
    """Play what is left of a run's rounds."""
    run.learn(
        config.steps - run.num_timesteps,
        callback=Report(watch, player),
        reset_num_timesteps=run.num_timesteps == 0,
        log_interval=log_interval,
        tb_log_name=config.algorithm,
    )


class Report(BaseCallback):
    """Tells the watch after every stretch of rounds that the algorithm has collected.

    Args:
        watch: who is told.
        player: gives the model as it is.
    """

    def __init__(self, watch: ProgressCallback, player: Callable[[], Player]) -> None:
        super().__init__()
        self._watch, self._player = watch, player

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._watch(self.num_timesteps, self._player, self.model.save)


class LinearDecay:
    """A learning rate that falls linearly to zero; a class, so that SB3 can store it.

    Args:
        start: the rate at the beginning.
    """

    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, remaining: float) -> float:
        """The rate when so much of the run remains; the last update may end beyond it."""
        return self.start * max(remaining, 0.0)
