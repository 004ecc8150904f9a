"""Learners as the environment package knows them: by a protocol, and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import FloatArray, Messages, at_round
from ldp_gym.core.registry import Registry
from ldp_gym.core.validation import describe
from ldp_gym.engine.game import Game


@runtime_checkable
class LearnerProtocol(Protocol):
    """An agent that predicts distributions from candidates and messages.

    A learner is made for a :class:`ldp_gym.Game` and sees only the public rules, the candidates ``f_j(x_t)``
    and the messages. ``ldp_agents.Learner`` is the base class that ours share.

    A learner, or the class or function that makes it, may also have these attributes:

    - ``play(candidates, messages, log_likelihoods)``: predict and learn n rounds at once, messages
      ``(B, n, *message_shape)`` to predictions ``(B, n, M)``. Messages do not depend on predictions, so a
      learner whose state is a running sum needs no loop. The log-likelihoods ``(B, n, K)`` come along where
      the tape has them: on an adaptive channel they depend on the public posterior before each round. None,
      the default, means that it is stepped.
    - ``weights``: its weights ``(B, K)`` of the hypotheses, which :func:`ldp_gym.evaluate` keeps.
    - ``weights_along``: after ``play``, the weights ``(B, n, K)`` before each of its rounds. Without it
      blocks end wherever ``evaluate(..., leaders=True)`` looks at the weights.
    - ``randomized``: if True, :meth:`reset` also takes ``generators``, one for each game, seeded by its
      episode: the learner then plays the same alone, in a batch and along a tape. Default False.
    - ``track``: see :data:`Track`. Default ``"informed"``.
    - ``example_rules``: rules of a game that it can play, for checks of a learner that cannot play every
      game. Default None.
    """

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""

    def predict(self, candidates: FloatArray) -> FloatArray:
        """Predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the round's messages ``(..., *message_shape)``."""


MakeLearner = Callable[[Game], LearnerProtocol]
"""Factory of a learner, such as its class."""

Track = Literal["informed", "uninformed"]
"""Sources of information of a learner.

*informed*: it may use what the channel knows about its messages, such as their likelihood under a hypothesis.
*uninformed*: only messages, public candidates and eps, in whatever form the messages come.
"""

LEARNERS: Registry[LearnerProtocol] = Registry("learner", group="ldp_gym.learners")

_LOADER = "amortized"
"""Learner whose class has the function ``load`` that reads the directory of any trained model."""


def track_of(make_learner: Any) -> Track:
    """The declared ``track`` of a learner, its class or its factory."""
    return getattr(make_learner, "track", "informed")


def example_rules(make_learner: Any) -> dict[str, Any] | None:
    """The declared ``example_rules`` of a learner, its class or its factory."""
    rules = getattr(make_learner, "example_rules", None)
    return None if rules is None else dict(rules)


@dataclass(frozen=True)
class _NamedLearner:
    """Factory of a learner by name, which can be pickled."""

    name: str
    options: Mapping[str, Any]

    def __call__(self, game: Game) -> LearnerProtocol:
        return _as_learner(LEARNERS.build(self.name, {"game": game}, self.options), self.name)

    @property
    def track(self) -> Track:
        return track_of(LEARNERS[self.name])

    @property
    def example_rules(self) -> dict[str, Any] | None:
        return example_rules(LEARNERS[self.name])


def as_make_learner(
    name: str, options: Mapping[str, Any] | None = None, *, trust: bool = False
) -> MakeLearner:
    """Factory of the learner of a name, of ``module:Class``, or of a trained model's directory.

    With ``trust`` a model's files may run code when they are read.
    """
    if is_directory(name):
        if options:
            raise TypeError(f"a trained model has no options, got {sorted(options)} for {name}")
        loader: Any = LEARNERS[_LOADER]
        return loader.load(name, trust=trust)
    LEARNERS[name]  # an unknown name is an error now, not when a game is played
    return _NamedLearner(name, dict(options or {}))


def build_learner(
    learner: str | MakeLearner, game: Game, options: Mapping[str, Any] | None = None
) -> LearnerProtocol:
    """Make a learner for a game, from a factory or with options from what :func:`as_make_learner` takes."""
    if isinstance(learner, str):
        return as_make_learner(learner, options)(game)
    if not callable(learner):
        raise TypeError(
            f"learner must be a name or make a learner from a game, such as its class; got "
            f"{describe(learner)}"
        )
    try:
        made = learner(game)
    except TypeError as error:
        raise TypeError(
            f"learner {describe(learner)} does not make one from a game: {error}"
        ) from error
    return _as_learner(made, learner)


def _as_learner(made: object, maker: object) -> LearnerProtocol:
    if not isinstance(made, LearnerProtocol) or isinstance(made, type):
        raise TypeError(
            f"a learner has reset, predict and update; {describe(maker)} made {describe(made)}"
        )
    return made


def is_directory(name: str) -> bool:
    """Tell if a name is a trained model's directory; a registered name goes first."""
    return name not in LEARNERS and bool(name) and Path(name).is_dir()


def begin_episodes(learner: LearnerProtocol, generators: Sequence[np.random.Generator]) -> None:
    """Reset a learner for the episodes of these generators.

    A randomized learner gets, for each, another generator with a seed that is a hash of the episode's;
    nothing is drawn from the episode's.
    """
    batch_shape = (len(generators),)
    if not getattr(learner, "randomized", False):
        learner.reset(batch_shape)
        return
    roots: list[Any] = [generator.bit_generator.seed_seq for generator in generators]
    children = [
        np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, 0)) for root in roots
    ]
    coins = [
        np.random.default_rng(child.generate_state(4, np.uint64).tolist()) for child in children
    ]
    learner.reset(batch_shape, generators=coins)  # type: ignore[call-arg]


def plays_blocks(learner: LearnerProtocol) -> bool:
    """Tell if a learner plays many rounds at a time."""
    return getattr(learner, "play", None) is not None


def play_block(
    learner: LearnerProtocol,
    candidates: FloatArray,
    messages: Messages,
    log_likelihoods: FloatArray | None = None,
) -> FloatArray:
    """Predict and learn n rounds, messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``."""
    play: Any = getattr(learner, "play", None)
    if play is None:
        return play_stepwise(learner, candidates, messages)
    return play(candidates, messages, log_likelihoods)


def play_stepwise(
    learner: LearnerProtocol, candidates: FloatArray, messages: Messages
) -> FloatArray:
    """Predict and learn n rounds, one by one."""
    predictions = []
    for t in range(messages.shape[1]):
        now = candidates if candidates.ndim == 2 else at_round(candidates, t)
        predictions.append(predict_checked(learner, now, len(messages)))
        learner.update(now, messages[:, t])
    return np.stack(predictions, axis=1)


def predict_checked(learner: LearnerProtocol, candidates: FloatArray, games: int) -> FloatArray:
    """Copy of a learner's predictions ``(games, M)``: a learner may use one buffer for all rounds."""
    given = game_arrays.prediction_floats("what predict() returns", learner.predict(candidates))
    predictions, shape = given.copy(), (games, candidates.shape[-1])
    if predictions.shape != shape:
        raise ValueError(
            f"{type(learner).__name__}.predict() must return a prediction per game, here of shape "
            f"{shape} (games, M), got {predictions.shape}: a learner plays a batch of games at once"
        )
    return predictions
