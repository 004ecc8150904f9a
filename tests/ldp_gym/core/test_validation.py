"""What arguments and arrays of a game must satisfy, and what is said when they do not."""

import math
import re

import numpy as np
import pytest
from gymnasium.spaces import Box

from ldp_gym import Simplex
from ldp_gym.core import game_arrays as g
from ldp_gym.core import validation as v


@pytest.mark.parametrize(
    ("check", "right", "wrong_types", "wrong_values"),
    [
        (lambda x: v.whole("it", x, least=2), [(2, 2), (np.int32(7), 7)], [2.0, True, "1"], [1]),
        (lambda x: v.flag("it", x), [(np.True_, True)], ["False", 1], []),
        (
            lambda x: v.real("it", x),
            [(np.float32(0.5), 0.5), (math.inf, math.inf)],
            ["1", True],
            [math.nan],
        ),
        (lambda x: v.positive("it", x, most=3.0), [(3, 3.0)], [], [4, 0, math.inf]),
        (lambda x: v.probability_below_one("it", x), [(0, 0.0)], [], [1, -0.1]),
        (lambda x: v.choice("it", x, ["ansi", "human"]), [("ansi", "ansi")], [], ["tv"]),
    ],
)
def test_a_right_argument_comes_back_in_its_type_and_a_wrong_one_is_named(
    check, right, wrong_types, wrong_values
):
    for value, result in right:
        found = check(value)
        assert (type(found), found) == (type(result), result)
    for error, values in ((TypeError, wrong_types), (ValueError, wrong_values)):
        for value in values:
            with pytest.raises(error, match=f"(?i)it must .*got {re.escape(repr(value))}"):
                check(value)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: g.distributions([[0.5, 0.5], [0.9]]), "a rectangular array of numbers"),
        (lambda: g.distributions([["a", "b"]]), "probabilities must be numbers, got <U1 such as"),
        (lambda: g.distributions([]), r"at least one label, got shape \(0,\)"),
        (
            lambda: g.distributions([0.5, 0.6]),
            r"sis sums to 1.1, off one by \+0.1 \(allowed: 1e-05\)",
        ),
        (
            lambda: g.distributions([[1.0, 0.0], [0.5, 0.5 + 2e-5]]),
            r"hypothesis 1 .*, off one by \+2e-05",
        ),
    ],
)
def test_a_wrong_array_is_named_with_what_is_wrong(check, message):
    with pytest.raises(ValueError, match=message):
        check()


def test_right_arrays_come_back_as_they_are_or_normalised_to_the_last_bit():
    table = np.array([[0.1 + 1e-16, 0.9], [0.5, 0.5]])
    assert g.candidates(table, 2, 2) is table
    np.testing.assert_array_equal(g.posteriors(table[0], 2), table[0])
    assert g.labels(np.uint8([3, 0]), 4).dtype == np.int64
    assert g.labels(3, 4).shape == ()
    row = np.array([0.2, 0.3, 0.5]) * (1 + 0.9 * g.ROW_TOLERANCE)
    table = g.distributions([row, [1, 0, 0], [1.0, 5e-324, 0.0]])
    np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-15)
    assert table[2, 1] == 0.0  # too small to have a reciprocal


def check_predictions(values):
    return g.predictions(values, lambda row: f"the prediction of game {row}", "do better")


def test_predictions_are_left_as_they_are_or_renormalised():
    exact = np.array([[0.1, 0.2, 0.7]])
    assert check_predictions(exact) is exact
    values = np.array([[0.25, 0.75], [0.5, 0.5]]) * (1 + 0.9 * g.PREDICTION_TOLERANCE)
    np.testing.assert_allclose(check_predictions(values), [[0.25, 0.75], [0.5, 0.5]], rtol=1e-12)
    assert (values.sum(axis=-1) > 1.0).all()
    action = np.array([0.3, 0.3, 0.4], dtype=np.float32) * np.float32(1 + 5e-5)
    assert np.isclose(Simplex(3).distribution(action).sum(), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("games", [3, 3000])  # short sums and long ones
@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (
            [0.5, 0.5002],
            r"of game \[1\] sums to 1.0002, off one by \+0.0002 \(allowed: 0.0001\); do better",
        ),
        ([1.1, -0.1], r"of game \[1\] has a negative probability at label 1: -0.1; do better"),
        ([math.nan, 0.5], r"of game \[1\] has a NaN probability at label 0: nan; do better"),
        ([math.inf, 0.5], r"of game \[1\] sums to inf"),
    ],
)
def test_the_first_wrong_prediction_is_named_with_advice(games, prediction, message):
    values = np.full((games, 2), 0.5)
    values[1:] = prediction
    with pytest.raises(ValueError, match=message):
        check_predictions(values)


def test_a_simplex_knows_its_points_and_its_equals():
    for action in (
        [0.5, 0.5],
        [0.5, np.nan, 0.5],
        [0.6, 0.6, -0.2],
        [0.5, 0.3, 0.3],
        [np.inf, 0.0, 0.0],
    ):
        assert action not in Simplex(3)
    with pytest.raises(
        ValueError, match=r"shape \(3,\), got \(2,\).*MixtureAction and SoftmaxAction"
    ):
        Simplex(3).distribution([0.5, 0.5])
    with pytest.raises(ValueError, match="the action of game 1 sums to 1.4"):
        Simplex(2, (3,)).distribution([[0.5, 0.5], [0.7, 0.7], [0.5, 0.5]])
    assert Simplex(4) == Simplex(4)
    assert Simplex(4) not in (Simplex(5), Box(0.0, 1.0, (4,), dtype=np.float64))
