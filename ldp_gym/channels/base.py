"""What a private user's channel is: a random map from a label to a message, with a known density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.accounting import DeltaBounds
from ldp_gym.channels.listing import MessageList, complete_list, list_space, message_range
from ldp_gym.channels.scores import relative_losses
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.core.registry import Registry
from ldp_gym.core.sampling import open_uniforms

CHANNELS: Registry[Channel] = Registry("channel", group="ldp_gym.channels")


class Channel(ABC):
    """An (eps, delta)-locally differentially private map ``R_t`` from labels to messages.

    A channel of your own defines :attr:`message_space`, :attr:`num_uniforms`, :meth:`encode` and
    :meth:`log_density`; the exact likelihood of every hypothesis, and with it the Bayes learner, follow, and
    so does the exact audit if the messages are finite (else define :meth:`worst_case_messages` too).
    ``ldp_gym.testing.check_channel`` holds it to this contract.

    Labels are indices ``0..M-1``. Every point of the message space may be a message.

    Args:
        num_hypotheses: K.
        num_labels: M.
        horizon: T.
        epsilon: the privacy level, positive.
        delta: 0 for a pure channel, in (0, 1) for one that needs it.

    Attributes:
        adaptive: whether the message depends on the public posterior.
        reveals_losses: whether a message is a noisy log-likelihood of each hypothesis, as a loss: what the
            paper's own learners read.
        most_tables: how many tables of candidates a game may have at most, if there is a limit.
        pure: whether the channel promises delta = 0.
        free_of_num_labels: whether cutting every label into equal parts changes no message's law, whatever M.
        resolution: the largest probability that counts as 0 when a message is drawn; 2^-53, a uniform's step.
        posterior_rate: the rate at which the public posterior learns from a message; 1 is Bayes' rule.
        posterior_share: the share of its weight that the public posterior spreads over all hypotheses in
            every round.
    """

    adaptive: ClassVar[bool] = False
    reveals_losses: ClassVar[bool] = False
    most_tables: ClassVar[int | None] = None
    pure: ClassVar[bool] = True
    free_of_num_labels: ClassVar[bool] = False
    resolution: ClassVar[float] = 2.0**-53
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
            raise ValueError(f"{name} needs delta > 0, got 0; pass for example delta=1e-5")

    def _valid_epsilon(self, epsilon: float) -> float:
        return validation.positive("epsilon", epsilon)

    @property
    @abstractmethod
    def num_uniforms(self) -> int:
        """How many uniforms one message takes."""

    @property
    @abstractmethod
    def message_space(self) -> gym.spaces.Space[Any]:
        """The space of one message."""

    @cached_property
    def message_shape(self) -> tuple[int, ...]:
        """The shape of one message."""
        shape = self.message_space.shape
        assert shape is not None, "a message is an array of fixed shape"
        return shape

    @cached_property
    def placeholder(self) -> Messages:
        """What is shown where there is no message yet: zeros, or the point of the space next to them."""
        low, high, _ = self._message_range
        zeros = np.zeros(self.message_shape, dtype=self.message_space.dtype)
        return np.clip(zeros, low, high).astype(zeros.dtype)

    @abstractmethod
    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        """The messages ``(..., *message_shape)`` of labels ``(...)``, as a function of their uniforms.

        Args:
            labels: the users' labels.
            candidates: the public ``f_j(x_t)``, ``(..., K, M)``.
            uniforms: ``(..., num_uniforms)``, the private coins.
            posterior: the public posterior ``(..., K)``, if the channel is adaptive.
        """

    @abstractmethod
    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The normalised log density ``log q(z | y)`` of messages given each label, ``(..., M)``.

        The base measure is the channel's own: it counts, or is a law or Lebesgue's, so that no message has
        more probability than density.
        """

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """``log sum_y f_k[y] q(z | y)`` of every hypothesis, ``(..., K)``."""
        log_density = self.log_density(messages, candidates, posterior)
        peak = np.maximum(log_density.max(axis=-1), np.finfo(np.float64).min)  # a message that is never sent
        density = np.exp(log_density - peak[..., None])
        likelihood = np.einsum("...km,...m->...k", candidates, density)
        with np.errstate(divide="ignore"):  # a hypothesis that rules the message out
            return np.log(likelihood) + peak[..., None]

    def send(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> tuple[Messages, FloatArray]:
        """The messages of :meth:`encode` with their log-likelihoods, for a transcript that goes on from them.

        An adaptive channel shares the work of the two.
        """
        messages = self.encode(labels, candidates, uniforms, posterior)
        return messages, self.log_likelihood(messages, candidates, posterior)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """How far labels agree with messages, from 0 to 1, ``(..., M)``: what a learned agent reads.

        1 for a label that the message names, holds, covers or favours, 0 for any other, and a share where a
        private coin decides. It says what a message is about, not how far it is to be trusted.

        Raises:
            IncompatibleChannelError: if the channel does not say.
        """
        raise IncompatibleChannelError(
            f"{type(self).__name__} does not say how far a label agrees with a message: define agreement(), "
            f"or use the learner 'bayes', which reads every channel"
        )

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """Losses ``(..., K)`` for a learner that averages: in expectation under any member its own is least.

        By default the quadratic score of a message out of few, and the logarithmic one of others
        (:mod:`ldp_gym.channels.scores`).
        """
        log_likelihood = self.log_likelihood(messages, candidates, posterior)
        if not isinstance(self.message_space, gym.spaces.Discrete):
            return relative_losses(log_likelihood)
        first, axes = int(self.message_space.start), candidates.ndim - 2
        if posterior is not None:
            axes, posterior = max(axes, posterior.ndim - 1), posterior[None]
        every = (first + np.arange(int(self.message_space.n))).reshape(-1, *[1] * axes)
        density = np.exp(self.log_density(every, candidates[None], posterior))
        laws = np.exp(self.log_likelihood(every, candidates[None], posterior))
        mean = np.maximum(density.mean(axis=-1), np.finfo(np.float64).tiny)  # L, as any public law would do
        squares = np.sum(np.square(laws) / mean[..., None], axis=0)
        here = np.log(at(np.moveaxis(mean, 0, -1), np.asarray(messages) - first))
        return squares - 2.0 * np.exp(log_likelihood - here[..., None])

    def loss_variance(self, candidates: FloatArray) -> FloatArray:
        """A public bound ``(...)`` on how :meth:`loss_estimates` spread around public centres.

        Squared, on average over hypotheses and messages; 1 for a quadratic score.
        """
        return np.ones(candidates.shape[:-2])

    def list_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> MessageList:
        """Messages at candidates ``(K, M)`` such that sums over them stand for sums over all.

        All messages, if there are few: by default the points of a finite message space, whose densities are
        probabilities. Where public coins make too many, all messages given some draws of the coins.

        Args:
            candidates: the class at a context, ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.

        Raises:
            TypeError: if the messages cannot be listed.
        """
        return complete_list(self._every_message(f"the messages of {type(self).__name__} cannot be listed"))

    def _every_message(self, otherwise: str) -> Messages:
        """Every point of the message space, or a TypeError that says so where they cannot be listed."""
        messages = list_space(self.message_space)
        if messages is None:
            raise TypeError(otherwise)
        return messages

    # -- What a deployment needs ------------------------------------------------------------------

    @property
    def num_public_coins(self) -> int:
        """How many uniforms the public coins of :meth:`messages_given_coins` take; 0 where there are none."""
        return 0

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Messages:
        """All messages ``(n, *message_shape)`` that are left when the public coins are drawn.

        The coins do not depend on the label, and of the messages that are left one is sent with a probability
        in proportion to its density (``ldp_gym.privacy.ExactChannel``). A channel with a finite message space
        needs no more than this default: all messages, and no coins.

        Args:
            coins: uniforms ``(num_public_coins,)``.
            candidates: the class at a context, ``(K, M)``.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.

        Raises:
            TypeError: if the messages are not finitely many, or too many to list.
        """
        return self._every_message(
            f"the messages of {type(self).__name__} are real numbers, or too many to list"
        )

    def is_possible(
        self, message: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> bool:
        """Whether a message is one that the channel may send. A server hears from anyone, so it asks.

        By default, whether it lies in the message space; a channel that sends less than that says what.
        """
        return self.message_space.contains(message)

    # -- What an audit needs ----------------------------------------------------------------------

    def worst_case_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """Messages ``(S, *message_shape)`` among which the largest density ratio of all is found.

        All messages, if they are few; a channel with others says where it can lie.
        """
        return self._every_message(
            f"{type(self).__name__} does not say where its density ratio is largest: define "
            f"worst_case_messages(), or audit its messages with ldp_gym.audit.estimate_epsilon"
        )

    def delta_bounds(
        self, candidates: FloatArray, epsilon: float, posterior: FloatArray | None = None
    ) -> DeltaBounds:
        """Bounds on the least delta with which the channel is (eps, delta)-private at these candidates.

        Args:
            candidates: the class at a context, ``(K, M)``.
            epsilon: eps.
            posterior: the public posterior ``(K,)``, if the channel is adaptive.
        """
        messages = self._every_message(
            f"{type(self).__name__} does not say how to account its delta: define delta_bounds()"
        )
        log_density = self.log_density(messages, candidates, posterior)
        density, raised = np.exp(log_density), np.exp(np.minimum(log_density + epsilon, 700.0))
        # Label by label: how much of its messages' probability exceeds e^eps times another's.
        excess = [np.maximum(density[:, [y]] - raised, 0.0).sum(axis=0).max() for y in range(self.num_labels)]
        delta = float(max(excess))
        return DeltaBounds(delta, delta)

    def privatize(
        self,
        labels: IntArray,
        candidates: FloatArray,
        rng: np.random.Generator,
        posterior: FloatArray | None = None,
    ) -> Messages:
        """The messages of labels ``(...)``, with coins from ``rng``.

        Raises:
            ValueError: for what is no label, or candidates or a posterior that are no distributions.
        """
        rng = validation.instance("rng", rng, np.random.Generator, "a numpy.random.Generator")
        labels = game_arrays.labels(labels, self.num_labels)
        candidates = game_arrays.candidates(candidates, self.num_hypotheses, self.num_labels)
        if posterior is not None:
            posterior = game_arrays.posterior(posterior, self.num_hypotheses)
        uniforms = open_uniforms([rng], (*labels.shape, self.num_uniforms))[0]
        return self.encode(labels, candidates, uniforms, posterior)

    def check_messages(self, messages: Any) -> Messages:
        """Messages ``(..., *message_shape)`` as an array, where users hand them over.

        Raises:
            ValueError: if they are of another shape, or no points of the message space.
        """
        array = messages if type(messages) is np.ndarray else validation.numbers("message", messages)
        shape, (low, high, whole) = self.message_shape, self._message_range
        if array.shape[array.ndim - len(shape) :] != shape:
            raise ValueError(f"a message of {self!r} has shape {shape}, got {array.shape}")
        if array.dtype.kind not in "iuf":
            raise ValueError(f"a message of {self!r} must be numbers, got {array.dtype}")
        # A comparison that NaN fails too.
        if not ((array >= low) & (array <= high)).all() or np.isinf(array).any():
            raise ValueError(
                f"a message of {self!r} must be a point of {self.message_space}, got {messages!r}"
            )
        if whole and array.dtype.kind == "f":
            if (array != np.rint(array)).any():
                raise ValueError(f"a message of {self!r} must be whole numbers, got {messages!r}")
            array = array.astype(np.int64)
        return array

    @cached_property
    def _message_range(self) -> tuple[Any, Any, bool]:
        """The least and the largest message, coordinate by coordinate, and whether they are whole numbers."""
        return message_range(self.message_space)

    def __repr__(self) -> str:
        privacy = f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")
        shape = f"K={self.num_hypotheses}, M={self.num_labels}, T={self.horizon}"
        return f"{type(self).__name__}({shape}, {privacy})"


def as_channel(channel: object) -> Channel:
    """``channel``, which must be one that is made for a game.

    Raises:
        TypeError: if it is something else, such as its name.
    """
    return validation.instance("channel", channel, Channel, "a Channel (made, not its class or name)")
