"""The channels' laws against brute force."""

import math

import numpy as np
import pytest
from conftest import ALPHA, CHANNELS, TABLE, make_channel
from scipy import integrate, stats

import ldp_gym
from ldp_gym.calibration.clipping import RULES
from ldp_gym.channels.base import Channel, log_mixed
from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.channels.laplace_vector import LaplaceVector
from ldp_gym.channels.noisy import CALIBRATIONS
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.testing import check_channel


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 4.0, 800.0])
@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_keeps_the_contract(name, epsilon):
    check_channel(make_channel(name, 3, 5, 50, epsilon=epsilon))


@pytest.mark.parametrize("rule", RULES)
def test_laplace_single_has_the_density_of_eq_tildeypdp(rule):
    """q(z | y): average over J, over h_t and its cells, of explicit Laplace densities."""
    horizon, epsilon, gamma = 6, 1.3, 2.0
    channel = LaplaceSingle(3, 4, horizon, epsilon=epsilon, clipping=rule, gamma=gamma)
    lengths = 4 * TABLE.max(axis=0)
    if rule == "paper":
        lengths = np.ceil(lengths - 1e-9)
    total = lengths.sum()
    log_kt = math.log(3 * horizon)
    offset = log_kt * (gamma + math.log(3) + math.log(horizon)) / epsilon
    slope = 1 / (log_kt + 2 * offset)
    with np.errstate(invalid="ignore"):
        log_pbar = np.log((1 - 1 / horizon) * TABLE / lengths + 1 / (horizon * total))
    for j in range(3):
        for value in (-0.3, 0.45, 0.5, 0.62):
            message = np.zeros(3)
            message[j] = value
            centres = -slope * (log_pbar[j] + math.log(4) - offset)
            kernel = stats.laplace(centres, slope * log_kt / epsilon).pdf(value) / 3
            average = np.nansum(kernel * lengths) / total
            by_hand = [(1 - 1 / horizon) * k + average / horizon for k in kernel[:3]] + [average]
            np.testing.assert_allclose(np.exp(channel.log_density(message, TABLE)), by_hand, rtol=1e-10)


def test_laplace_single_s_density_integrates_to_one():
    channel = LaplaceSingle(3, 4, 6, epsilon=1.3)
    for label in range(4):

        def density(value, j, label=label):
            message = np.zeros(3)
            message[j] = value
            return math.exp(channel.log_density(message, TABLE)[label])

        parts = [
            integrate.quad(density, *ends, args=(j,), limit=400)[0]
            for j in range(3)
            for ends in ((-20, 0), (0, 1), (1, 20))
        ]
        assert abs(sum(parts) - 1) < 1e-6


def test_laplace_vector_has_the_density_of_eq_tildey():
    horizon, epsilon, delta = 6, 1.3, 1e-3
    channel = LaplaceVector(3, 4, horizon, epsilon=epsilon, delta=delta)
    log_kt = math.log(3 * horizon)
    scale = (2 * math.sqrt(2 * 3 * math.log(1 / delta)) + math.sqrt(3 * epsilon)) * log_kt / epsilon
    offset = scale * (math.log(horizon) + math.log(3) + math.log(horizon))
    slope = 1 / (log_kt + 2 * offset)
    lengths = 4 * TABLE.max(axis=0)
    total = lengths.sum()
    with np.errstate(invalid="ignore"):
        log_pbar = np.log((1 - 1 / horizon) * TABLE / lengths + 1 / (horizon * total))
    message = np.array([0.48, 0.53, 0.5])
    centres = -slope * (log_pbar + math.log(4) - offset)
    kernel = stats.laplace(centres, slope * scale).pdf(message[:, None]).prod(axis=0)
    average = np.nansum(kernel * lengths) / total
    by_hand = [(1 - 1 / horizon) * k + average / horizon for k in kernel[:3]] + [average]
    np.testing.assert_allclose(np.exp(channel.log_density(message, TABLE)), by_hand, rtol=1e-10)


def test_randomized_response_sums_to_one_and_keeps_as_section_3_says():
    channel = RandomizedResponse(3, 4, 10, epsilon=1.5)
    density = np.exp(channel.log_density(np.arange(1, 5), TABLE))
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-12)
    keep = math.exp(1.5) / (math.exp(1.5) + 3)
    np.testing.assert_allclose(np.diag(density), keep, rtol=1e-12)
    others = density[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose(others, 1 / (math.exp(1.5) + 3), rtol=1e-12)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("name", ["laplace-single", "laplace-vector", "gaussian-vector"])
def test_the_message_has_its_mean_and_variance(name, calibration):
    """Mean and variance of the losses, from h_t's law and the Laplace noise, each at error rate 1e-6."""
    channel = make_channel(name, 3, 4, 5, epsilon=2.0, calibration=calibration)
    samples, label = 200_000, 1
    messages = channel.privatize(np.full(samples, label), TABLE, np.random.default_rng(0))
    cells = channel.clipping.cells(TABLE)
    reachable = cells.lengths > 0
    law = np.where(np.arange(4) == label, 1 - 1 / 5, 0.0) + cells.shares / 5
    levels = np.log(channel.clipping.density(TABLE, cells.lengths, cells.total))[:, reachable]
    law = law[reachable]
    noise = channel.noise(TABLE)
    losses = -noise.slope * (levels + math.log(4) - noise.offset)
    mean = losses @ law
    spread = 1 if name == "gaussian-vector" else 2
    variance = (losses - mean[:, None]) ** 2 @ law + spread * (noise.slope * noise.scale) ** 2
    if name == "laplace-single":  # each coordinate is revealed with probability 1/3, and is 0 otherwise
        mean, variance = mean / 3, (variance + mean**2) / 3 - (mean / 3) ** 2
    deviations = (messages.mean(axis=0) - mean) / np.sqrt(variance / samples)
    limit = stats.norm.isf(ALPHA / 12)
    assert np.abs(deviations).max() < limit
    squares = (messages - mean) ** 2
    deviations = (squares.mean(axis=0) - variance) / (squares.std(axis=0) / math.sqrt(samples))
    assert np.abs(deviations).max() < limit


@pytest.mark.parametrize("label", range(4))
def test_laplace_single_matches_a_histogram(label):
    """Messages of one label, binned by the revealed value, against the integrated density, at 1e-6."""
    channel = LaplaceSingle(3, 4, 5, epsilon=2.0)
    samples = 100_000
    messages = channel.privatize(np.full(samples, label), TABLE, np.random.default_rng(label))
    coordinate = (messages != 0).argmax(axis=-1)
    values = messages[np.arange(samples), coordinate]
    edges = np.concatenate([[-np.inf], np.quantile(values, np.linspace(0.02, 0.98, 25)), [np.inf]])
    counts = np.stack([np.histogram(values[coordinate == j], edges)[0] for j in range(3)])

    grid = np.linspace(-3, 4, 400_001)
    expected = []
    for j in range(3):
        z = np.zeros((len(grid), 3))
        z[:, j] = grid
        density = np.exp(channel.log_density(z, TABLE)[:, label])
        cumulative = integrate.cumulative_simpson(density, x=grid, initial=0)
        inner = np.interp(edges[1:-1], grid, cumulative)
        expected.append(np.diff(np.concatenate([[0], inner, [cumulative[-1]]])))
    expected = np.array(expected)
    assert abs(expected.sum() - 1) < 1e-4
    assert stats.chisquare(counts.ravel(), samples * (expected / expected.sum()).ravel()).pvalue > ALPHA


@pytest.mark.parametrize("name", ["randomized-response", "identity"])
def test_label_channels_match_their_frequencies(name):
    channel = make_channel(name, 3, 4, 5, epsilon=1.0)
    samples = 100_000
    messages = channel.privatize(np.full(samples, 2), TABLE, np.random.default_rng(0))
    expected = samples * np.exp(channel.log_density(np.arange(1, 5), TABLE)[:, 2])
    counts = np.bincount(messages, minlength=5)[1:]
    possible = expected > 0
    assert counts[~possible].sum() == 0
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], expected[possible]).pvalue > ALPHA


PURE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].pure and name != "identity"]


@pytest.mark.parametrize("name", PURE)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 800.0])
def test_pure_channels_keep_their_ratio(name, epsilon):
    """log q(z | y) - log q(z | y') <= eps on the messages themselves, labels that nobody allows included."""
    channel = make_channel(name, 3, 4, 100, epsilon=epsilon)
    rng = np.random.default_rng(0)
    public = np.array([0.2, 0.5, 0.3]) if channel.adaptive else None
    messages = channel.privatize(rng.integers(4, size=5000), TABLE, rng, public)
    density = channel.log_density(messages, TABLE, public)
    assert np.ptp(density, axis=-1).max() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", CHANNELS)
def test_labels_candidates_and_coins_broadcast(name):
    channel = make_channel(name, 3, 4, 50)
    rng = np.random.default_rng(0)
    coins = rng.random((6, 5, channel.num_uniforms))
    spread = np.broadcast_to(TABLE, (6, 1, 3, 4))
    public = np.array([0.2, 0.5, 0.3]) if channel.adaptive else None
    expected = channel.encode(np.full((6, 5), 2), np.broadcast_to(TABLE, (6, 5, 3, 4)), coins, public)
    np.testing.assert_allclose(channel.encode(2, TABLE, coins, public), expected)
    np.testing.assert_allclose(channel.encode(np.full(5, 2), spread, coins, public), expected)


def test_the_identity_says_loudly_that_it_gives_no_privacy():
    with pytest.warns(ldp_gym.NoPrivacyWarning, match="reveals every label"):
        channel = make_channel("identity", 3, 4, 10)
    assert channel.epsilon == math.inf
    assert channel.privatize(np.array([0, 3]), TABLE, np.random.default_rng(0)).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("laplace-single", {"epsilon": 0.0}, "epsilon must be positive and finite, got 0"),
        ("laplace-single", {"epsilon": math.nan}, "epsilon must be a number, got NaN"),
        ("laplace-single", {"epsilon": -1}, "got -1"),
        ("laplace-single", {"delta": 1e-5}, "pure channel: it takes delta=0 only, got 1e-05"),
        ("laplace-vector", {"delta": 0.0}, "needs delta > 0"),
        ("laplace-vector", {"delta": 1.0}, r"delta must lie in \[0, 1\), got 1"),
        ("laplace-single", {"gamma": -1.0}, "gamma must be positive"),
        ("randomized-response", {"horizon": 1}, r"horizon \(T\) must be at least 2, got 1"),
        ("randomized-response", {"num_hypotheses": 1}, r"num_hypotheses \(K\) must be at least 2, got 1"),
    ],
)
def test_bad_parameters_are_named(name, options, message):
    facts = {"num_hypotheses": 3, "num_labels": 4, "horizon": 10, "delta": 0.0, **options}
    with pytest.raises(ValueError, match=message):
        ldp_gym.CHANNELS[name](**facts)


def test_unknown_names_and_options_come_with_advice():
    facts = {"num_hypotheses": 3, "num_labels": 4, "horizon": 10}
    with pytest.raises(ValueError, match="did you mean 'laplace-single'"):
        ldp_gym.CHANNELS.build("laplace-singel", facts, {})
    with pytest.raises(TypeError, match="takes no option 'gama'; its options: .*gamma"):
        ldp_gym.CHANNELS.build("laplace-single", facts, {"gama": 1.0})


class Leaky(Channel):
    """A user's channel: the parity of the label, flipped at random; its density is wrong on demand."""

    num_uniforms = 1
    claimed = 1.0

    @property
    def message_space(self):
        import gymnasium as gym

        return gym.spaces.Discrete(3)

    def encode(self, labels, candidates, uniforms, posterior=None):
        keep = uniforms[..., 0] < 1 / (1 + math.exp(-self.epsilon))
        return np.where(keep, labels % 2, 1 - labels % 2) + 1

    def log_density(self, messages, candidates, posterior=None):
        same = np.asarray(messages)[..., None] - 1 == np.arange(self.num_labels) % 2
        return -np.logaddexp(0, np.where(same, -1, 1) * self.epsilon * self.claimed)


def test_check_channel_passes_a_user_s_channel_and_catches_a_wrong_density():
    check_channel(Leaky(3, 4, 10))
    wrong = Leaky(3, 4, 10)
    wrong.claimed = 1.5
    with pytest.raises(AssertionError, match="follow log_density"):
        check_channel(wrong)


# -- Beyond the paper ---------------------------------------------------------------------------------


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
    atoms = np.array([-channel._bit, channel._bit])
    reach = getattr(channel, "_reach", 0.0)
    grid = np.linspace(-reach, reach, 400_001)
    grid = (grid[1:] + grid[:-1]) / 2
    cell = 2 * reach / 400_000
    found = []
    for value in np.linspace(-1, 1, 21):
        weights = channel.report_density(atoms, np.full(2, value))
        moments = [weights.sum(), weights @ atoms, weights @ atoms**2]
        if reach and channel._share:
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
    reports = channel.randomize(np.full(200_000, 0.4), rng.random((200_000, channel._num_coins)))
    assert abs(reports.mean() - 0.4) < stats.norm.isf(ALPHA / 2) * reports.std() / math.sqrt(200_000)


@pytest.mark.parametrize("name", [name for name in CHANNELS if ldp_gym.CHANNELS[name].reveals_losses])
def test_what_is_known_of_a_loss_s_size_is_its_size(name):
    channel = make_channel(name, 3, 5, 50, epsilon=2.0)
    table = np.random.default_rng(2).dirichlet(np.ones(5), size=3)
    public = np.full(3, 1 / 3) if channel.adaptive else None
    rng = np.random.default_rng(0)
    messages = channel.privatize(rng.integers(5, size=50_000), table, rng, public)
    estimates = channel.loss_estimates(messages, table, public)
    spread = estimates.var(axis=0).mean()
    known = channel.loss_variance(table)
    assert spread < 1.05 * known
    # The wheel's losses are in (0, 1], and the bound is for any in [-1, 1].
    assert spread > (0.05 if "wheel" in name else 0.2) * known
    nothing = np.zeros((2, *channel.message_shape))
    assert (channel.loss_estimates(nothing, table, public) == 0.0).all()


def test_log_densities_stay_finite_where_rounding_leaves_the_unit_interval():
    for epsilon in (1.0, 60.0, 800.0):
        density = log_mixed(np.array([1.0 + 1e-12, -1e-12]), 0.0, epsilon)
        np.testing.assert_allclose(density, [0.0, -epsilon], atol=1e-9)


@pytest.mark.parametrize("name", ["laplace-single", "laplace-vector", "gaussian-vector"])
def test_one_offset_covers_every_coordinate(name):
    """c' is made for the largest scale. Without a range the scale is 1, or the paper's if that is less."""
    table = np.array([[0.5, 0.5], [0.99, 0.01]])
    channel = make_channel(name, 2, 2, 100, calibration="tight")
    noise = channel.noise(table)
    assert noise.scale[0] != noise.scale[1]
    assert noise.offset == pytest.approx(channel._reach * noise.scale.max())
    assert noise.slope == pytest.approx(1 / (math.log(200) + 2 * noise.offset))
    sharp = make_channel(name, 2, 2, 100, epsilon=50.0, calibration="tight").noise(np.full((2, 2), 0.5))
    paper = make_channel(name, 2, 2, 100, epsilon=50.0, calibration="paper").noise(np.full((2, 2), 0.5))
    assert (sharp.scale <= paper.scale).all()


def test_a_loss_is_never_the_message_for_none_yet():
    channel = make_channel("laplace-single", 2, 3, 100)
    noise = channel.noise(TABLE[:2, :3])
    assert channel.to_loss(noise.offset - np.log(3), noise.offset, noise.slope) != 0.0


def test_hadamard_response_against_the_matrix():
    from scipy.linalg import hadamard

    channel = make_channel("hadamard-response", 3, 4, 50, epsilon=1.2)
    matrix = hadamard(8)[1:5] > 0
    density = np.exp(channel.log_density(np.arange(1, 9), TABLE)).T
    np.testing.assert_allclose(density, np.where(matrix, math.exp(1.2), 1.0) / (4 * (1 + math.exp(1.2))))


def test_subset_selection_s_sets_have_their_size_and_chance():
    channel = make_channel("subset-selection", 3, 10, 50, epsilon=1.0)
    assert channel.size == round(10 / (1 + math.e))
    sets = channel.privatize(np.full(100_000, 4), np.full((3, 10), 0.1), np.random.default_rng(0))
    assert (sets.sum(axis=-1) == channel.size).all()
    hold = math.e * channel.size / (math.e * channel.size + 10 - channel.size)
    hits = sets.sum(axis=0)
    assert stats.binomtest(int(hits[4]), 100_000, hold).pvalue > ALPHA
    assert stats.binomtest(int(hits[7]), 100_000, (channel.size - hold) / 9).pvalue > ALPHA


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
