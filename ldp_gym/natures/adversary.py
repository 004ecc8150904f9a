"""An adversary on the public transcript."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ldp_gym.natures.base import NatureView
from ldp_gym.natures.pool import Pooled
from ldp_gym.numerics.arrays import FloatArray, mixture
from ldp_gym.numerics.divergences import negentropy

_ROUNDING = 1e-9
"""Scores, in nats, that differ by less count as equal."""


class Adversary(Pooled):
    """The context of the largest posterior-expected KL from the posterior mixture.

    With public weights w this is ``sum_k w_k KL(f_k(x), sum_j w_j f_j(x))``, the information that the round's
    label carries about the truth. It reads nothing but the public transcript, so Bayes stays optimal.
    """

    adaptive: ClassVar[bool] = True
    _kept: tuple[object, FloatArray] | None = None

    def contexts(self, view: NatureView) -> FloatArray:
        scores = self._scores(self._pool_candidates(view), view)
        scores = np.broadcast_to(scores, (len(view.rounds), len(self.pool)))
        # The first within rounding of the best: the last bit depends on the batch, the choice must not.
        best = scores >= scores.max(axis=-1, keepdims=True) - _ROUNDING
        return self.pool[best.argmax(axis=-1)][:, None]

    def _scores(self, candidates: FloatArray, view: NatureView) -> FloatArray:
        """How much each context of the pool is worth to Nature, ``(B, P)``."""
        weights = _public(view.posterior)
        spread = np.einsum("...k,...k->...", weights, negentropy(candidates))
        return spread - negentropy(mixture(weights, candidates))

    def _pool_candidates(self, view: NatureView) -> FloatArray:
        """The candidates ``(B or 1, P, K, M)`` of the pool, kept while the class stays the same."""
        if self._kept is None or self._kept[0] is not view.hypotheses:
            self._kept = (view.hypotheses, view.hypotheses(self.pool[None]))
        return self._kept[1]


def _public(posterior: FloatArray | None) -> FloatArray:
    assert posterior is not None, "an adaptive nature gets the public posterior"
    return posterior[:, None]
