"""Learners as the environment package knows them: by a protocol, and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ldp_gym.errors import IncompatibleChannelError as IncompatibleChannelError
from ldp_gym.game import Game
from ldp_gym.numerics.arrays import FloatArray, Messages, at_round
from ldp_gym.registry import Registry


@runtime_checkable
class Learner(Protocol):
    """Anyone who predicts distributions from candidates and messages.

    A learner is made for a :class:`ldp_gym.Game` and sees nothing but the public rules, the candidates
    ``f_j(x_t)`` and the messages. ``ldp_agents.Learner`` is the base class that ours share.
    """

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the round's messages ``(..., *message_shape)``."""


@runtime_checkable
class TapeLearner(Learner, Protocol):
    """A learner that can play many rounds at a time.

    Messages do not depend on predictions, so a learner whose state is a running sum plays a stretch of
    tape at once. It must predict as if it were stepped: ``ldp_gym.testing.check_learner`` compares.
    """

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``.

        The log-likelihoods ``(B, n, K)`` of the hypotheses come along where the tape has worked them out: on
        an adaptive channel they depend on the public posterior before each round.
        """


LEARNERS: Registry[Learner] = Registry("learner", group="ldp_gym.learners")

LOADERS: Registry[Callable[[Game], Learner]] = Registry("loader of trained models", group="ldp_gym.loaders")
"""What turns a trained model's directory into what makes a learner from a game."""


def learner_maker(name: str, options: Mapping[str, Any] | None = None) -> Callable[[Game], Learner]:
    """What makes, from a game, the learner of a name, of ``module:Class``, or of a trained model's directory.

    Raises:
        ValueError: if there is no such learner; the message suggests the nearest name.
    """
    if is_directory(name):
        return LOADERS.build("directory", {"directory": name}, options or {})
    LEARNERS[name]  # an unknown name is an error now, not when a game is played
    return partial(_build, name, dict(options or {}))


def build_learner(
    learner: str | Callable[[Game], Learner], game: Game, options: Mapping[str, Any] | None = None
) -> Learner:
    """The learner of a name, or of what makes one, for a game.

    Args:
        learner: a learner's name, ``module:Class``, a trained model's directory, or what makes a learner.
        game: the public rules.
        options: of a learner by its name.
    """
    if isinstance(learner, str):
        return learner_maker(learner, options)(game)
    if not callable(learner):
        raise TypeError(
            f"learner must be a name or make a learner from a game, such as its class; got {learner!r}"
        )
    made = learner(game)
    if not isinstance(made, Learner):
        raise TypeError(f"a learner has reset, predict and update; {learner!r} made {made!r}")
    return made


def is_directory(name: str) -> bool:
    """Whether a learner goes by a trained model's directory; a registered name is never taken for one."""
    return name not in LEARNERS.names() and Path(name).is_dir()


def _build(name: str, options: Mapping[str, Any], game: Game) -> Learner:
    return LEARNERS.build(name, {"game": game}, options)


def predict_checked(learner: Learner, candidates: FloatArray, games: int) -> FloatArray:
    """A learner's predictions ``(games, M)``, as an array of its own: a learner may use one buffer for all.

    Raises:
        ValueError: if they are of another shape.
    """
    predictions, shape = np.array(learner.predict(candidates)), (games, candidates.shape[-1])
    if predictions.shape != shape:
        raise ValueError(
            f"{type(learner).__name__}.predict() must return a prediction per game, here of shape "
            f"{shape} (games, M), got {predictions.shape}: a learner plays a batch of games at once"
        )
    return predictions


def play_stepwise(
    learner: Learner, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
) -> FloatArray:
    """:meth:`TapeLearner.play` for a learner that goes round by round, and keeps what it needs itself."""
    predictions = []
    for t in range(messages.shape[1]):
        now = candidates if candidates.ndim == 2 else at_round(candidates, t).copy()
        predictions.append(predict_checked(learner, now, len(messages)))
        learner.update(now, messages[:, t].copy())  # a view would lead to the messages to come
    return np.stack(predictions, axis=1)
