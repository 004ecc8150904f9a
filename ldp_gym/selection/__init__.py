"""Choose among models from private labels: on which channel, at which eps, and from how many users.

A log of users whose labels are known is taken as a sample of the users to come; ``docs/own-data.md`` has the
statistics.
"""

from ldp_gym.selection.answer import Selection
from ldp_gym.selection.plan import Plan
from ldp_gym.selection.search import select

__all__ = ["Plan", "Selection", "select"]
