"""A given list of contexts."""

from __future__ import annotations

import numpy.typing as npt

from ldp_gym.natures.cycle import Cycle


class Sequence(Cycle):
    """The given contexts, one per round.

    Args:
        context_dim: d.
        contexts: ``(n, d)`` with n at least the horizon, or where they are, as ``"module:object"``.
    """

    def __init__(self, context_dim: int, contexts: npt.ArrayLike) -> None:
        if contexts is None:
            raise ValueError("contexts must be given, one per round: a sequence draws none of its own")
        super().__init__(context_dim, contexts)

    def check_horizon(self, horizon: int) -> None:
        """The sequence must last; a cycle is another nature."""
        if len(self.pool) < horizon:
            raise ValueError(
                f"the sequence has {len(self.pool)} contexts for a horizon of {horizon}; "
                f"give at least {horizon}, or use the nature 'cycle' to repeat them"
            )
