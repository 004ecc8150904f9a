"""Choose among models from private labels: on which channel, at which eps, and from how many users."""

from ldp_gym.selection.answer import Selection
from ldp_gym.selection.plan import Plan
from ldp_gym.selection.search import select

__all__ = ["Plan", "Selection", "select"]
