"""Channels of one private bit: does a public combination of the hypotheses favour the label?

A contrast has coefficients c of the hypotheses that sum to 0. The bit ``sum_k c_k f_k(x)[y] > 0`` goes
through randomized response; where the sum is 0, a private coin answers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.listing import NUM_DRAWS, MessageList, list_by_coins
from ldp_gym.channels.two_level import EvenChannel, quadratic_losses
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    masses,
    mixture,
    per_table,
)

TIE = 1e-12
"""Relative size below which a difference counts as 0: rounding must not decide a side, a vote or a set."""

_UNBALANCED = 1e-6
"""Largest sum of a contrast's coefficients, which is 0 up to rounding."""

Questions = tuple[FloatArray, FloatArray]
"""Questions ``(n, K)`` and their probabilities ``(n,)``."""


class BitChannel(EvenChannel):
    """One private bit about a public contrast of the hypotheses.

    Public coins draw a question ``(..., K)`` in [-1, 1], which determines the contrast. The message is the
    question, signed so that hypotheses that like the answer have negative entries.

    The base measure of :meth:`log_density` is the law of the question, times counting the two answers.
    """

    free_of_num_labels: ClassVar[bool] = True

    @abstractmethod
    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """The questions ``(..., K)`` that public coins ``(..., num_public_coins)`` draw."""

    def _contrast(self, questions: FloatArray, posterior: Public) -> FloatArray:
        """Contrasts ``(..., K)`` of questions: by default the question itself."""
        return questions

    def _terms(self, candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factors of the coefficients, and their sizes, ``(..., K, M)``: by default the candidates."""
        return candidates, candidates

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """All questions; None where there are too many."""
        return None

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: a number in [-1, 1] per hypothesis, negative if it likes the answer."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def possible(self, messages: Messages) -> BoolArray:
        """Mask ``(...)`` of valid messages: by default contrasts of largest absolute coefficient 1 or 0."""
        largest = np.abs(messages).max(axis=-1)
        return np.isin(largest, [0.0, 1.0]) & (np.abs(messages.sum(axis=-1)) <= _UNBALANCED)

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: the public coins, and one for the answer."""
        return self.num_public_coins + 1

    @property
    def _log_fit(self) -> float:
        """The log probability of the true answer."""
        return -math.log1p(math.exp(-self.epsilon))

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        questions = self._question(uniforms[..., :-1], candidates, posterior)
        return self._answer(questions, labels, candidates, uniforms[..., -1], posterior)

    def _answer(
        self,
        questions: FloatArray,
        labels: IntArray,
        candidates: FloatArray,
        coin: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """The messages ``(..., K)`` of labels ``(...)`` about questions ``(..., K)``, with private coins."""
        contrast = self._contrast(questions, posterior)
        liked = self._terms(masses(candidates, np.asarray(labels))[..., None])
        factors = zip((contrast, np.abs(contrast)), liked, strict=True)
        side = _sides(*(np.einsum("...k,...k->...", c, terms[..., 0]) for c, terms in factors))
        yes = np.where(side == 0.5, coin < 0.5, (side > 0.5) == (coin < math.exp(self._log_fit)))
        return np.where(yes[..., None], -questions, questions)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Agreement of labels: 1 if the answer favours it, 0 if not, 1/2 where a private coin answers."""
        # Hypotheses that like the answer are negative in a message, and positive in a contrast.
        return label_sides(
            self._contrast(-np.asarray(messages), posterior), *self._terms(candidates)
        )

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        chances = self._chances(messages, candidates, posterior)
        squares = math.exp(self._log_fit) * (np.square(chances) + np.square(1.0 - chances))
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """All questions with both answers; some random ones where there are too many."""
        listed = self._all_questions(candidates, posterior)
        if listed is None:
            return list_by_coins(self._random_messages(NUM_DRAWS, candidates, posterior), None)
        return list_by_coins(both_answers(listed[0]), listed[1])

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Both answers to the question."""
        return both_answers(self._question(coins, candidates, posterior))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """A few hundred random questions with both answers: where no label ties, a ratio is eps or 0."""
        messages = self._random_messages(200, candidates, posterior)
        return np.unique(messages.reshape(-1, self.num_hypotheses), axis=0)

    def _random_messages(self, count: int, candidates: FloatArray, posterior: Public) -> Messages:
        """Both answers to random questions, the same ones each time, ``(count, 2, K)``."""
        coins = np.random.default_rng(0).random((count, self.num_public_coins))
        return self.messages_given_coins(coins, candidates, posterior)


def both_answers(questions: FloatArray) -> Messages:
    """Messages ``(..., 2, K)`` of questions ``(..., K)``."""
    return np.stack([questions, -questions], axis=-2)


def label_sides(
    contrast: FloatArray, table: FloatArray, sizes: FloatArray | None = None
) -> FloatArray:
    """Sides of the labels, ``(..., M)``: 1 where ``sum_k c_k f_k[y]`` is positive, 0 negative, 1/2 zero.

    Args:
        contrast: c, ``(..., K)``.
        table: the candidates f, ``(..., K, M)``, or their :func:`differences`, which give the same sums, as c
            sums to 0, and keep the digits of hypotheses that nearly agree.
        sizes: absolute values of the table; the table itself when not given.
    """
    return _sides(
        mixture(contrast, table), mixture(np.abs(contrast), table if sizes is None else sizes)
    )


@per_table
def differences(candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``f_k - f_1``, ``(..., K, M)``, 0 where both are equal up to rounding; and its absolute value."""
    first = candidates[..., :1, :]
    apart: FloatArray = candidates - first
    sizes = np.abs(apart)
    equal = sizes <= TIE * (candidates + first)
    apart[equal] = sizes[equal] = 0.0
    return apart, sizes


def _sides(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Sides of sums: 1 if positive, 0 if negative, 1/2 if zero up to rounding of terms of these sizes."""
    edge = TIE * sizes
    side: FloatArray = np.add(sums > edge, sums >= -edge, dtype=np.float64)
    side *= 0.5
    return side
