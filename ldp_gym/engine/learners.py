"""Learners as the environment package knows them: by a protocol, and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages, at_round
from ldp_gym.core.registry import Registry, is_builtin
from ldp_gym.core.validation import describe
from ldp_gym.engine.game import Game


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

    Messages do not depend on predictions, so a learner whose state is a running sum plays a block of tape
    at once. It must predict as if it were stepped: ``ldp_gym.testing.check_learner`` compares.
    """

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``.

        The log-likelihoods ``(B, n, K)`` of the hypotheses come along where the tape has worked them out: on
        an adaptive channel they depend on the public posterior before each round.
        """


Track = Literal["informed", "uninformed"]
"""What a learner reads beside candidates and messages.

*informed*: it may use what the channel says about its messages, such as their likelihood under a hypothesis.
*uninformed*: nothing; messages, public candidates and eps alone, in whatever form the messages come.
"""


def track_of(make_learner: Any) -> Track:
    """The ``track`` that a learner's class, or what else makes it, declares; informed if it declares none."""
    return getattr(make_learner, "track", "informed")


GeneratorSource = Callable[[], Sequence[np.random.Generator]]
"""Gives a generator for the current episode of each game of a batch, in its initial state."""


@runtime_checkable
class RandomizedLearner(Learner, Protocol):
    """A learner with coins of its own.

    The caller sets ``episode_generators`` before :meth:`reset`. When episodes begin, after ``reset`` or
    ``restart``, the learner calls it, and draws from the generators of the games that begin. Each depends on
    its episode alone, so that the learner plays it in the same way alone, in a batch and along a tape.

    Attributes:
        episode_generators: where the generators come from; None if the caller sets none.
    """

    episode_generators: GeneratorSource | None


def hand_generators(learner: Learner, source: GeneratorSource) -> None:
    """Give a learner with coins of its own the generators of its episodes to come; others need none."""
    if isinstance(learner, RandomizedLearner):
        learner.episode_generators = source


LEARNERS: Registry[Learner] = Registry("learner", group="ldp_gym.engine.learners")

LOADERS: Registry[Callable[[Game], Learner]] = Registry("loader of trained models", group="ldp_gym.loaders")
"""Turn a trained model's directory into a function that makes its learner from a game."""


@dataclass(frozen=True)
class NamedMaker:
    """Makes the learner of a name, with its options, from a game; it can be sent to a process.

    Attributes:
        name: a registered name, or ``module:Class``.
        options: the learner's own.
    """

    name: str
    options: Mapping[str, Any]

    def __call__(self, game: Game) -> Learner:
        """The learner, for a game."""
        return _as_learner(LEARNERS.build(self.name, {"game": game}, self.options), self.name)

    @property
    def example_rules(self) -> Mapping[str, Any] | None:
        """What its class, or what else makes it, says that it can play."""
        return getattr(LEARNERS[self.name], "example_rules", None)

    @property
    def track(self) -> Track:
        """What its class says it reads."""
        return track_of(LEARNERS[self.name])


def example_rules(make_learner: Callable[[Game], Learner]) -> dict[str, Any] | None:
    """The rules of a game that a learner says it can play, its ``example_rules``; None if it does not say.

    A policy that was trained for one K, M and channel plays nothing else: checks ask for it here.
    """
    rules = getattr(make_learner, "example_rules", None)
    return None if rules is None else dict(rules)


def learner_maker(
    name: str, options: Mapping[str, Any] | None = None, *, trust: bool = False
) -> Callable[[Game], Learner]:
    """What makes, from a game, the learner of a name, of ``module:Class``, or of a trained model's directory.

    Args:
        name: of the learner.
        options: of the learner.
        trust: whether a model's files may run code when they are read.

    Raises:
        ValueError: if there is no such learner; the message suggests the nearest name.
        UntrustedCodeError: if a model's files run code, and ``trust`` is not set.
    """
    if is_directory(name):
        return LOADERS.build("directory", {"directory": name, "trust": trust}, options or {})
    LEARNERS[name]  # an unknown name is an error now, not when a game is played
    return NamedMaker(name, dict(options or {}))


def build_learner(
    learner: str | Callable[[Game], Learner], game: Game, options: Mapping[str, Any] | None = None
) -> Learner:
    """The learner of a name, or of what makes one, for a game.

    Args:
        learner: a learner's name, ``module:Class``, a trained model's directory, or what makes a learner.
        game: the public rules.
        options: of a learner by its name.
    """
    options = validation.options("learner_kwargs", options)
    if isinstance(learner, str):
        return learner_maker(learner, options)(game)
    if not callable(learner):
        raise TypeError(
            f"learner must be a name or make a learner from a game, such as its class; got "
            f"{describe(learner)}"
        )
    try:
        made = learner(game)
    except TypeError as error:
        if is_builtin(learner):
            raise
        raise TypeError(f"learner {describe(learner)} does not make one from a game: {error}") from error
    return _as_learner(made, learner)


def _as_learner(made: object, maker: object) -> Learner:
    """What a maker has made, if it is a learner (and no class of learners)."""
    if not isinstance(made, Learner) or isinstance(made, type):
        raise TypeError(f"a learner has reset, predict and update; {describe(maker)} made {describe(made)}")
    return made


def is_directory(name: str) -> bool:
    """Whether a learner goes by a trained model's directory; a registered name is never taken for one."""
    return name not in LEARNERS.names() and bool(name) and Path(name).is_dir()


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
