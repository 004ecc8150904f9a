"""How the predictions of learned agents are smoothed."""

from __future__ import annotations

from ldp_gym import Game
from ldp_gym.calibration.clipping import Clipping


def smoothing_of(game: Game) -> Clipping:
    """What smooths predictions so that their KL is finite: as the paper does it, by 1/T^2 instead of 1/T.

    1/T costs a nat per episode where the truth rules labels out: on disjoint supports a quarter of what Bayes
    pays at eps = 4.
    """
    return Clipping(game.horizon**2, game.clipping.rule)
