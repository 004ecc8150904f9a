"""The noisy log-likelihoods: their clipping, density, moments, and how much noise they take."""

import math

import numpy as np
import pytest
from helpers import ALPHA, TABLE, clipped_by_hand, make_channel
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldp_gym import audit
from ldp_gym.audit import certify
from ldp_gym.channels.accounting import gaussian_vector_scale
from ldp_gym.channels.clipping import RULES, Clipping
from ldp_gym.channels.noisy import CALIBRATIONS, LaplaceSingle

NAMES = ["laplace-single", "laplace-vector", "gaussian-vector"]


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 9), st.integers(2, 10**6))
def test_the_continuous_density_obeys_eq_clipping(seed, size, labels, horizon):
    """N' in [M, KM] and pbar in [1/(TKM), 1/M]: what the privacy proof needs. Rows sparse, one-hot and dense.

    And p_hat[y] is the sum over the cells of y of pbar_t, line 6 of both algorithms.
    """
    rng, clipping = np.random.default_rng(seed), Clipping(horizon)
    table = rng.dirichlet(np.full(labels, 0.3), size=size)
    table[rng.random(table.shape) < 0.3] = 0.0
    table[:, 0] += table.sum(axis=-1) == 0.0
    table /= table.sum(axis=-1, keepdims=True)
    cells = clipping.cells(table)
    assert labels * (1 - 1e-12) <= cells.total.item() <= size * labels * (1 + 1e-12)
    density = clipping.density(table, cells.lengths, cells.total)
    reachable = density[:, cells.lengths > 0]
    assert reachable.min() >= (1 - 1e-12) / (horizon * size * labels)
    assert reachable.max() <= (1 + 1e-12) / labels
    weights = rng.dirichlet(np.ones(size))
    smooth = clipping.smooth(weights, table)[cells.lengths > 0]
    np.testing.assert_allclose(
        smooth, weights @ reachable * cells.lengths[cells.lengths > 0], rtol=1e-12
    )


@pytest.mark.parametrize("rule", RULES)
def test_the_density_summed_over_explicit_cells(rule):
    """Build the cells of a table with whole lengths, and follow eqs. (hprime) to (hcircf) cell by cell."""
    table = np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 0.75, 0.0, 0.25], [0.25, 0.25, 0.5, 0.0]])
    top = (
        table.max(axis=0) * 4
    )  # 2, 3, 2, 1: whole, so that cells of unit length exist for both rules
    owner, clipping = np.repeat(np.arange(4), top.astype(int)), Clipping(7, rule)
    cells = clipping.cells(table)
    assert cells.total.item() == len(owner) == 8
    for j, row in enumerate(table):
        by_hand = np.zeros(8)  # eq. (6): sum over labels of Pr(h_t(y) = y') f_j[y]
        for y, cell in np.ndindex(4, 8):
            by_hand[cell] += row[y] * (6 / 7 * (owner[cell] == y) / top[y] + 1 / (7 * 8))
        assert np.isclose(sum(by_hand), 1.0)
        density = clipping.density(table[j], cells.lengths, cells.total)
        np.testing.assert_allclose(density[owner], by_hand, rtol=1e-13)


def test_the_paper_rule_counts_whole_cells_and_guards_against_floats():
    table = np.zeros((2, 100))
    table[0, :2], table[1, 2] = (0.07, 0.93), 1.0
    assert 100 * 0.07 > 7  # the float that would get an eighth cell
    assert Clipping(10, "paper").cells(table).lengths[:4].tolist() == [7, 93, 100, 0]
    tiny = np.array([[1e-12, 1 - 1e-12], [0.0, 1.0]])
    assert Clipping(10, "paper").cells(tiny).lengths.tolist() == [1, 2]
    design = np.array([[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]])  # with more than KM cells
    totals = [Clipping(1000, rule).cells(design).total.item() for rule in ("paper", "continuous")]
    assert totals[0] == 13 > 2 * 5 >= totals[1]


def test_h_moves_a_label_with_probability_one_over_t_to_a_cell_by_its_length():
    """All outcomes of h_t on a fine grid of uniforms, against eq. (5)."""
    table = np.array([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]])
    clipping, points = Clipping(5), (np.arange(400) + 0.5) / 400
    uniforms, moved = (
        np.stack(np.meshgrid(points, points), axis=-1),
        np.array([0.6, 0.9, 0.0]) / 1.5,
    )
    for label, kept in enumerate([[1, 0, 0], [0, 1, 0], moved]):
        outcome = clipping.draw(np.full((400, 400), label), clipping.cells(table), uniforms)
        share = np.bincount(outcome.ravel(), minlength=3) / 400**2
        np.testing.assert_allclose(share, 4 / 5 * np.array(kept) + moved / 5, atol=2 / 400)


def test_the_rounding_of_equal_rows_is_hidden():
    """Rows that are equal but for their last bits have ranges of 1e-16: no noise of that size will do."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        row = rng.dirichlet(np.ones(40))
        table = np.stack([row, row * (1 + 1e-15 * rng.standard_normal(40))])
        channel = LaplaceSingle(2, 40, 10**6, calibration="tight", epsilon=0.05)
        assert (channel.noise(table).scale == 1.0).all()
        assert certify(channel, table).holds
    flat, channel = np.full((2, 2), 0.5), LaplaceSingle(2, 2, 100, calibration="tight")
    assert channel.noise(flat).scale.tolist() == [1.0, 1.0]
    assert audit.exact_epsilon(channel, flat).epsilon < 1e-12


def test_a_tiny_range_takes_its_own_noise_where_eps_is_smaller_still():
    """A range of 4e-6, which counts as none at other eps: the scale is the range over eps, not 1."""
    table = np.array([[0.5, 0.5], [0.5 + 1e-6, 0.5 - 1e-6]])
    for epsilon, scale in (
        (1e-7, np.ptp(np.log(clipped_by_hand(table, 100)[0]), axis=1) / 1e-7),
        (1.0, 1.0),
    ):
        channel = LaplaceSingle(2, 2, 100, calibration="tight", epsilon=epsilon)
        np.testing.assert_allclose(channel.noise(table).scale, scale, rtol=1e-6)
        assert certify(channel, table).holds


def clipped(horizon, rule="continuous"):
    """``log pbar`` of the table ``(K, M)``, and the shares of the cells ``(M,)``."""
    density, lengths = clipped_by_hand(TABLE, horizon, rule)
    return np.log(density), lengths / lengths.sum()


def mixed_by_h(kernel, shares, horizon):
    """Density given each label, from densities given the outcomes of h_t; no cell has the last label."""
    average = np.nansum(kernel * shares)
    return [(1 - 1 / horizon) * k + average / horizon for k in kernel[:3]] + [average]


@pytest.mark.parametrize("rule", RULES)
def test_laplace_single_has_the_density_of_eq_12(rule):
    """q(z | y): average over J, over h_t and its cells, of explicit Laplace densities."""
    horizon, epsilon, gamma = 6, 1.3, 2.0
    channel = LaplaceSingle(3, 4, horizon, epsilon=epsilon, clipping=rule, gamma=gamma)
    log_pbar, shares = clipped(horizon, rule)
    log_kt = math.log(3 * horizon)
    offset = log_kt * (gamma + math.log(3) + math.log(horizon)) / epsilon
    slope = 1 / (log_kt + 2 * offset)
    for j in range(3):
        for value in (-0.3, 0.45, 0.5, 0.62):
            message = np.zeros(3)
            message[j] = value
            centres = -slope * (log_pbar[j] + math.log(4) - offset)
            kernel = stats.laplace(centres, slope * log_kt / epsilon).pdf(value) / 3
            density = np.exp(channel.log_density(message, TABLE))
            np.testing.assert_allclose(density, mixed_by_h(kernel, shares, horizon), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES[1:])
def test_vectors_have_the_density_of_eq_8(name):
    horizon, epsilon, delta = 6, 1.3, 1e-3
    channel = make_channel(name, 3, 4, horizon, epsilon=epsilon, delta=delta)
    log_kt, law = math.log(3 * horizon), stats.laplace
    scale = (2 * math.sqrt(2 * 3 * math.log(1 / delta)) + math.sqrt(3 * epsilon)) * log_kt / epsilon
    reach = math.log(horizon) + math.log(3) + math.log(horizon)
    if name == "gaussian-vector":
        law, scale = stats.norm, gaussian_vector_scale(3, epsilon, delta) * log_kt
        reach = math.sqrt(2 * (reach + math.log(2)))
    slope = 1 / (log_kt + 2 * scale * reach)
    log_pbar, shares = clipped(horizon)
    message = np.array([0.48, 0.53, 0.5])
    centres = -slope * (log_pbar + math.log(4) - scale * reach)
    kernel = law(centres, slope * scale).pdf(message[:, None]).prod(axis=0)
    density = np.exp(channel.log_density(message, TABLE))
    np.testing.assert_allclose(density, mixed_by_h(kernel, shares, horizon), rtol=1e-10)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_message_has_its_mean_and_variance(name, calibration):
    """Mean and variance of the losses, from h_t's law and the Laplace noise, each at error rate 1e-6."""
    channel = make_channel(name, 3, 4, 5, epsilon=2.0, calibration=calibration)
    samples, noise = 200_000, channel.noise(TABLE)
    messages = channel.privatize(np.full(samples, 1), TABLE, np.random.default_rng(0))
    log_pbar, shares = clipped(5)
    law = 4 / 5 * np.eye(4)[1, :3] + shares[:3] / 5  # no cell has the last label
    losses = -noise.slope * (log_pbar[:, :3] + math.log(4) - noise.offset)
    mean = losses @ law
    spread = 1 if name == "gaussian-vector" else 2
    variance = (losses - mean[:, None]) ** 2 @ law + spread * (noise.slope * noise.scale) ** 2
    if (
        name == "laplace-single"
    ):  # each coordinate is revealed with probability 1/3, and is 0 otherwise
        mean, variance = mean / 3, (variance + mean**2) / 3 - (mean / 3) ** 2
    squares, limit = (messages - mean) ** 2, stats.norm.isf(ALPHA / 12) / math.sqrt(samples)
    assert (np.abs(messages.mean(axis=0) - mean) < limit * np.sqrt(variance)).all()
    assert (np.abs(squares.mean(axis=0) - variance) < limit * squares.std(axis=0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_offset_covers_every_coordinate(name):
    """c' is made for the largest scale. Without a range the scale is 1, or the paper's if that is less."""
    table = np.array([[0.5, 0.5], [0.99, 0.01]])
    channel = make_channel(name, 2, 2, 100, calibration="tight")
    noise = channel.noise(table)
    assert noise.scale[0] != noise.scale[1]
    tail = 2 * math.log(100) + math.log(2)  # gamma + log(KT)
    reach = math.sqrt(2 * (tail + math.log(2))) if name == "gaussian-vector" else tail
    assert noise.offset == pytest.approx(reach * noise.scale.max())
    assert noise.slope == pytest.approx(1 / (math.log(200) + 2 * noise.offset))
    sharp, paper = (
        make_channel(name, 2, 2, 100, epsilon=50.0, calibration=calibration)
        .noise(np.full((2, 2), 0.5))
        .scale
        for calibration in ("tight", "paper")
    )
    assert (sharp <= paper).all()
    assert (
        channel.to_loss(noise.offset - np.log(2), noise.offset, noise.slope) != 0.0
    )  # revealed: never 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("calibration", "labels"), [("paper", 5), ("tight", 5), ("tight", 4096)])
def test_likelihoods_are_the_same_from_one_table_and_from_one_a_round(name, calibration, labels):
    channel, rng = (
        make_channel(name, 40, labels, 1000, calibration=calibration),
        np.random.default_rng(0),
    )
    table = rng.dirichlet(np.full(labels, 0.3), size=40)
    messages = channel.privatize(rng.integers(labels, size=max(3, 1500 // labels)), table, rng)
    per_round = np.broadcast_to(table, (len(messages), *table.shape))
    ours = channel.distances(messages, table, channel.clipping.cells(table))
    theirs = channel.distances(messages, per_round, channel.clipping.cells(per_round))
    for distances, again in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(distances, again)  # to the last bit
    one_by_one = [channel.log_likelihood(message, table) for message in messages]
    np.testing.assert_allclose(
        channel.log_likelihood(messages, table), one_by_one, rtol=0, atol=1e-11
    )
