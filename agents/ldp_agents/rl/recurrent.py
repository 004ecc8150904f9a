"""RecurrentPPO (sb3-contrib) on decoded messages: a memory that must find out for itself what to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import VecExtractDictObs

from ldp_agents.rl import sb3
from ldp_agents.rl.config import Config, ProgressCallback
from ldp_agents.rl.games import make_games
from ldp_agents.rl.model import facts
from ldp_agents.rl.policies import TrainedPolicy
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
    config: Config, watch: ProgressCallback, checkpoint: Path | None = None, logs: Path | None = None
) -> TrainedPolicy:
    """Train, or go on from a checkpoint; returns the policy."""
    settings = config.read(Settings)
    games = SB3VecEnv(make_games(config, "message", settings.num_envs, settings.logit_range))
    run = sb3.begin(
        RecurrentPPO,
        "MlpLstmPolicy",
        VecExtractDictObs(games, "message"),
        config,
        checkpoint,
        logs,
        learning_rate=sb3.LinearDecay(settings.learning_rate),
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        gae_lambda=1.0,
        policy_kwargs={
            "lstm_hidden_size": settings.memory,
            "log_std_init": settings.log_std - math.log(settings.logit_range),
        },
    )
    trained = TrainedPolicy(
        run, "message", settings.logit_range, facts(config.scenario.game), config.card(settings)
    )
    sb3.learn(run, config, watch, lambda: trained, log_interval=10)
    return trained
