"""The channel of random half-spaces: its geometry, its theorem, and that it is never blind."""

import itertools
import math

import numpy as np
import pytest
from helpers import BLIND, DEGENERATE, PLAIN

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels import half_space
from ldp_gym.channels.bit import differences
from ldp_gym.channels.half_space import HalfSpace
from ldp_gym.testing import check_channel

TABLES = DEGENERATE | {
    "rank 1": np.outer(np.linspace(0.0, 1.0, 4), PLAIN[0] - PLAIN[1]) + PLAIN[1],
    "nearly equal": PLAIN.mean(axis=0) + 1e-5 * (PLAIN - PLAIN.mean(axis=0)),
    "tiny labels": np.concatenate(
        [PLAIN * (1 - 1e-9), np.array([[1e-9], [0], [0], [1e-9]])], axis=1
    )
    / (1 - 1e-9 + 1e-9 * np.array([[1], [0], [0], [1]])),
    "extreme": np.random.default_rng(5).dirichlet(np.full(7, 0.05), size=7),
}


def lewis_weights(table):
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


def whitened_points(table):
    """``L^-1 u_y`` of the channel's factor, ``(d, M)``, the rows of its basis, and which of them are used."""
    points = table[1:] - table[0]  # u_y
    points[:, np.abs(points).max(axis=0) <= 1e-12 * table.max(axis=0)] = 0.0
    factor = half_space._lewis_factor(table[None])
    used = factor.basis < len(table)
    rows = points[np.where(used, factor.basis - 1, 0)[:, 0]]
    return (
        half_space._solve_transposed(factor.lower, factor.inverse, np.eye(len(rows))).T @ rows,
        rows,
        used,
    )


@pytest.mark.parametrize("seed", [120, 128, 131])
def test_weights_in_a_basis_that_is_found_anew_take_twice_as_many_steps(seed):
    """Columns of sizes down to 1e-6, and a hypothesis 1e-4 from the first: weights to 2e-5 from far away."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(6, 0.5), size=5) * 10.0 ** rng.uniform(-6, 0, size=6)
    table /= table.sum(axis=1, keepdims=True)
    table = table[0] + np.array([1.0, 1e-4, *rng.random(3)])[:, None] * (table - table[0])
    lengths, weights = np.linalg.norm(whitened_points(table)[0], axis=0), lewis_weights(table)
    np.testing.assert_allclose(lengths * weights.sum(), weights * lengths.sum(), rtol=2e-5)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_no_pair_of_mixtures_is_hidden(table):
    """Steps 3 and 4 of the theorem's proof, at the few steps that the channel takes to the weights.

    - ``L^-1 u_y`` has, up to scale, the length of an independent Lewis weight; these sum to d, the rank.
    - ``min(tau / sigma) d / sum sigma``, sigma one step after tau, is the share that the proof leaves.
    - ``E mu(S)^2 >= 2 TV^2 / (pi d)`` less 1%, by the arcsine law of signs, for pairs and random mixtures.
    """
    rank = int(np.linalg.matrix_rank(table - table.mean(axis=0), tol=1e-8))
    whitened, rows, used = whitened_points(table)
    assert used.sum() == rank
    lengths, weights = np.linalg.norm(whitened, axis=0), lewis_weights(table)
    assert weights.sum() == pytest.approx(rank, abs=1e-6)
    np.testing.assert_allclose(
        lengths * weights.sum(), weights * lengths.sum(), rtol=0.02, atol=1e-9
    )
    if rank == 0:
        return

    sigma = np.linalg.norm(table[1:] - table[0], axis=0)[:, None]
    for _ in range(1 + half_space._LEWIS_STEPS):
        tau, sigma = sigma, half_space._triangular(rows[..., None], sigma, used).norms
    known = sigma > 0.0
    assert (tau[known] / sigma[known]).min() * rank / sigma.sum() >= 0.97

    used = lengths > 0.0
    unit = whitened[:, used] / lengths[used]
    covariance = np.arcsin(np.clip(unit.T @ unit, -1.0, 1.0)) / (2.0 * math.pi)
    pairs = [one - other for one, other in itertools.combinations(np.eye(len(table)), 2)]
    mixed = np.random.default_rng(0).dirichlet(np.full(len(table), 0.3), size=(50, 2))
    for difference in np.concatenate([pairs, mixed[:, 0] - mixed[:, 1]]) @ table:
        mean_square = difference[used] @ covariance @ difference[used]
        distance = np.maximum(difference, 0.0).sum()
        assert mean_square >= 0.99 * 2.0 * distance**2 / (math.pi * rank) - 1e-12


def nearly_dependent(rng):
    """A random table whose hypotheses nearly depend on each other, by 1e-16 to 1e-2, in random order."""
    size, labels = rng.integers(2, 8), rng.integers(2, 14)
    if rng.random() < 0.2:
        size, labels = rng.integers(15, 40), rng.integers(2, 6)
    base = rng.dirichlet(np.full(labels, rng.choice([0.05, 0.3, 2.0])), size=size)
    if rng.random() < 0.4:
        base = rng.multinomial(40, base) / 40
    small = 10.0 ** rng.uniform(-16, -2 if rng.random() < 0.2 else -6)
    noise, scales = small * rng.standard_normal(base.shape), 10.0 ** rng.uniform(-12, 0, size=size)
    mixing = rng.dirichlet(np.full(rng.integers(1, size + 1), 0.5), size=size)
    table = [
        np.concatenate([base, np.abs(base + noise)[: rng.integers(1, 4)]]),  # duplicates that moved
        np.concatenate([base, np.clip(base, small, None)]),
        np.concatenate([base, base * np.exp(noise)]),
        np.concatenate([base, small * rng.random((size, 2))], axis=1),  # tiny labels
        base * 10.0 ** rng.uniform(-12, 0, size=labels),
        np.abs(mixing @ base[: mixing.shape[1]] + noise),  # any rank from 0 up
        base[0] + scales[:, None] * (base - base[0]),
        np.cumsum(np.sort(scales)[::-1, None] * base, axis=0),
    ][rng.integers(8)]
    table = table / table.sum(axis=1, keepdims=True)
    return table[rng.permutation(len(table))]


def test_nearly_dependent_hypotheses_keep_the_theorem():
    """``E (f(S) - p(S))^2 >= 2 (TV - cost)^2 / (pi (K - 1))`` through the sides of 500 drawn contrasts.

    2,000 tables, pairs and random mixtures. The cost is that of docs/proofs.md.
    """
    rng, least = np.random.default_rng(0), math.inf
    for _ in range(2000):
        table = nearly_dependent(rng)
        size, labels = table.shape
        channel = HalfSpace(size, labels, 50)
        contrasts = channel.messages_given_coins(
            rng.random((500, channel.num_public_coins)), table
        )[:, 0]
        pairs = np.eye(size)[rng.permuted(np.tile(np.arange(size), (40, 1)), axis=1)[:, :2]]
        mixed = rng.dirichlet(np.full(size, 0.3), size=(10, 2))
        weights = np.concatenate([pairs, mixed])
        difference = (weights[:, 0] - weights[:, 1]) @ (table - table[0])
        distance = 0.5 * np.abs(difference).sum(axis=1)
        mean_square = np.square(channel.agreement(contrasts, table) @ difference.T).mean(axis=0)
        cost = 2e-8 * (1.0 + math.sqrt(math.pi * (size - 1) / 2.0))
        known = distance > cost
        promised = 2.0 * np.square(distance[known] - cost) / (math.pi * (size - 1))
        least = min(least, (mean_square[known] / promised).min(initial=math.inf))
    assert least > 0.9


def test_many_hypotheses_ask_in_as_many_dimensions_as_there_are_labels():
    """K = 30,000, M = 16: 15 coins, at most 16 coefficients, and the theorem on some pairs."""
    rng, channel = np.random.default_rng(4), HalfSpace(30_000, 16, 50)
    table = rng.dirichlet(np.full(16, 0.5), size=30_000)
    assert channel.num_public_coins == 15
    contrasts = channel.messages_given_coins(rng.random((300, 15)), table)[:, 0]
    assert np.count_nonzero(contrasts, axis=-1).max() == 16
    held = channel.agreement(contrasts, table) @ table[:200].T
    distance = np.maximum(table[:100] - table[100:200], 0.0).sum(axis=-1)
    mean_square = np.square(held[:, :100] - held[:, 100:]).mean(axis=0)
    assert (mean_square > 2.0 * distance**2 / (math.pi * 15)).all()
    with pytest.raises(ValueError, match="min\\(K, M\\) - 1=49,999 would keep"):
        HalfSpace(50_000, 50_000, 50)


def test_rounding_decides_no_side():
    """Equal up to the last bits: no label and no hypothesis gets a question of its own."""
    table = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
    noisy = table * (1.0 + 1e-15 * np.random.default_rng(0).standard_normal(table.shape))
    coins = np.random.default_rng(1).random((20, 2))
    plain, other = (
        HalfSpace(3, 4, 50).messages_given_coins(coins, each) for each in (table, noisy)
    )
    np.testing.assert_allclose(plain, other, atol=1e-12)
    assert (plain[..., 2] == 0.0).all()
    assert np.isin(HalfSpace(3, 4, 50).agreement(other, noisy), [0.0, 1.0]).all()
    assert (HalfSpace(2, 4, 50).agreement(np.array([1.0, -1.0]), noisy[[0, 2]]) == 0.5).all()


@pytest.mark.parametrize(
    "leading", [(), (1,), (5,), (1, 1), (4, 1), (3, 4, 5), (2, 1, 1, 1), (30, 4, 5)]
)
def test_tables_and_coins_broadcast_whichever_has_more_axes(leading):
    """With 600 tables, more than are looked at together; and each as by itself."""
    rng, channel = np.random.default_rng(9), HalfSpace(3, 6, 50)
    tables, coins = rng.dirichlet(np.ones(6), size=(*leading, 3)), rng.random((4, 5, 2))
    shape = np.broadcast_shapes(leading, (4, 5))
    every = np.broadcast_to(coins, (*shape, 2)), np.broadcast_to(tables, (*shape, 3, 6))
    expected = channel.messages_given_coins(*every)
    found = np.broadcast_to(channel.messages_given_coins(coins, tables), expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    last = channel.messages_given_coins(*(array[(-1,) * len(shape)] for array in every))
    np.testing.assert_allclose(last, expected[(-1,) * len(shape)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("nature", ["adversary", "omniscient"])
def test_the_sum_of_squared_tv_is_within_the_theorem(nature):
    """Bayes on contexts by an adversary, one that knows the truth too: mean of 60 episodes of 100 rounds."""
    rules = {
        "channel": "half-space",
        "nature": nature,
        "horizon": 100,
        "epsilon": 3.0,
        "num_hypotheses": 4,
    }
    tv = ldp_gym.evaluate("bayes", rules, episodes=60, checkpoints=range(1, 101)).tv
    squares = np.square(np.diff(tv, axis=-1, prepend=0.0)).sum(axis=-1)
    bound = 100 * theory.half_space_tv_bound(4, 100, 3.0) ** 2
    assert squares.mean() + 5.0 * squares.std(ddof=1) / math.sqrt(60) < bound


@pytest.mark.parametrize("alpha", [0.02, 0.3, 3.0])
def test_turning_towards_the_posterior_never_lowers_what_the_likely_ones_differ_by(alpha):
    """``sum_k w_k (f_k(S) - f(S))^2`` of the turned set, against the half-space that it starts from."""
    rng, variances = np.random.default_rng(6), []
    table, weights = rng.dirichlet(np.full(9, 0.3), size=5), rng.dirichlet(np.full(5, alpha))
    channel = HalfSpace(5, 9, 50)
    plane = channel.messages_given_coins(rng.random((200, 4)), table)[:, 0]
    for contrast in (plane, half_space.turn_contrast(plane, table, differences(table), weights)):
        np.testing.assert_allclose(contrast.sum(axis=-1), 0.0, atol=1e-9)
        held = channel.agreement(-contrast, table) @ table.T
        variances.append(np.square(held - (held @ weights)[:, None]) @ weights)
    plain, turned = variances
    assert (turned >= plain * (1 - 1e-9)).all()
    assert turned.mean() > plain.mean()


def test_a_public_coin_decides_about_turning():
    """Where the coin says no, the plane is the theorem's; where it says yes, the uniform posterior's."""
    coins = np.random.default_rng(8).random((300, 4))
    mixed = HalfSpace(4, 6, 50, turned=0.4).messages_given_coins(coins, PLAIN)[:, 0]
    plain = HalfSpace(4, 6, 50).messages_given_coins(coins[:, :3], PLAIN)[:, 0]
    turned = half_space.turn_contrast(plain, PLAIN, differences(PLAIN), np.full(4, 0.25))
    np.testing.assert_array_equal(mixed, np.where(coins[:, 3:] < 0.4, turned, plain))
    check_channel(HalfSpace(4, 6, 50, turned=0.4), samples=20_000)
    assert theory.blind_pairs(HalfSpace(3, 3, 50, turned=0.9), BLIND) == []
