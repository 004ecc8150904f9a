"""Choose among models from private labels: on which channel, at which eps, and from how many users."""

from ldp_bench.selection.answer import Selection
from ldp_bench.selection.plan import Plan
from ldp_bench.selection.search import select

__all__ = ["Plan", "Selection", "select"]
