"""The trained models that come with the package: they play with NumPy alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import ClassVar

from ldp_agents.rl.model import CARD, Model, ModelLearner
from ldp_gym import CHANNELS, Game
from ldp_gym.errors import IncompatibleChannelError

WEIGHTS_DIRECTORY = Path(__file__).parent / "weights"
"""One model per channel, ``weights/<algorithm>/<channel>``, with the configuration that made it."""


@cache
def models(algorithm: str) -> dict[str, Model]:
    """The pretrained models of an algorithm, by the name of their channel."""
    directories = sorted((WEIGHTS_DIRECTORY / algorithm).iterdir())
    return {path.name: Model.read(path) for path in directories if (path / CARD).exists()}


class Pretrained(ModelLearner):
    """A model that comes with the package: equivariant, trained on the default game of each of some channels.

    It treats hypotheses alike and reads statistics matched to the candidates, so it plays any class, K, M and
    T of its channel; it was trained, and is at its best, on the default game (see docs/learned.md).

    Args:
        game: the public rules.

    Raises:
        IncompatibleChannelError: if no model was trained on the game's channel at its eps.
    """

    algorithm: ClassVar[str]

    def __init__(self, game: Game) -> None:
        known = models(self.algorithm)
        for name, model in known.items():
            if type(game.channel) is CHANNELS[name]:
                super().__init__(game, model)
                return
        raise IncompatibleChannelError(
            f"{self.algorithm!r} was trained on the channels {', '.join(known)}, not on {game.channel!r}: "
            f"train one with 'ldp-gym train'; the learner 'bayes' reads every channel"
        )


class PretrainedPPO(Pretrained):
    """PPO, as ``ldp-gym train ppo`` makes it, one model per channel."""

    algorithm = "ppo"


class PretrainedAmortized(Pretrained):
    """Amortized inference, as ``ldp-gym train amortized`` makes it, one model per channel."""

    algorithm = "amortized"
