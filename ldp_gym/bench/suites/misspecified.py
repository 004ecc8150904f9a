"""Truths outside the class: mixtures of two members, and members of which some labels are replaced."""

from __future__ import annotations

from typing import Any

from ldp_gym.bench.suites.violation import Violation


class Misspecified(Violation):
    """Redrawn Dirichlet(0.3) tables; the truth lies between a member and another distribution."""

    name = "misspecified"
    title = "A truth outside the class"
    claim = (
        "Bayes' optimality and the theorems speak of members alone. Here a share of the labels comes from a "
        "second member (mixture), or from the uniform distribution (contaminated); at share 0 the truth is a "
        "member. Regret is over the member that is best in hindsight, and is negative where a mixture of "
        "members beats each of them. K = 8, M = 16; T = 1,000, eps = 4, half of the labels, unless varied."
    )
    order = 92
    kinds = ("mixture", "contaminated")
    strengths = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    strength = 0.5
    symbol = "share"

    def truth(self, kind: str, strength: float) -> dict[str, Any]:
        """A mixture of two members, or a member and the uniform distribution."""
        return {"weights": [1.0 - strength, strength]} if kind == "mixture" else {"rho": strength}
