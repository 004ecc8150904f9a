"""Channels that report labels or numbers in [-1, 1], against their published formulas."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from helpers import ALPHA, FINITE, TABLE, listed_law, make_channel
from scipy import stats

import ldp_gym
from ldp_gym.channels import local_hashing
from ldp_gym.channels.subset_selection import log_binomial

LONG = ("local-hashing", "half-space", "challenge")


@pytest.mark.parametrize("name", [name for name in FINITE if name not in LONG])
def test_messages_have_the_frequencies_of_their_list(name):
    """50,000 messages of a label, and of one that nobody allows: chi-square at error rate 1e-6.

    Other lists are long or samples.
    """
    channel, public = make_channel(name, 3, 4, 5), np.array([0.2, 0.5, 0.3])
    messages, density = listed_law(channel, TABLE, public if channel.adaptive else None)
    axes = tuple(range(1, messages.ndim))
    for label in (2, 3):
        sent = channel.privatize(np.full(50_000, label), TABLE, np.random.default_rng(0), public)
        counts = [np.isclose(sent, message).all(axis=axes).sum() for message in messages]
        assert sum(counts) == 50_000
        assert stats.chisquare(counts, 50_000 * density[:, label]).pvalue > ALPHA / 2


def test_the_identity_says_loudly_that_it_gives_no_privacy():
    with pytest.warns(ldp_gym.NoPrivacyWarning, match="reveals every label"):
        channel = make_channel("identity", 3, 4, 10)
    assert channel.epsilon == math.inf
    assert channel.privatize(np.array([0, 3]), TABLE, np.random.default_rng(0)).tolist() == [0, 3]


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
        assert math.isclose(
            log_binomial(n, k), math.log(math.comb(n, k)), rel_tol=1e-13, abs_tol=1e-12
        )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "name", ["randomized-response", "unary-encoding", "local-hashing", "subset-selection"]
)
def test_estimators_have_the_variance_that_the_literature_gives(name, epsilon, monkeypatch):
    """Wang et al. (2017), as in multi-freq-ldpy's ``VAR_Pure``, per user, for a label that a share f has:

    ``q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q)``, where a message fits the user's own label with
    probability p and another label with q: below, theirs of GRR, OUE, OLH and SS. Here p and q, and the
    variance of ``(fits - q) / (p - q)``, are found by listing all messages.
    """
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 300_000)  # all hashes
    channel, table = make_channel(name, 2, 8, 50, epsilon=epsilon), np.full((2, 8), 1 / 8)
    assert channel.list_messages(table).complete
    messages, density = listed_law(channel, table)
    fits = density[:, 0] > density.min(axis=-1) * math.exp(epsilon / 2)
    if name == "unary-encoding":  # ones everywhere fit all labels
        fits |= messages.all(axis=-1)
    own, other, f = density[fits, 0].sum(), density[fits, 1:].sum() / 7, 0.3
    variance = (f * own * (1 - own) + (1 - f) * other * (1 - other)) / (own - other) ** 2

    e = math.exp(epsilon)
    buckets, size = round(e) + 1, max(1, round(8 / (e + 1)))
    held = size * e / (size * e + 8 - size)
    p, q = {
        "randomized-response": (e / (e + 7), 1 / (e + 7)),
        "unary-encoding": (0.5, 1 / (e + 1)),
        "local-hashing": (e / (e + buckets - 1), 1 / buckets),
        "subset-selection": (held, ((size - 1) * held + size * (1 - held)) / 7),
    }[name]
    published = q * (1 - q) / (p - q) ** 2 + f * (1 - p - q) / (p - q)
    # Two labels collide a little less often under the hash than the 1/g of the formula.
    assert variance == pytest.approx(published, rel=0.05 if name == "local-hashing" else 1e-9)
    assert variance <= published * (1 + 1e-9)


def test_hashes_are_those_of_the_formula():
    channel = make_channel("local-hashing", 2, 300, 50)
    assert (channel.num_buckets, channel.prime) == (4, 307)
    density = channel.log_density(np.array([10, 5, 2]), np.full((2, 300), 1 / 300))
    members = [y for y in range(300) if (11 * y + 5) % 307 % 4 == 2]
    assert np.flatnonzero(density == density.max()).tolist() == members
    assert np.exp(density).max() == pytest.approx(math.e / (math.e + 3))
    assert make_channel("local-hashing", 2, 5, 50, epsilon=800.0).num_buckets == 5


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
    points, sizes = np.array([-bit, bit]), np.ones(2)
    if name == "hybrid" and epsilon > 0.61:
        reach = (math.exp(epsilon / 2) + 1) / math.expm1(epsilon / 2)
        edges = np.linspace(-reach, reach, 400_001)
        points = np.append(points, (edges[1:] + edges[:-1]) / 2)
        sizes = np.append(sizes, np.diff(edges))
    found = []
    for value in np.linspace(-1, 1, 11):
        weights = channel.report_density(points, np.full(len(points), value)) * sizes
        total, mean, square = (weights @ points**power for power in range(3))
        assert abs(total - 1) < 1e-4
        assert abs(mean - value) < 1e-3
        found.append(square - mean**2)
    assert math.isclose(max(found), variance, rel_tol=5e-3)
    rng, count = np.random.default_rng(0), 200_000
    reports = channel.randomize(np.full(count, 0.4), rng.random((count, channel.num_uniforms - 3)))
    assert abs(reports.mean() - 0.4) < stats.norm.isf(ALPHA / 2) * reports.std() / math.sqrt(count)


def test_labels_agree_with_a_report_by_hand():
    """The first row's ``pbar`` is largest for label 0 and least for label 2; h_t never goes to label 3."""
    channel = make_channel("one-bit", 3, 4, 50)
    low, high = channel.list_messages(TABLE).messages[:2]
    lengths = 4 * TABLE.max(axis=0)[:3]
    levels = np.log(0.98 * TABLE[0, :3] / lengths + 0.02 / lengths.sum())
    shares = (levels - levels.min()) / np.ptp(levels)
    np.testing.assert_allclose(channel.agreement(high, TABLE), [*shares, 0.5], atol=1e-12)
    np.testing.assert_allclose(channel.agreement(low, TABLE), [*(1 - shares), 0.5], atol=1e-12)
    points = make_channel("hybrid", 3, 4, 50).report_agreement(
        np.array([-1.6, -1.5, 1.5, 1.6]), np.zeros(4)
    )
    assert points.tolist() == [0.0, 1.0, 1.0, 0.0]  # the interval of t = 0 is [-1.54, 1.54]


def test_a_list_of_hashes_takes_no_memory_per_label():
    channel, table = (
        make_channel("local-hashing", 2, 3000, 50, epsilon=3.0),
        np.full((2, 3000), 1 / 3000),
    )
    tracemalloc.start()
    listed = channel.list_messages(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * listed.messages.nbytes
