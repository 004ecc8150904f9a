"""How close the channels come to what is possible, and that Bayes is the best learner on each of them."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, FREE_OF_NUM_LABELS, delta_of
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_gym import theory


@pytest.mark.parametrize(
    ("channel", "factors"),
    [("wheel", (1.75, 1.5)), ("adaptive-groups", (1.55, 1.4))],
)
def test_a_channel_comes_within_a_factor_of_the_limit(channel, factors):
    """The factors of the documentation, measured on 4,000 episodes; a risk above them fails at 1e-6."""
    for size, factor in zip((8, 32), factors, strict=True):
        game = {"hypotheses": "disjoint", "num_hypotheses": size, "channel": channel, "horizon": 500}
        totals = ldp_gym.evaluate("bayes", game, episodes=400).kl[:, -1]
        least = totals.mean() - stats.norm.isf(1e-6) * stats.sem(totals)
        assert least < factor * theory.information_limit(size, 500, 1.0)


@pytest.mark.parametrize("channel", CHANNELS)
def test_bayes_has_the_least_risk_on_every_channel(channel):
    """200 paired episodes; another learner that were better would show at error rate 1e-6."""
    game = {"hypotheses": "dirichlet", "channel": channel, "delta": delta_of(channel), "horizon": 200}
    bayes = ldp_gym.evaluate("bayes", game, episodes=200).kl[:, -1]
    compared = 0
    for learner in ("uniform", "exp3", "centred-exp3", "mle"):
        try:
            other = ldp_gym.evaluate(learner, game, episodes=200).kl[:, -1]
        except ldp_agents.IncompatibleChannelError:
            continue
        assert stats.ttest_rel(bayes, other, alternative="greater").pvalue > 1e-6
        compared += 1
    assert compared >= 2


def refined_totals(channel, labels, horizon, episodes):
    kind = {"hypotheses": "refined", "hypotheses_kwargs": {"base": "dirichlet", "parts": labels // 16}}
    game = {**kind, "num_labels": labels, "channel": channel, "horizon": horizon}
    return ldp_gym.evaluate("bayes", game, episodes=episodes).kl[:, -1]


@pytest.mark.parametrize(
    ("channel", "labels", "rounds", "episodes"),
    [(channel, 1600, 40, 8) for channel in FREE_OF_NUM_LABELS]
    + [(channel, 100_000, 15, 2) for channel in ("laplace-single", "split", "adaptive-groups")],
)
def test_m_free_channels_keep_their_risk_when_labels_are_cut(channel, labels, rounds, episodes):
    """A label is cut into parts and its message is the same: so is the risk, episode by episode."""
    coarse, fine = (refined_totals(channel, cut, rounds, episodes) for cut in (16, labels))
    np.testing.assert_allclose(fine, coarse, rtol=1e-6)


def test_randomized_response_pays_for_every_cut():
    """100 paired episodes of 300 rounds: at M = 1,600 it costs more, at error rate 1e-6."""
    coarse, fine = (refined_totals("randomized-response", labels, 300, 100) for labels in (16, 1600))
    assert stats.ttest_rel(fine, coarse, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize(("size", "limit"), [(8, 18.6), (32, 50.4), (128, 97.9)])
def test_the_information_limit(size, limit):
    terms = np.maximum(0.0, math.log(size) - np.arange(1000) * theory.capacity(1.0))
    for rounds in (3, 1000):
        found = theory.information_limit(size, rounds, 1.0)
        assert math.isclose(found, terms[:rounds].sum(), rel_tol=1e-12)
    assert round(found, 1) == limit
