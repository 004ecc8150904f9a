"""RecurrentPPO (sb3-contrib) on decoded messages: a memory that must find out for itself what to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import VecExtractDictObs

from ldp_agents.rl.config import Config, Watch
from ldp_agents.rl.games import game_seed, make_games
from ldp_agents.rl.model import facts
from ldp_agents.rl.policies import TrainedPolicy
from ldp_agents.rl.sb3 import Falling, Report
from ldp_agents.rl.vec_env import SB3VecEnv

STEPS = 500_000
"""How many rounds take a few minutes; they are not enough."""


@dataclass(frozen=True)
class Settings:
    """RecurrentPPO's settings; gamma is 0, as for PPO.

    Attributes:
        memory: the width of the LSTM.
        num_envs: games in lock step.
        n_steps: rounds of each game between updates, and of the memory's gradient.
        batch_size: of a gradient step.
        n_epochs: passes over the rounds of an update.
        learning_rate: at the beginning; it falls linearly to zero.
        log_std: the log standard deviation of the logits at the beginning.
        logit_range: the largest logit.
    """

    memory: int = 64
    num_envs: int = 64
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3
    log_std: float = -0.5
    logit_range: float = 10.0


def fit(
    config: Config, watch: Watch, checkpoint: Path | None = None, logs: Path | None = None
) -> TrainedPolicy:
    """Train, or go on from a checkpoint; returns the policy."""
    settings = Settings(**config.settings)
    torch.set_num_threads(1)
    games = SB3VecEnv(make_games(config, "message", settings.num_envs, settings.logit_range))
    env = VecExtractDictObs(games, "message")
    if checkpoint is None:
        algorithm = RecurrentPPO(
            "MlpLstmPolicy",
            env,
            learning_rate=Falling(settings.learning_rate),
            n_steps=settings.n_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.n_epochs,
            gamma=0.0,
            gae_lambda=1.0,
            seed=config.seed,
            device="cpu",
            policy_kwargs={
                "lstm_hidden_size": settings.memory,
                "log_std_init": settings.log_std - math.log(settings.logit_range),
            },
            tensorboard_log=None if logs is None else str(logs),
        )
    else:
        algorithm = RecurrentPPO.load(checkpoint, env, device="cpu")
        algorithm.set_random_seed(config.seed + algorithm.num_timesteps)
    env.seed(game_seed(config, algorithm.num_timesteps))
    trained = TrainedPolicy(
        algorithm, "message", settings.logit_range, facts(config.scenario.game), config.card(settings)
    )
    algorithm.learn(
        config.steps - algorithm.num_timesteps,
        callback=Report(watch, lambda: trained),
        reset_num_timesteps=checkpoint is None,
        log_interval=10,
        tb_log_name="recurrent",
    )
    return trained
