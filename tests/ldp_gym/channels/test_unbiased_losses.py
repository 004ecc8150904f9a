"""Unbiased estimates of the clipped label log-loss: by enumeration or quadrature, label by label."""

import numpy as np
import pytest
from helpers import make_channel

import ldp_gym
from ldp_gym.channels import local_hashing
from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.errors import IncompatibleChannelError

TABLE = np.array([[0.6, 0.3, 0.1, 0.0], [0.2, 0.2, 0.3, 0.3], [0.05, 0.8, 0.1, 0.05]])
HORIZON = 40


def expected(clipping="continuous"):
    """``-log((1 - 1/T) f_k[y] / l_y + 1 / (T N'))`` by hand, ``(K, M)``."""
    lengths = TABLE.shape[1] * TABLE.max(axis=0)
    if clipping == "paper":
        lengths = np.ceil(lengths)
    return -np.log((1 - 1 / HORIZON) * TABLE / lengths + 1 / (HORIZON * lengths.sum()))


@pytest.mark.parametrize("epsilon", [0.4, 3.0])
@pytest.mark.parametrize(
    "name",
    ["randomized-response", "identity", "subset-selection", "hadamard-response", "unary-encoding",
     "local-hashing", "one-bit", "hybrid", "designed"],
)  # fmt: skip
def test_losses_are_unbiased_given_each_label(name, epsilon, monkeypatch):
    monkeypatch.setattr(local_hashing, "MOST_MESSAGES", 10**6)  # all hashes
    channel = make_channel(name, 3, 4, HORIZON, epsilon=epsilon)
    listed = channel.list_messages(TABLE)
    assert listed.complete
    density = np.exp(channel.log_density(listed.messages, TABLE) + listed.log_weights[:, None])
    losses = channel.unbiased_losses(listed.messages, TABLE)
    np.testing.assert_allclose(density.T @ losses, expected().T, rtol=1e-8)


@pytest.mark.parametrize("clipping", ["continuous", "paper"])
@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_losses_of_laplace_noise_are_unbiased_given_each_label(calibration, clipping):
    """By quadrature over each coordinate, whose message is a real number."""
    channel = make_channel(
        "laplace-single", 3, 4, HORIZON, epsilon=2.0, calibration=calibration, clipping=clipping
    )
    noise, total = channel.noise(TABLE), np.zeros((4, 3))
    for j in range(3):
        grid = np.linspace(-40.0, 40.0, 200_001) * noise.scale[j]
        messages = np.zeros((len(grid), 3))
        messages[:, j] = channel.to_loss(grid, noise.offset, noise.slope)
        density = np.exp(channel.log_density(messages, TABLE)) * (grid[1] - grid[0]) * noise.slope
        total += density.T @ channel.unbiased_losses(messages, TABLE)
    np.testing.assert_allclose(total, expected(clipping).T, rtol=1e-5)


@pytest.mark.parametrize("name", ["laplace-vector", "gaussian-vector"])
def test_losses_of_vectors_are_unbiased_given_each_label(name):
    """The noise is symmetric: averaged over pairs of messages with opposite noise, nothing of it is left."""
    channel, rng = make_channel(name, 3, 4, HORIZON, epsilon=2.0), np.random.default_rng(0)
    share = channel.clipping.cells(TABLE).shares
    coins = rng.random((50, 3))
    for y in range(4):
        sums = np.zeros(3)
        for moved in (False, True):  # h_t keeps the label, or moves it to a uniform point of all cells
            for uniform, weight in zip(np.cumsum(share) - share / 2, share, strict=True):
                h = np.broadcast_to([1 / HORIZON / 2 if moved else 0.5, uniform], (50, 2))
                both = [
                    channel.unbiased_losses(channel.encode(y, TABLE, np.concatenate([h, u], axis=1)), TABLE)
                    for u in (coins, 1.0 - coins)
                ]
                mean = np.mean(both, axis=(0, 1))
                sums += (1 / HORIZON if moved else 1 - 1 / HORIZON) * weight * mean
        np.testing.assert_allclose(sums, expected()[:, y], rtol=1e-6)


def test_a_custom_channel_gets_them_from_its_channel_matrix():
    class Own(ldp_gym.CHANNELS["randomized-response"]):
        unbiased_losses = Channel.unbiased_losses

    own, ours = Own(3, 4, HORIZON), make_channel("randomized-response", 3, 4, HORIZON)
    rounds = np.stack([TABLE, TABLE[::-1]])[:, None]  # a table for every row of messages
    messages = np.arange(4) * np.ones((2, 1), dtype=np.int64)
    np.testing.assert_allclose(
        own.unbiased_losses(messages, rounds), ours.unbiased_losses(messages, rounds), rtol=1e-9
    )


def test_an_adaptive_channel_that_tells_all_labels_apart_has_them():
    channel, table, posterior = (
        make_channel("adaptive-groups", 3, 3, 20, epsilon=1.0),
        np.eye(3),
        np.full(3, 1 / 3),
    )
    listed = channel.list_messages(table, posterior)
    density = np.exp(channel.log_density(listed.messages, table, posterior) + listed.log_weights[:, None])
    losses = channel.unbiased_losses(listed.messages, table, posterior)
    np.testing.assert_allclose(density.T @ losses, Clipping(20).label_losses(table).T, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "reason"), [("split", "do not tell all labels apart"), ("wheel", "do not tell all labels apart")]
)
def test_a_channel_without_them_says_why(name, reason):
    blind = np.array([[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]])
    channel = make_channel(name, 3, 3, HORIZON)
    message = channel.list_messages(blind).messages[0]
    with pytest.raises(IncompatibleChannelError, match=reason):
        channel.unbiased_losses(message, blind)


@pytest.mark.parametrize("epsilon", [0.5, 2.7])
def test_two_labels_collide_as_often_as_local_hashing_says(epsilon):
    channel = make_channel("local-hashing", 2, 30, 10, epsilon=epsilon)
    p, g = channel.prime, channel.num_buckets
    for one, other in ((0, 1), (3, 29)):
        a, b = np.arange(1, p)[:, None], np.arange(p)
        same = ((a * one + b) % p % g == (a * other + b) % p % g).mean()
        assert same == pytest.approx(channel.collision_probability, rel=1e-12)
    assert make_channel("local-hashing", 2, 30, 10, epsilon=2.7).collision_probability == pytest.approx(
        0.0588, abs=1e-4
    )
