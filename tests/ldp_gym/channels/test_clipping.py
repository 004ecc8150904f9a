"""Section 4's clipping against explicit cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_gym.channels.clipping import RULES, Clipping


def tables(rng, size, labels):
    """Sparse, one-hot and dense rows."""
    table = rng.dirichlet(np.full(labels, 0.3), size=size)
    table[rng.random(table.shape) < 0.3] = 0.0
    table[:, 0] += table.sum(axis=-1) == 0.0
    return table / table.sum(axis=-1, keepdims=True)


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 9), st.integers(2, 10**6))
def test_the_continuous_density_obeys_eq_clipping(seed, size, labels, horizon):
    """N' in [M, KM] and pbar in [1/(TKM), 1/M]: what the privacy proof needs."""
    table = tables(np.random.default_rng(seed), size, labels)
    clipping = Clipping(horizon)
    cells = clipping.cells(table)
    assert labels * (1 - 1e-12) <= cells.total.item() <= size * labels * (1 + 1e-12)
    density = clipping.density(table, cells.lengths, cells.total)
    reachable = density[:, cells.lengths > 0]
    assert reachable.min() >= (1 - 1e-12) / (horizon * size * labels)
    assert reachable.max() <= (1 + 1e-12) / labels


@pytest.mark.parametrize("rule", RULES)
def test_the_density_summed_over_explicit_cells(rule):
    """Build the cells of a table with whole lengths, and follow eqs. (hprime) to (hcircf) cell by cell."""
    table = np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 0.75, 0.0, 0.25], [0.25, 0.25, 0.5, 0.0]])
    horizon, labels = 7, 4
    top = table.max(axis=0) * labels  # 2, 3, 2, 1: whole, so that cells of unit length exist for both rules
    owner = np.repeat(np.arange(labels), top.astype(int))
    total = len(owner)
    clipping = Clipping(horizon, rule)
    cells = clipping.cells(table)
    assert cells.total.item() == total
    for j, row in enumerate(table):
        # eq. (6): sum over labels of Pr(h_t(y) = y') f_j[y]
        by_hand = [
            sum(
                row[y] * ((1 - 1 / horizon) * (owner[cell] == y) / top[y] + 1 / (horizon * total))
                for y in range(labels)
            )
            for cell in range(total)
        ]
        assert np.isclose(sum(by_hand), 1.0)
        density = clipping.density(table[j], cells.lengths, cells.total)
        np.testing.assert_allclose(density[owner], by_hand, rtol=1e-13)


def test_the_paper_rule_counts_whole_cells_and_guards_against_floats():
    table = np.zeros((2, 100))
    table[0, :2] = 0.07, 0.93
    table[1, 2] = 1.0
    cells = Clipping(10, "paper").cells(table)
    assert 100 * 0.07 > 7  # the float that would get an eighth cell
    assert cells.lengths[:4].tolist() == [7, 93, 100, 0]
    tiny = np.array([[1e-12, 1 - 1e-12], [0.0, 1.0]])
    assert Clipping(10, "paper").cells(tiny).lengths.tolist() == [1, 2]


def test_the_paper_rule_exceeds_km_on_the_design_example():
    table = np.array([[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]])
    assert Clipping(1000, "paper").cells(table).total.item() == 13 > 2 * 5
    assert Clipping(1000).cells(table).total.item() <= 2 * 5


def test_h_moves_a_label_with_probability_one_over_t_to_a_cell_by_its_length():
    """All outcomes of h_t on a fine grid of uniforms, against eq. (5)."""
    table = np.array([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]])
    horizon, grid = 5, 400
    clipping = Clipping(horizon)
    cells = clipping.cells(table)
    points = (np.arange(grid) + 0.5) / grid
    uniforms = np.stack(np.meshgrid(points, points), axis=-1)
    for label in range(3):
        outcome = clipping.draw(np.full((grid, grid), label), cells, uniforms)
        share = np.bincount(outcome.ravel(), minlength=3) / grid**2
        moved = np.array([0.6, 0.9, 0.0]) / 1.5
        kept = np.eye(3)[label] if label < 2 else moved
        np.testing.assert_allclose(share, (1 - 1 / horizon) * kept + moved / horizon, atol=2 / grid)


def test_smoothing_is_the_sum_over_a_label_s_cells():
    """p_hat[y] = sum over the cells of y of pbar_t, line 6 of both algorithms."""
    rng = np.random.default_rng(0)
    table, weights = tables(rng, 3, 5), rng.dirichlet(np.ones(3))
    clipping = Clipping(20)
    cells = clipping.cells(table)
    mixed = weights @ clipping.density(table, cells.lengths, cells.total)
    np.testing.assert_allclose(clipping.smooth(weights, table), mixed * cells.lengths, rtol=1e-12)
