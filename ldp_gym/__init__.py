"""Online distribution learning under local differential privacy, as a Gymnasium environment.

>>> import gymnasium as gym
>>> import ldp_gym
>>> env = gym.make("LDPDist-v0")
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from ldp_gym.core import VERSION as _VERSION
from ldp_gym.envs.named_games import register_environments as _register_environments

if TYPE_CHECKING:
    from ldp_gym import audit
    from ldp_gym.channels.base import CHANNELS, Channel
    from ldp_gym.core.errors import BlindChannelWarning, BrokenPromiseWarning, NoPrivacyWarning
    from ldp_gym.engine.game import Game
    from ldp_gym.engine.learners import LEARNERS
    from ldp_gym.engine.losses import LOSSES, Loss
    from ldp_gym.engine.simplex import Simplex
    from ldp_gym.envs.dist import LDPDistEnv, LDPDistVectorEnv
    from ldp_gym.evaluation import Evaluation, evaluate
    from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass
    from ldp_gym.natures.base import NATURES, Nature
    from ldp_gym.truths.base import TRUTHS, Truth
    from ldp_gym.value import Minimax, minimax

_PLACES = {
    "CHANNELS": "ldp_gym.channels.base",
    "Channel": "ldp_gym.channels.base",
    "BlindChannelWarning": "ldp_gym.core.errors",
    "BrokenPromiseWarning": "ldp_gym.core.errors",
    "NoPrivacyWarning": "ldp_gym.core.errors",
    "Game": "ldp_gym.engine.game",
    "LEARNERS": "ldp_gym.engine.learners",
    "LOSSES": "ldp_gym.engine.losses",
    "Loss": "ldp_gym.engine.losses",
    "Simplex": "ldp_gym.engine.simplex",
    "LDPDistEnv": "ldp_gym.envs.dist",
    "LDPDistVectorEnv": "ldp_gym.envs.dist",
    "Evaluation": "ldp_gym.evaluation",
    "evaluate": "ldp_gym.evaluation",
    "HYPOTHESES": "ldp_gym.hypotheses.base",
    "HypothesisClass": "ldp_gym.hypotheses.base",
    "NATURES": "ldp_gym.natures.base",
    "Nature": "ldp_gym.natures.base",
    "TRUTHS": "ldp_gym.truths.base",
    "Truth": "ldp_gym.truths.base",
    "Minimax": "ldp_gym.value",
    "minimax": "ldp_gym.value",
    "parallel_env": "ldp_gym.envs.pair",
}
"""Modules of the public names. They are imported when a name is first used."""

_ROOMS = (
    "audit",
    "channels",
    "engine",
    "envs",
    "hypotheses",
    "natures",
    "privacy",
    "statistics",
    "testing",
    "theory",
    "truths",
    "wrappers",
)
"""Modules and packages that are imported when they are first used as ``ldp_gym.NAME``."""

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
    """Import a public name, or a part of the package, when it is first used."""
    if name in _PLACES:
        value = getattr(_import_module(_PLACES[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return _import_module(f"ldp_gym.{name}")
    raise AttributeError(f"module 'ldp_gym' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_ROOMS})
