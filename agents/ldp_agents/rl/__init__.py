"""Learned baselines: trained on LDPDist-v0, and played through the learner's contract like any other.

Playing a trained network needs NumPy alone; training needs the extra ``rl``
(``pip install 'ldp-gym[rl]'``): :func:`ldp_agents.rl.training.train`, or the command ``ldp-gym train``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_agents.rl.config import Config
from ldp_agents.rl.loading import load
from ldp_agents.rl.model import EvidenceLearner, Model
from ldp_agents.rl.policies import PolicyLearner

if TYPE_CHECKING:
    from ldp_agents.rl.saved import save as save
    from ldp_agents.rl.vec_env import SB3VecEnv as SB3VecEnv

__all__ = ["Config", "EvidenceLearner", "Model", "PolicyLearner", "SB3VecEnv", "load", "save"]


def __getattr__(name: str) -> Any:
    """What needs the extra ``rl``, imported when it is first asked for."""
    if name == "SB3VecEnv":
        from ldp_agents.rl.vec_env import SB3VecEnv

        return SB3VecEnv
    if name == "save":
        from ldp_agents.rl.saved import save

        return save
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
