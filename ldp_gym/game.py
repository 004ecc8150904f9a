"""The public rules: all that a learner may know before the first round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldp_gym.calibration.clipping import Clipping
from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.hypotheses.base import HypothesisClass


@dataclass(frozen=True)
class Game:
    """What Nature, the users and the learner agree on.

    Attributes:
        hypotheses: the class F, or None when it is redrawn each episode (then the observations hold the
            candidates).
        channel: how the users privatize their labels.
        horizon: T, the number of rounds.
    """

    hypotheses: HypothesisClass | None
    channel: Channel
    horizon: int

    @property
    def num_hypotheses(self) -> int:
        """K."""
        return self.channel.num_hypotheses

    @property
    def num_labels(self) -> int:
        """M."""
        return self.channel.num_labels

    @property
    def clipping(self) -> Clipping:
        """What smooths the paper's predictions: the channel's own clipping, or one without ceilings."""
        return self.channel.clipping if isinstance(self.channel, ClippedChannel) else Clipping(self.horizon)


def game_of(env: Any) -> Game:
    """The game that an environment plays, single or vector, whatever is wrapped around it; a Game as it is.

    Raises:
        TypeError: if it plays none.
    """
    game = env if isinstance(env, Game) else getattr(getattr(env, "unwrapped", env), "game", None)
    if not isinstance(game, Game):
        raise TypeError(f"expected an environment of LDPDist-v0, got {env}, which is neither that nor a Game")
    return game
