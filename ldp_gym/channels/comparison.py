"""Comparisons: one private bit that says which of two sides of hypotheses likes the label better.

Two sides A and B of hypotheses are drawn with public coins. The user asks which gives the label the larger
mean probability, ``mean_{j in A} f_j(x)[y] > mean_{j in B} f_j(x)[y]``, and answers through randomized
response. The message is -1 on the side that won, +1 on the other and 0 elsewhere: a loss for each hypothesis.

Privacy: the sides do not depend on the label, and the answer is one bit, flipped with probability
``1 / (e^eps + 1)``. Pure, free of M. What is compared with what is all that the channels below differ in.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.arrays import BoolArray, FloatArray, IntArray, Messages, along, expectations, masses, mixture
from ldp_gym.channels.base import CHANNELS, Channel, log_mixed
from ldp_gym.sampling import categorical, integers

_TIE = 1e-12
"""Mean probabilities that differ by less are equal: the last bit must not decide who likes a label better."""

_HALF = 0.5 - 1e-9
"""Half of the posterior, less the rounding of its sums."""

_UNLIKELY = 1e-12
"""What a hypothesis' public weight is taken for when it has vanished."""


class Comparison(Channel):
    """A bit about two sides of hypotheses.

    The base measure of :meth:`log_density` is the law of the sides, times counting the two answers. Side A is
    the one with the lowest hypothesis, so that a message has one reading.
    """

    reveals_losses: ClassVar[bool] = True

    @property
    @abstractmethod
    def _num_coins(self) -> int:
        """How many uniforms the sides take."""

    @abstractmethod
    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        """The sides that coins ``(..., num_coins)`` draw: +1 on A, -1 on B, 0 elsewhere, ``(..., K)``."""

    @property
    def num_uniforms(self) -> int:
        """Those of the sides, and one for the flip."""
        return self._num_coins + 1

    @property
    def message_space(self) -> gym.spaces.Box:
        """-1 on the side that won, +1 on the other, 0 elsewhere."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    @property
    def _log_keep(self) -> float:
        """The log probability of the true answer."""
        return -math.log1p(math.exp(-self.epsilon))

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        sides = self._sides(uniforms[..., :-1], posterior)
        liked = masses(candidates, np.asarray(labels))
        prefers = np.einsum("...k,...k->...", self._contrast(sides, posterior), liked) > _TIE
        truthful = uniforms[..., -1] < math.exp(self._log_keep)
        return np.where((prefers == truthful)[..., None], -sides, sides)

    @abstractmethod
    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        """Coefficients ``(..., K)`` whose product with masses is the mean over A less the mean over B."""

    @abstractmethod
    def _lowest(self, messages: Messages) -> FloatArray:
        """What a message has for the lowest hypothesis that is compared, ``(..., 1)``."""

    def _prefers(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> tuple[FloatArray, BoolArray]:
        """Which labels A likes better, ``(..., M)``, and if the answer was that it does, ``(..., 1)``."""
        lowest = self._lowest(messages)
        contrast = self._contrast(messages * lowest, posterior)
        return (mixture(contrast, candidates) > _TIE).astype(np.float64), lowest < 0.0

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        prefers, won = self._prefers(messages, candidates, posterior)
        return np.where(prefers == won, self._log_keep, self._log_keep - self.epsilon)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        prefers, won = self._prefers(messages, candidates, posterior)
        chance = expectations(candidates, prefers)  # of each hypothesis, that A likes it better
        log_likelihood = log_mixed(np.where(won, chance, 1.0 - chance), self._log_keep, self.epsilon)
        return np.where(self.is_none(messages)[..., None], 0.0, log_likelihood)

    def extrema(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """A few hundred random sides with both answers: a density takes two values: a ratio is eps or 0."""
        coins = np.random.default_rng(0).random((200, self._num_coins))
        sides = np.unique(self._sides(coins, posterior), axis=0)
        return np.concatenate([sides, -sides])


class Division(Comparison):
    """All hypotheses on one side or the other; A has the first."""

    def _lowest(self, messages: Messages) -> FloatArray:
        return messages[..., :1]


class Pair(Comparison):
    """One hypothesis against another, the lower against the higher."""

    @property
    def _num_coins(self) -> int:
        return 2

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        return sides

    def extrema(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """The first hypothesis against each other, with both answers: if all of them tie, all pairs do."""
        sides = -np.eye(self.num_hypotheses)[1:]
        sides[:, 0] = 1.0
        return np.concatenate([sides, -sides])

    def _lowest(self, messages: Messages) -> FloatArray:
        return np.take_along_axis(messages, (messages != 0.0).argmax(axis=-1)[..., None], axis=-1)


@CHANNELS.register("split")
class Split(Division):
    """A random half of the hypotheses against the rest (Comparison; non-interactive).

    Use it when M is large and nothing is known of the truth: the bit depends on the label only through which
    half likes it better, so labels can be refined without end.
    """

    @property
    def _num_coins(self) -> int:
        return self.num_hypotheses - 1

    @property
    def _company(self) -> int:
        """How many join the first hypothesis in A."""
        return (self.num_hypotheses - 1) // 2

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        if not self._company:
            return np.broadcast_to([1.0, -1.0], (*coins.shape[:-1], 2))
        last = np.partition(coins, self._company - 1, axis=-1)[..., self._company - 1, None]
        others = np.copysign(1.0, last - coins)
        return np.concatenate([np.ones((*coins.shape[:-1], 1)), others], axis=-1)

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        first = 1.0 / (self._company + 1)
        second = 1.0 / (self.num_hypotheses - self._company - 1)
        return sides * ((first + second) / 2.0) + (first - second) / 2.0  # `first` on A, `-second` on B


@CHANNELS.register("scheffe")
class Scheffe(Pair):
    """A random pair of hypotheses, as in Scheffe's test (Gopi et al. 2020; non-interactive).

    Use it for hypothesis selection as the literature has it; ``split`` uses every hypothesis in every round.
    """

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        one = integers(self.num_hypotheses, coins[..., 0])
        other = integers(self.num_hypotheses - 1, coins[..., 1])
        return _pair(one, other + (other >= one), self.num_hypotheses)


@CHANNELS.register("adaptive-split")
class AdaptiveSplit(Division):
    """Two sides with about half of the public posterior each, and posterior-weighted means (interactive).

    The hypotheses are put in a random order and cut where half of the posterior is reached. As the posterior
    concentrates, the question becomes the likeliest hypothesis against all others.
    """

    interactive: ClassVar[bool] = True

    @property
    def _num_coins(self) -> int:
        return self.num_hypotheses

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        posterior = np.broadcast_to(posterior, coins.shape)
        order = np.where(posterior >= 0.5, -1.0, coins).argsort(axis=-1)  # who has half goes first, and alone
        places = along(order)
        weights = posterior.reshape(-1)[places]
        centres = np.add.accumulate(weights, axis=-1)
        centres -= weights / 2.0
        first = np.where(centres < _HALF, 1.0, -1.0)
        first[..., 0], first[..., -1] = 1.0, -1.0  # neither side is empty
        sides = np.empty(coins.shape)
        sides.reshape(-1)[places] = first
        return sides * sides[..., :1]

    def _contrast(self, sides: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        signed = sides * np.maximum(posterior, _UNLIKELY)
        first, second = (np.einsum("...k->...", np.maximum(part, 0.0)) for part in (signed, -signed))
        # The sides' total weights, which "none yet" does not have.
        total = np.where(sides > 0.0, first[..., None], second[..., None])
        return signed / np.maximum(total, _UNLIKELY)


@CHANNELS.register("adaptive-scheffe")
class AdaptiveScheffe(Pair):
    """A pair of hypotheses drawn from the public posterior (interactive).

    The question that Gopi et al. (2020) ask in rounds, asked of those who are still in the running.
    """

    interactive: ClassVar[bool] = True

    def _sides(self, coins: FloatArray, posterior: FloatArray | None) -> FloatArray:
        posterior = self._public(posterior)
        weights = np.broadcast_to(np.maximum(posterior, _UNLIKELY), (*coins.shape[:-1], self.num_hypotheses))
        one = categorical(weights, coins[..., 0])
        others = np.where(np.arange(self.num_hypotheses) == one[..., None], 0.0, weights)
        return _pair(one, categorical(others, coins[..., 1]), self.num_hypotheses)


def _pair(one: IntArray, other: IntArray, size: int) -> FloatArray:
    """The sides of a pair: +1 on the lower, -1 on the higher."""
    hypotheses = np.arange(size)
    lower, higher = np.minimum(one, other)[..., None], np.maximum(one, other)[..., None]
    return (hypotheses == lower).astype(np.float64) - (hypotheses == higher)
