"""The base class of every learner, and the update rule that most of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ldp_gym import Game
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages, mixture, softmax
from ldp_gym.engine.game import require_game
from ldp_gym.engine.learners import Track, play_stepwise
from ldp_gym.engine.posterior import PublicPosterior


class LastRound(NamedTuple):
    """Candidates of the last call of :meth:`Learner.act`: the next message is about them."""

    candidates: FloatArray  # (..., K, M)
    rounds: IntArray  # number of messages so far in each game, (...)


class Learner(ABC):
    """A learner of the game: it sees only the public rules, contexts and messages.

    Define :meth:`predict`, :meth:`update` and, where there is a state, :meth:`reset` and
    :meth:`restart`. ``ldp_gym.testing.check_learner`` checks a learner.

    Args:
        game: the public rules.

    Attributes:
        track: its sources of information, :data:`ldp_gym.engine.learners.Track`.
        randomized: True if :meth:`reset` also takes ``generators``, one for each game.
        play: method that predicts and learns many rounds at once; None for a learner that is
            stepped.
    """

    track: ClassVar[Track] = "informed"
    randomized: ClassVar[bool] = False
    play: Any = None

    _steps: ClassVar[tuple[str, ...]] = ("predict", "update")
    """Methods that ``play`` does not call: a subclass that overrides one of them is stepped."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Set ``play`` to None where a subclass or a mixin overrides a step but not ``play``.

        Then the inherited ``play`` would not call the new step. The first class in the order of method
        resolution that defines one of them decides.
        """
        super().__init_subclass__(**options)
        steps: set[str] = set()
        for base in cls.__bases__:
            steps.update(getattr(base, "_steps", ()))

        for base in cls.__mro__:
            defined = vars(base).keys()
            if "play" in defined:
                return
            if defined & steps:
                cls.play = None
                return

    def __init__(self, game: Game) -> None:
        self.game = require_game(game)
        self._last: LastRound | None = None

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""
        self._last = None

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects."""
        # NumPy would take whole numbers for indices of games.
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"mask must be a boolean array, one per game, got {mask!r}")

    @abstractmethod
    def predict(self, candidates: FloatArray) -> FloatArray:
        """Predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""

    @abstractmethod
    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages ``(..., *message_shape)`` of the round with these candidates."""

    def act(self, observation: Mapping[str, Any]) -> FloatArray:
        """Learn from the observation's message, then predict: the learner as a Gymnasium agent.

        Games of the batch that are in round 0 start over. A message is learned from once, however
        often it is shown. The candidates come from the observation when it has them, else from the
        game's class.
        """
        if not isinstance(observation, Mapping) or not {"round", "message"} <= observation.keys():
            raise TypeError(
                f"act() takes an observation of LDPDist-v0, a dict of round, context and message, "
                f"as it is; got {validation.describe(observation)}"
            )
        candidates = self._candidates(observation)
        rounds = np.array(observation["round"])[..., 0]
        begins = rounds == 0

        # If the last round is not known, the learner was made or restarted in the middle of an episode.
        if begins.all():
            self.reset(begins.shape)
        elif self._last is not None:
            has_news = ~begins & (rounds != self._last.rounds)
            if has_news.any():
                self._learn_last_round(np.array(observation["message"]), begins)
            if begins.any():
                self.restart(begins)

        self._last = LastRound(candidates, rounds)
        return self.predict(candidates)

    def _learn_last_round(self, message: Messages, begins: BoolArray) -> None:
        """Learn from messages about the last round.

        Args:
            message: the messages; those of games that begin are replaced.
            begins: mask of games that begin a new episode, and have no message yet.
        """
        assert self._last is not None
        # Any valid message will do for them: they are restarted afterwards, and forget it.
        message[begins] = message[~begins][:1]
        self.update(self._last.candidates, message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.game.channel!r})"

    def _check(self, candidates: FloatArray) -> FloatArray:
        """Check candidates ``(..., K, M)`` from a user."""
        return game_arrays.candidates(candidates, self.game.num_hypotheses, self.game.num_labels)

    def _candidates(self, observation: Mapping[str, Any]) -> FloatArray:
        """The candidates ``(..., K, M)`` of an observation's round."""
        if "candidates" in observation:
            # A copy, as some environments use one buffer for all rounds.
            return self._check(observation["candidates"]).copy()
        if self.game.hypotheses is None:
            raise ValueError(
                "the class is redrawn each episode: act() needs the candidates in the observation "
                "(observe_candidates=True)"
            )
        return self.game.hypotheses(validation.numbers("context", observation["context"]))


def update_all(learner: Learner, candidates: FloatArray, messages: Messages) -> None:
    """Learn from n messages of one game, in their order.

    Args:
        learner: a learner of one game; what it learned before stays.
        candidates: the class in each of the n rounds, ``(n, K, M)``, or ``(K, M)`` for all of them.
        messages: ``(n, *message_shape)``.

    Example:
        >>> from ldp_agents import Bayes
        >>> from ldp_gym.channels import RandomizedResponse
        >>> table = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> learner = Bayes(Game(None, RandomizedResponse(2, 2, 100, epsilon=2.0), 100))
        >>> update_all(learner, table, np.array([0, 0, 1, 0]))
        >>> learner.weights.round(2).tolist()
        [0.94, 0.06]
    """
    candidates = np.asarray(candidates)
    if candidates.ndim == 2:
        candidates = np.broadcast_to(candidates, (len(messages), *candidates.shape))
    if len(candidates) != len(messages):
        raise ValueError(
            f"{len(messages)} messages need candidates of {len(messages)} rounds, got {len(candidates)}"
        )
    for candidates_of_round, message in zip(candidates, messages, strict=True):
        learner.update(candidates_of_round, message)


class MixtureLearner(Learner):
    """Learner that predicts a mixture of the candidates, with :attr:`weights` that it keeps.

    It can read the likelihood of a message under every hypothesis, on adaptive channels too. Its
    state is one array ``(..., N)``, which begins as :attr:`_prior` in every game.

    Attributes:
        posterior: on an adaptive channel, the public posterior ``(..., K)`` before the messages
            that it reads.
        weights_along: after :meth:`play`, the weights ``(B, n, K)`` before each of its rounds.
    """

    posterior: FloatArray | None = None
    weights_along: FloatArray | None = None

    _likelihoods: FloatArray | None = None
    """Log-likelihoods of the messages that are being learned from, if they are known already."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.reset()

    @property
    def public_weights(self) -> FloatArray | None:
        """On an adaptive channel, the public posterior ``(..., K)`` of the next user's channel."""
        if self._public is None:
            return None
        return self._public.weights

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
        """Log-likelihoods ``(..., K)`` of the messages that are being learned from."""
        if self._likelihoods is not None:  # known already, from the tape or the public posterior
            return self._likelihoods
        return self.game.channel.log_likelihood(messages, candidates, self.posterior)

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games, with the prior as the state."""
        super().reset(batch_shape)
        prior = self._prior
        self._state = np.broadcast_to(prior, (*batch_shape, prior.size)).copy()
        self._public: PublicPosterior | None = None
        if self.game.channel.adaptive:
            self._public = self.game.public_posterior(batch_shape)

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects."""
        super().restart(mask)
        self._state[mask] = self._prior
        if self._public is not None:
            self._public.restart(mask)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The weighted mixture ``(..., M)`` of the candidates ``(..., K, M)``."""
        return self._predict(self.weights, self._check(candidates))

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        """Predictions ``(..., M)`` from weights ``(..., K)`` and candidates ``(..., K, M)``."""
        return mixture(weights, candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages of a round, and advance the public posterior of an adaptive channel."""
        message = self.game.channel.check_messages(message)
        candidates = self._check(candidates)
        self._check_games(message)
        self._likelihoods = None
        if self._public is not None:
            self.posterior = self._public.weights
            self._likelihoods = self.game.channel.log_likelihood(
                message, candidates, self.posterior
            )
            self._public.advance(self._likelihoods)
        self._learn(candidates, message)

    def _check_games(self, messages: Messages) -> None:
        """Refuse messages ``(..., *message_shape)`` that are not one per game."""
        batch_shape = self._state.shape[:-1]
        num_batch_axes = messages.ndim - len(self.game.channel.message_shape)
        given_shape = messages.shape[:num_batch_axes]
        if given_shape != batch_shape:
            raise ValueError(
                f"update() takes one message for each game, of batch shape {batch_shape}; got batch shape "
                f"{given_shape}. ldp_agents.update_all reads many messages of one game"
            )

    def play(
        self, candidates: FloatArray, messages: Messages, log_likelihoods: FloatArray | None = None
    ) -> FloatArray:
        """Predict and learn n rounds at once.

        Args:
            candidates: ``(B, n, K, M)``, or anything that broadcasts to it.
            messages: ``(B, n, *message_shape)``.
            log_likelihoods: log-likelihoods of the messages under each hypothesis, ``(B, n, K)``,
                if they are known; without them an adaptive channel is played round by round.

        Returns:
            The predictions ``(B, n, M)``, each before the round's message.
        """
        if self._public is not None:
            if log_likelihoods is None:
                return play_stepwise(self, candidates, messages)
            self.posterior = self._public.along(log_likelihoods)

        self._likelihoods = log_likelihoods
        self.weights_along = self._learn_along(candidates, messages)
        return self._predict(self.weights_along, candidates)


class ExponentialWeights(MixtureLearner):
    """Weights ``w_j`` proportional to ``exp(-rate * L_j)``; ``L_j`` is a sum of loss estimates.

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
        """The weights ``(..., K)`` of the hypotheses, summing to one."""
        totals = self._state.copy()  # which are overwritten
        return self._weigh(totals, axis=-1)

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        """Weights from summed losses, whose hypotheses are on this axis; the losses may be overwritten."""
        totals *= -self.rate
        return softmax(totals, axis=axis, out=totals)

    def _learn(self, candidates: FloatArray, message: Messages) -> None:
        """Add the losses of a round's messages to the sums."""
        self._state = self._state + self.losses(message, candidates)

    def _learn_along(self, candidates: FloatArray, messages: Messages) -> FloatArray:
        """Learn from n rounds ``(B, n, ...)``; return the weights ``(B, n, K)`` before each."""
        # Rounds on the last axis: sums over hypotheses and over rounds are fastest that way.
        losses = np.swapaxes(self.losses(messages, candidates), -1, -2)
        totals = np.empty(losses.shape)
        totals[..., 0] = self._state
        totals[..., 1:] = losses[..., :-1]
        np.cumsum(totals, axis=-1, out=totals)  # of all rounds before each
        self._state = totals[..., -1] + losses[..., -1]

        weights = self._weigh_along(totals)
        return np.swapaxes(weights, -1, -2)

    def _weigh_along(self, totals: FloatArray) -> FloatArray:
        """Weights from summed losses ``(B, K, n)`` before each of n rounds, overwriting them."""
        return self._weigh(totals, axis=-2)


class SmoothedLearner(ExponentialWeights):
    """Exponential weights whose prediction is smoothed as in the paper, so that its KL is finite.

    ``p_hat_t = (1 - 1/T) sum_j w_j f_j(x_t) + (1/T) l / N'``, line 6 of Algorithms 1 and 2.
    """

    def _predict(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        """Smoothed predictions ``(..., M)`` from weights ``(..., K)`` and candidates ``(..., K, M)``."""
        return self.game.clipping.smooth(weights, candidates)
