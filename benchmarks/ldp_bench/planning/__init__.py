"""Plan a private survey that tells which model is right, answer it, and read its messages."""

from ldp_bench.planning.answer import Planned
from ldp_bench.planning.models import Models
from ldp_bench.planning.reading import Survey
from ldp_bench.planning.record import Plan
from ldp_bench.planning.search import plan

__all__ = ["Models", "Plan", "Planned", "Survey", "plan"]
