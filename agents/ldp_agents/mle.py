"""Follow the leader: the maximum-likelihood hypothesis, as a contrast to Bayes."""

from __future__ import annotations

import numpy as np

from ldp_agents.base import SmoothedLearner
from ldp_agents.bayes import Bayes
from ldp_gym.core.arrays import FloatArray

_TIE = 1e-9
"""Difference of log-likelihoods, in nats, below which hypotheses tie."""


class MLE(SmoothedLearner, Bayes):
    """Predicts what the likeliest hypothesis says (the mean of those that tie), smoothed by 1/T.

    It trusts its leader from the first message on, and pays for it: the smoothing keeps the KL finite, not
    small.
    """

    def _weigh(self, totals: FloatArray, axis: int) -> FloatArray:
        leads = (totals <= totals.min(axis=axis, keepdims=True) + _TIE).astype(np.float64)
        return leads / leads.sum(axis=axis, keepdims=True)
