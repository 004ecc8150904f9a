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
    """The declared ``example_rules`` of a learner, its class or its factory; None if there are none."""
    rules = getattr(make_learner, "example_rules", None)
    if rules is None:
        return None
    return dict(rules)


@dataclass(frozen=True)
class _NamedLearner:
    """Factory of a learner by name, which can be pickled."""

    name: str
    options: Mapping[str, Any]

    def __call__(self, game: Game) -> LearnerProtocol:
        """The learner for a game."""
        made = LEARNERS.build(self.name, {"game": game}, self.options)
        return _as_learner(made, maker=self.name)

    @property
    def track(self) -> Track:
        """The learner's declared track."""
        return track_of(LEARNERS[self.name])

    @property
    def example_rules(self) -> dict[str, Any] | None:
        """The learner's declared example rules."""
        return example_rules(LEARNERS[self.name])


def as_make_learner(
    name: str, options: Mapping[str, Any] | None = None, *, trust: bool = False
) -> MakeLearner:
    """Factory of a learner by name, by ``module:Class``, or from a trained model's directory.

    Args:
        name: the name, the address or the directory.
        options: keyword arguments of the learner; a trained model has none.
        trust: if True, a model's files may run code when they are read.
    """
    if is_directory(name):
        if options:
            raise TypeError(f"a trained model has no options, got {sorted(options)} for {name}")
        loader: Any = LEARNERS[_LOADER]
        return loader.load(name, trust=trust)
    _ = LEARNERS[name]  # an unknown name is an error now, not when a game is played
    return _NamedLearner(name, dict(options or {}))


def build_learner(
    learner: str | MakeLearner, game: Game, options: Mapping[str, Any] | None = None
) -> LearnerProtocol:
    """Make a learner for a game.

    Args:
        learner: a learner's name, ``module:Class``, a trained model's directory, or a factory.
        game: the public rules.
        options: keyword arguments of a learner that is given by its name.
    """
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
    return _as_learner(made, maker=learner)


def _as_learner(made: object, maker: object) -> LearnerProtocol:
    """Check that an object is a learner; ``maker`` is its name or factory, for the error."""
    is_class = isinstance(made, type)  # a class has the methods too
    if is_class or not isinstance(made, LearnerProtocol):
        raise TypeError(
            f"a learner has reset, predict and update; {describe(maker)} made {describe(made)}"
        )
    return made


def is_directory(name: str) -> bool:
    """Tell if a name is a trained model's directory; a registered learner's name is not, if both exist."""
    return name not in LEARNERS and bool(name) and Path(name).is_dir()


def begin_episodes(learner: LearnerProtocol, generators: Sequence[np.random.Generator]) -> None:
    """Reset a learner for the episodes of these generators.

    A randomized learner gets another generator for each, whose seed is a hash of the episode's seed. Nothing
    is drawn from the episodes' generators.
    """
    batch_shape = (len(generators),)
    if not getattr(learner, "randomized", False):
        learner.reset(batch_shape)
        return
    learners_generators = [_hashed_generator(generator) for generator in generators]
    learner.reset(batch_shape, generators=learners_generators)  # type: ignore[call-arg]


def _hashed_generator(generator: np.random.Generator) -> np.random.Generator:
    """Generator whose seed is a hash of another's seed, of which nothing is drawn."""
    root: Any = generator.bit_generator.seed_seq
    child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, 0))
    # The child's own stream is that of the first generator which the root spawns.
    seed = child.generate_state(4, np.uint64).tolist()
    return np.random.default_rng(seed)


def plays_blocks(learner: LearnerProtocol) -> bool:
    """Tell if a learner plays many rounds at a time."""
    return getattr(learner, "play", None) is not None


def play_block(
    learner: LearnerProtocol,
    candidates: FloatArray,
    messages: Messages,
    log_likelihoods: FloatArray | None = None,
) -> FloatArray:
    """Let a learner predict and learn n rounds, at once if it can; return predictions ``(B, n, M)``.

    Args:
        learner: the learner.
        candidates: ``(B, n or 1, K, M)`` or ``(K, M)``.
        messages: ``(B, n, *message_shape)``.
        log_likelihoods: log-likelihoods of the messages under each hypothesis, ``(B, n, K)``, if the tape
            has them.
    """
    play: Any = getattr(learner, "play", None)
    if play is None:
        return play_stepwise(learner, candidates, messages)
    return play(candidates, messages, log_likelihoods)


def play_stepwise(
    learner: LearnerProtocol, candidates: FloatArray, messages: Messages
) -> FloatArray:
    """Let a learner predict and learn n rounds one by one; return predictions ``(B, n, M)``.

    Args:
        learner: the learner.
        candidates: ``(B, n or 1, K, M)`` or ``(K, M)``.
        messages: ``(B, n, *message_shape)``.
    """
    num_games, num_rounds = messages.shape[:2]
    predictions = []
    for t in range(num_rounds):
        if candidates.ndim == 2:  # the same in all games and rounds
            current = candidates
        else:
            current = at_round(candidates, t)
        predictions.append(predict_checked(learner, current, num_games))
        learner.update(current, messages[:, t])
    return np.stack(predictions, axis=1)


def predict_checked(learner: LearnerProtocol, candidates: FloatArray, num_games: int) -> FloatArray:
    """Predictions ``(num_games, M)`` of a learner for a round, of which type and shape are checked.

    Args:
        learner: the learner.
        candidates: the round's candidates, ``(num_games, K, M)`` or ``(K, M)``.
        num_games: number of games that it plays.
    """
    given = game_arrays.prediction_floats("what predict() returns", learner.predict(candidates))
    expected_shape = (num_games, candidates.shape[-1])
    if given.shape != expected_shape:
        raise ValueError(
            f"{type(learner).__name__}.predict() must return a prediction per game, here of shape "
            f"{expected_shape} (games, M), got {given.shape}: a learner plays a batch of games at once"
        )
    return given.copy()  # a learner may use one buffer for all rounds
