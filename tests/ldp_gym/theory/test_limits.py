"""The information limit; Bayes is the best learner on every channel; and cut labels cost some nothing."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, LOSSLESS, delta_of, totals
from scipy import stats

from ldp_gym import theory


@pytest.mark.parametrize("channel", CHANNELS)
def test_bayes_has_the_least_risk_on_every_channel(channel):
    """200 paired episodes; another learner that were better would show at error rate 1e-6."""
    game = {"hypotheses": "dirichlet", "channel": channel, "delta": delta_of(channel), "horizon": 200}
    bayes = totals("bayes", game, 200)
    for learner in ("uniform", "centred-exp3", "mle", *(["exp3"] if channel not in LOSSLESS else [])):
        other = totals(learner, game, 200)
        assert stats.ttest_rel(bayes, other, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(("size", "limit"), [(8, 18.6), (32, 50.4), (128, 97.9)])
def test_the_information_limit(size, limit):
    terms = np.maximum(0.0, math.log(size) - np.arange(1000) * theory.capacity(1.0))
    for rounds in (3, 1000):
        found = theory.information_limit(size, rounds, 1.0)
        assert math.isclose(found, terms[:rounds].sum(), rel_tol=1e-12)
    assert round(found, 1) == limit
