"""Adversaries: natures that pick the worst context of a pool."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray, mixture
from ldp_gym.core.divergences import kl, mixture_loss, negentropy
from ldp_gym.natures.base import Information, NatureView, PoolNature

_ROUNDING = 1e-9
"""Absolute (nats) and relative difference of scores below which they count as equal."""


def learning_costs(
    losses: FloatArray,
    information: FloatArray,
    posterior: FloatArray,
    rounds_left: IntArray | int,
) -> FloatArray:
    """Return the costs of learning at P contexts x, in nats, ``(B, P)``.

    A cost is ``E KL(x) * min(rounds left, H / I(x))``: the expected loss of a round, times the
    number of rounds like it that it takes to learn the truth.

    Args:
        losses: expected losses ``E KL(x)`` of a round, ``(B, P)``.
        information: expected information ``I(x)`` of a round's message, ``(B, P)``.
        posterior: ``(B, K)``, of entropy H.
        rounds_left: number of rounds to play, this one included; one for all games, or ``(B, 1)``.
    """
    entropies = -negentropy(posterior)[:, None]
    rounds_to_learn = entropies / np.maximum(information, _ROUNDING)
    return losses * np.minimum(rounds_left, rounds_to_learn)


def first_of_best(scores: FloatArray) -> IntArray:
    """Return the index ``(B,)`` of the first score ``(B, P)`` that is the largest up to rounding.

    The last bit of a score depends on the batch, and the choice must not.
    """
    largest = scores.max(axis=-1, keepdims=True)
    among_the_best = scores * (1.0 + _ROUNDING) + _ROUNDING >= largest
    return among_the_best.argmax(axis=-1)


class WorstOfPool(PoolNature):
    """Base of natures that pick the context of a pool with the largest score."""

    adaptive: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        """Return the scores of the pool's contexts, ``(B, P)``, under posteriors ``(B, K)``."""

    def contexts(self, view: NatureView) -> FloatArray:
        """Return the context with the largest score in each of B games, ``(B, 1, d)``."""
        assert view.posterior is not None, "an adaptive nature gets the public posterior"
        games = len(view.rounds)
        scores = np.broadcast_to(self._scores(view, view.posterior), (games, len(self.pool)))
        return self.pool[first_of_best(scores)][:, None]


class _PreparedPool(NamedTuple):
    """Facts about its pool that :class:`Adversary` needs in every round.

    Attributes:
        candidates: ``(..., P, K, M)``.
        negentropies: ``sum_y f_k[y] log f_k[y]``, ``(..., P, K)``.
        information: from posteriors ``(B, K)`` to the information of a message in nats, ``(B, P)``.
    """

    candidates: FloatArray
    negentropies: FloatArray
    information: Callable[[FloatArray], FloatArray]


class Adversary(WorstOfPool):
    """The context of a pool on which learning costs most, judged from the public transcript.

    A large KL by itself does little harm: there the message tells much as well, and the learner
    soon knows the truth. This nature plays the context that maximises

    ``E KL(x) * min(rounds left, H / I(x))``,

    where w is the public posterior, H its entropy,
    ``E KL(x) = sum_k w_k KL(f_k(x), sum_j w_j f_j(x))`` the loss that Bayes expects in the round,
    and ``I(x)`` the expected information of the round's message: about ``H / I(x)`` such rounds
    reveal the truth.

    It reads only the public transcript, so Bayes stays optimal and the information limit holds. It
    is a heuristic that looks one round ahead, not the supremum over all sequences of contexts.
    """

    def prepare(
        self, hypotheses: Callable[[FloatArray], FloatArray], information: Information
    ) -> Any:
        """Return the pool's candidates, their negentropies, and the messages' information."""
        candidates = hypotheses(self.pool[None])
        return _PreparedPool(candidates, negentropy(candidates), information(candidates))

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        """Return the costs of learning at the pool's contexts, ``(B, P)``, in nats."""
        assert view.rounds_left is not None, "an adaptive nature gets the number of rounds left"
        pool: _PreparedPool = view.prepared
        expected_loss = mixture_loss(posterior[:, None], pool.candidates, pool.negentropies)
        information = pool.information(posterior)
        return learning_costs(expected_loss, information, posterior, view.rounds_left)


class Omniscient(WorstOfPool):
    """The context of a pool with the largest KL from the truth to the public posterior's mixture.

    It knows the truth and leaks it through the context, so that Bayes' optimality and the
    information limit do not hold against it. On such contexts the messages tell most: Bayes pays
    less than on i.i.d. ones, and ``adversary`` is harder.
    """

    leaks_truth: ClassVar[bool] = True

    def prepare(
        self, hypotheses: Callable[[FloatArray], FloatArray], information: Information
    ) -> Any:
        """Return the pool's candidates ``(..., P, K, M)``."""
        return hypotheses(self.pool[None])

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        """Return the KL from the truth to the posterior's mixture at the contexts, ``(B, P)``."""
        assert view.truth is not None, "leaks_truth natures get the truth"
        candidates = view.prepared
        truths = view.truth(self.pool[None], candidates)
        predictions = mixture(posterior[:, None], candidates)
        return kl(truths, predictions)
