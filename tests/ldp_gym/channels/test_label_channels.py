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
    channel = make_channel(name, 3, 4, 5)
    public = np.array([0.2, 0.5, 0.3])
    messages, density = listed_law(channel, TABLE, public if channel.adaptive else None)
    axes = tuple(range(1, messages.ndim))
    for label in (2, 3):
        sent = channel.privatize(np.full(50_000, label), TABLE, np.random.default_rng(0), public)
        counts = [np.isclose(sent, message).all(axis=axes).sum() for message in messages]
        assert sum(counts) == 50_000
        assert stats.chisquare(counts, 50_000 * density[:, label]).pvalue > ALPHA / 2


def test_the_identity_warns_that_it_gives_no_privacy():
    with pytest.warns(ldp_gym.NoPrivacyWarning, match="reveals every label"):
        channel = make_channel("identity", 3, 4, 10)
    assert channel.epsilon == math.inf


@pytest.mark.filterwarnings("ignore::ldp_gym.NoPrivacyWarning")
def test_the_identity_sends_the_label():
    channel = make_channel("identity", 3, 4, 10)
    messages = channel.privatize(np.array([0, 3]), TABLE, np.random.default_rng(0))
    assert messages.tolist() == [0, 3]


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
    channel = make_channel(name, 2, 8, 50, epsilon=epsilon)
    table = np.full((2, 8), 1 / 8)
    assert channel.list_messages(table).complete
    messages, density = listed_law(channel, table)
    fits = density[:, 0] > density.min(axis=-1) * math.exp(epsilon / 2)
    if name == "unary-encoding":  # ones everywhere fit all labels
        fits |= messages.all(axis=-1)
    own = density[fits, 0].sum()
    other = density[fits, 1:].sum() / 7
    f = 0.3
    variance = (f * own * (1 - own) + (1 - f) * other * (1 - other)) / (own - other) ** 2

    e = math.exp(epsilon)
    buckets = round(e) + 1
    size = max(1, round(8 / (e + 1)))
    held = size * e / (size * e + 8 - size)
    p, q = {
        "randomized-response": (e / (e + 7), 1 / (e + 7)),
        "unary-encoding": (0.5, 1 / (e + 1)),
        "local-hashing": (e / (e + buckets - 1), 1 / buckets),
        "subset-selection": (held, ((size - 1) * held + size * (1 - held)) / 7),
    }[name]
    published = q * (1 - q) / (p - q) ** 2 + f * (1 - p - q) / (p - q)
    # Two labels collide a little less often under the hash than the 1/g of the formula.
    tolerance = {"local-hashing": 0.05}.get(name, 1e-9)
    assert variance == pytest.approx(published, rel=tolerance)
    assert variance <= published * (1 + 1e-9)


def test_the_hash_of_300_labels_has_4_buckets_at_eps_1_and_the_next_prime():
    channel = make_channel("local-hashing", 2, 300, 50)
    assert channel.num_buckets == 4
    assert channel.prime == 307


def test_there_are_at_most_as_many_buckets_as_labels():
    assert make_channel("local-hashing", 2, 5, 50, epsilon=800.0).num_buckets == 5


def test_hashes_are_those_of_the_formula():
    """A message is (multiplier - 1, offset, bucket)."""
    channel = make_channel("local-hashing", 2, 300, 50)
    message = np.array([10, 5, 2])
    density = channel.log_density(message, np.full((2, 300), 1 / 300))
    labels_in_the_bucket = [y for y in range(300) if (11 * y + 5) % 307 % 4 == 2]
    assert np.flatnonzero(density == density.max()).tolist() == labels_in_the_bucket


def test_a_label_in_the_bucket_names_it_with_probability_e_over_e_plus_3():
    channel = make_channel("local-hashing", 2, 300, 50)
    density = channel.log_density(np.array([10, 5, 2]), np.full((2, 300), 1 / 300))
    assert np.exp(density).max() == pytest.approx(math.e / (math.e + 3))


def points_of_reports(name, epsilon):
    """Return the points at which reports are summed, and the size of each: 1 of an atom, else a width."""
    bit = (math.exp(epsilon) + 1) / math.expm1(epsilon)
    atoms = np.array([-bit, bit])
    sizes_of_atoms = np.ones(2)
    mixes_in_real_reports = name == "hybrid" and epsilon > 0.61
    if not mixes_in_real_reports:
        return atoms, sizes_of_atoms

    reach = (math.exp(epsilon / 2) + 1) / math.expm1(epsilon / 2)
    edges = np.linspace(-reach, reach, 400_001)
    middles = (edges[1:] + edges[:-1]) / 2
    return np.append(atoms, middles), np.append(sizes_of_atoms, np.diff(edges))


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
    points, sizes = points_of_reports(name, epsilon)
    variances = []
    for value in np.linspace(-1, 1, 11):
        weights = channel.report_density(points, np.full(len(points), value)) * sizes
        mean = weights @ points
        assert abs(weights.sum() - 1) < 1e-4
        assert abs(mean - value) < 1e-3
        variances.append(weights @ points**2 - mean**2)
    assert math.isclose(max(variances), variance, rel_tol=5e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", ["one-bit", "hybrid"])
def test_drawn_reports_are_unbiased(name, epsilon):
    """The mean of 200,000 reports of the value 0.4, by a z-test at error rate 1e-6."""
    channel = make_channel(name, 3, 4, 50, epsilon=epsilon)
    rng = np.random.default_rng(0)
    count = 200_000
    coins = rng.random((count, channel.num_uniforms - 3))  # without the 3 that make a label a value
    reports = channel.randomize(np.full(count, 0.4), coins)
    standard_error = reports.std() / math.sqrt(count)
    assert abs(reports.mean() - 0.4) < stats.norm.isf(ALPHA / 2) * standard_error


def shares_of_the_way_up():
    """Log-likelihoods of labels 0, 1 and 2 under hypothesis 0, scaled to 0 at the least and 1 at the largest.

    Section 4 at T = 50: ``pbar_0(y) = 0.98 p_0(y) / l(y) + 0.02 / L``. A label's cell has the length
    ``l(y) = 4 max_k p_k(y)``, here 2.0, 3.6 and 3.2, and ``L = 8.8`` is their sum.
    """
    pbar_of_label_0 = 0.98 * 0.5 / 2.0 + 0.02 / 8.8
    pbar_of_label_1 = 0.98 * 0.3 / 3.6 + 0.02 / 8.8
    pbar_of_label_2 = 0.98 * 0.2 / 3.2 + 0.02 / 8.8
    largest = math.log(pbar_of_label_0 / pbar_of_label_2)
    share_of_label_1 = math.log(pbar_of_label_1 / pbar_of_label_2) / largest
    assert 0.205 < share_of_label_1 < 0.206
    return np.array([1.0, share_of_label_1, 0.0])


def test_a_high_bit_agrees_with_a_label_by_its_log_likelihood():
    """Label 3, which no hypothesis allows, is replaced by another one before the report: 1/2."""
    channel = make_channel("one-bit", 3, 4, 50)
    high_bit_about_hypothesis_0 = channel.list_messages(TABLE).messages[1]
    agreement = channel.agreement(high_bit_about_hypothesis_0, TABLE)
    np.testing.assert_allclose(agreement, [*shares_of_the_way_up(), 0.5], atol=1e-12)


def test_a_low_bit_agrees_with_a_label_where_a_high_bit_does_not():
    channel = make_channel("one-bit", 3, 4, 50)
    low_bit_about_hypothesis_0 = channel.list_messages(TABLE).messages[0]
    agreement = channel.agreement(low_bit_about_hypothesis_0, TABLE)
    np.testing.assert_allclose(agreement, [*(1 - shares_of_the_way_up()), 0.5], atol=1e-12)


def test_a_hybrid_report_agrees_with_the_value_0_inside_its_interval():
    """At eps = 1 the likely reports of the value 0 are those in [-1.54, 1.54]."""
    channel = make_channel("hybrid", 3, 4, 50)
    reports = np.array([-1.6, -1.5, 1.5, 1.6])
    values = np.zeros(4)
    assert channel.report_agreement(reports, values).tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_list_of_hashes_takes_no_memory_per_label():
    channel = make_channel("local-hashing", 2, 3000, 50, epsilon=3.0)
    table = np.full((2, 3000), 1 / 3000)

    tracemalloc.start()
    listed = channel.list_messages(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 10 * listed.messages.nbytes
