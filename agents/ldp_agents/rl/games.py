"""The vector environment of a training run, in the views that the algorithms take."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from ldp_agents.rl.config import Config
from ldp_gym.wrappers import (
    StaggeredStart,
    VectorDecodedMessage,
    VectorEvidence,
    VectorHypothesisFeatures,
    VectorMixtureAction,
)

VIEWS = {"evidence": VectorEvidence, "matched": VectorHypothesisFeatures, "message": VectorDecodedMessage}


def game_seed(config: Config, played: int) -> int:
    """The first game's seed when so many rounds have been played: far from those that anyone evaluates on."""
    state = np.random.SeedSequence([config.seed, played]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(2))


def make_games(
    config: Config, view: str, num_envs: int, logit_range: float
) -> gym.vector.VectorEnv[Any, Any, Any]:
    """B games of the run that begin anew in the step that ends them, in rounds spread over the episode."""
    games = gym.make_vec("LDPDist-v0", num_envs=num_envs, autoreset_mode="SameStep", **config.rules)
    seen = VIEWS[view](VectorMixtureAction(games, logit_range))
    return StaggeredStart(seen)
