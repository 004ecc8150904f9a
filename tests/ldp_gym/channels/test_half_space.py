"""The channel of random half-spaces: its geometry, its theorem, and that it is never blind."""

import math

import numpy as np
import pytest

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels import half_space
from ldp_gym.channels.half_space import HalfSpace
from ldp_gym.testing import check_channel

BLIND = np.array([[0.2, 0, 0.8], [0, 0.2, 0.8], [0.5, 0.5, 0]])
"""The third hypothesis dominates the labels in which the first two differ."""


RNG = np.random.default_rng(5)
PLAIN = RNG.dirichlet(np.full(6, 0.5), size=4)
TABLES = {
    "plain": PLAIN,
    "blind": BLIND,
    "two labels": RNG.dirichlet(np.ones(2), size=5),
    "rank 1": np.outer(np.linspace(0.0, 1.0, 4), PLAIN[0] - PLAIN[1]) + PLAIN[1],
    "duplicates": PLAIN[[0, 0, 1, 1, 2]],
    "zero column": np.insert(PLAIN, 2, 0.0, axis=1),
    "equal column": np.concatenate([0.5 * PLAIN, np.full((4, 1), 0.5)], axis=1),
    "all equal": np.full((3, 4), 0.25),
    "dependent": np.concatenate([PLAIN, PLAIN.mean(axis=0, keepdims=True)]),
    "disjoint": np.eye(4),
    "nearly equal": PLAIN.mean(axis=0) + 1e-5 * (PLAIN - PLAIN.mean(axis=0)),
    "tiny labels": np.concatenate([PLAIN * (1 - 1e-9), np.array([[1e-9], [0], [0], [1e-9]])], axis=1)
    / (1 - 1e-9 + 1e-9 * np.array([[1], [0], [0], [1]])),
    "extreme": RNG.dirichlet(np.full(7, 0.05), size=7),
}
DISTINCT = sorted(set(TABLES) - {"all equal"})


def _lewis_weights(table):
    """The weights by 60 plain steps with a pseudo-inverse, in the coordinates of centred columns."""
    columns = (table - table.mean(axis=0)).T
    columns[np.abs(columns).max(axis=1) <= 1e-12 * table.max(axis=0)] = 0.0
    weights = np.linalg.norm(columns, axis=1)
    used = weights > 0.0
    for _ in range(60):
        gram = np.einsum("yk,yl,y->kl", columns[used], columns[used], 1.0 / weights[used])
        inverse = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
        weights[used] = np.sqrt(np.einsum("yk,kl,yl->y", columns[used], inverse, columns[used]))
    return weights


def _rank(table):
    return int(np.linalg.matrix_rank(table - table.mean(axis=0), tol=1e-8))


def _points(table):
    """``u_y``, ``(K - 1, M)``."""
    points = table[1:] - table[0]
    points[:, np.abs(points).max(axis=0) <= 1e-12 * table.max(axis=0)] = 0.0
    return points


def _whitened(table):
    """``L^-1 u_y`` as the channel has it, ``(K - 1, M)``."""
    factor = half_space._lewis_factor(table[None])
    return half_space._solve_transposed(*factor, np.eye(len(table) - 1)).T @ _points(table)


@pytest.mark.parametrize("name", TABLES)
def test_lengths_are_lewis_weights(name):
    """Up to a common scale they are those of an independent computation, which sum to the rank."""
    table = TABLES[name]
    lengths, weights = np.linalg.norm(_whitened(table), axis=0), _lewis_weights(table)
    assert weights.sum() == pytest.approx(_rank(table), abs=1e-6)
    np.testing.assert_allclose(lengths * weights.sum(), weights * lengths.sum(), rtol=0.02, atol=1e-9)


def _mean_square(table, weights):
    """``E mu(S)^2`` of ``mu = sum_k w_k f_k``, by the arcsine law of two signs."""
    points = _whitened(table)
    lengths = np.linalg.norm(points, axis=0)
    used = lengths > 0.0
    unit = points[:, used] / lengths[used]
    mu = (weights @ table)[used]
    return mu @ np.arcsin(np.clip(unit.T @ unit, -1.0, 1.0)) @ mu / (2.0 * math.pi)


@pytest.mark.parametrize("name", DISTINCT)
def test_no_pair_of_mixtures_is_hidden(name):
    """``E mu(S)^2 >= 2 TV^2 / (pi d)``, with 1% for the few steps, for pairs and random mixtures."""
    table = TABLES[name]
    size, rng, rank = len(table), np.random.default_rng(0), _rank(table)
    pairs = [np.eye(size)[i] - np.eye(size)[j] for i in range(size) for j in range(i)]
    mixed = [rng.dirichlet(np.full(size, 0.3)) - rng.dirichlet(np.full(size, 0.3)) for _ in range(50)]
    for weights in pairs + mixed:
        distance = np.maximum(weights @ table, 0.0).sum()
        assert _mean_square(table, weights) >= 0.99 * 2.0 * distance**2 / (math.pi * rank) - 1e-12


@pytest.mark.parametrize("name", DISTINCT)
def test_few_steps_keep_the_theorem_s_constant(name):
    """``min(tau / sigma) rank / sum sigma``, sigma one step after tau: the share that the proof leaves."""
    points = _points(TABLES[name])[..., None]
    sigma = np.sqrt(np.square(points).sum(axis=0))
    factor, sigma = half_space._triangular(points, sigma)
    for _ in range(half_space._LEWIS_STEPS):
        tau, (_, sigma) = sigma, half_space._triangular(points, sigma, factor.inverse > 0.0)
    used = sigma > 0.0
    assert (tau[used] / sigma[used]).min() * _rank(TABLES[name]) / sigma.sum() >= 0.97


@pytest.mark.parametrize("name", TABLES)
def test_the_answer_has_its_law(name):
    """Both answers about a plane: probabilities that sum to one, e^eps apart, and what encode sends."""
    table, epsilon = TABLES[name], 1.3
    size, labels = table.shape
    channel = HalfSpace(size, labels, 50, epsilon=epsilon)
    rng = np.random.default_rng(1)
    coins = rng.random((40, size - 1))
    messages = channel.messages_given_coins(coins, table)
    density = np.exp(channel.log_density(messages, table))
    np.testing.assert_allclose(density.sum(axis=1), 1.0, rtol=1e-12)
    keep = 1.0 / (1.0 + math.exp(-epsilon))
    assert np.isin(density.round(12), np.round([keep, 0.5, 1.0 - keep], 12)).all()
    steps = (np.arange(400) + 0.5) / 400  # the private coin, at its quantiles
    uniforms = np.empty((40, 400, size))
    uniforms[..., :-1], uniforms[..., -1] = coins[:, None], steps
    for y in range(labels):
        sent = channel.encode(y, table, uniforms)
        first = (sent == messages[:, None, 0]).all(axis=-1)
        assert (first | (sent == messages[:, None, 1]).all(axis=-1)).all()
        if np.abs(messages).max() > 0.0:
            np.testing.assert_allclose(first.mean(axis=1), density[:, 0, y], atol=0.003)


def test_labels_on_the_plane_are_answered_by_a_coin():
    table = TABLES["zero column"]
    channel = HalfSpace(4, 7, 50)
    messages = channel.list_messages(table).messages
    agreement = channel.agreement(messages, table)
    assert (agreement[:, 2] == 0.5).all()
    assert np.isin(np.delete(agreement, 2, axis=1), [0.0, 1.0]).all()


def test_a_batch_of_tables_is_many_tables():
    """Leading axes, one table and chunks of tables: the same contrasts."""
    rng = np.random.default_rng(2)
    tables = rng.dirichlet(np.full(5, 0.4), size=(30, 20, 4))
    channel = HalfSpace(4, 5, 50)
    labels, uniforms = rng.integers(5, size=(30, 20)), rng.random((30, 20, 4))
    messages = channel.encode(labels, tables, uniforms)
    for i, j in [(0, 0), (12, 17), (29, 19)]:
        alone = channel.encode(labels[i, j], tables[i, j], uniforms[i, j])
        np.testing.assert_allclose(alone, messages[i, j], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("leading", [(), (1,), (5,), (1, 1), (4, 1), (3, 4, 5), (2, 1, 1, 1)])
def test_tables_and_coins_broadcast_whichever_has_more_axes(leading):
    rng = np.random.default_rng(9)
    tables, uniforms = rng.dirichlet(np.ones(6), size=(*leading, 3)), rng.random((4, 5, 3))
    channel = HalfSpace(3, 6, 50)
    shape = np.broadcast_shapes(leading, (4, 5))
    every = np.broadcast_to(tables, (*shape, 3, 6)), np.broadcast_to(uniforms, (*shape, 3))
    expected = channel.messages_given_coins(every[1][..., :2], every[0])
    found = np.broadcast_to(channel.messages_given_coins(uniforms[..., :2], tables), expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_cut_labels_keep_their_contrast():
    """A label in parts is on the same ray: the channel is free of M."""
    table, coins = TABLES["plain"], np.random.default_rng(3).random((50, 3))
    parts = [1, 7, 2, 30, 1, 3]
    cut = np.repeat(table, parts, axis=1) / np.repeat(parts, parts)
    whole, parts = (HalfSpace(4, t.shape[1], 9).messages_given_coins(coins, t) for t in (table, cut))
    np.testing.assert_allclose(whole, parts, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.BlindChannelWarning")
def test_bayes_learns_where_split_is_blind():
    """24 episodes of 2,000 rounds: in the second half ``split`` pays about 140, this one less than 10."""
    rows = [[0.04 - 0.005 * i, 0.04 - 0.005 * i, 0.92 + 0.01 * i] for i in range(5)]
    later = []
    for name in ("split", "half-space"):
        rules = {"hypotheses": np.concatenate([BLIND, rows]), "horizon": 2000, "channel": name, "truth": 0}
        found = ldp_gym.evaluate("bayes", rules, episodes=24, checkpoints=[1000, 2000])
        later.append((found.kl[:, 1] - found.kl[:, 0]).mean())
    assert later[0] > 100.0 > 50.0 > later[1]


@pytest.mark.parametrize("nature", ["adversary", "omniscient"])
def test_the_sum_of_squared_tv_is_within_the_theorem(nature):
    """Bayes on contexts by an adversary, one that knows the truth too: mean of 60 episodes of 100 rounds."""
    rules = {"channel": "half-space", "nature": nature, "horizon": 100, "epsilon": 3.0, "num_hypotheses": 4}
    tv = ldp_gym.evaluate("bayes", rules, episodes=60, checkpoints=range(1, 101)).tv
    squares = np.square(np.diff(tv, axis=-1, prepend=0.0)).sum(axis=-1)
    bound = 100 * theory.half_space_tv_bound(4, 100, 3.0) ** 2
    assert squares.mean() + 5.0 * squares.std(ddof=1) / math.sqrt(60) < bound


def test_turning_towards_the_posterior_never_lowers_what_the_likely_ones_differ_by():
    """``sum_k w_k (f_k(S) - f(S))^2`` of the turned set, against the half-space that it starts from."""
    rng = np.random.default_rng(6)
    plain, turned = HalfSpace(5, 9, 50), ldp_gym.CHANNELS["adaptive-half-space"](5, 9, 50)
    for alpha in (0.02, 0.3, 3.0):
        table, posterior = rng.dirichlet(np.full(9, 0.3), size=5), rng.dirichlet(np.full(5, alpha))
        coins = rng.random((200, 4))
        variances = []
        for channel in (plain, turned):
            contrast = channel.messages_given_coins(coins, table, posterior)[:, 0]
            np.testing.assert_allclose(contrast.sum(axis=-1), 0.0, atol=1e-9)
            held = channel.agreement(contrast, table) @ table.T
            variances.append(np.square(held - (held @ posterior)[:, None]) @ posterior)
        assert (variances[1] >= variances[0] * (1 - 1e-9)).all()
        assert variances[1].mean() > variances[0].mean()


def test_when_two_are_left_the_turned_plane_is_mostly_the_one_between_them():
    """Unless the plane that it starts from has both of their labels on one side."""
    channel = ldp_gym.CHANNELS["adaptive-half-space"](3, 3, 50)
    coins = np.random.default_rng(7).random((50, 2))
    contrast = channel.messages_given_coins(coins, BLIND, np.array([0.5, 0.5, 0.0]))[:, 0]
    between = (np.abs(np.abs(contrast) - [1.0, 1.0, 0.0]) < 1e-9).all(axis=-1)
    assert between.mean() > 0.4


def test_a_public_coin_decides_about_turning():
    """Where the coin says no, the plane is the theorem's; where it says yes, the uniform posterior's."""
    table, rng = TABLES["plain"], np.random.default_rng(8)
    coins = rng.random((300, 4))
    mixed = HalfSpace(4, 6, 50, turned=0.4).messages_given_coins(coins, table)[:, 0]
    plain = HalfSpace(4, 6, 50).messages_given_coins(coins[:, :3], table)[:, 0]
    turned = half_space.turn_contrast(plain, table, np.full(4, 0.25), steps=1)
    np.testing.assert_array_equal(mixed, np.where(coins[:, 3:] < 0.4, turned, plain))
    check_channel(HalfSpace(4, 6, 50, turned=0.4), samples=20_000)
    assert theory.blind_pairs(HalfSpace(3, 3, 50, turned=0.9), BLIND) == []
