"""The operations that everything is computed with, against plain loops, for short arrays and long ones."""

import numpy as np
import pytest
from scipy import special

from ldp_gym.core import arrays

BATCHES = [(), (3,), (2, 5), (40, 60)]
"""Below and above the size at which some sums change their method."""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("batch", [(4,), (2, 3)])
def test_trailing_axes_are_indexed_elementwise(batch, rng):
    array = rng.random((*batch, 5, 6))
    rows, columns = rng.integers(5, size=batch), rng.integers(6, size=batch)
    both, one = arrays.at(array, rows, columns), arrays.at(array, rows, slice(None))
    for i in np.ndindex(batch):
        assert both[i] == array[(*i, rows[i], columns[i])]
        np.testing.assert_array_equal(one[i], array[(*i, rows[i])])


def test_an_index_broadcasts_over_a_table_and_over_rounds(rng):
    table, labels = rng.random((3, 6)), rng.integers(6, size=(2, 4))
    assert arrays.at(table, np.array([[2], [0]]), labels).tolist() == [
        [table[2, y] for y in labels[0]],
        [table[0, y] for y in labels[1]],
    ]
    rounds = rng.random((2, 1, 3, 6))  # a round axis of 1: the same in all rounds
    found = arrays.at(rounds, np.ones((2, 4), dtype=int), labels)
    assert found.tolist() == [[rounds[b, 0, 1, y] for y in labels[b]] for b in range(2)]


@pytest.mark.parametrize("shared", [True, False])
def test_masses_are_what_every_hypothesis_gives_to_the_label(shared, rng):
    candidates = rng.random((3, 6)) if shared else rng.random((2, 4, 3, 6))
    labels = rng.integers(6, size=(2, 4))
    found = arrays.masses(candidates, labels)
    for b, t in np.ndindex(2, 4):
        table = candidates if shared else candidates[b, t]
        np.testing.assert_array_equal(found[b, t], table[:, labels[b, t]])


@pytest.mark.parametrize("batch", BATCHES)
def test_sums_along_the_last_axis(batch, rng):
    a, b = rng.random((*batch, 7)), rng.random((*batch, 7))
    np.testing.assert_allclose(arrays.inner(a, b), (a * b).sum(axis=-1), rtol=1e-12)
    np.testing.assert_allclose(arrays.row_sums(a), a.sum(axis=-1), rtol=1e-12)
    if len(batch) == 2:
        np.testing.assert_allclose(arrays.inner(a[:, :1], b), (a[:, :1] * b).sum(axis=-1), rtol=1e-12)


@pytest.mark.parametrize("batch", BATCHES)
def test_a_single_zero_is_found(batch, rng):
    array = rng.random((*batch, 7)) + 0.1
    assert not arrays.has_zero(array)
    array[..., 3] = 0.0
    assert arrays.has_zero(array)


@pytest.mark.parametrize("batch", [(), (4,), (4, 1), (2, 5)])
@pytest.mark.parametrize("shared", [True, False])
def test_mixtures_and_expectations(shared, batch, rng):
    candidates = rng.random((3, 6)) if shared else rng.random((*batch, 3, 6))
    weights, values = rng.random((*batch, 3)), rng.random((*batch, 6))
    mixed, expected = arrays.mixture(weights, candidates), arrays.expectations(candidates, values)
    assert mixed.shape == (*batch, 6)
    assert expected.shape == (*batch, 3)
    for i in np.ndindex(batch):
        table = candidates if shared else candidates[i]
        by_hand = [sum(weights[i][k] * table[k, y] for k in range(3)) for y in range(6)]
        np.testing.assert_allclose(mixed[i], by_hand, rtol=1e-12)
        by_hand = [sum(table[k, y] * values[i][y] for y in range(6)) for k in range(3)]
        np.testing.assert_allclose(expected[i], by_hand, rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_softmax_against_scipy(axis, rng):
    log_weights = 50 * rng.standard_normal((3, 4, 5))
    before = log_weights.copy()
    np.testing.assert_allclose(arrays.softmax(log_weights, axis), special.softmax(before, axis), rtol=1e-12)
    np.testing.assert_array_equal(log_weights, before)
    assert arrays.softmax(log_weights, axis, out=log_weights) is log_weights
    np.testing.assert_allclose(log_weights, special.softmax(before, axis), rtol=1e-12)


def test_weights_that_floats_can_hold_are_kept():
    weights = arrays.softmax(np.array([0.0, -40.0, -700.0, -800.0]))
    np.testing.assert_allclose(weights[:3], np.exp([0.0, -40.0, -700.0]), rtol=1e-12)
    assert weights[3] == 0.0
    assert arrays.softmax(np.array([-np.inf, 3.0, 3.0])).tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13])
def test_sums_in_order_are_sums_and_the_same_bits_in_every_layout(size, rng):
    rows = rng.random((40, size))
    sums = arrays.sums_in_order(rows)
    np.testing.assert_allclose(sums, rows.sum(axis=-1, keepdims=True), rtol=1e-15)
    np.testing.assert_array_equal(sums, arrays.sums_in_order(np.asfortranarray(rows)))
    np.testing.assert_array_equal(sums, [arrays.sums_in_order(row) for row in rows])


@pytest.mark.parametrize("product", ["mixture", "expectations"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("shape", [(2, 2), (8, 16), (33, 7)])
def test_products_of_few_rounds_are_the_same_bits_in_every_batch(product, shared, shape, rng):
    batch = (5, 32)
    candidates = rng.random(shape if shared else (*batch, *shape))
    vectors = rng.random((*batch, shape[0 if product == "mixture" else 1]))

    def multiply(table, rows):
        pair = (rows, table) if product == "mixture" else (table, rows)
        return getattr(arrays, product)(*pair)

    together = multiply(candidates, vectors)
    np.testing.assert_array_equal(together, multiply(candidates, np.asfortranarray(vectors)))
    for game in range(5):
        for rounds in (slice(0, 32), slice(3, 4), slice(7, 15)):
            table = candidates if shared else candidates[game : game + 1, rounds]
            alone = multiply(table, vectors[game : game + 1, rounds])
            np.testing.assert_array_equal(alone[0], together[game, rounds])
