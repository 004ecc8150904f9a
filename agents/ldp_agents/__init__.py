"""Learners for ldp_gym: those of the paper, and others to compare them with.

>>> import gymnasium as gym
>>> import ldp_agents, ldp_gym
>>> env = gym.make("LDPDist-v0", horizon=5)
>>> learner = ldp_agents.make("exp3", env)
>>> observation, _ = env.reset(seed=0)
>>> over = False
>>> while not over:
...     observation, _, over, _, _ = env.step(learner.act(observation))
"""

from typing import Any

import gymnasium as gym

from ldp_agents.base import ExponentialWeights, Learner, update_all
from ldp_agents.bayes import MLE, Bayes, Thompson
from ldp_agents.centred import CentredEXP3, Unbiased
from ldp_agents.least_favourable import MinimaxBayes
from ldp_agents.likelihood import FixedShare, LikelihoodLearner, Pairs, Robust, SoftBayes
from ldp_agents.literal import EXP3, WMA, Uniform
from ldp_agents.rl.storage import Amortized
from ldp_gym import LEARNERS, Game
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.engine.game import game_of
from ldp_gym.engine.learners import build_learner

__all__ = [
    "EXP3",
    "MLE",
    "WMA",
    "Bayes",
    "CentredEXP3",
    "ExponentialWeights",
    "FixedShare",
    "IncompatibleChannelError",
    "Learner",
    "LikelihoodLearner",
    "MinimaxBayes",
    "Pairs",
    "Robust",
    "SoftBayes",
    "Thompson",
    "Unbiased",
    "Uniform",
    "make",
    "update_all",
]

LEARNERS.own |= {
    "amortized": Amortized,
    "bayes": Bayes,
    "centred-exp3": CentredEXP3,
    "exp3": EXP3,
    "fixed-share": FixedShare,
    "minimax": MinimaxBayes,
    "mle": MLE,
    "pairs": Pairs,
    "robust": Robust,
    "soft-bayes": SoftBayes,
    "thompson": Thompson,
    "unbiased": Unbiased,
    "uniform": Uniform,
    "wma": WMA,
}


def make(
    name: str, env: gym.Env[Any, Any] | gym.vector.VectorEnv[Any, Any, Any] | Game, **options: Any
) -> Learner:
    """Make a learner for an environment, by name.

    Args:
        name: a registered name, ``"module:Class"``, or the directory of a trained model.
        env: an environment of LDPDist-v0, single or vector, wrapped or not, or its Game.
        **options: options of the learner.

    Raises:
        IncompatibleChannelError: if it does not understand the messages of the game's channel.
    """
    return build_learner(name, game_of(env), options)  # type: ignore[return-value]
