"""A truth that moves: a member that gives way to another."""

from __future__ import annotations

from typing import Any

from ldp_gym.bench.suites.violation import Violation


class Switching(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth changes to another member now and then."""

    name = "switching"
    title = "A truth that moves"
    claim = (
        "Bayes' optimality and the theorems speak of one member throughout. Here it changes to another at "
        "rounds that the learner does not know. Regret is over the single member that is best in hindsight, "
        "and is negative for a learner that follows the switches. K = 8, M = 16; T = 1,000, eps = 4, one "
        "switch, unless varied."
    )
    order = 94
    kinds = ("switching",)
    strengths = (0, 1, 2, 4, 8)
    strength = 1
    symbol = "switches"

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        """So many switches, at rounds that are drawn."""
        return {"num_switches": int(strength)}
