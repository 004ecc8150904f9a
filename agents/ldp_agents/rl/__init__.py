"""Learned agents: environments and scores for stable-baselines3, trained models, and how they are trained.

Playing a trained network needs only NumPy; training needs the extra ``rl`` (``pip install 'ldp-gym[rl]'``):
:func:`ldp_agents.rl.training.train_agent`, or the command ``ldp-gym train``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_agents.rl.asking import as_channel
from ldp_agents.rl.learner import Model, NetworkLearner
from ldp_agents.rl.policies import PolicyLearner
from ldp_agents.rl.storage import load, save

if TYPE_CHECKING:
    from ldp_agents.rl.scoring import ScoreEvalCallback, score_policy
    from ldp_agents.rl.vec_env import SB3VecEnv, make_sb3_env

__all__ = [
    "Model",
    "NetworkLearner",
    "PolicyLearner",
    "SB3VecEnv",
    "ScoreEvalCallback",
    "as_channel",
    "load",
    "make_sb3_env",
    "save",
    "score_policy",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # one that needs the extra
        from ldp_agents.rl import scoring, vec_env

        return getattr(vec_env if hasattr(vec_env, name) else scoring, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
