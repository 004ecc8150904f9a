"""Online distribution learning under local differential privacy, as a Gymnasium environment.

>>> import gymnasium as gym
>>> import ldp_gym
>>> env = gym.make("LDPDist-v0")
"""

from typing import Any as _Any

from ldp_gym import audit
from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import VERSION as _VERSION
from ldp_gym.core.errors import BlindChannelWarning, BrokenPromiseWarning, NoPrivacyWarning
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.losses import LOSSES, Loss
from ldp_gym.engine.simplex import Simplex
from ldp_gym.envs.dist import LDPDistEnv, LDPDistVectorEnv
from ldp_gym.envs.named_games import register_environments as _register_environments
from ldp_gym.evaluation import Evaluation, evaluate
from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass
from ldp_gym.natures.base import NATURES, Nature
from ldp_gym.truths.base import TRUTHS, Truth
from ldp_gym.value import Minimax, minimax

__all__ = [
    "CHANNELS",
    "HYPOTHESES",
    "LEARNERS",
    "LOSSES",
    "NATURES",
    "TRUTHS",
    "BlindChannelWarning",
    "BrokenPromiseWarning",
    "Channel",
    "Evaluation",
    "Game",
    "HypothesisClass",
    "LDPDistEnv",
    "LDPDistVectorEnv",
    "Loss",
    "Minimax",
    "Nature",
    "NoPrivacyWarning",
    "Simplex",
    "Truth",
    "audit",
    "evaluate",
    "minimax",
]
__version__ = _VERSION

_register_environments()


def __getattr__(name: str) -> _Any:
    """Import a part of the package when its name, such as ``ldp_gym.testing``, is first used."""
    match name:
        case "parallel_env":
            from ldp_gym.envs.pair import parallel_env

            return parallel_env
        case "testing":
            import ldp_gym.testing
        case "wrappers":
            import ldp_gym.wrappers
        case _:
            raise AttributeError(f"module 'ldp_gym' has no attribute {name!r}")
    return getattr(ldp_gym, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "parallel_env", "testing", "wrappers"})
