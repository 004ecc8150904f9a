"""The operations that everything is computed with, against plain loops, for short arrays and long ones."""

import numpy as np
import pytest
from scipy import special

from ldp_gym.core import arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("batch", "size"), [((), 6), ((4,), 4100), ((4, 1), 6), ((2, 5), 6), ((2, 3), 4096)]
)
@pytest.mark.parametrize("shared", [True, False])
def test_mixtures_and_expectations(shared, batch, size, rng):
    candidates = rng.random((3, size)) if shared else rng.random((*batch, 3, size))
    weights, values = rng.random((*batch, 3)), rng.random((*batch, size))
    mixed, expected = arrays.mixture(weights, candidates), arrays.expectations(candidates, values)
    assert (mixed.shape, expected.shape) == ((*batch, size), (*batch, 3))
    for i in np.ndindex(batch):
        table = candidates if shared else candidates[i]
        by_hand = [sum(weights[i][k] * table[k, y] for k in range(3)) for y in range(size)]
        np.testing.assert_allclose(mixed[i], by_hand, rtol=1e-12)
        by_hand = [sum(table[k, y] * values[i][y] for y in range(size)) for k in range(3)]
        np.testing.assert_allclose(expected[i], by_hand, rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_softmax_against_scipy_keeps_what_floats_can_hold(axis, rng):
    log_weights = 50 * rng.standard_normal((3, 4, 5))
    expected = special.softmax(log_weights, axis)
    np.testing.assert_allclose(arrays.softmax(log_weights, axis), expected, rtol=1e-12)
    np.testing.assert_allclose(
        special.softmax(log_weights, axis), expected, rtol=0
    )  # left as it was
    assert arrays.softmax(log_weights, axis, out=log_weights) is log_weights
    np.testing.assert_allclose(log_weights, expected, rtol=1e-12)
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


@pytest.mark.parametrize("name", ["mixture", "expectations"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("shape", [(2, 2), (8, 16), (33, 7), (3, 4100)])
def test_products_of_few_rounds_are_the_same_bits_in_every_batch(name, shared, shape, rng):
    candidates = rng.random(shape if shared else (5, 32, *shape))
    vectors = rng.random((5, 32, shape[0 if name == "mixture" else 1]))

    def multiply(table, rows):
        return (
            arrays.mixture(rows, table) if name == "mixture" else arrays.expectations(table, rows)
        )

    together = multiply(candidates, vectors)
    np.testing.assert_array_equal(together, multiply(candidates, np.asfortranarray(vectors)))
    for game in range(5):
        for rounds in (slice(0, 32), slice(3, 4), slice(7, 15)):
            table = candidates if shared else candidates[game : game + 1, rounds]
            alone = multiply(table, vectors[game : game + 1, rounds])
            np.testing.assert_array_equal(alone[0], together[game, rounds])


def test_what_is_kept_for_a_table_goes_with_it(rng):
    """One call per read-only table and argument; a table that may change, or a batch, is worked on anew."""
    calls = []

    @arrays.per_table
    def double(scale, table):
        calls.append(scale)
        return scale[0] * table

    table, two, three = rng.random((2, 3)), [2.0], [3.0]
    view = table.view()
    view.flags.writeable = False  # its owner may still change it
    for _ in range(2):
        table *= 0.5
        for shown in (table, view, table[None]):
            np.testing.assert_array_equal(double(two, shown), 2.0 * shown)
    assert len(calls) == 6
    table.flags.writeable = False
    for scale in (two, two, three, three):
        np.testing.assert_array_equal(double(scale, table), scale[0] * table)
    assert calls[6:] == [two, three]
    copies = [rng.random((2, 3)) for _ in range(3)]
    for copy in copies:
        copy.flags.writeable = False
        np.testing.assert_array_equal(double(two, copy), 2.0 * copy)
