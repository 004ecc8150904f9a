"""What the arrays of a game must satisfy, and what is said when they do not."""

import math

import numpy as np
import pytest
from gymnasium.spaces import Box

from ldp_gym import Simplex
from ldp_gym.core import game_arrays


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: game_arrays.labels(-1, 4), ValueError, r"labels must lie in 0\.\.3, got -1$"),
        (lambda: game_arrays.labels(1.0, 4), TypeError, r"whole numbers in 0\.\.3, got 1\.0"),
        (lambda: game_arrays.labels([True], 4), TypeError, r"whole numbers in 0\.\.3, got \[True\]"),
        (lambda: game_arrays.candidates([[0.5, 0.5]], 2, 2), ValueError, r"2, 2\), got \(1, 2\)"),
        (lambda: game_arrays.candidates([[0.5, 0.5], [1, 1]], 2, 2), ValueError, "hypothesis 1 sums to 2"),
        (lambda: game_arrays.one_context(np.full((3, 2, 2), 0.5), 2, 2), ValueError, "one context"),
        (lambda: game_arrays.posteriors([0.5, math.nan], 2), ValueError, "a NaN probability at hypothesis 1"),
        (lambda: game_arrays.posteriors([1.0], 2), ValueError, r"with K = 2, got \(1,\)"),
        (lambda: game_arrays.posteriors(1.0, 2), ValueError, "at least one"),
        (lambda: game_arrays.one_posterior([[0.5, 0.5]], 2), ValueError, "one posterior"),
        (lambda: game_arrays.checked_contexts("pool", [0.0, math.inf], 1), ValueError, "got inf in row 1"),
    ],
)
def test_a_wrong_array_is_named_with_what_is_wrong(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_labels_candidates_and_posteriors_come_back_as_they_are():
    table = np.array([[0.1 + 1e-16, 0.9], [0.5, 0.5]])
    assert game_arrays.candidates(table, 2, 2) is table
    np.testing.assert_array_equal(game_arrays.posteriors(table[0], 2), table[0])
    assert game_arrays.labels(np.uint8([3, 0]), 4).dtype == np.int64
    assert game_arrays.labels(3, 4).shape == ()


def test_hypotheses_are_normalised_to_the_last_bit():
    row = np.array([0.2, 0.3, 0.5]) * (1 + 0.9 * game_arrays.ROW_TOLERANCE)
    table = game_arrays.distributions([row, [1, 0, 0], [1.0, 5e-324, 0.0]])
    np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-15)
    assert table[2, 1] == 0.0  # too small to have a reciprocal


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.5], [0.9]], "a rectangular array of numbers"),
        ([["a", "b"]], "probabilities must be numbers, got <U1 such as"),
        ([], r"at least one label, got shape \(0,\)"),
        (0.5, r"at least one label, got shape \(\)"),
        ([0.5, 0.6], r"the hypothesis sums to 1.1, off one by \+0.1 \(allowed: 1e-05\)"),
        ([[1.0, 0.0], [0.5, 0.5 + 2e-5]], r"hypothesis 1 sums to 1.00002, off one by \+2e-05"),
        ([[1.0, 0.0], [1.5, -0.5]], "hypothesis 1 has a negative probability at label 1: -0.5"),
        ([[[1.0, 0.0], [math.nan, 1.0]]], "hypothesis 1 has a NaN probability at label 0: nan"),
        ([[0.0, 0.0], [0.5, 0.5]], "hypothesis 0 sums to 0, off one by -1"),
        ([[0.5, 0.5], [math.inf, 0.0]], "hypothesis 1 sums to inf"),
    ],
)
def test_what_is_no_hypothesis_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        game_arrays.distributions(values)


def name_row(row):
    return f"the prediction of game {row}"


def test_predictions_are_left_as_they_are_or_renormalised():
    exact = np.array([[0.1, 0.2, 0.7]])
    assert game_arrays.predictions(exact, name_row, "advice") is exact
    values = np.array([[0.25, 0.75], [0.5, 0.5]]) * (1 + 0.9 * game_arrays.PREDICTION_TOLERANCE)
    checked = game_arrays.predictions(values, name_row, "advice")
    np.testing.assert_allclose(checked, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-12)
    np.testing.assert_array_equal(values.sum(axis=-1) > 1.0, True)


@pytest.mark.parametrize("games", [3, 3000])  # short sums and long ones
@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        ([0.5, 0.5002], r"of game \[1\] sums to 1.0002, off one by \+0.0002 \(allowed: 0.0001\); do better"),
        ([1.1, -0.1], r"of game \[1\] has a negative probability at label 1: -0.1; do better"),
        ([math.nan, 0.5], r"of game \[1\] has a NaN probability at label 0: nan; do better"),
        ([math.inf, 0.5], r"of game \[1\] sums to inf"),
    ],
)
def test_the_first_wrong_prediction_is_named_with_advice(games, prediction, message):
    values = np.full((games, 2), 0.5)
    values[1:] = prediction
    with pytest.raises(ValueError, match=message):
        game_arrays.predictions(values, name_row, "do better")


def test_equality_knows_a_simplex_from_a_box():
    assert Simplex(4) == Simplex(4)
    assert Simplex(4) != Simplex(5)
    assert Simplex(4) != Box(0.0, 1.0, (4,), dtype=np.float64)


def test_what_is_wrong_is_said():
    """With the game's number in a batch; the words are those of predictions."""
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\).*MixtureAction and SoftmaxAction"):
        Simplex(3).distribution([0.5, 0.5])
    for action in ([0.5, 0.5], [0.5, np.nan, 0.5], [0.6, 0.6, -0.2], [0.5, 0.3, 0.3], [np.inf, 0.0, 0.0]):
        assert action not in Simplex(3)
    with pytest.raises(ValueError, match="the action of game 1 sums to 1.4"):
        Simplex(2, (3,)).distribution([[0.5, 0.5], [0.7, 0.7], [0.5, 0.5]])


def test_nearly_right_is_renormalised():
    action = np.array([0.3, 0.3, 0.4], dtype=np.float32) * np.float32(1 + 5e-5)
    assert np.isclose(Simplex(3).distribution(action).sum(), 1.0, rtol=0, atol=1e-15)
