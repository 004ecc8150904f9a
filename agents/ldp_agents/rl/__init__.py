"""Learned agents: environments and scores for stable-baselines3, trained models, and training.

Playing a trained network needs only NumPy. Training needs the extra ``rl``
(``pip install 'ldp-gym[rl]'``): :func:`ldp_agents.rl.training.train_agent`, or ``ldp-gym train``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldp_agents.rl.asking import as_channel
from ldp_agents.rl.contexts import as_nature
from ldp_agents.rl.learner import Model, NetworkLearner
from ldp_agents.rl.policies import PolicyLearner
from ldp_agents.rl.storage import load, save

if TYPE_CHECKING:
    from ldp_agents.rl.scoring import Score, ScoreEvalCallback, score_policy
    from ldp_agents.rl.vec_env import SB3VecEnv, make_sb3_env

__all__ = [
    "Model",
    "NetworkLearner",
    "PolicyLearner",
    "SB3VecEnv",
    "Score",
    "ScoreEvalCallback",
    "as_channel",
    "as_nature",
    "load",
    "make_sb3_env",
    "save",
    "score_policy",
]


_NEED_SB3 = {
    "SB3VecEnv": "vec_env",
    "Score": "scoring",
    "ScoreEvalCallback": "scoring",
    "make_sb3_env": "vec_env",
    "score_policy": "scoring",
}
"""Modules of the names that need the extra ``rl``: imported when they are first used."""


def __getattr__(name: str) -> Any:
    if name in _NEED_SB3:
        module = import_module(f"ldp_agents.rl.{_NEED_SB3[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
