"""The base class of every learner, and the update rule that most of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ldp_gym import Game
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages, mixture, softmax
from ldp_gym.engine.game import require_game
from ldp_gym.engine.learners import Track, play_stepwise


class Learner(ABC):
    """A learner of the game: it sees only the public rules, contexts and messages.

    Define :meth:`predict`, :meth:`update` and, where there is a state, :meth:`reset` and :meth:`restart`.
    ``ldp_gym.testing.check_learner`` checks a learner.

    Args:
        game: the public rules.

    Attributes:
        track: its sources of information, :data:`ldp_gym.engine.learners.Track`.
        randomized: True if :meth:`reset` also takes ``generators``, one for each game.
        play: method that predicts and learns many rounds at once; None for a learner that is stepped.
    """

    track: ClassVar[Track] = "informed"
    randomized: ClassVar[bool] = False
    play: Any = None

    _steps: ClassVar[tuple[str, ...]] = ("predict", "update")
    """Methods that ``play`` does not call: a subclass that overrides one of them must be stepped."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        steps = {name for base in cls.__bases__ for name in getattr(base, "_steps", ())}
        first = next(base for base in cls.__mro__ if vars(base).keys() & {"play", *steps})
        if "play" not in vars(first):  # a mixin may override a step too
            cls.play = None

    def __init__(self, game: Game) -> None:
        self.game = require_game(game)
        self._last: tuple[FloatArray, IntArray] | None = (
            None  # candidates and rounds that act() saw last
        )

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""
        self._last = None

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects."""
        if (
            not isinstance(mask, np.ndarray) or mask.dtype != np.bool_
        ):  # numbers would be taken for indices
            raise TypeError(f"mask must be a boolean array, one per game, got {mask!r}")

    @abstractmethod
    def predict(self, candidates: FloatArray) -> FloatArray:
        """Predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""

    @abstractmethod
    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages ``(..., *message_shape)`` of the round with these candidates."""

    def act(self, observation: Mapping[str, Any]) -> FloatArray:
        """Learn from the observation's message, then predict: the learner as a Gymnasium agent.

        Games of the batch that are in round 0 start over. A message is learned from once, however often it
        is shown. The candidates come from the observation when it has them, else from the game's class.
        """
        if not isinstance(observation, Mapping) or not {"round", "message"} <= observation.keys():
            raise TypeError(
                f"act() takes an observation of LDPDist-v0, a dict of round, context and message, as it is; "
                f"got {validation.describe(observation)}"
            )
        candidates, rounds = self._candidates(observation), np.array(observation["round"])[..., 0]
        begins = rounds == 0
        if begins.all():
            self.reset(begins.shape)
        elif self._last is not None:
            last_candidates, last_rounds = self._last
            if not (begins | (rounds == last_rounds)).all():
                message = np.array(observation["message"])
                message[begins] = message[~begins][
                    :1
                ]  # a game that begins has none, and forgets this one
                self.update(last_candidates, message)
            if begins.any():
                self.restart(begins)
        self._last = candidates, rounds
        return self.predict(candidates)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.game.channel!r})"

    def _check(self, candidates: FloatArray) -> FloatArray:
        """Check candidates ``(..., K, M)`` from a user."""
        return game_arrays.candidates(candidates, self.game.num_hypotheses, self.game.num_labels)

    def _candidates(self, observation: Mapping[str, Any]) -> FloatArray:
        if "candidates" in observation:
            return self._check(
                observation["candidates"]
            ).copy()  # some environments use one buffer for all
        if self.game.hypotheses is None:
            raise ValueError(
                "the class is redrawn each episode: act() needs the candidates in the observation "
                "(observe_candidates=True)"
            )
        return self.game.hypotheses(validation.numbers("context", observation["context"]))


class MixtureLearner(Learner):
    """Learner that keeps :attr:`weights` of the hypotheses and predicts the weighted mixture of candidates.

    It can read the likelihood of a message under every hypothesis, on adaptive channels too. Its state is one
    array ``(..., N)``, which begins as :attr:`_prior` in every game.

    Attributes:
        posterior: on an adaptive channel, the public posterior ``(..., K)`` before the messages it reads.
    """

    posterior: FloatArray | None = None
    _likelihoods: FloatArray | None = None

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.reset()

    @property
    def public_weights(self) -> FloatArray | None:
        """On an adaptive channel, the public posterior ``(..., K)`` that the next user answers under."""
        return None if self._public is None else self._public.weights

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """The weights ``(..., K)`` of the hypotheses, summing to one."""

    @property
    @abstractmethod
    def _prior(self) -> FloatArray:
        """State ``(N,)`` before the first message."""

    @abstractmethod
    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from a round's messages."""

    @abstractmethod
    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        """Learn from n rounds ``(B, n, ...)``; return the weights ``(B, n, K)`` before each."""

    def log_likelihoods(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Log-likelihoods ``(..., K)`` of the messages that are being learned from, under each hypothesis."""
        if self._likelihoods is not None:
            return self._likelihoods
        return self.game.channel.log_likelihood(messages, candidates, self.posterior)

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        super().reset(batch_shape)
        self._state = np.broadcast_to(self._prior, (*batch_shape, self._prior.size)).copy()
        self._public = (
            self.game.public_posterior(batch_shape) if self.game.channel.adaptive else None
        )

    def restart(self, mask: BoolArray) -> None:
        super().restart(mask)
        self._state[mask] = self._prior
        if self._public is not None:
            self._public.restart(mask)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The weighted mixture of the candidates."""
        return self._predict(self.weights, self._check(candidates))

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return mixture(weights, candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        message = self.game.channel.check_messages(message)
        candidates = self._check(candidates)
        self._likelihoods = None
        if self._public is not None:
            self.posterior = self._public.weights
            self._likelihoods = self.game.channel.log_likelihood(
                message, candidates, self.posterior
            )
            self._public.advance(self._likelihoods)
        self._learn(candidates, message)

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds: messages ``(B, n, *message_shape)`` to predictions ``(B, n, M)``."""
        if self._public is not None:
            if log_likelihoods is None:
                return play_stepwise(self, candidates, messages)
            self.posterior = self._public.along(log_likelihoods)
        self._likelihoods = log_likelihoods
        return self._predict(self._learn_along(candidates, messages), candidates)


class ExponentialWeights(MixtureLearner):
    """Weights ``w_j`` proportional to ``exp(-rate * L_j)``, where ``L_j`` is a sum of loss estimates.

    WMA, EXP3 and Bayes differ only in :meth:`losses` and :attr:`rate`.

    Attributes:
        rate: the learning rate ``eta`` of all rounds.
    """

    rate: float
    play = MixtureLearner.play
    _steps = (*MixtureLearner._steps, "weights")

    @abstractmethod
    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """Each hypothesis' loss estimate ``(..., K)`` from messages ``(..., *message_shape)``."""

    @property
    def _prior(self) -> FloatArray:
        """Summed losses before the first message, one for each entry of :meth:`losses`."""
        return np.zeros(self.game.num_hypotheses)

    @property
    def weights(self) -> FloatArray:
        return self._weigh(self._state.copy(), -1)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        """The weights from summed losses, along the given axis. It may overwrite the totals."""
        totals *= -self.rate
        return softmax(totals, axis=axis, out=totals)

    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        self._state = self._state + self.losses(message, candidates)

    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        # Rounds on the last axis: sums over hypotheses and over rounds are fastest that way.
        losses = np.swapaxes(self.losses(messages, candidates), -1, -2)
        totals = np.empty(losses.shape)
        totals[..., 0] = self._state
        totals[..., 1:] = losses[..., :-1]
        np.cumsum(totals, axis=-1, out=totals)
        self._state = totals[..., -1] + losses[..., -1]
        return np.swapaxes(self._weigh_along(totals), -1, -2)

    def _weigh_along(self, totals: FloatArray) -> FloatArray:
        """Weights from the summed losses ``(B, K, n)`` before each of n rounds. It may overwrite them."""
        return self._weigh(totals, -2)


class SmoothedLearner(ExponentialWeights):
    """Exponential weights whose prediction is smoothed as in the paper, so that its KL is finite.

    ``p_hat_t = (1 - 1/T) sum_j w_j f_j(x_t) + (1/T) l / N'``, line 6 of Algorithms 1 and 2.
    """

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        return self.game.clipping.smooth(weights, candidates)
