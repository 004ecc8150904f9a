"""Loss estimates: the truth has the least, and those of the label log-loss are unbiased."""

import math

import numpy as np
import pytest
from helpers import PURE, make_channel

import ldp_gym
from ldp_gym.channels import local_hashing
from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipping import Clipping
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import IncompatibleChannelError

RANDOM = np.random.default_rng(3).dirichlet(np.full(6, 0.4), size=4)
TABLES = {
    "random": RANDOM,
    "overlapping": np.array(
        [
            [0.5, 0.5, 0, 0, 0, 0],
            [0.5, 0, 0.5, 0, 0, 0],
            [0.25, 0.25, 0.25, 0.25, 0, 0],
            [0, 0.5, 0.5, 0, 0, 0],
        ]
    ),
    "twins": np.array([[0.5, 0.3, 0.2, 0, 0, 0]] * 2 + [[0.1, 0.2, 0.7, 0, 0, 0]] * 2),
    "disjoint": np.eye(6)[:4],
    "near ties": np.array([[0.4, 0.3, 0.3, 0, 0, 0]] * 4)
    + np.array([[0, 0, 0], [1e-13, -1e-13, 0], [0, 1e-11, -1e-11], [1e-9, 0, -1e-9]]) @ np.eye(3, 6),
}
POSTERIORS = {
    "uniform": np.full(4, 0.25),
    "random": np.random.default_rng(5).dirichlet(np.ones(4)),
    "confident": np.array([1e-9, 0.98, 0.02 - 2e-9, 1e-9]),
    "certain": np.array([0.0, 0.0, 1.0, 0.0]),
}
LISTED = [name for name in PURE if name != "laplace-single"]


def laws(channel, table, posterior):
    """The listed messages, their probabilities under the hypotheses ``(N, K)``, and the losses ``(N, K)``."""
    public = posterior if channel.adaptive else None
    listed = channel.list_messages(table, public)
    weights = np.exp(listed.log_weights)[:, None]
    density = weights * np.exp(channel.log_density(listed.messages, table, public))
    np.testing.assert_allclose(density.sum(axis=0), 1.0, atol=1e-9)
    likelihood = weights * np.exp(channel.log_likelihood(listed.messages, table, public))
    np.testing.assert_allclose(likelihood, density @ table.T, atol=1e-12)
    return listed, likelihood, channel.loss_estimates(listed.messages, table, public)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", LISTED)
def test_the_truth_has_the_least_loss_whatever_the_posterior(name, kind, epsilon):
    channel, table = ldp_gym.CHANNELS[name](4, 6, 100, epsilon=epsilon), TABLES[kind]
    for posterior in POSTERIORS if channel.adaptive else ["uniform"]:
        _, likelihood, losses = laws(channel, table, POSTERIORS[posterior])
        excess = likelihood.T @ losses
        excess = excess - np.diag(excess)[:, None]  # of hypothesis k over the truth, (truth, k)
        if name in ("one-bit", "hybrid"):  # noisy log-likelihoods, of which a range below 1e-5 counts as none
            assert (excess >= (-1e-5 if kind == "near ties" else -1e-12 * np.abs(losses).max())).all()
            continue
        assert (excess >= -1e-12).all()
        apart = np.abs(likelihood[:, :, None] - likelihood[:, None, :]).max(axis=0) > 1e-6
        assert (excess[apart] > 0.0).all()


@pytest.mark.parametrize(
    "name",
    ["randomized-response", "subset-selection", "hadamard-response", "local-hashing", "split", "scheffe",
     "vote", "wheel", "adaptive-split", "designed"],
)  # fmt: skip
def test_the_quadratic_score_is_a_squared_distance_of_laws(name):
    """``E_i (loss_k - loss_i) = sum_z (P_k - P_i)^2 / L / (1 - e^-eps)``, with L the largest density."""
    channel = ldp_gym.CHANNELS[name](4, 6, 100, epsilon=0.7)
    public = POSTERIORS["uniform"] if channel.adaptive else None
    listed, likelihood, losses = laws(channel, RANDOM, POSTERIORS["uniform"])
    density = channel.log_density(listed.messages, RANDOM, public)
    varied = density.max(axis=-1) - density.min(axis=-1) > 0.0  # others say the same whatever the label
    np.testing.assert_allclose((density.max(axis=-1) - density.min(axis=-1))[varied], 0.7, rtol=1e-9)
    largest = np.exp(density.max(axis=-1) + listed.log_weights)[:, None, None]
    distance = np.square(likelihood[:, None, :] - likelihood[:, :, None]) / largest
    excess = likelihood.T @ losses
    expected = distance[varied].sum(axis=0) / -math.expm1(-0.7)
    np.testing.assert_allclose(excess - np.diag(excess)[:, None], expected, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in LISTED if name != "designed" and "half-space" not in name])
@pytest.mark.parametrize("kind", ["overlapping", "twins", "random"])
def test_no_hypothesis_is_worse_off_for_its_number(name, kind):
    """Hypotheses in another order: the same information about every pair, and the same losses, permuted.

    The weights of a design's barrier go by number: tests/ldp_gym/channels/test_designed.py has its cost.
    The planes of half-spaces are random, and go by number too.
    """
    for size in (3, 4):  # an odd number of hypotheses has no two halves
        channel, table = ldp_gym.CHANNELS[name](size, 6, 100, epsilon=1.0), TABLES[kind][:size]
        weights = np.arange(1.0, size + 1) / np.arange(1.0, size + 1).sum()
        for order in ([2, 0, 1, 3][:size], [1, 2, 0, 3][:size]):
            before, after = (
                _pairwise(channel, t, w) for t, w in ((table, weights), (table[order], weights[order]))
            )
            for first, second in zip(before, after, strict=True):
                np.testing.assert_allclose(first[np.ix_(order, order)], second, rtol=1e-7, atol=1e-9)


def _pairwise(channel, table, posterior):
    _, likelihood, losses = laws(channel, table, posterior)
    shown = likelihood[likelihood.min(axis=-1) > 0.0]
    information = np.einsum("nij->ij", shown[:, :, None] * np.log(shown[:, :, None] / shown[:, None, :]))
    expected = likelihood.T @ losses
    return information, expected - np.diag(expected)[:, None]


@pytest.mark.parametrize("kind", ["overlapping", "random"])
def test_a_design_tells_about_the_same_whatever_the_order(kind):
    """The cost is convex in the information about pairs: at nearly the same cost, nearly the same."""
    channel, table, order = make_channel("designed", 4, 6, 100, epsilon=1.0), TABLES[kind], [2, 0, 1, 3]
    assert channel.design(table).cost == pytest.approx(channel.design(table[order]).cost, rel=1e-3)
    told, again = (_pairwise(channel, t, POSTERIORS["uniform"])[0] for t in (table, table[order]))
    np.testing.assert_allclose(told[np.ix_(order, order)], again, rtol=0.1, atol=1e-9)


class OwnResponse(RandomizedResponse):
    """A channel of one's own, without losses of its own."""

    loss_estimates = Channel.loss_estimates
    unbiased_losses = Channel.unbiased_losses


class OwnSets(ldp_gym.CHANNELS["subset-selection"]):
    """The same with messages that are not numbers."""

    loss_estimates = Channel.loss_estimates


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("maker", [OwnResponse, OwnSets])
def test_a_channel_of_one_s_own_gets_losses(maker, kind):
    channel = maker(4, 6, 100, epsilon=1.0)
    _, likelihood, losses = laws(channel, TABLES[kind], POSTERIORS["uniform"])
    excess = likelihood.T @ losses
    assert (excess - np.diag(excess)[:, None] >= -1e-12).all()
    rounds = np.broadcast_to(TABLES[kind], (3, 2, 4, 6))  # a table for every round
    messages = channel.privatize(np.zeros((3, 2), dtype=np.int64), rounds, np.random.default_rng(0))
    alike = channel.loss_estimates(messages, TABLES[kind])
    np.testing.assert_allclose(channel.loss_estimates(messages, rounds), alike)
    if maker is OwnSets:  # the logarithmic score is bounded by the privacy level
        assert np.abs(losses).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("channel", ["split", "scheffe", "vote", "wheel"])
def test_centred_exp3_finds_a_truth_that_signs_would_lose(channel):
    """Dirichlet(0.3), class_seed 0, truth 7: on the signs of 'split' it paid 138% of uniform at T = 10^4."""
    rules = {"hypotheses": "dirichlet", "horizon": 10_000, "channel": channel, "truth": 7}
    risk = ldp_gym.evaluate("centred-exp3", rules, episodes=6).risk
    assert risk < 0.06 * ldp_gym.evaluate("uniform", rules, episodes=1).risk


DENSE = np.array([[0.6, 0.3, 0.1, 0.0], [0.2, 0.2, 0.3, 0.3], [0.05, 0.8, 0.1, 0.05]])
HORIZON = 40


def clipped_losses(clipping="continuous"):
    """``-log((1 - 1/T) f_k[y] / l_y + 1 / (T N'))`` by hand, ``(K, M)``."""
    lengths = DENSE.shape[1] * DENSE.max(axis=0)
    if clipping == "paper":
        lengths = np.ceil(lengths)
    return -np.log((1 - 1 / HORIZON) * DENSE / lengths + 1 / (HORIZON * lengths.sum()))


@pytest.mark.parametrize("epsilon", [0.4, 3.0])
@pytest.mark.parametrize(
    "name",
    ["randomized-response", "identity", "subset-selection", "hadamard-response", "unary-encoding",
     "local-hashing", "one-bit", "hybrid", "designed"],
)  # fmt: skip
def test_losses_are_unbiased_given_each_label(name, epsilon, monkeypatch):
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 10**6)  # all hashes
    channel = make_channel(name, 3, 4, HORIZON, epsilon=epsilon)
    listed = channel.list_messages(DENSE)
    assert listed.complete
    density = np.exp(channel.log_density(listed.messages, DENSE) + listed.log_weights[:, None])
    losses = channel.unbiased_losses(listed.messages, DENSE)
    np.testing.assert_allclose(density.T @ losses, clipped_losses().T, rtol=1e-8)


@pytest.mark.parametrize("clipping", ["continuous", "paper"])
@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_losses_of_laplace_noise_are_unbiased_given_each_label(calibration, clipping):
    """By quadrature over each coordinate, whose message is a real number."""
    options = {"epsilon": 2.0, "calibration": calibration, "clipping": clipping}
    channel = make_channel("laplace-single", 3, 4, HORIZON, **options)
    noise, total = channel.noise(DENSE), np.zeros((4, 3))
    for j in range(3):
        grid = np.linspace(-40.0, 40.0, 200_001) * noise.scale[j]
        messages = np.zeros((len(grid), 3))
        messages[:, j] = channel.to_loss(grid, noise.offset, noise.slope)
        density = np.exp(channel.log_density(messages, DENSE)) * (grid[1] - grid[0]) * noise.slope
        total += density.T @ channel.unbiased_losses(messages, DENSE)
    np.testing.assert_allclose(total, clipped_losses(clipping).T, rtol=1e-5)


@pytest.mark.parametrize("name", ["laplace-vector", "gaussian-vector"])
def test_losses_of_vectors_are_unbiased_given_each_label(name):
    """The noise is symmetric: averaged over pairs of messages with opposite noise, nothing of it is left."""
    channel, rng = make_channel(name, 3, 4, HORIZON, epsilon=2.0), np.random.default_rng(0)
    share = channel.clipping.cells(DENSE).shares
    coins = rng.random((50, 3))
    for y in range(4):
        sums = np.zeros(3)
        for moved in (False, True):  # h_t keeps the label, or moves it to a uniform point of all cells
            for uniform, weight in zip(np.cumsum(share) - share / 2, share, strict=True):
                h = np.broadcast_to([1 / HORIZON / 2 if moved else 0.5, uniform], (50, 2))
                both = [
                    channel.unbiased_losses(channel.encode(y, DENSE, np.concatenate([h, u], axis=1)), DENSE)
                    for u in (coins, 1.0 - coins)
                ]
                mean = np.mean(both, axis=(0, 1))
                sums += (1 / HORIZON if moved else 1 - 1 / HORIZON) * weight * mean
        np.testing.assert_allclose(sums, clipped_losses()[:, y], rtol=1e-6)


def test_a_custom_channel_gets_them_from_its_channel_matrix():
    own, ours = (maker(3, 4, HORIZON) for maker in (OwnResponse, RandomizedResponse))
    rounds = np.stack([DENSE, DENSE[::-1]])[:, None]  # a table for every row of messages
    messages = np.arange(4) * np.ones((2, 1), dtype=np.int64)
    found, expected = (channel.unbiased_losses(messages, rounds) for channel in (own, ours))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_adaptive_channel_that_tells_all_labels_apart_has_them():
    channel = make_channel("adaptive-groups", 3, 3, 20, epsilon=1.0)
    table, posterior = np.eye(3), np.full(3, 1 / 3)
    listed = channel.list_messages(table, posterior)
    density = np.exp(channel.log_density(listed.messages, table, posterior) + listed.log_weights[:, None])
    losses = channel.unbiased_losses(listed.messages, table, posterior)
    np.testing.assert_allclose(density.T @ losses, Clipping(20).label_losses(table).T, rtol=1e-9)


@pytest.mark.parametrize("name", ["split", "wheel"])
def test_a_channel_without_them_says_why(name):
    blind = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
    channel = make_channel(name, 3, 3, HORIZON)
    message = channel.list_messages(blind).messages[0]
    with pytest.raises(IncompatibleChannelError, match="do not tell all labels apart"):
        channel.unbiased_losses(message, blind)


@pytest.mark.parametrize("epsilon", [0.5, 2.7])
def test_two_labels_collide_as_often_as_local_hashing_says(epsilon):
    channel = make_channel("local-hashing", 2, 30, 10, epsilon=epsilon)
    p, g = channel.prime, channel.num_buckets
    for one, other in ((0, 1), (3, 29)):
        a, b = np.arange(1, p)[:, None], np.arange(p)
        same = ((a * one + b) % p % g == (a * other + b) % p % g).mean()
        assert same == pytest.approx(channel.collision_probability, rel=1e-12)
    if epsilon == 2.7:
        assert channel.collision_probability == pytest.approx(0.0588, abs=1e-4)
