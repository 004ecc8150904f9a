"""Channels that report labels or numbers in [-1, 1], against their published formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import ALPHA, TABLE, make_channel
from scipy import stats
from scipy.linalg import hadamard

import ldp_gym
from ldp_gym.channels import local_hashing
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.channels.subset_selection import log_binomial


def test_randomized_response_sums_to_one_and_keeps_as_section_3_says():
    channel = RandomizedResponse(3, 4, 10, epsilon=1.5)
    density = np.exp(channel.log_density(np.arange(4), TABLE))
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-12)
    keep = math.exp(1.5) / (math.exp(1.5) + 3)
    np.testing.assert_allclose(np.diag(density), keep, rtol=1e-12)
    np.testing.assert_allclose(density[~np.eye(4, dtype=bool)], 1 / (math.exp(1.5) + 3), rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["randomized-response", "identity", "hadamard-response", "subset-selection", "unary-encoding"]
)
def test_messages_have_the_frequencies_of_their_density(name):
    """100,000 messages of one label: chi-square at error rate 1e-6."""
    channel = make_channel(name, 3, 4, 5)
    messages = channel.list_messages(TABLE).messages
    sent = channel.privatize(np.full(100_000, 2), TABLE, np.random.default_rng(0))
    axes = tuple(range(1, messages.ndim))
    counts = np.array([(sent == message).all(axis=axes).sum() for message in messages])
    chances = np.exp(channel.log_density(messages, TABLE)[:, 2])
    assert counts.sum() == 100_000
    assert (counts[chances == 0.0] == 0).all()
    if name != "identity":
        assert stats.chisquare(counts, 100_000 * chances).pvalue > ALPHA


def test_the_identity_says_loudly_that_it_gives_no_privacy():
    with pytest.warns(ldp_gym.NoPrivacyWarning, match="reveals every label"):
        channel = make_channel("identity", 3, 4, 10)
    assert channel.epsilon == math.inf
    assert channel.privatize(np.array([0, 3]), TABLE, np.random.default_rng(0)).tolist() == [0, 3]


def test_hadamard_response_against_the_matrix():
    channel = make_channel("hadamard-response", 3, 4, 50, epsilon=1.2)
    matrix = hadamard(8)[1:5] > 0
    density = np.exp(channel.log_density(np.arange(8), TABLE)).T
    np.testing.assert_allclose(density, np.where(matrix, math.exp(1.2), 1.0) / (4 * (1 + math.exp(1.2))))


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


LABELS, FREQUENCY = 8, 0.3


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "name", ["randomized-response", "unary-encoding", "local-hashing", "subset-selection"]
)
def test_estimators_have_the_variance_that_the_literature_gives(name, epsilon, monkeypatch):
    """Wang et al. (2017), as in multi-freq-ldpy's ``VAR_Pure``, per user, for a label that a share f has:

    ``q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q)``

    where a message fits the user's own label with probability p and another label with q. Their p and q:
    GRR ``e^eps / (e^eps + M - 1)`` and ``1 / (e^eps + M - 1)``; OUE 1/2 and ``1 / (e^eps + 1)``; OLH
    ``e^eps / (e^eps + g - 1)`` and 1/g with ``g = round(e^eps) + 1``; SS with w labels in a set,
    ``w e^eps / (w e^eps + M - w)`` and ``((w - 1) p + w (1 - p)) / (M - 1)``. Here they are found by
    listing all messages, and so is the variance of ``(fits - q) / (p - q)``.
    """
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 300_000)  # all hashes
    channel = ldp_gym.CHANNELS[name](2, LABELS, 50, epsilon=epsilon)
    law = np.full(LABELS, (1 - FREQUENCY) / (LABELS - 1))
    law[0] = FREQUENCY
    listed = channel.list_messages(np.stack([law, law]))
    assert listed.complete
    log_density = channel.log_density(listed.messages, np.stack([law, law]))
    density = np.exp(log_density + listed.log_weights[:, None])
    fits = log_density[:, 0] > log_density.min(axis=-1) + epsilon / 2
    fits |= (log_density.max(axis=-1) - log_density.min(axis=-1) < 1e-9) & _says_yes(name, listed.messages)
    own, other = density[fits, 0].sum(), density[fits, 1:].sum() / (LABELS - 1)
    variance = FREQUENCY * own * (1 - own) + (1 - FREQUENCY) * other * (1 - other)
    variance /= (own - other) ** 2

    e = math.exp(epsilon)
    buckets, size = round(e) + 1, max(1, round(LABELS / (e + 1)))
    p, q = {
        "randomized-response": (e / (e + LABELS - 1), 1 / (e + LABELS - 1)),
        "unary-encoding": (0.5, 1 / (e + 1)),
        "local-hashing": (e / (e + buckets - 1), 1 / buckets),
        "subset-selection": (size * e / (size * e + LABELS - size), None),
    }[name]
    q = ((size - 1) * p + size * (1 - p)) / (LABELS - 1) if q is None else q
    published = q * (1 - q) / (p - q) ** 2 + FREQUENCY * (1 - p - q) / (p - q)
    # Two labels collide a little less often under the hash than the 1/g of the formula.
    assert variance == pytest.approx(published, rel=0.05 if name == "local-hashing" else 1e-9)
    assert variance <= published * (1 + 1e-9)


def _says_yes(name, messages):
    """Of messages that fit all labels or none: which fit the first."""
    return messages[:, 0] == 1 if name == "unary-encoding" else np.zeros(len(messages), dtype=bool)


def test_unary_encoding_is_subset_selection_of_random_size():
    """Given the number of ones, all sets of this size are alike but for whether they hold the label."""
    channel = ldp_gym.CHANNELS["unary-encoding"](2, 6, 50, epsilon=1.3)
    table = np.full((2, 6), 1 / 6)
    messages = channel.list_messages(table).messages
    density = np.exp(channel.log_density(messages, table))
    for size in range(7):
        rows = messages.sum(axis=-1) == size
        total = density[rows].sum(axis=0)
        np.testing.assert_allclose(total, total[0])  # the size says nothing about the label
        for held, value in ((1, math.exp(1.3)), (0, 1.0)):
            values = density[rows][messages[rows] == held]
            np.testing.assert_allclose(values, values[0] if len(values) else value)


def test_hashes_are_those_of_the_formula():
    channel = ldp_gym.CHANNELS["local-hashing"](2, 300, 50, epsilon=1.0)
    assert (channel.num_buckets, channel.prime) == (4, 307)
    message = np.array([10, 5, 2])
    table = np.full((2, 300), 1 / 300)
    members = [y for y in range(300) if (11 * y + 5) % 307 % 4 == 2]
    density = channel.log_density(message, table)
    assert np.flatnonzero(density == density.max()).tolist() == members
    assert np.exp(density).max() == pytest.approx(math.e / (math.e + 3))

    assert ldp_gym.CHANNELS["local-hashing"](2, 5, 50, epsilon=800.0).num_buckets == 5


@pytest.mark.parametrize(
    ("name", "epsilon", "variance"),
    [
        ("one-bit", 0.1, 400.7), ("one-bit", 1.0, 4.68), ("one-bit", 4.0, 1.08),
        ("hybrid", 0.1, 400.7), ("hybrid", 1.0, 4.29), ("hybrid", 4.0, 0.219),
    ],
)  # fmt: skip
def test_reports_are_unbiased_and_have_their_worst_case_variance(name, epsilon, variance):
    """Moments by the densities themselves: atoms, and Riemann sums of the piecewise part."""
    channel = make_channel(name, 3, 4, 50, epsilon=epsilon)
    bit = (math.exp(epsilon) + 1) / math.expm1(epsilon)
    atoms = np.array([-bit, bit])
    piecewise = name == "hybrid" and epsilon > 0.61
    reach = (math.exp(epsilon / 2) + 1) / math.expm1(epsilon / 2)
    grid = np.linspace(-reach, reach, 400_001)
    grid = (grid[1:] + grid[:-1]) / 2
    cell = 2 * reach / 400_000
    found = []
    for value in np.linspace(-1, 1, 11):
        weights = channel.report_density(atoms, np.full(2, value))
        moments = [weights.sum(), weights @ atoms, weights @ atoms**2]
        if piecewise:
            smooth = channel.report_density(grid, np.full(len(grid), value)) * cell
            moments = [m + smooth @ grid**k for k, m in enumerate(moments)]
        assert abs(moments[0] - 1) < 1e-4
        assert abs(moments[1] - value) < 1e-3
        found.append(moments[2] - moments[1] ** 2)
        assert moments[2] <= channel.mean_square * (1 + 1e-3)
    assert math.isclose(max(found), variance, rel_tol=5e-3)
    assert math.isclose(moments[2], channel.mean_square, rel_tol=1e-3), "at t = 1"


@pytest.mark.parametrize("name", ["one-bit", "hybrid"])
def test_randomized_reports_follow_their_density(name):
    channel = make_channel(name, 3, 4, 50, epsilon=2.0)
    rng = np.random.default_rng(0)
    reports = channel.randomize(np.full(200_000, 0.4), rng.random((200_000, channel.num_uniforms - 3)))
    assert abs(reports.mean() - 0.4) < stats.norm.isf(ALPHA / 2) * reports.std() / math.sqrt(200_000)
