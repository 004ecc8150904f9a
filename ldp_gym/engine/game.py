"""The public rules: all that a learner may know before the first round."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ldp_gym.channels.base import Channel, as_channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core import validation
from ldp_gym.core.validation import describe
from ldp_gym.engine.posterior import PublicPosterior
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

    def __post_init__(self) -> None:
        as_channel(self.channel)
        if self.hypotheses is not None:
            what = "a HypothesisClass, or None where it is redrawn"
            validation.instance("hypotheses", self.hypotheses, HypothesisClass, what)
        validation.whole("horizon (T)", self.horizon, least=1)

    def public_posterior(self, batch_shape: tuple[int, ...] = ()) -> PublicPosterior:
        """The posterior that anyone can keep from the public transcript, before the first message."""
        channel = self.channel
        return PublicPosterior(
            channel.num_hypotheses, batch_shape, rate=channel.posterior_rate, share=channel.posterior_share
        )

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


def copy_game(game: Game) -> Game:
    """The same rules in objects of their own: what is done to them does nothing to the referee's.

    Raises:
        TypeError: if the class or the channel cannot be copied.
    """
    try:
        return deepcopy(game)
    except Exception as error:  # a class or channel may be anybody's
        raise TypeError(
            f"a learner gets its own copy of the game, and {game!r} cannot be copied ({error}): make its "
            f"class and channel from what copy.deepcopy can copy, or define __deepcopy__"
        ) from error


def as_game(game: object) -> Game:
    """``game``, which a learner is made for.

    Raises:
        TypeError: if it is no Game.
    """
    return validation.instance(
        "game", game, Game, "the Game a learner is made for, such as env.unwrapped.game"
    )


def game_of(source: Any) -> Game:
    """The game that an environment plays, whatever is wrapped around it; a Game is its own.

    Raises:
        TypeError: if there is none.
    """
    if isinstance(source, Game):
        return source
    game = getattr(getattr(source, "unwrapped", None), "game", None)
    if not isinstance(game, Game):
        raise TypeError(f"expected an environment of LDPDist-v0 or a Game, got {describe(source)}")
    return game
