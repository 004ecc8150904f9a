"""Votes: every label is for the hypothesis that gives it the largest probability; equals share its vote.

The channel ``vote`` sends a set of hypotheses that tends to hold the label's. What follows from a fixed class
is worked out once, not again for each message.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, ClassVar, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import Public
from ldp_gym.channels.subset_selection import SubsetChannel
from ldp_gym.channels.two_level import best_share
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, masses, mixture
from ldp_gym.core.sampling import categorical

_EQUAL_VOTES = 1e-12
"""Probabilities that differ by less, relatively, are ties: the last bit must not decide a vote."""

Result = TypeVar("Result", bound=npt.NDArray[Any])


def _once(function: Callable[[FloatArray], Result]) -> Callable[[FloatArray], Result]:
    """Keep a function's result for the last candidates that cannot change: those of a constant class."""
    kept: tuple[Callable[[], FloatArray | None], Result] | None = None

    @wraps(function)
    def remembered(candidates: FloatArray) -> Result:
        nonlocal kept
        known = kept
        if known is not None and known[0]() is candidates:
            return known[1]
        result = function(candidates)
        if candidates.flags.owndata and not candidates.flags.writeable:
            result.flags.writeable = False
            kept = (weakref.ref(candidates), result)
        return result

    return remembered


@_once
def votes(candidates: FloatArray) -> FloatArray:
    """Share of each label's vote that each hypothesis has, ``(..., K, M)``: one has all, or equals share it.

    Example:
        >>> votes(np.array([[0.6, 0.2, 0.2], [0.6, 0.1, 0.3]])).tolist()
        [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    """
    largest = np.maximum.reduce(candidates, axis=-2, keepdims=True)
    shares = (candidates >= largest * (1.0 - _EQUAL_VOTES)).astype(np.float64)
    shares /= np.add.reduce(shares, axis=-2, keepdims=True)
    return shares


@_once
def winners(candidates: FloatArray) -> IntArray:
    """The hypotheses ``(..., J)`` that labels vote for; others, where a context has fewer of them than J."""
    wins = votes(candidates).any(axis=-1)
    most = int(np.count_nonzero(wins, axis=-1).max())
    return np.argsort(~wins, axis=-1, kind="stable")[..., :most]


def vote_laws_of_winners(candidates: FloatArray) -> FloatArray:
    """Probability that a label of hypothesis k votes for each of :func:`winners`, ``(..., K, J)``."""
    shares = np.take_along_axis(votes(candidates), winners(candidates)[..., None], axis=-2)
    return np.einsum("...km,...jm->...kj", candidates, shares)


def cast_votes(candidates: FloatArray, labels: IntArray, coins: FloatArray) -> IntArray:
    """The hypotheses that labels ``(...)`` vote for; private coins ``(...)`` decide where equals share."""
    return categorical(masses(votes(candidates), labels), coins)


class Vote(SubsetChannel):
    """A random set of hypotheses that probably holds the one that likes the label best.

    The label votes for ``v(y) = argmax_j f_j(x)[y]``; among equals a private coin decides. The message is a
    set of w hypotheses by subset selection, ``e^eps`` times likelier if it holds v(y), with w the best share
    ``r* K``, rounded. It is written as -1 in the set and +1 outside.

    Example:
        K = 3, eps = 1: w = 1, so the message names one hypothesis, the right one with probability
        ``e / (e + 2) = 0.576`` and each other with 0.212. Labels 0, 1, 2 vote for 1, 2, 3, and naming 1 has
        the probabilities

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> np.exp(Vote(3, 3, 100).log_likelihood(np.array([-1.0, 1.0, 1.0]), table)).round(3).tolist()
        [0.43, 0.321, 0.248]

    Privacy: a set has one probability if it holds the vote and ``e^-eps`` times that if not, and the vote is
    a function of the label and a coin.

    When to use it: hypotheses have their own labels, eps of 2 and more.

    When not: it can be blind, as :class:`Split` is; on the table there Bayes pays 156 / 575 nats in
    1,000 / 4,000 rounds.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def num_names(self) -> int:
        """K."""
        return self.num_hypotheses

    @cached_property
    def size(self) -> int:
        """``r* K``, rounded, which tells most about a vote; Ye and Barg's size estimates its law best."""
        share = round(best_share(self.epsilon) * self.num_names)
        return min(max(1, share), self.num_names - 1)

    @property
    def num_uniforms(self) -> int:
        return super().num_uniforms + 1

    @property
    def message_space(self) -> gym.spaces.Box:
        """-1 in the set, +1 outside."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def _write(self, sets: FloatArray) -> Messages:
        return 1.0 - 2.0 * sets

    def _read(self, messages: Messages) -> FloatArray:
        return (messages < 0.0).astype(np.float64)

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Public = None
    ) -> Messages:
        chosen = cast_votes(candidates, np.asarray(labels), uniforms[..., -1])
        return self._write(self._draw(chosen, uniforms[..., :-1]))

    def agreement(self, messages: Messages, candidates: FloatArray, posterior: Public = None) -> FloatArray:
        return mixture(self._read(messages), votes(candidates))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """The quadratic score, as that of a :class:`LabelChannel` whose labels are votes."""
        own, other = self.agreement_rates
        squares = (own - other) * np.square(vote_laws_of_winners(candidates)).sum(axis=-1)
        return squares - 2.0 * self._chances(messages, candidates, posterior)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """A window of names that slides around: a density takes two values, so any ratio is eps or 0."""
        return self.messages_given_coins(np.arange(self.num_names) / self.num_names, candidates)
