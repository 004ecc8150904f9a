"""The vector environment of a training run, in the views that the algorithms take."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from ldp_agents.rl.config import Config
from ldp_agents.rl.vec_env import SB3VecEnv
from ldp_gym.wrappers import (
    StaggeredStart,
    VectorDecodedMessage,
    VectorEvidence,
    VectorHypothesisFeatures,
    VectorMixtureAction,
)

VIEWS = {"evidence": VectorEvidence, "matched": VectorHypothesisFeatures, "message": VectorDecodedMessage}
"""The views by the name of their features."""


def first_seed(config: Config, steps: int) -> int:
    """The first environment's seed after so many rounds: far from those that anyone evaluates on."""
    state = np.random.SeedSequence([config.seed, steps]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(2))


def make_training_env(config: Config, features: str, num_envs: int, logit_range: float) -> SB3VecEnv:
    """B environments in lock step, in rounds spread over the episode; what ends begins again in that step."""
    envs = gym.make_vec("LDPDist-v0", num_envs=num_envs, autoreset_mode="SameStep", **config.rules)
    return SB3VecEnv(StaggeredStart(VIEWS[features](VectorMixtureAction(envs, logit_range))))
