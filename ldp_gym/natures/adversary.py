"""An adversary on the public transcript."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ldp_gym.core.arrays import FloatArray, mixture
from ldp_gym.core.divergences import negentropy
from ldp_gym.natures.base import Information, NatureView
from ldp_gym.natures.pool import PoolNature

_ROUNDING = 1e-9
"""Scores, in nats, that differ by less, or by less of themselves, count as equal."""

_SMALLEST = 1e-9
"""What a message is taken to tell at least, in nats: less is rounding."""


class WorstOfPool(PoolNature):
    """The context of the pool with the largest score: adversaries differ in nothing but their score."""

    adaptive: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        """How much each context of the pool is worth to Nature, ``(B, P)``, under posteriors ``(B, K)``."""

    def contexts(self, view: NatureView) -> FloatArray:
        assert view.posterior is not None, "an adaptive nature gets the public posterior"
        scores = self._scores(view, view.posterior)
        scores = np.broadcast_to(scores, (len(view.rounds), len(self.pool)))
        # The first within rounding of the best: the last bit depends on the batch, the choice must not.
        best = scores * (1.0 + _ROUNDING) + _ROUNDING >= scores.max(axis=-1, keepdims=True)
        return self.pool[best.argmax(axis=-1)][:, None]


class Adversary(WorstOfPool):
    """The context of a pool on which learning costs most, judged from the public transcript.

    A context of large KL alone is no threat: there the message tells much as well, and the learner soon knows
    the truth. This one plays the context that maximises

    ``E KL(x) * min(rounds left, H / I(x))``,

    with w the public posterior and H its entropy. Bayes expects to be charged
    ``E KL(x) = sum_k w_k KL(f_k(x), sum_j w_j f_j(x))`` in the round. ``I(x)`` is what the round's message is
    expected to tell: about ``H / I(x)`` such rounds tell the truth.

    It reads nothing but the public transcript, so Bayes stays optimal and the information limit holds. It
    looks at one round at a time, and at nothing beyond its pool: a strong heuristic, not the supremum over
    all sequences of contexts. :func:`ldp_gym.bench.search.hardest_contexts` looks for that one, from below.
    """

    def prepare(self, hypotheses: Callable[[FloatArray], FloatArray], information: Information) -> Any:
        """The pool's candidates ``(..., P, K, M)``, their negentropies, and what messages tell there."""
        candidates = hypotheses(self.pool[None])
        return candidates, negentropy(candidates), information(candidates)

    def _scores(self, view: NatureView, posterior: FloatArray) -> FloatArray:
        assert view.rounds_left is not None, "an adaptive nature is told how many rounds are left"
        candidates, negentropies, information = view.prepared
        weights = posterior[:, None]
        charge = np.einsum("...k,...k->...", weights, negentropies)
        charge = charge - negentropy(mixture(weights, candidates))
        rounds = -negentropy(posterior)[:, None] / np.maximum(information(posterior), _SMALLEST)
        return charge * np.minimum(view.rounds_left, rounds)
