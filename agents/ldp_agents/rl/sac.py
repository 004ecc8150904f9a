"""SAC (stable-baselines3) on the evidence: it learns the KL as a function of the evidence and the logits."""

from __future__ import annotations

from dataclasses import dataclass

from ldp_agents.rl import sb3
from ldp_agents.rl.policies import TrainedPolicy
from ldp_agents.rl.run import Run
from ldp_agents.rl.training_env import make_training_env
from ldp_gym.core.errors import extra

with extra("rl", "training"):
    from stable_baselines3 import SAC


STEPS = 250_000
"""How many rounds are enough for the default game."""


@dataclass(frozen=True)
class Settings:
    """SAC's settings; gamma is 0: a critic that looks one round ahead has nothing to bootstrap from.

    Attributes:
        hidden: the widths of the hidden layers.
        num_envs: environments in lock step.
        batch_size: of a gradient step.
        gradient_steps: how many follow a round of all environments.
        learning_rate: of all networks.
        buffer_size: how many rounds are remembered.
        entropy: the weight of the entropy; small, as the best logits are hardly random.
        logit_range: the largest logit.
    """

    hidden: tuple[int, ...] = (64, 64)
    num_envs: int = 64
    batch_size: int = 512
    gradient_steps: int = 1
    learning_rate: float = 1e-3
    buffer_size: int = 300_000
    entropy: float = 0.01
    logit_range: float = 10.0


def fit(run: Run[Settings]) -> TrainedPolicy:
    """Train, or go on from a checkpoint (with an empty memory of rounds); returns the policy."""
    config, settings = run.config, run.settings
    agent = sb3.begin(
        SAC,
        "MlpPolicy",
        make_training_env(config.rules, "evidence", settings.num_envs, settings.logit_range),
        run,
        learning_rate=settings.learning_rate,
        buffer_size=settings.buffer_size,
        learning_starts=16 * settings.num_envs,
        batch_size=settings.batch_size,
        ent_coef=settings.entropy,
        train_freq=1,
        gradient_steps=settings.gradient_steps,
        policy_kwargs={"net_arch": list(settings.hidden)},
    )
    trained = TrainedPolicy(agent, "evidence", settings.logit_range, run.card)
    return sb3.learn(agent, run, lambda: trained, log_interval=100)
