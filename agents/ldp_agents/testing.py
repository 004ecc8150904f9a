"""The contract check for learners, ours or yours."""

from ldp_gym.testing import check_learner

__all__ = ["check_learner"]
