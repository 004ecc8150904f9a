"""The channels that report labels."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import TABLE, make_channel

import ldp_gym
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.channels.subset_selection import log_binomial


def test_randomized_response_sums_to_one_and_keeps_as_section_3_says():
    channel = RandomizedResponse(3, 4, 10, epsilon=1.5)
    density = np.exp(channel.log_density(np.arange(4), TABLE))
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-12)
    keep = math.exp(1.5) / (math.exp(1.5) + 3)
    np.testing.assert_allclose(np.diag(density), keep, rtol=1e-12)
    others = density[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose(others, 1 / (math.exp(1.5) + 3), rtol=1e-12)


def test_the_identity_says_loudly_that_it_gives_no_privacy():
    with pytest.warns(ldp_gym.NoPrivacyWarning, match="reveals every label"):
        channel = make_channel("identity", 3, 4, 10)
    assert channel.epsilon == math.inf
    assert channel.privatize(np.array([0, 3]), TABLE, np.random.default_rng(0)).tolist() == [0, 3]


def test_hadamard_response_against_the_matrix():
    from scipy.linalg import hadamard

    channel = make_channel("hadamard-response", 3, 4, 50, epsilon=1.2)
    matrix = hadamard(8)[1:5] > 0
    density = np.exp(channel.log_density(np.arange(8), TABLE)).T
    np.testing.assert_allclose(density, np.where(matrix, math.exp(1.2), 1.0) / (4 * (1 + math.exp(1.2))))


def test_label_channels_pay_for_refinement():
    """Randomized response tells less about the truth with every cut; a comparison does not."""
    base = np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=4)
    rates = {}
    for name in ("randomized-response", "split"):
        for parts in (1, 16):
            table = np.repeat(base, parts, axis=-1) / parts
            channel = make_channel(name, *table.shape, 50)
            rng = np.random.default_rng(1)
            labels = rng.choice(table.shape[1], size=20_000, p=table[0])
            gain = channel.log_likelihood(channel.privatize(labels, table, rng), table)
            rates[name, parts] = (gain[:, :1] - gain[:, 1:]).mean()
    assert rates["randomized-response", 16] < 0.3 * rates["randomized-response", 1]
    assert rates["split", 16] > 0.8 * rates["split", 1]


@pytest.mark.parametrize("num_labels", [10, 1000, 10**6, 10**8])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_subset_selection_keeps_its_promise_exactly(num_labels, epsilon):
    """By fractions: a set with the label is sent e^eps times as often as one without it, to rounding."""
    channel = make_channel("subset-selection", 2, num_labels, 10, epsilon=epsilon)
    hold, size = Fraction(channel.holding), channel.size
    ratio = hold / size / ((1 - hold) / (num_labels - size))
    assert abs(math.log(ratio) - epsilon) < 1e-14 / float(1 - hold)


@pytest.mark.parametrize("n", [1, 2, 9, 40, 1000, 5000])
def test_binomials_against_whole_numbers(n):
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        assert math.isclose(log_binomial(n, k), math.log(math.comb(n, k)), rel_tol=1e-13, abs_tol=1e-12)
