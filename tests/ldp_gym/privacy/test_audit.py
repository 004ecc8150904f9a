"""The audits: known answers, brute force, negative controls, and channels broken by hand."""

import itertools
import math
import re

import gymnasium as gym
import numpy as np
import pytest
from adversarial_classes import audit as audit_classes
from adversarial_classes import draw_table
from broken_channels import ClearText, HonestLaplace, RareClearText, less_noise
from helpers import ALPHA, CHANNELS, PURE, clipped_by_hand, make_channel
from scipy.optimize import brentq

import ldp_gym
from ldp_gym import audit
from ldp_gym.audit import certify, estimate_epsilon, exact_delta, exact_epsilon
from ldp_gym.channels.accounting import gaussian_delta
from ldp_gym.channels.base import Channel
from ldp_gym.channels.noisy import GaussianVector, LaplaceSingle, LaplaceVector
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import BrokenPromiseError, BrokenPromiseWarning
from ldp_gym.core.sampling import categorical, normal
from ldp_gym.privacy import densities
from ldp_gym.privacy.densities import beyond_worst_case
from ldp_gym.privacy.misfit import find_misfit
from ldp_gym.testing import check_channel

THREE = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
FIVE = np.array([[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]])
EIGHT = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
TIGHT = {"epsilon": 1.0, "delta": 1e-5, "calibration": "tight"}
"""Options of a channel whose noise is as small as its promise allows."""


def test_every_pure_channel_keeps_its_promise_on_adversarial_classes():
    assert audit_classes(100, seed=1) == []


@pytest.mark.parametrize(
    ("table", "horizon", "epsilon"), [(THREE, 100, 1.0167), (FIVE, 1000, 1.0333)]
)
def test_the_paper_s_ceilings_break_the_promise(table, horizon, epsilon):
    literal = certify(LaplaceSingle(*table.shape, horizon, clipping="paper"), table)
    assert round(literal.epsilon, 4) == epsilon
    assert not literal.holds


@pytest.mark.parametrize(("table", "horizon"), [(THREE, 100), (FIVE, 1000)])
def test_clipping_without_ceilings_keeps_the_promise(table, horizon):
    assert certify(LaplaceSingle(*table.shape, horizon), table).holds


@pytest.mark.parametrize("calibration", ["paper", "tight"])
@pytest.mark.parametrize("seed", range(20))
def test_the_extrema_are_those_of_all_breakpoints_tails_and_a_fine_grid(seed, calibration):
    """Brute force: every breakpoint, far tails and 2,000 points between, in each coordinate."""
    rng = np.random.default_rng(seed)
    table = draw_table(rng)[:5]
    options = {"clipping": str(rng.choice(["continuous", "paper"])), "calibration": calibration}
    horizon, epsilon = int(rng.integers(2, 500)), float(rng.uniform(0.1, 8))
    channel = LaplaceSingle(*table.shape, horizon, epsilon=epsilon, **options)
    found = exact_epsilon(channel, table)
    cells, noise = channel.clipping.cells(table), channel.noise(table)
    levels = np.log(channel.clipping.density(table, cells.lengths, cells.total))[
        :, cells.lengths > 0
    ]
    worst = 0.0
    for j, scale in enumerate(noise.scale):
        ends = levels[j].min() - 30 * scale, levels[j].max() + 30 * scale
        values = np.concatenate([levels[j], np.linspace(*ends, 2000)])
        messages = (
            channel.to_loss(values, noise.offset, noise.slope)[:, None] * np.eye(len(table))[j]
        )
        worst = max(worst, np.ptp(channel.log_density(messages, table), axis=-1).max())
    assert math.isclose(found.epsilon, worst, rel_tol=1e-9, abs_tol=1e-9)
    y, other = found.labels
    density = channel.log_density(found.message, table)
    assert math.isclose(density[y] - density[other], found.epsilon, rel_tol=1e-12)


@pytest.mark.parametrize("name", sorted(set(PURE) - {"laplace-single"}))
def test_the_extrema_are_those_of_all_messages(name):
    table = np.random.default_rng(5).dirichlet(np.full(5, 0.4), size=3)
    channel = make_channel(name, *table.shape, 10, epsilon=1.3)
    public = np.array([0.2, 0.5, 0.3]) if channel.adaptive else None
    density = channel.log_density(channel.list_messages(table, public).messages, table, public)
    expected = pytest.approx(np.ptp(density, axis=-1).max(), rel=1e-12)
    assert exact_epsilon(channel, table, public).epsilon == expected


def test_an_audit_in_parts_finds_the_same(monkeypatch):
    """One message at a time; here all at once. A density that sums to one passes in parts too."""
    monkeypatch.setattr(densities, "MOST_DENSITIES", 1)
    table = np.random.default_rng(0).dirichlet(np.ones(15), size=4)
    densities.check_totals(
        make_channel("adaptive-groups", 4, 15, 9), table, np.array([0.4, 0.3, 0.2, 0.1])
    )
    channel = make_channel("hybrid", *table.shape, 100)
    messages = channel.worst_case_messages(table)
    spread = np.ptp(channel.log_density(messages, table), axis=-1)
    found = exact_epsilon(channel, table)
    assert found.epsilon == spread.max()
    assert np.array_equal(found.message, messages[spread.argmax()])


SAMPLED = {"laplace-single", "half-space", "local-hashing"}
"""Channels whose messages are too many to list."""

REAL = {"laplace-vector", "gaussian-vector", "hybrid"}
"""Channels whose messages are real numbers, with bounds on delta."""

PUBLIC = np.array([0.45, 0.35, 0.2])


def answers(gaps, chances):
    """Law of a random question's answer, flipped for eps = 1: no where a gap ``(n, M)`` is below 0."""
    yes = 0.5 + np.sign(gaps) * (math.e / (math.e + 1) - 0.5)
    return np.concatenate([yes, 1.0 - yes]) * np.tile(chances, 2)[:, None]


def gap_of(table, left, weights=(1.0, 1.0, 1.0)):
    """Mean probability of labels on one side of the hypotheses, minus that on the other side."""
    on_left = np.isin(range(3), left)
    weights = np.array(weights)
    mean_of_left = np.average(table[on_left], axis=0, weights=weights[on_left])
    mean_of_right = np.average(table[~on_left], axis=0, weights=weights[~on_left])
    return mean_of_left - mean_of_right


def adaptive_gap(table, order):
    """The first hypotheses of an order, up to half of the posterior by their centres, against the others."""
    centres = np.cumsum(PUBLIC[order]) - PUBLIC[order] / 2
    left = order[:1]
    if centres[1] < 0.5:
        left = order[:2]
    return gap_of(table, left, PUBLIC)


def law_of_wheel(favourites, chances, order):
    """Law of the arc's start, ``(n, M)``, where hypotheses stand on a circle of length 1 in this order.

    Each stands in the middle of a part as long as its chance of a vote. Label y votes for ``favourites[y]``;
    an arc that covers this hypothesis is e times as likely.
    """
    arc = min(max(chances.max(), 1 / (math.e - 1) ** 2), 0.5)
    places = np.empty(3)
    places[order] = np.cumsum(chances[order]) - chances[order] / 2
    # Between two neighbouring starts the arc covers the same hypotheses.
    starts = np.unique(np.concatenate([[0.0], places, places - arc]) % 1.0)
    ends = np.append(starts[1:], 1.0)
    middles = (starts + ends) / 2
    covers = (places - middles[:, None]) % 1.0 <= arc
    density = np.where(covers[:, favourites], math.e, 1.0) / (arc * math.e + 1 - arc)
    return density * (ends - starts)[:, None]


def values_of_one_bit(table):
    """The number in [-1, 1] that a bit reports, by hypothesis and label, ``(3, 6)``, at T = 50.

    The clipped log-likelihoods, scaled to [-1, 1], shrunk by tanh(1/2), with labels exchanged once in 50.
    """
    clipped, lengths = clipped_by_hand(table, 50)
    log_likelihoods = np.log(clipped)
    least = log_likelihoods.min(axis=1, keepdims=True)
    ranges = np.ptp(log_likelihoods, axis=1)[:, None]
    values = 2 * (log_likelihoods - least) / ranges - 1
    mean_values = values @ lengths[:, None] / lengths.sum()
    return math.tanh(0.5) * (0.98 * values + 0.02 * mean_values)


def laws(table):
    """Probabilities of all messages, ``(n, 6)``, of channels at eps = 1, from their definitions.

    The table has three hypotheses and six labels.
    """
    own_label = np.eye(6) == 1
    favourites = table.argmax(axis=0)
    orders = [list(order) for order in itertools.permutations(range(3))]
    pairs_of_labels = list(itertools.combinations(range(6), 2))
    pairs_of_hypotheses = [(0, 1), (0, 2), (1, 2)]

    pair_holds_label = np.array([np.isin(range(6), pair) for pair in pairs_of_labels])
    bits = np.array(list(itertools.product([0, 1], repeat=6)))[:, None]
    chances_of_ones = np.where(own_label, 1 / 2, 1 / (math.e + 1))
    even_parity = np.array([[(y & z).bit_count() % 2 == 0 for y in range(1, 7)] for z in range(8)])
    bit_values = values_of_one_bit(table)
    chances_of_votes = np.array([table.mean(axis=0)[favourites == j].sum() for j in range(3)])
    wheels = [law_of_wheel(favourites, chances_of_votes, order) for order in orders]
    names = np.where(np.eye(3)[:, favourites] == 1, math.e, 1.0) / (math.e + 2)
    differences = [table[i] - table[j] for i, j in pairs_of_hypotheses]
    one_against_two = [gap_of(table, j) for j in range(3)]
    adaptive_gaps = [adaptive_gap(table, order) for order in orders]
    roots = np.sqrt(PUBLIC) / np.sqrt(PUBLIC).sum()
    return {
        "identity": np.eye(6),
        "randomized-response": np.where(own_label, math.e, 1.0) / (math.e + 5),
        "subset-selection": np.where(pair_holds_label, math.e, 1.0) / (5 * math.e + 10),
        "unary-encoding": np.where(bits, chances_of_ones, 1.0 - chances_of_ones).prod(axis=-1),
        "hadamard-response": np.where(even_parity, math.e, 1.0) / (4 * math.e + 4),
        "vote": names,
        "wheel": np.concatenate(wheels) / 6,
        "one-bit": np.concatenate([1 + bit_values, 1 - bit_values]) / 6,
        "scheffe": answers(differences, [1 / 3] * 3),
        "split": answers(one_against_two, [1 / 3] * 3),
        "adaptive-split": answers(adaptive_gaps, [1 / 6] * 6),
        "adaptive-groups": names,  # of three groups
        "challenge": answers(table - roots @ table, roots),
    }


@pytest.mark.parametrize("name", sorted(set(CHANNELS) - SAMPLED - REAL))
def test_delta_is_that_of_an_enumeration_by_hand(name):
    """Excess of one label's probabilities over e^eps times another's, summed over the messages."""
    table = np.random.default_rng(0).dirichlet(np.full(6, 0.4), size=3)
    by_hand = laws(table)
    assert name in by_hand, (
        f"work out the probabilities of {name!r} by hand, and add them to laws()"
    )
    law = by_hand[name]
    np.testing.assert_allclose(law.sum(axis=0), 1.0)
    options = {}
    if name == "challenge":
        options = {"turns": 0}
    public = None
    channel = make_channel(name, 3, 6, 50, **options)
    if channel.adaptive:
        public = PUBLIC
    for epsilon in (0.2, 0.5, 0.9, 1.0):
        excess = np.maximum(law[:, :, None] - math.exp(epsilon) * law[:, None, :], 0.0)
        largest = excess.sum(axis=0).max()
        found = exact_delta(channel, table, epsilon, public)
        assert found == pytest.approx((largest, largest), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_an_incomplete_list_has_no_exact_delta(name):
    channel = make_channel(name, 3, 4, 20)
    with pytest.raises(TypeError, match="some draws of its public coins|are real numbers"):
        exact_delta(channel, np.full((3, 4), 0.25), 0.4, audit.uniform_posterior(channel))


@pytest.mark.parametrize(
    ("name", "horizon"),
    [(name, 20) for name in sorted(set(CHANNELS) - SAMPLED)]
    + [(f"{name}-vector", horizon) for name in ("laplace", "gaussian") for horizon in (2, 3, 8)],
)
def test_delta_is_that_of_drawn_messages(name, horizon):
    """``E max(1 - e^eps q(z | y') / q(z | y), 0)`` over messages of label y; Hoeffding at ALPHA.

    At small T labels are often redrawn.
    """
    table = np.random.default_rng(3).dirichlet(np.full(4, 0.4), size=3)
    channel, rng, drawn = make_channel(name, 3, 4, horizon), np.random.default_rng(1), 20_000
    if horizon < 20:
        options = {"epsilon": 2.0, "delta": 1e-2, "calibration": "tight"}
        channel, drawn = make_channel(name, 3, 4, horizon, **options), 10**5
    public = audit.uniform_posterior(channel)
    slack = math.sqrt(math.log(2 * 12 / ALPHA) / (2 * drawn))
    bounds, found = exact_delta(channel, table, 0.4, public), []
    for y in range(4):
        messages = channel.privatize(np.full(drawn, y), table, rng, public)
        density = channel.log_density(messages, table, public)
        with np.errstate(over="ignore"):
            ratios = np.exp(0.4 + density - density[:, [y]])
        found += np.delete(np.maximum(1.0 - ratios, 0.0).mean(axis=0), y).tolist()
    assert bounds.lower - slack <= max(found) <= bounds.upper + slack


def test_no_delta_where_eps_is_kept_however_large():
    assert exact_delta(RandomizedResponse(2, 5, 10, epsilon=800.0), FIVE, 800.0).upper < 1e-12


NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]


def channels_on_adversarial_classes(name, count, calibration):
    """Yield a noisy channel of random K, M, T and eps with an adversarial table, ``count`` times."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        table = draw_table(rng)
        horizon = int(10 ** rng.uniform(0.4, 5))
        epsilon = rng.uniform(0.1, 5)
        options = {"epsilon": epsilon, "calibration": calibration}
        yield make_channel(name, *table.shape, horizon, **options), table


@pytest.mark.parametrize("name", NOISY)
def test_tight_noise_is_at_most_the_paper_s(name):
    tight_channels = channels_on_adversarial_classes(name, 30, "tight")
    paper_channels = channels_on_adversarial_classes(name, 30, "paper")
    for (tight, table), (paper, _) in zip(tight_channels, paper_channels, strict=True):
        assert (tight.noise(table).scale <= paper.noise(table).scale * (1 + 1e-9)).all()


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("name", NOISY)
def test_noise_keeps_the_promise_on_adversarial_classes(name, calibration):
    for channel, table in channels_on_adversarial_classes(name, 5, calibration):
        assert certify(channel, table).holds, channel


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("name", ["laplace-vector", "gaussian-vector"])
def test_bounds_on_the_delta_of_a_vector_are_in_order(name, calibration):
    for channel, table in channels_on_adversarial_classes(name, 5, calibration):
        bounds = exact_delta(channel, table, channel.epsilon)
        assert 0 <= bounds.lower <= bounds.upper


def quieter(kind, factor):
    """The channel with its noise divided by a factor, in its density too."""
    return type("Quiet", (kind,), {"_unit_scale": lambda self: kind._unit_scale(self) / factor})


TWO = np.array([[0.9, 0.1], [0.1, 0.9]])


@pytest.mark.parametrize("kind", [LaplaceVector, GaussianVector])
def test_tight_noise_of_a_vector_keeps_the_promise(kind):
    assert certify(kind(2, 2, 100, **TIGHT), TWO).holds


@pytest.mark.parametrize("kind", [LaplaceVector, GaussianVector])
def test_half_the_noise_of_a_vector_is_convicted(kind):
    assert not certify(quieter(kind, 2.0)(2, 2, 100, **TIGHT), TWO).holds


@pytest.mark.parametrize("kind", [LaplaceVector, GaussianVector])
def test_bounds_on_delta_meet_where_one_pair_has_the_largest_range_everywhere(kind):
    """Two one-hot hypotheses over two labels: the same pair is the worst in both coordinates.

    The bounds are then apart only by the labels that h_t exchanges, once in T = 10^6; 2% is ample.
    """
    channel = kind(2, 2, 10**6, epsilon=0.5, delta=1e-3, calibration="tight")
    lower, upper = exact_delta(channel, np.eye(2), 0.5)
    assert 0.98 * upper < lower <= upper


@pytest.mark.parametrize("kind", [LaplaceVector, GaussianVector])
def test_the_upper_bound_on_delta_is_at_most_the_promise(kind):
    channel = kind(2, 2, 10**6, epsilon=0.5, delta=1e-3, calibration="tight")
    assert exact_delta(channel, np.eye(2), 0.5).upper <= 1e-3 * (1 + 1e-9)


def test_the_lower_bound_on_delta_by_hand():
    """``(1 - 1/T) delta(eps) - (e^eps - 1) A / T``, A from delta at eps / 2 and 0.9 eps, for two labels."""
    channel = GaussianVector(2, 2, 500, epsilon=0.5, delta=1e-2, calibration="tight")
    shifts = (
        np.ptp(np.log(clipped_by_hand(np.eye(2), 500)[0]), axis=1) / channel.noise(np.eye(2)).scale
    )
    half, most, full = (
        gaussian_delta(np.linalg.norm(shifts), epsilon) for epsilon in (0.25, 0.45, 0.5)
    )
    average = min(half / (1 - math.exp(-0.25)), most / (1 - math.exp(-0.05))) + full
    lower = (1 - 1 / 500) * full - math.expm1(0.5) * average / 500
    assert exact_delta(channel, np.eye(2), 0.5) == pytest.approx((lower, full), rel=1e-9)


def test_a_vector_whose_promise_cannot_be_shown_is_not_certified():
    """No pair of labels moves all three coordinates: the bounds are apart, and the upper one decides."""
    channel = quieter(GaussianVector, 1.05)(3, 3, 10_000, **TIGHT)
    table = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    bounds = exact_delta(channel, table, 1.0)
    assert bounds.lower < 1e-5 < bounds.upper
    assert not certify(channel, table).holds


class OpenHalfNoise(LaplaceSingle):
    """Uses half the noise, and says so in its density."""

    def noise(self, candidates, cells=None):
        noise = super().noise(candidates, cells)
        return noise._replace(scale=noise.scale / 2)


class Leak(LaplaceSingle):
    """Tells the label in the clear once in a thousand messages."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        leaks = uniforms[..., 3] < 1e-3
        messages[leaks] = 0.0
        messages[leaks, 0] = 100.0 + np.asarray(labels)[leaks]
        return messages


@pytest.mark.parametrize("kind", [less_noise(LaplaceSingle, 0.5), ClearText, Leak])
def test_a_channel_whose_messages_do_not_follow_its_density_gets_no_certificate(kind):
    channel = kind(2, 5, 1000)
    certificate = certify(channel, FIVE)
    assert not certificate.holds
    assert certificate.verdict == "the promise fails"
    assert "messages that follow log_density" in certificate.objection
    with pytest.raises(AssertionError, match="log_density"):
        check_channel(channel)


def test_a_channel_whose_density_admits_too_little_noise_is_convicted_by_its_density():
    channel = OpenHalfNoise(2, 5, 1000)
    certificate = certify(channel, FIVE)
    assert certificate.objection is None
    assert certificate.verdict == "the promise is broken"
    assert certificate.epsilon == pytest.approx(1.996, abs=0.001)
    with pytest.raises(AssertionError, match="a promise that is kept at every table of candidates"):
        check_channel(channel)


def test_the_contract_of_a_channel_can_be_checked_without_its_promise():
    check_channel(OpenHalfNoise(2, 5, 1000), promise=False)


@pytest.mark.parametrize("kind", [less_noise(LaplaceSingle, 0.5), OpenHalfNoise, ClearText])
def test_the_black_box_convicts_broken_channels_by_their_messages(kind):
    assert estimate_epsilon(kind(2, 5, 1000), FIVE, trials=10**5).epsilon > 1.2


def test_the_black_box_finds_a_leak_of_one_message_in_a_thousand():
    assert estimate_epsilon(Leak(2, 5, 1000), FIVE, trials=10**6).epsilon > 1.2


class WithoutWorstCases(LaplaceSingle):
    """Real messages, and no list of the worst."""

    worst_case_messages = Channel.worst_case_messages


def test_an_exact_delta_of_an_adaptive_channel_needs_a_posterior():
    with pytest.raises(ValueError, match="Pass posterior="):
        exact_delta(make_channel("adaptive-split", 2, 5, 10), FIVE, 1.0)


def test_an_exact_epsilon_of_real_messages_needs_worst_cases():
    with pytest.raises(TypeError, match=r"define worst_case_messages\(\), or audit its messages"):
        exact_epsilon(WithoutWorstCases(2, 5, 10), FIVE)


@pytest.mark.parametrize(("name", "value"), [("confidence", 99), ("delta", -1.0), ("trials", 20)])
def test_a_bad_argument_of_the_black_box_audit_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        estimate_epsilon(RandomizedResponse(2, 5, 10), FIVE, **{name: value})


@pytest.mark.parametrize("name", PURE)
def test_the_black_box_finds_most_of_eps_and_never_more(name):
    """True eps 1.5 (less for Laplace noise). The bound exceeds the truth with probability 1e-6 at most.

    A hash of the label is read only as far as its offset and bucket, at label 0, tell it.
    """
    channel = make_channel(name, 8, 16, 1000, epsilon=1.5)
    public = audit.uniform_posterior(channel)
    exact = exact_epsilon(channel, EIGHT, public).epsilon
    estimate = estimate_epsilon(channel, EIGHT, 200_000, confidence=1 - 1e-6, posterior=public)
    least_share = 0.75
    if name == "local-hashing":
        least_share = 0.5
    assert least_share * exact <= estimate.epsilon <= exact


def declaring(change):
    """Randomized response with another declared density."""

    class Declared(RandomizedResponse):
        def log_density(self, messages, candidates, posterior=None):
            return change(super().log_density(messages, candidates, posterior))

        log_likelihood = Channel.log_likelihood

    return Declared(2, 3, 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda density: density[..., :2],
            r"must have shape \(n, M\), here \(\d, 3\), got \(\d, 2\)",
        ),
        (lambda density: density[..., None], r"must have shape .*, got \(\d, 3, 1\)"),
        (lambda density: density.tolist(), "must have shape .*, got list"),
        (lambda density: np.where(np.arange(3) == 2, -np.inf, density), "it sums to 0 for label 2"),
        (lambda density: density - math.log(2.0), "it sums to 0.5 for label 0"),
        (lambda density: density + np.inf, "NaN or infinite|it sums to inf"),
    ],
)
def test_a_density_of_the_wrong_shape_or_sum_is_not_certified(change, message):
    channel = declaring(change)
    for audited in (certify, exact_epsilon, lambda *given: exact_delta(*given, 0.5)):
        with pytest.raises(ValueError, match=message):
            audited(channel, THREE)
    with pytest.raises(ValueError, match=message):
        ldp_gym.evaluate(
            "uniform", {"channel": channel, "hypotheses": THREE, "horizon": 100}, episodes=1
        )


class HalfTold(OpenHalfNoise):
    """Twice its eps; the only message that it names as its worst tells little."""

    def worst_case_messages(self, candidates, posterior=None):
        return np.array([[0.485, 0.0]])  # at THREE a ratio of 1.2, where the largest is 1.96


def test_a_certificate_finds_worse_messages_than_the_listed_worst_case():
    certificate = certify(HalfTold(2, 3, 100), THREE)
    assert not certificate.holds
    assert certificate.epsilon == pytest.approx(1.96, abs=0.01)
    assert "worst_case_messages among which the density ratio is largest" in certificate.objection


def test_an_exact_epsilon_of_worst_cases_that_are_not_the_worst_is_refused():
    with pytest.raises(BrokenPromiseError, match="worst_case_messages among which the density"):
        exact_epsilon(HalfTold(2, 3, 100), THREE)


def test_the_check_of_messages_compares_them_with_the_listed_worst_case():
    assert "worst_case_messages among which" in find_misfit(HalfTold(2, 3, 100), samples=5_000)


def test_evaluate_warns_of_worst_cases_that_are_not_the_worst():
    rules = {"channel": HalfTold(2, 3, 100), "hypotheses": THREE, "horizon": 100}
    with pytest.warns(BrokenPromiseWarning, match="no certificate .* which was sent"):
        ldp_gym.evaluate("uniform", rules, episodes=1)


def certificate_of(epsilon, delta, *, claimed_epsilon, claimed_delta):
    """A certificate without an audit."""
    return audit.Certificate(epsilon, delta, claimed_epsilon, claimed_delta, "by hand")


@pytest.mark.parametrize("claimed", [1e-2, 1.0, 4.0])
@pytest.mark.parametrize(
    ("factor", "holds"), [(1.0, True), (1.0 + 1e-10, True), (1.0 + 1e-8, False), (1.01, False)]
)
def test_a_certificate_grants_an_eps_above_the_claim_by_rounding_only(claimed, factor, holds):
    certificate = certificate_of(factor * claimed, 0.0, claimed_epsilon=claimed, claimed_delta=0.0)
    assert certificate.holds is holds


@pytest.mark.parametrize(
    ("factor", "holds"), [(1.0, True), (1.0 + 1e-10, True), (1.0 + 1e-8, False), (1.01, False)]
)
def test_a_certificate_grants_a_delta_above_the_claim_by_rounding_only(factor, holds):
    certificate = certificate_of(1.0, factor * 1e-5, claimed_epsilon=1.0, claimed_delta=1e-5)
    assert certificate.holds is holds


def test_an_eps_ten_times_a_tiny_claim_is_not_rounding():
    certificate = certificate_of(1.05e-9, 0.0, claimed_epsilon=1e-10, claimed_delta=0.0)
    assert not certificate.holds


@pytest.mark.parametrize(("excess", "noticed"), [(1e-9, False), (3e-9, True)])
def test_rounding_of_two_in_a_billion_is_granted_to_the_worst_case(excess, noticed):
    log_density = np.array([[1.0 + excess, 0.0, 0.5]])
    found = beyond_worst_case(RandomizedResponse(2, 3, 9), 1.0, np.zeros(1, dtype=int), log_density)
    assert (found is not None) is noticed


class GaussianNoise(Channel):
    """The label's unit vector with normal noise; two labels are sqrt(2) apart."""

    pure = False
    sensitivity = math.sqrt(2.0)

    def __init__(self, *sizes, **privacy):
        super().__init__(*sizes, **privacy)
        self.sigma = brentq(self.excess, 0.01, 1000.0)

    def excess(self, sigma):
        return gaussian_delta(self.sensitivity / sigma, self.epsilon) - self.delta

    @property
    def num_uniforms(self):
        return self.num_labels

    @property
    def message_space(self):
        return gym.spaces.Box(-np.inf, np.inf, (self.num_labels,), dtype=np.float64)

    def encode(self, labels, candidates, uniforms, posterior=None):
        return np.eye(self.num_labels)[labels] + self.sigma * normal(uniforms)

    def log_density(self, messages, candidates, posterior=None):
        distances = (messages[..., None, :] - np.eye(self.num_labels)) / self.sigma
        norm = self.num_labels * (math.log(self.sigma) + 0.5 * math.log(2.0 * math.pi))
        return -0.5 * np.square(distances).sum(axis=-1) - norm

    def delta_bounds(self, candidates, epsilon, posterior=None):
        delta = gaussian_delta(self.sensitivity / self.sigma, epsilon)
        return delta, delta


class WrongSensitivity(GaussianNoise):
    """The classic mistake: noise for labels at a distance of 1."""

    sensitivity = 1.0


class NoDelta(GaussianNoise):
    def delta_bounds(self, candidates, epsilon, posterior=None):
        return 0, 0


class OtherOrder(GaussianNoise):
    def delta_bounds(self, epsilon, candidates, posterior=None):
        return super().delta_bounds(candidates, epsilon)


class OtherNames(GaussianNoise):
    def delta_bounds(self, table, eps, posterior=None):
        return super().delta_bounds(table, eps)


class Upside(GaussianNoise):
    def delta_bounds(self, candidates, epsilon, posterior=None):
        return 0.5, 0.1


@pytest.mark.parametrize("delta", [0.0069, 1e-5, 1e-8])
def test_a_right_gaussian_channel_is_certified_with_an_interval_of_its_delta(delta):
    certificate = certify(GaussianNoise(2, 5, 100, epsilon=1.0, delta=delta), FIVE)
    assert certificate.holds
    assert certificate.delta == pytest.approx(delta)
    assert certificate.sampled_delta.low <= delta <= certificate.sampled_delta.high
    assert certificate.sampled_delta.low >= 0.7 * delta
    assert "sampled messages" in certificate.verdict


@pytest.mark.parametrize("delta", [0.0069, 1e-5, 1e-8])
@pytest.mark.parametrize("kind", [WrongSensitivity, NoDelta])
def test_a_delta_that_messages_contradict_is_not_certified(kind, delta):
    channel = kind(2, 5, 100, epsilon=1.0, delta=delta)
    certificate = certify(channel, FIVE)
    assert not certificate.holds
    assert "delta_bounds that hold" in certificate.objection
    with pytest.raises(AssertionError, match="delta_bounds that hold"):
        check_channel(channel, samples=1_000)
    rules = {"channel": channel, "hypotheses": FIVE, "horizon": 100}
    with pytest.warns(BrokenPromiseWarning, match="delta_bounds that hold"):
        ldp_gym.evaluate("uniform", rules, episodes=1)


def test_the_arguments_of_delta_bounds_go_by_their_names():
    channel = OtherOrder(2, 5, 100, epsilon=1.0, delta=0.01)
    assert exact_delta(channel, FIVE, 1.0).upper == pytest.approx(0.01)


def test_delta_bounds_with_other_names_are_refused():
    with pytest.raises(ValueError, match="must take candidates, epsilon and posterior by these"):
        certify(OtherNames(2, 5, 100, epsilon=1.0, delta=0.01), FIVE)


def test_delta_bounds_that_are_not_in_order_are_refused():
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\] in order"):
        certify(Upside(2, 5, 100, epsilon=1.0, delta=0.01), FIVE)


def test_the_black_box_grants_a_channel_its_own_delta():
    right = GaussianNoise(2, 5, 100, epsilon=1.0, delta=0.01)
    estimate = estimate_epsilon(right, FIVE, confidence=1 - ALPHA)
    assert estimate.holds
    assert estimate.delta == 0.01


def test_the_black_box_convicts_a_gaussian_channel_with_the_wrong_sensitivity():
    wrong = WrongSensitivity(2, 5, 100, epsilon=1.0, delta=0.01)
    assert not estimate_epsilon(wrong, FIVE).holds
    assert not audit.estimate_delta(wrong, FIVE).holds


def test_a_rare_message_in_the_clear_is_found_though_no_listed_worst_case_shows_it():
    certificate = certify(RareClearText(2, 5, 100), FIVE)
    assert not certificate.holds
    assert certificate.epsilon == pytest.approx(60.0 + math.log(1e-9))
    assert "worst_case_messages among which" in certificate.objection


def test_a_certificate_that_is_not_exact_says_what_was_looked_at():
    certificate = certify(HonestLaplace(2, 5, 100), FIVE)
    assert certificate.holds
    assert re.search(
        r"holds over the listed worst cases \(2\) and [\d,]+ sampled messages", certificate.verdict
    )
    assert "exact" not in str(certificate)


class OneHarmlessCase(Channel):
    """Three messages; the one that it lists as its worst tells nothing."""

    num_uniforms = 1
    message_space = gym.spaces.Discrete(3)
    law = np.array([[0.4, 0.4, 0.2], [0.4, 0.2, 0.4]])

    def encode(self, labels, candidates, uniforms, posterior=None):
        return categorical(self.law[labels], uniforms[..., 0])

    def log_density(self, messages, candidates, posterior=None):
        return np.log(self.law.T)[messages]

    def worst_case_messages(self, candidates, posterior=None):
        return np.array([0])


def test_messages_that_can_be_enumerated_are_enumerated():
    certificate = certify(OneHarmlessCase(2, 2, 100, epsilon=0.5), np.eye(2))
    assert certificate.epsilon == pytest.approx(math.log(2.0))
    assert certificate.method == "exact density ratio over all labels and all 3 messages"
    assert not certificate.holds


def test_a_certificate_is_printed_as_a_sentence():
    certificate = certify(RandomizedResponse(2, 5, 100), FIVE)
    assert str(certificate) == (
        "the promise holds: promised eps = 1, delta = 0; found eps = 1, delta = 0, by the exact density "
        "ratio over all labels; labels 0 and 1 differ most"
    )
