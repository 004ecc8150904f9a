"""Adversaries: natures that pick the worst context of a pool from the public posterior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.core.divergences import kl, mixture_loss, negentropy
from ldp_gym.natures.base import Information, NatureView, PoolNature

_ROUNDING = 1e-9
"""Absolute (nats) and relative difference of scores below which they count as equal."""


class WorstOfPool(PoolNature):
    """The context of the pool with the largest score; subclasses define the score."""

    adaptive: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        """Scores of the contexts of the pool, ``(B, P)``, under posteriors ``(B, K)``."""

    def contexts(self, view: NatureView) -> FloatArray:
        assert view.posterior is not None, "an adaptive nature gets the public posterior"
        scores = np.broadcast_to(
            self._scores(view, view.posterior), (len(view.rounds), len(self.pool))
        )
        # The first within rounding of the best: the last bit depends on the batch, the choice must not.
        best = scores * (1.0 + _ROUNDING) + _ROUNDING >= scores.max(axis=-1, keepdims=True)
        return self.pool[best.argmax(axis=-1)][:, None]


class Adversary(WorstOfPool):
    """The context of a pool on which learning costs most, judged from the public transcript.

    A large KL by itself does little harm: there the message tells much as well, and the learner soon knows
    the truth. This nature plays the context that maximises

    ``E KL(x) * min(rounds left, H / I(x))``,

    with w the public posterior and H its entropy. Bayes expects the loss
    ``E KL(x) = sum_k w_k KL(f_k(x), sum_j w_j f_j(x))`` in the round. ``I(x)`` is the expected information of
    the round's message: about ``H / I(x)`` such rounds reveal the truth.

    It reads only the public transcript, so Bayes stays optimal and the information limit holds. It is a
    heuristic that looks one round ahead, not the supremum over all sequences of contexts.
    """

    def prepare(
        self, hypotheses: Callable[[FloatArray], FloatArray], information: Information
    ) -> Any:
        """The pool's candidates ``(..., P, K, M)``, their negentropies, and the messages' information."""
        candidates = hypotheses(self.pool[None])
        return candidates, negentropy(candidates), information(candidates)

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        assert view.rounds_left is not None, "an adaptive nature is told how many rounds are left"
        candidates, negentropies, information = view.prepared
        loss = mixture_loss(posterior[:, None], candidates, negentropies)
        rounds = -negentropy(posterior)[:, None] / np.maximum(information(posterior), _ROUNDING)
        return loss * np.minimum(view.rounds_left, rounds)


class Omniscient(WorstOfPool):
    """Knows the truth, and picks the context on which the public posterior's mixture pays most.

    It leaks the truth through the context, so Bayes' optimality and the information limit do not hold
    against it. On such contexts the messages tell most: Bayes pays less than on i.i.d. ones, and
    ``adversary`` is harder.
    """

    leaks_truth: ClassVar[bool] = True

    def prepare(
        self, hypotheses: Callable[[FloatArray], FloatArray], information: Information
    ) -> Any:
        """The pool's candidates."""
        return hypotheses(self.pool[None])

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        assert view.truth is not None, "leaks_truth natures get the truth"
        return kl(
            view.truth(self.pool[None], view.prepared), mixture(posterior[:, None], view.prepared)
        )
