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
def test_softmax_against_scipy(axis, rng):
    log_weights = 50 * rng.standard_normal((3, 4, 5))
    expected = special.softmax(log_weights, axis)
    np.testing.assert_allclose(arrays.softmax(log_weights, axis), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_softmax_leaves_its_argument_as_it_was(axis, rng):
    log_weights = 50 * rng.standard_normal((3, 4, 5))
    before = log_weights.copy()
    arrays.softmax(log_weights, axis)
    np.testing.assert_array_equal(log_weights, before)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_softmax_may_be_written_over_its_argument(axis, rng):
    log_weights = 50 * rng.standard_normal((3, 4, 5))
    expected = special.softmax(log_weights, axis)
    assert arrays.softmax(log_weights, axis, out=log_weights) is log_weights
    np.testing.assert_allclose(log_weights, expected, rtol=1e-12)


def test_softmax_keeps_what_floats_can_hold():
    """exp(-700) is about 1e-304; exp(-800) is below all floats."""
    weights = arrays.softmax(np.array([0.0, -40.0, -700.0, -800.0]))
    np.testing.assert_allclose(weights[:3], np.exp([0.0, -40.0, -700.0]), rtol=1e-12)
    assert weights[3] == 0.0


def test_softmax_of_minus_infinity_is_0():
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


@pytest.fixture
def cached_scaling():
    """A function of a factor (in a list) and a table, cached for each table; and the factors of its calls."""
    calls = []

    @arrays.per_table
    def scale(factor, table):
        calls.append(factor)
        return factor[0] * table

    return scale, calls


def test_a_table_that_may_change_and_a_batch_are_computed_anew(cached_scaling, rng):
    scale, calls = cached_scaling
    table = rng.random((2, 3))
    read_only_view = table.view()
    read_only_view.flags.writeable = False  # its owner may still change it
    for _ in range(2):
        table *= 0.5
        for shown in (table, read_only_view, table[None]):
            np.testing.assert_array_equal(scale([2.0], shown), 2.0 * shown)
    assert len(calls) == 6


def test_a_read_only_table_is_computed_once_for_each_argument(cached_scaling, rng):
    scale, calls = cached_scaling
    table = rng.random((2, 3))
    table.flags.writeable = False
    two = [2.0]
    three = [3.0]
    for factor in (two, two, three, three):
        np.testing.assert_array_equal(scale(factor, table), factor[0] * table)
    assert calls == [two, three]


def test_read_only_tables_do_not_share_what_is_kept(cached_scaling, rng):
    scale, _ = cached_scaling
    two = [2.0]
    tables = [rng.random((2, 3)) for _ in range(3)]
    for table in tables:
        table.flags.writeable = False
        np.testing.assert_array_equal(scale(two, table), 2.0 * table)


def test_a_table_that_becomes_read_only_is_kept_from_then_on(cached_scaling, rng):
    scale, calls = cached_scaling
    table = rng.random((2, 3))
    two = [2.0]
    scale(two, table)
    table *= 0.5
    table.flags.writeable = False
    np.testing.assert_array_equal(scale(two, table), 2.0 * table)
    np.testing.assert_array_equal(scale(two, table), 2.0 * table)
    assert len(calls) == 2
