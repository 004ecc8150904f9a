"""Loss estimates: the truth has the least, and those of the label log-loss are unbiased."""

import math

import numpy as np
import pytest
from helpers import PURE, clipped_by_hand, listed_law, make_channel

import ldp_gym
from ldp_gym.channels import local_hashing
from ldp_gym.channels.base import Channel
from ldp_gym.channels.randomized_response import RandomizedResponse

TABLES = {
    "random": np.random.default_rng(3).dirichlet(np.full(6, 0.4), size=4),
    "overlapping": np.array([[2, 2, 0, 0], [2, 0, 2, 0], [1, 1, 1, 1], [0, 2, 2, 0]])
    @ np.eye(4, 6)
    / 4,
    "twins": np.array([[0.5, 0.3, 0.2, 0, 0, 0]] * 2 + [[0.1, 0.2, 0.7, 0, 0, 0]] * 2),
    "disjoint": np.eye(6)[:4],
    "near ties": np.array([[0.4, 0.3, 0.3, 0, 0, 0]] * 4)
    + np.array([[0, 0, 0], [1e-13, -1e-13, 0], [0, 1e-11, -1e-11], [1e-9, 0, -1e-9]])
    @ np.eye(3, 6),
}
UNIFORM = np.full(4, 0.25)
POSTERIORS = {
    "uniform": UNIFORM,
    "random": np.random.default_rng(5).dirichlet(np.ones(4)),
    "confident": np.array([1e-9, 0.98, 0.02 - 2e-9, 1e-9]),
    "certain": np.array([0.0, 0.0, 1.0, 0.0]),
}
LISTED = sorted(set(PURE) - {"laplace-single"})


def laws(channel, table, posterior):
    """Likelihoods and losses of all messages, ``(N, K)``; expected losses less the truth's, ``(K, K)``."""
    public = posterior if channel.adaptive else None
    messages, density = listed_law(channel, table, public)
    np.testing.assert_allclose(density.sum(axis=0), 1.0, atol=1e-9)
    weights = np.exp(channel.list_messages(table, public).log_weights)[:, None]
    likelihood = weights * np.exp(channel.log_likelihood(messages, table, public))
    np.testing.assert_allclose(likelihood, density @ table.T, atol=1e-12)
    losses = channel.loss_estimates(messages, table, public)
    expected = likelihood.T @ losses
    return likelihood, losses, expected - np.diag(expected)[:, None]


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", LISTED)
def test_the_truth_has_the_least_loss_whatever_the_posterior(name, kind, epsilon):
    channel = make_channel(name, 4, 6, 100, epsilon=epsilon)
    for posterior in POSTERIORS.values() if channel.adaptive else [UNIFORM]:
        likelihood, losses, excess = laws(channel, TABLES[kind], posterior)
        if name in (
            "one-bit",
            "hybrid",
        ):  # noisy log-likelihoods, of which a range below 1e-5 counts as none
            assert (
                excess >= (-1e-5 if kind == "near ties" else -1e-12 * np.abs(losses).max())
            ).all()
            continue
        assert (excess >= -1e-12).all()
        apart = np.abs(likelihood[:, :, None] - likelihood[:, None, :]).max(axis=0) > 1e-6
        assert (excess[apart] > 0.0).all()


@pytest.mark.parametrize(
    "name",
    ["randomized-response", "subset-selection", "hadamard-response", "local-hashing", "split", "scheffe",
     "vote", "wheel", "adaptive-split"],
)  # fmt: skip
def test_the_quadratic_score_is_a_squared_distance_of_laws(name):
    """``E_i (loss_k - loss_i) = sum_z (P_k - P_i)^2 / L / (1 - e^-eps)``, with L the largest density."""
    channel, table = make_channel(name, 4, 6, 100, epsilon=0.7), TABLES["random"]
    likelihood, _, excess = laws(channel, table, UNIFORM)
    _, density = listed_law(channel, table, UNIFORM if channel.adaptive else None)
    largest, least = density.max(axis=-1), density.min(axis=-1)
    varied = largest > least * (1 + 1e-12)  # others say the same whatever the label
    np.testing.assert_allclose(np.log(largest / least)[varied], 0.7, rtol=1e-9)
    distance = np.square(likelihood[:, None, :] - likelihood[:, :, None]) / largest[:, None, None]
    np.testing.assert_allclose(excess, distance[varied].sum(axis=0) / -math.expm1(-0.7), atol=1e-10)


def pairwise(channel, table, posterior):
    """What all messages tell about pairs of hypotheses, and how much their expected losses differ."""
    likelihood, _, excess = laws(channel, table, posterior)
    shown = likelihood[likelihood.min(axis=-1) > 0.0]
    information = (shown[:, :, None] * np.log(shown[:, :, None] / shown[:, None, :])).sum(axis=0)
    return information, excess


@pytest.mark.parametrize("name", [name for name in LISTED if "half-space" not in name])
@pytest.mark.parametrize("kind", ["overlapping", "twins", "random"])
def test_no_hypothesis_is_worse_off_for_its_number(name, kind):
    """Hypotheses in another order: the same information about every pair, and the same losses, permuted.

    The planes of half-spaces are random, and go by number.
    """
    for size in (3, 4):  # an odd number of hypotheses has no two halves
        channel, table = make_channel(name, size, 6, 100), TABLES[kind][:size]
        weights = np.arange(1.0, size + 1) / np.arange(1.0, size + 1).sum()
        before = pairwise(channel, table, weights)
        for order in ([2, 0, 1, 3][:size], [1, 2, 0, 3][:size]):
            after = pairwise(channel, table[order], weights[order])
            for first, second in zip(before, after, strict=True):
                np.testing.assert_allclose(
                    first[np.ix_(order, order)], second, rtol=1e-7, atol=1e-9
                )


class OwnResponse(RandomizedResponse):
    """A custom channel, without losses of its own."""

    loss_estimates = Channel.loss_estimates


class OwnSets(ldp_gym.CHANNELS["subset-selection"]):
    """The same with messages that are not numbers."""

    loss_estimates = Channel.loss_estimates


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("maker", [OwnResponse, OwnSets])
def test_a_custom_channel_gets_losses(maker, table):
    channel = maker(4, 6, 100, epsilon=1.0)
    _, losses, excess = laws(channel, table, UNIFORM)
    assert (excess >= -1e-12).all()
    rounds = np.broadcast_to(table, (3, 2, 4, 6))  # a table for every round
    messages = channel.privatize(np.zeros((3, 2), dtype=np.int64), rounds, np.random.default_rng(0))
    alike = channel.loss_estimates(messages, table)
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


@pytest.mark.parametrize("epsilon", [0.4, 3.0])
@pytest.mark.parametrize(
    "name",
    ["randomized-response", "identity", "subset-selection", "hadamard-response", "unary-encoding",
     "local-hashing", "one-bit", "hybrid"],
)  # fmt: skip
def test_losses_are_unbiased_given_each_label(name, epsilon, monkeypatch):
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 10**6)  # all hashes
    channel = make_channel(name, *DENSE.shape, HORIZON, epsilon=epsilon)
    assert channel.list_messages(DENSE).complete
    messages, density = listed_law(channel, DENSE)
    losses = channel.unbiased_losses(messages, DENSE)
    np.testing.assert_allclose(
        density.T @ losses, -np.log(clipped_by_hand(DENSE, HORIZON)[0].T), rtol=1e-8
    )


@pytest.mark.parametrize("clipping", ["continuous", "paper"])
@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_losses_of_laplace_noise_are_unbiased_given_each_label(calibration, clipping):
    """By quadrature over each coordinate, whose message is a real number."""
    options = {"epsilon": 2.0, "calibration": calibration, "clipping": clipping}
    channel = make_channel("laplace-single", 3, 4, HORIZON, **options)
    noise, total = channel.noise(DENSE), np.zeros((4, 3))
    for j in range(3):
        grid = np.linspace(-40.0, 40.0, 200_001) * noise.scale[j]
        messages = channel.to_loss(grid, noise.offset, noise.slope)[:, None] * np.eye(3)[j]
        density = np.exp(channel.log_density(messages, DENSE)) * (grid[1] - grid[0]) * noise.slope
        total += density.T @ channel.unbiased_losses(messages, DENSE)
    np.testing.assert_allclose(
        total, -np.log(clipped_by_hand(DENSE, HORIZON, clipping)[0].T), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["laplace-vector", "gaussian-vector"])
def test_losses_of_vectors_are_unbiased_given_each_label(name):
    """The noise is symmetric: averaged over pairs of messages with opposite noise, nothing of it is left."""
    channel = make_channel(name, 3, 4, HORIZON, epsilon=2.0)
    shares = channel.clipping.cells(DENSE).shares
    middles_of_cells = np.cumsum(shares) - shares / 2
    coins = np.random.default_rng(0).random((50, 3))
    noise = np.concatenate([coins, 1.0 - coins])
    # The first uniform: h_t keeps the label (0.5), or moves it (0.5 / T), once in T rounds.
    kept = (0.5, 1 - 1 / HORIZON)
    moved = (0.5 / HORIZON, 1 / HORIZON)
    sums = np.zeros((4, 3))
    for first_uniform, chance in (kept, moved):
        # The second uniform: the cell to which a label is moved.
        for second_uniform, share in zip(middles_of_cells, shares, strict=True):
            for_h_t = np.broadcast_to([first_uniform, second_uniform], (100, 2))
            uniforms = np.concatenate([for_h_t, noise], axis=1)
            messages = channel.encode(np.arange(4)[:, None], DENSE, uniforms)
            sums += chance * share * channel.unbiased_losses(messages, DENSE).mean(axis=1)
    clipped, _ = clipped_by_hand(DENSE, HORIZON)
    np.testing.assert_allclose(sums, -np.log(clipped.T), rtol=1e-6)


def share_of_hashes_that_collide(channel, label, other):
    """Share of all hashes ``(a y + b) mod p mod g`` that put two labels in one bucket."""
    multipliers = np.arange(1, channel.prime)[:, None]
    offsets = np.arange(channel.prime)
    buckets = (multipliers * label + offsets) % channel.prime % channel.num_buckets
    others = (multipliers * other + offsets) % channel.prime % channel.num_buckets
    return (buckets == others).mean()


@pytest.mark.parametrize(("label", "other"), [(0, 1), (3, 29)])
@pytest.mark.parametrize("epsilon", [0.5, 2.7])
def test_two_labels_collide_as_often_as_local_hashing_says(epsilon, label, other):
    channel = make_channel("local-hashing", 2, 30, 10, epsilon=epsilon)
    share = share_of_hashes_that_collide(channel, label, other)
    assert share == pytest.approx(channel.collision_probability, rel=1e-12)


def test_the_collision_probability_of_30_labels_at_eps_2_7():
    channel = make_channel("local-hashing", 2, 30, 10, epsilon=2.7)
    assert channel.collision_probability == pytest.approx(0.0588, abs=1e-4)
