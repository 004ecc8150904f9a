"""RecurrentPPO (sb3-contrib) on decoded messages: a memory that must find out for itself what to keep."""

from __future__ import annotations

from dataclasses import dataclass

from ldp_agents.rl import sb3
from ldp_agents.rl.policies import TrainedPolicy
from ldp_agents.rl.run import Run
from ldp_agents.rl.training_env import make_training_env
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import VecExtractDictObs


STEPS = 500_000
"""How many rounds take a few minutes; they are not enough."""


@dataclass(frozen=True)
class Settings(sb3.OnPolicySettings):
    """RecurrentPPO's settings, beside those of :class:`ldp_agents.rl.sb3.OnPolicySettings`.

    Attributes:
        memory: the width of the LSTM; its gradient goes back ``n_steps`` rounds.
    """

    memory: int = 64


def fit(run: Run[Settings]) -> TrainedPolicy:
    """Train, or go on from a checkpoint; returns the policy."""
    config, settings = run.config, run.settings
    env = make_training_env(config.rules, "message", settings.num_envs, settings.logit_range)
    agent = sb3.begin(
        RecurrentPPO,
        "MlpLstmPolicy",
        VecExtractDictObs(env, "message"),
        run,
        policy_kwargs={"lstm_hidden_size": settings.memory, "log_std_init": settings.log_std_init},
        **settings.arguments,
    )
    trained = TrainedPolicy(agent, "message", settings.logit_range, run.card)
    return sb3.learn(agent, run, lambda: trained, log_interval=10)
