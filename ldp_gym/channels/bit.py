"""Channels of one private bit: does a public combination of the hypotheses favour the label?

A *contrast* has coefficients ``c_k`` of the hypotheses that sum to 0. The bit
``sum_k c_k f_k(x)[y] > 0`` goes through randomized response; where the sum is 0, a private coin
answers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

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
"""Relative size below which a difference counts as 0, so that rounding does not decide."""

_WORST_CASE_QUESTIONS = 200
"""Number of random questions among which the largest density ratio is looked for."""

_UNBALANCED = 1e-6
"""Largest sum of a contrast's coefficients, which is 0 up to rounding."""


class Questions(NamedTuple):
    """All questions that a channel of one bit may ask.

    Attributes:
        questions: ``(n, K)``.
        chances: their probabilities, ``(n,)``.
    """

    questions: FloatArray
    chances: FloatArray


class Terms(NamedTuple):
    """Factors of the coefficients of a contrast, for each label.

    Attributes:
        values: the factors, ``(..., K, M)``: the candidates, or numbers with the same sums.
        sizes: sizes of the numbers from which a factor was computed, ``(..., K, M)``; rounding
            errors are in proportion to them.
    """

    values: FloatArray
    sizes: FloatArray


class BitChannel(EvenChannel):
    """Base of the channels with one private bit about a public contrast of the hypotheses.

    Public coins draw a question ``(..., K)`` in [-1, 1], which determines the contrast. The message
    is the question, with its sign changed if the answer is yes: hypotheses that favour the answer
    have negative entries.

    The base measure of :meth:`log_density` is the law of the question, times counting the two
    answers.
    """

    free_of_num_labels: ClassVar[bool] = True

    @abstractmethod
    def _question(self, coins: FloatArray, candidates: FloatArray, posterior: Public) -> FloatArray:
        """Return the questions ``(..., K)`` that coins ``(..., num_public_coins)`` draw."""

    def _contrast(self, questions: FloatArray, posterior: Public) -> FloatArray:
        """Return the contrasts ``(..., K)`` of questions: by default the questions themselves."""
        return questions

    def _terms(self, candidates: FloatArray) -> Terms:
        """Return the numbers that a contrast's coefficients multiply: by default the candidates."""
        return Terms(candidates, candidates)

    def _all_questions(self, candidates: FloatArray, posterior: Public) -> Questions | None:
        """Return all questions; None if there are too many."""
        return None

    @property
    def message_space(self) -> gym.spaces.Box:
        """Space of messages: numbers in [-1, 1], negative for hypotheses that favour the answer."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def possible(self, messages: Messages) -> BoolArray:
        """Return a mask ``(...)`` of valid messages.

        By default these are contrasts whose largest absolute coefficient is 1, or 0.
        """
        is_scaled = np.isin(np.abs(messages).max(axis=-1), [0.0, 1.0])
        is_balanced = np.abs(messages.sum(axis=-1)) <= _UNBALANCED
        return is_scaled & is_balanced

    @property
    def num_uniforms(self) -> int:
        """Number of uniforms: the public coins, and a private one for the answer."""
        return self.num_public_coins + 1

    @property
    def _log_fit(self) -> float:
        """Log probability ``-log(1 + e^-eps)`` of the true answer."""
        return -math.log1p(math.exp(-self.epsilon))

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw messages ``(..., K)``: a public question, negated if the private answer is yes."""
        public_coins = uniforms[..., :-1]
        private_coin = uniforms[..., -1]
        questions = self._question(public_coins, candidates, posterior)
        return self._answer(questions, labels, candidates, private_coin, posterior)

    def _answer(
        self,
        questions: FloatArray,
        labels: IntArray,
        candidates: FloatArray,
        private_coin: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Return the messages ``(..., K)`` of labels ``(...)`` about questions ``(..., K)``.

        A message is the question, negated if the answer is yes. The private coin ``(...)`` decides
        whether the answer is true.
        """
        contrasts = self._contrast(questions, posterior)

        # 1 if the contrast favours the user's label, 0 if not, 1/2 if its value is 0.
        side = self._side_of(labels, contrasts, candidates)

        truthful = private_coin < math.exp(self._log_fit)
        is_favoured = side > 0.5
        yes = np.where(side == 0.5, private_coin < 0.5, is_favoured == truthful)
        return np.where(yes[..., None], -questions, questions)

    def _side_of(
        self, labels: IntArray, contrasts: FloatArray, candidates: FloatArray
    ) -> FloatArray:
        """Return the sides ``(...)`` of labels ``(...)`` under contrasts ``(..., K)``.

        A side is 1 if ``sum_k c_k f_k[y]`` is positive, 0 if it is negative, and 1/2 if it is 0 up
        to rounding. Only the users' labels y are looked at.
        """
        label_masses = masses(candidates, np.asarray(labels))
        terms = self._terms(label_masses[..., None])
        sums = np.einsum("...k,...k->...", contrasts, terms.values[..., 0])
        sizes = np.einsum("...k,...k->...", np.abs(contrasts), terms.sizes[..., 0])
        return _sides(sums, sizes)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for labels that the answer favours, 0 for others, 1/2 for labels on no side.

        The result is ``(..., M)``, for messages ``(..., K)`` and candidates ``(..., K, M)``.
        """
        # A message is -1 at hypotheses that favour the answer, where a contrast is positive.
        contrasts = self._contrast(-np.asarray(messages), posterior)
        terms = self._terms(candidates)
        return label_sides(contrasts, terms.values, terms.sizes)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return quadratic scores ``(..., K)`` of hypotheses: the truth's is least on average.

        They score the law of the answer, given the question (:func:`quadratic_losses`). The chances
        are the probabilities, under each hypothesis, of a label that the answer fits.
        """
        chances = self._chances(messages, candidates, posterior)
        squares = math.exp(self._log_fit) * (np.square(chances) + np.square(1.0 - chances))
        return quadratic_losses(chances, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: Public = None) -> MessageList:
        """List both answers to all questions, or to random questions if there are too many."""
        listed = self._all_questions(candidates, posterior)
        if listed is None:
            random_messages = self._random_messages(NUM_DRAWS, candidates, posterior)
            return list_by_coins(random_messages, chances=None)
        return list_by_coins(both_answers(listed.questions), listed.chances)

    def messages_given_coins(
        self, coins: FloatArray, candidates: FloatArray, posterior: Public = None
    ) -> Messages:
        """Return both answers to the question that the coins draw, ``(2, K)``."""
        return both_answers(self._question(coins, candidates, posterior))

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return both answers to :data:`_WORST_CASE_QUESTIONS` random questions, ``(S, K)``.

        The log ratio of two densities is eps or 0 unless a private coin answers, so a question with
        a label on either side is enough.
        """
        messages = self._random_messages(_WORST_CASE_QUESTIONS, candidates, posterior)
        return np.unique(messages.reshape(-1, self.num_hypotheses), axis=0)

    def _random_messages(self, count: int, candidates: FloatArray, posterior: Public) -> Messages:
        """Return both answers to ``count`` random questions, ``(count, 2, K)``.

        The questions are the same in each call.
        """
        coins = np.random.default_rng(0).random((count, self.num_public_coins))
        return self.messages_given_coins(coins, candidates, posterior)


def both_answers(questions: FloatArray) -> Messages:
    """Return the messages "no" and "yes" to questions ``(..., K)``, as ``(..., 2, K)``."""
    return np.stack([questions, -questions], axis=-2)


def label_sides(
    contrast: FloatArray, table: FloatArray, sizes: FloatArray | None = None
) -> FloatArray:
    """Return the side of each label, ``(..., M)``.

    It is 1 if ``sum_k c_k f_k[y]`` is positive, 0 if it is negative, and 1/2 if it is 0 up to
    rounding.

    Args:
        contrast: coefficients c that sum to 0, ``(..., K)``.
        table: the candidates f, ``(..., K, M)``; or their :func:`differences`, which give the same
            sums and keep the digits of hypotheses that nearly agree.
        sizes: absolute values of the table; the table itself when not given.

    Example:
        >>> table = np.array([[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]])
        >>> label_sides(np.array([1.0, -1.0]), table).tolist()
        [1.0, 0.0, 0.5]
    """
    if sizes is None:
        sizes = table
    return _sides(mixture(contrast, table), mixture(np.abs(contrast), sizes))


@per_table
def differences(candidates: FloatArray) -> Terms:
    """Return the differences ``f_k - f_1`` from the first hypothesis, with their absolute values.

    They are 0 where both agree up to rounding. Candidates and results are ``(..., K, M)``.
    """
    first = candidates[..., :1, :]
    values: FloatArray = candidates - first
    sizes = np.abs(values)
    equal = sizes <= TIE * (candidates + first)
    values[equal] = 0.0
    sizes[equal] = 0.0
    return Terms(values, sizes)


def _sides(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return 1 for positive sums, 0 for negative ones, 1/2 for those that are 0 up to rounding.

    Args:
        sums: sums of terms, of any shape.
        sizes: sums of the terms' absolute values, in the same shape.
    """
    rounding = TIE * sizes
    is_positive = sums > rounding
    is_not_negative = sums >= -rounding
    side: FloatArray = np.add(is_positive, is_not_negative, dtype=np.float64)
    side *= 0.5
    return side
