"""The public rules: everything that a learner may know before the first round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core import validation
from ldp_gym.core.validation import describe
from ldp_gym.engine.posterior import PublicPosterior
from ldp_gym.hypotheses.base import HypothesisClass


@dataclass(frozen=True)
class Game:
    """The public rules that Nature, the users and the learner agree on.

    Attributes:
        hypotheses: the class F, or None when it is redrawn each episode (then the observations hold the
            candidates).
        channel: the channel by which users privatize their labels.
        horizon: T, the number of rounds.
        batch: number of users who answer under one public posterior.
    """

    hypotheses: HypothesisClass | None
    channel: Channel
    horizon: int
    batch: int = 1

    def public_posterior(self, batch_shape: tuple[int, ...] = ()) -> PublicPosterior:
        """Public posterior of a batch of games before the first message."""
        channel = self.channel
        return PublicPosterior(
            channel.num_hypotheses,
            batch_shape,
            rate=channel.posterior_rate,
            share=channel.posterior_share,
            batch=self.batch,
        )

    @property
    def num_hypotheses(self) -> int:
        """K, the number of hypotheses."""
        return self.channel.num_hypotheses

    @property
    def num_labels(self) -> int:
        """M, the number of labels."""
        return self.channel.num_labels

    @property
    def clipping(self) -> Clipping:
        """The clipping that smooths the paper's predictions: the channel's, or one without ceilings."""
        if isinstance(self.channel, ClippedChannel):
            return self.channel.clipping
        return Clipping(self.horizon)


def require_game(game: object) -> Game:
    """Check that ``game``, the first argument of every learner, is a Game with a Channel."""
    what = "the Game a learner is made for, such as env.unwrapped.game"
    checked = validation.instance("game", game, Game, what)
    require_channel(checked.channel)
    return checked


def game_of(source: Any) -> Game:
    """The game of an environment, wrapped or not; a Game is returned as it is."""
    if isinstance(source, Game):
        return source
    game = getattr(getattr(source, "unwrapped", None), "game", None)
    if not isinstance(game, Game):
        raise TypeError(f"expected an environment of LDPDist-v0 or a Game, got {describe(source)}")
    return game
