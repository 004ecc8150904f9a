"""The contract of a channel: a random map from a label to a message, with a known density."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.listing import (
    NUM_DRAWS,
    MessageList,
    MessageRange,
    complete_list,
    list_space,
    message_range,
)
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages, at
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.core.registry import Registry
from ldp_gym.core.sampling import open_uniforms

CHANNELS: Registry[Channel] = Registry("channel", group="ldp_gym.channels")

Public = FloatArray | None
"""Public posterior ``(..., K)``; None for a channel that does not read it."""

_LARGEST_LIST = 20_000_000
"""Largest list of messages for random public coins, in numbers."""

_FEWEST_DRAWS = 20
"""Least number of draws of the public coins in such a list, however large it becomes."""

LEAST_PUBLIC_WEIGHT = 1e-12
"""Least public weight of a hypothesis in the means that adaptive channels compare."""


class Channel(ABC):
    """An (eps, delta)-locally differentially private map ``R_t`` from labels to messages.

    A custom channel defines :attr:`message_space`, :attr:`num_uniforms`, :meth:`encode` and
    :meth:`log_density`; the likelihoods, the Bayes learner and, if the messages are finite, the
    exact audit follow (else define :meth:`worst_case_messages` too).
    ``ldp_gym.testing.check_channel`` checks it.

    Labels are indices ``0..M-1``. Every point of the message space may be a message, unless
    :meth:`possible` is overridden.

    Args:
        num_hypotheses: K.
        num_labels: M.
        horizon: T.
        epsilon: the privacy level, positive.
        delta: 0 for a pure channel, in (0, 1) for one that needs it.

    Attributes:
        adaptive: whether the message depends on the public posterior.
        reveals_losses: whether a message is a noisy log-likelihood of each hypothesis, which the
            paper's learners read as a loss.
        pure: whether the channel promises delta = 0.
        free_of_num_labels: whether cutting every label into equal parts changes no message's law.
        posterior_rate: rate at which the public posterior learns from a message; below 1 only on
            an :class:`AdaptiveChannel`.
        posterior_share: share of its weight that the public posterior spreads over all hypotheses
            after every message; above 0 only on an :class:`AdaptiveChannel`.
    """

    adaptive: ClassVar[bool] = False
    reveals_losses: ClassVar[bool] = False
    pure: ClassVar[bool] = True
    free_of_num_labels: ClassVar[bool] = False
    posterior_rate: float = 1.0
    posterior_share: float = 0.0

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
    ) -> None:
        self.num_hypotheses = validation.whole("num_hypotheses (K)", num_hypotheses, least=2)
        self.num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        self.horizon = validation.whole("horizon (T)", horizon, least=2)
        self.epsilon = self._valid_epsilon(epsilon)
        self.delta = validation.probability_below_one("delta", delta)
        name = type(self).__name__
        if self.pure and self.delta != 0.0:
            raise ValueError(f"{name} is a pure channel: it takes delta=0 only, got {self.delta}")
        if not self.pure and self.delta == 0.0:
            raise ValueError(
                f"{name} needs delta > 0, got 0: pass delta=1e-5, say, or --rule delta=1e-5"
            )

    def _valid_epsilon(self, epsilon: float) -> float:
        """Check epsilon; subclasses may restrict it."""
        return validation.positive("epsilon", epsilon)

    @property
    @abstractmethod
    def num_uniforms(self) -> int:
        """Number of uniforms that one message takes."""

    @property
    @abstractmethod
    def message_space(self) -> gym.spaces.Space[Any]:
        """Gymnasium space of one message."""

    @cached_property
    def message_shape(self) -> tuple[int, ...]:
        """Shape of one message."""
        shape = self.message_space.shape
        assert shape is not None, "a message is an array of fixed shape"
        return shape

    @cached_property
    def placeholder(self) -> Messages:
        """Message shown in round 0, before any was sent: zeros, or the nearest possible numbers."""
        zeros = np.zeros(self.message_shape, dtype=self.message_space.dtype)
        if zeros in self.message_space:
            return zeros
        points = self._message_range
        return np.clip(zeros, points.low, points.high).astype(zeros.dtype)

    @abstractmethod
    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Return the messages ``(..., *message_shape)`` of labels ``(...)``, drawn by uniforms.

        Args:
            labels: the users' labels.
            candidates: the public ``f_j(x_t)``, ``(..., K, M)``.
            uniforms: ``(..., num_uniforms)``.
            posterior: the public posterior ``(..., K)``, if the channel is adaptive.
        """

    @abstractmethod
    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the normalised log density ``log q(z | y)`` of messages, ``(..., M)``.

        Each channel has its own base measure, which its docstring names.
        """

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return the hypotheses' log-likelihoods ``log sum_y f_k[y] q(z | y)``, ``(..., K)``."""
        log_density = self.log_density(messages, candidates, posterior)

        # Scaled by the largest density, which is minus infinity for a message that is never sent.
        peak = np.maximum(log_density.max(axis=-1), np.finfo(np.float64).min)
        density = np.exp(log_density - peak[..., None])
        likelihood = np.einsum("...km,...m->...k", candidates, density)
        with np.errstate(divide="ignore"):  # a hypothesis may rule the message out
            return np.log(likelihood) + peak[..., None]

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return how far labels agree with messages, from 0 to 1, ``(..., M)``.

        1 for a label that the message names or favours, 0 for another, a share where a private coin
        decides. It is a feature for learned agents.

        Raises:
            IncompatibleChannelError: if the channel does not define it.
        """
        raise IncompatibleChannelError(
            f"{type(self).__name__} does not say how far a label agrees with a message: define "
            f"agreement(), or use the learner 'bayes', which reads every channel"
        )

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return losses ``(..., K)`` of the hypotheses, of which the truth's is least on average.

        They are for learners that average losses. By default a loss is minus the log-likelihood of
        the message, relative to the uniform mixture's, which lies in ``[-eps, eps]`` on an
        eps-private channel. If messages are numbers ``0..n-1``, it is a quadratic score.
        """
        log_likelihood = self.log_likelihood(messages, candidates, posterior)
        if isinstance(self.message_space, gym.spaces.Discrete):
            return self._quadratic_scores(messages, candidates, posterior, log_likelihood)
        log_sum = np.logaddexp.reduce(log_likelihood, axis=-1, keepdims=True)
        return log_sum - math.log(self.num_hypotheses) - log_likelihood

    def _quadratic_scores(
        self,
        messages: Messages,
        candidates: FloatArray,
        posterior: Public,
        log_likelihood: FloatArray,
    ) -> FloatArray:
        """Return the scores ``sum_z' P_k(z')^2 / L(z') - 2 P_k(z) / L(z)``, ``(..., K)``.

        ``P_k(z)`` is the probability of message z under hypothesis k. L, for which any public law
        would do, is the mean over the labels.
        """
        space = self.message_space
        assert isinstance(space, gym.spaces.Discrete)
        first = int(space.start)

        # All messages stand on a new first axis, before the axes of the batch.
        leading_axes = candidates.ndim - 2
        if posterior is not None:
            leading_axes = max(leading_axes, posterior.ndim - 1)
            posterior = posterior[None]
        all_messages = (first + np.arange(int(space.n))).reshape(-1, *[1] * leading_axes)

        density = np.exp(self.log_density(all_messages, candidates[None], posterior))
        laws = np.exp(self.log_likelihood(all_messages, candidates[None], posterior))
        reference = np.maximum(density.mean(axis=-1), np.finfo(np.float64).tiny)  # L, never 0
        squares = np.sum(np.square(laws) / reference[..., None], axis=0)

        log_reference = np.log(at(np.moveaxis(reference, 0, -1), np.asarray(messages) - first))
        return squares - 2.0 * np.exp(log_likelihood - log_reference[..., None])

    def unbiased_losses(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return unbiased estimates ``(..., K)`` of the clipped log-loss of the user's label.

        The expectation over messages given label y is ``-log pbar_k(y)``, Section 4, eq. (6),
        whatever the truth (``Clipping.label_losses``). A learner that averages them competes with
        the best hypothesis in this loss, even if no hypothesis is right.

        Raises:
            IncompatibleChannelError: if the channel has no formula for them.
        """
        raise IncompatibleChannelError(f"{self!r} has no formula for unbiased losses of labels")

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List messages at candidates ``(K, M)`` so that sums over the list are sums over all.

        The list has all messages if they are few. If public coins make them too many, it has all
        messages for some random draws of the coins.

        Raises:
            TypeError: if the messages cannot be listed.
        """
        if self.num_public_coins and list_space(self.message_space) is None:
            return self._list_by_draws(candidates, posterior)
        return complete_list(self._all_points("list_messages()"))

    def _list_by_draws(self, candidates: FloatArray, posterior: Public) -> MessageList:
        """List all messages for random draws of the public coins; all draws weigh the same."""
        parts: list[Messages] = []
        log_totals: list[float] = []
        num_numbers = 0
        for coins in np.random.default_rng(0).random((NUM_DRAWS, self.num_public_coins)):
            messages = self.messages_given_coins(coins, candidates, posterior)
            log_density = self.log_density(messages, candidates, posterior)
            parts.append(messages)
            # The densities of the messages given the coins have the same sum for all labels.
            log_totals.append(np.logaddexp.reduce(log_density[:, 0]))
            num_numbers += messages.size
            if len(parts) >= _FEWEST_DRAWS and num_numbers > _LARGEST_LIST:
                break
        draws = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        log_weights = -(np.array(log_totals) + math.log(len(parts)))[draws]
        return MessageList(np.concatenate(parts), log_weights, draws, complete=False)

    def _all_points(self, method: str) -> Messages:
        """Return all points of a finite message space, ``(N, *message_shape)``.

        The error for any other space asks to define ``method``.
        """
        messages = list_space(self.message_space)
        if messages is None:
            raise TypeError(
                f"the messages of {type(self).__name__} are real numbers or too many to list: "
                f"define {method}"
            )
        return messages

    @property
    def num_public_coins(self) -> int:
        """Number of uniforms that the public coins take; 0 for a channel without public coins."""
        return 0

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return the messages ``(n, *message_shape)`` that are possible when the coins are drawn.

        One of them is sent, with a probability in proportion to its density
        (``ldp_gym.privacy.ExactChannel``). By default these are all messages.

        Args:
            coins: ``num_public_coins`` uniforms, which do not depend on the label.
            candidates: ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.

        Raises:
            TypeError: if the messages cannot be listed.
        """
        return self._all_points("messages_given_coins()")

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return messages ``(S, *message_shape)``, one of which has the largest density ratio.

        Certificates of custom channels do not rely on it: they rest on :meth:`encode` and
        :meth:`log_density`, and report an override that misses a larger ratio.
        """
        return self._all_points(
            "worst_case_messages(), or audit its messages with ldp_gym.audit.estimate_epsilon"
        )

    def delta_bounds(
        self, candidates: FloatArray, epsilon: float, posterior: Public = None
    ) -> DeltaBounds:
        """Bound the least delta of an (eps, delta)-private channel at candidates ``(K, M)``.

        By default both bounds are the exact
        ``max_{y, y'} sum_z max(q(z | y) - e^eps q(z | y'), 0)``. The method is called by keyword;
        an override may return any pair of numbers, the lower bound first.

        Raises:
            TypeError: if :meth:`list_messages` does not list all messages.
        """
        listed = self.list_messages(candidates, posterior)
        if not listed.complete:
            raise TypeError(
                f"{type(self).__name__} lists its messages for some draws of its public coins "
                f"only: no exact delta. Define delta_bounds(), or audit its eps"
            )
        log_density = self.log_density(listed.messages, candidates, posterior)
        log_law = log_density + listed.log_weights[:, None]
        law = np.exp(log_law)
        # e^eps times the law, at exponents that do not overflow.
        allowed = np.exp(np.minimum(log_law + epsilon, 700.0))

        delta = 0.0
        for y in range(self.num_labels):
            # Probability given label y in excess of e^eps times that given each other label, (M,).
            excess = np.maximum(law[:, [y]] - allowed, 0.0).sum(axis=0)
            delta = max(delta, float(excess.max()))
        delta = min(delta, 1.0)  # rounding may exceed 1
        return DeltaBounds(delta, delta)

    def privatize(
        self,
        labels: IntArray,
        candidates: FloatArray,
        rng: np.random.Generator,
        posterior: Public = None,
    ) -> Messages:
        """Draw the messages of labels ``(...)`` with coins from ``rng``; checks the arguments."""
        rng = validation.instance("rng", rng, np.random.Generator, "a numpy.random.Generator")
        labels = game_arrays.labels(labels, self.num_labels)
        candidates = game_arrays.candidates(candidates, self.num_hypotheses, self.num_labels)
        if posterior is not None:
            posterior = game_arrays.posteriors(posterior, self.num_hypotheses)
        uniforms = open_uniforms([rng], (*labels.shape, self.num_uniforms))[0]
        return self.encode(labels, candidates, uniforms, posterior)

    def check_messages(self, messages: Any) -> Messages:
        """Convert messages ``(..., *message_shape)``, and check that the channel may send them."""
        if type(messages) is np.ndarray:
            array = messages
        else:
            array = validation.numbers("message", messages)
        shape = self.message_shape
        num_leading_axes = array.ndim - len(shape)
        if array.shape[num_leading_axes:] != shape:
            raise ValueError(f"a message of {self!r} has shape {shape}, got {array.shape}")
        if array.dtype.kind not in "iuf":
            raise ValueError(f"a message of {self!r} must be numbers, got {array.dtype}")

        points = self._message_range
        inside = (array >= points.low) & (array <= points.high)  # False for NaN
        wrong = ~inside | np.isinf(array)
        if wrong.any():
            value = array[wrong].flat[0]
            raise ValueError(
                f"a message of {self!r} must be a point of {self.message_space}, got {value}"
            )
        if points.are_whole and array.dtype.kind == "f":
            if (array != np.rint(array)).any():
                raise ValueError(f"a message of {self!r} must be whole numbers, got {messages!r}")
            array = array.astype(np.int64)

        possible = np.asarray(self.possible(array))
        if not possible.all():
            raise ValueError(
                f"{self!r} never sends {array[~possible][0]!r}: hand over its messages as they "
                f"were sent"
            )
        return array

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of the messages that can be sent: by default the whole space."""
        num_leading_axes = messages.ndim - len(self.message_shape)
        return np.ones(messages.shape[:num_leading_axes], dtype=np.bool_)

    @cached_property
    def _message_range(self) -> MessageRange:
        """Least and largest coordinates of a message."""
        return message_range(self.message_space)

    def __repr__(self) -> str:
        privacy = f"epsilon={self.epsilon:g}"
        if self.delta:
            privacy += f", delta={self.delta:g}"
        shape = f"K={self.num_hypotheses}, M={self.num_labels}, T={self.horizon}"
        return f"{type(self).__name__}({shape}, {privacy})"


class AdaptiveChannel(Channel):
    """Base of the channels whose messages depend on the public posterior.

    If the truth is outside the class, or switches, the posterior soon trusts only one hypothesis,
    and the channel asks about little else. With a ``posterior_share`` it goes on asking about all
    of them.

    The other arguments are those of every :class:`Channel`.

    Args:
        posterior_rate: the rate, in (0, 1], at which the public posterior learns from a message; 1
            is Bayes' rule.
        posterior_share: the share of its weight, in [0, 1), that the public posterior spreads over
            all hypotheses after every message.
    """

    adaptive: ClassVar[bool] = True

    def __init__(
        self, *sizes: int, posterior_rate: float = 1.0, posterior_share: float = 0.0, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.posterior_rate = validation.positive("posterior_rate", posterior_rate, most=1.0)
        self.posterior_share = validation.probability_below_one("posterior_share", posterior_share)

    def _public(self, posterior: Public) -> FloatArray:
        """Return the public posterior, or raise an error that says where to get it."""
        if posterior is None:
            raise IncompatibleChannelError(
                f"{self!r} is adaptive: what a message says depends on the public posterior. Pass "
                f"it: a subclass of ldp_agents.ExponentialWeights has it as self.posterior, and "
                f"game.public_posterior() keeps one"
            )
        return posterior

    def _public_weights(self, posterior: Public) -> FloatArray:
        """Return the public posterior, raised to :data:`LEAST_PUBLIC_WEIGHT` where it is less."""
        return np.maximum(self._public(posterior), LEAST_PUBLIC_WEIGHT)


def require_channel(channel: object) -> Channel:
    """Check that ``channel`` is a Channel, not its class or its name."""
    return validation.instance(
        "channel", channel, Channel, "a Channel (made, not its class or name)"
    )
