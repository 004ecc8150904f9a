"""The learner ``amortized``: the trained network that comes with the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ldp_agents.rl.learner import NetworkLearner
from ldp_agents.rl.storage import load
from ldp_gym import Game

SHIPPED = Path(__file__).parent / "weights" / "amortized"
"""Directory of the model that comes with the package."""


class Amortized(NetworkLearner):
    """Network trained on simulated games: how far to trust what messages say about labels; close to Bayes.

    ``ldp-gym train amortized`` makes it; docs/learned.md says what it was trained on.

    Args:
        game: the public rules.
    """

    load = staticmethod(load)

    def __init__(self, game: Game) -> None:
        super().__init__(game, _load(SHIPPED))


_load: Any = cache(load)
