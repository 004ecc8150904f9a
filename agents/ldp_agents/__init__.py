"""Learners for ldp_gym: the paper's own, and those that they are measured against.

>>> import gymnasium as gym
>>> import ldp_agents, ldp_gym
>>> env = gym.make("LDPDist-v0", horizon=5)
>>> learner = ldp_agents.make("exp3", env.unwrapped.game)
>>> observation, _ = env.reset(seed=0)
>>> over = False
>>> while not over:
...     observation, _, over, _, _ = env.step(learner.act(observation))
"""

from typing import Any

from ldp_agents.base import ExponentialWeights, Learner
from ldp_agents.bayes import Bayes
from ldp_agents.centred import CentredEXP3, CentredWMA
from ldp_agents.exp3 import EXP3
from ldp_agents.mle import MLE
from ldp_agents.uniform import Uniform
from ldp_agents.wma import WMA
from ldp_gym import LEARNERS, Game
from ldp_gym.errors import IncompatibleChannelError

__all__ = [
    "EXP3",
    "MLE",
    "WMA",
    "Bayes",
    "CentredEXP3",
    "CentredWMA",
    "ExponentialWeights",
    "IncompatibleChannelError",
    "Learner",
    "Uniform",
    "make",
]


def make(name: str, game: Game, **options: Any) -> Learner:
    """The learner of the given name (or ``"module:Class"``), made for the game.

    Raises:
        IncompatibleChannelError: if it does not understand the messages of the game's channel.
        ValueError: if there is no learner of that name; the message suggests the nearest.
    """
    learner: Learner = LEARNERS.build(name, {"game": game}, options)  # type: ignore[assignment]
    return learner
