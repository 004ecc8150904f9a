"""What an argument must satisfy, and what is said when it does not."""

import math

import numpy as np
import pytest

from ldp_gym.numerics import validation


@pytest.mark.parametrize(
    ("check", "value", "result"),
    [
        (lambda v: validation.whole("n", v, least=2), 2, 2),
        (lambda v: validation.whole("n", v, least=2), np.int32(7), 7),
        (lambda v: validation.flag("f", v), np.True_, True),
        (lambda v: validation.options("o", v), None, {}),
        (lambda v: validation.options("o", v), {"a": 1}, {"a": 1}),
        (lambda v: validation.real("x", v), np.float32(0.5), 0.5),
        (lambda v: validation.real("x", v), math.inf, math.inf),
        (lambda v: validation.positive("x", v), 3, 3.0),
        (lambda v: validation.positive("x", v, most=3.0), 3, 3.0),
        (lambda v: validation.fraction("x", v), 0.5, 0.5),
        (lambda v: validation.probability_below_one("x", v), 0, 0.0),
        (lambda v: validation.index("i", v, 4), 3, 3),
        (lambda v: validation.render_mode(v, ["ansi"]), None, None),
        (lambda v: validation.render_mode(v, ["ansi"]), "ansi", "ansi"),
    ],
)
def test_what_is_right_comes_back_in_its_type(check, value, result):
    found = check(value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: validation.whole("n", 1, least=2), ValueError, "n must be at least 2, got 1"),
        (
            lambda: validation.whole("n", 2.0, least=2),
            TypeError,
            "a whole number, got 2.0 of type float",
        ),
        (lambda: validation.whole("n", True, least=0), TypeError, "n must be a whole number, got True"),
        (
            lambda: validation.flag("f", "False"),
            TypeError,
            "True or False, got 'False' of type str",
        ),
        (lambda: validation.flag("f", 1), TypeError, "f must be True or False, got 1"),
        (
            lambda: validation.options("o", [1]),
            TypeError,
            r"o must be a dict of options, got \[1\] of",
        ),
        (lambda: validation.real("x", "1"), TypeError, "x must be a number, got '1' of type str"),
        (lambda: validation.real("x", True), TypeError, "x must be a number, got True"),
        (lambda: validation.real("x", math.nan), ValueError, "x must be a number, got NaN"),
        (lambda: validation.positive("x", 0), ValueError, "x must be positive and finite, got 0"),
        (lambda: validation.positive("x", math.inf), ValueError, "x must be positive and finite, got inf"),
        (
            lambda: validation.positive("x", 4, most=3.0),
            ValueError,
            "positive and at most 3, got 4",
        ),
        (lambda: validation.fraction("x", 1), ValueError, r"x must lie in \(0, 1\), got 1"),
        (lambda: validation.fraction("x", 0), ValueError, r"x must lie in \(0, 1\), got 0"),
        (lambda: validation.probability_below_one("x", 1), ValueError, r"x must lie in \[0, 1\), got 1"),
        (lambda: validation.probability_below_one("x", -0.1), ValueError, r"\[0, 1\), got -0.1"),
        (lambda: validation.index("i", 4, 4), ValueError, r"i must lie in 0\.\.3, got 4"),
        (lambda: validation.index("i", -1, 4), ValueError, "i must be at least 0, got -1"),
        (
            lambda: validation.render_mode("tv", ["ansi", "human"]),
            ValueError,
            "None or one of ansi, human, got 'tv'",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_value(check, error, message):
    with pytest.raises(error, match=message):
        check()


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: validation.labels(-1, 4), ValueError, r"labels must lie in 0\.\.3, got -1$"),
        (lambda: validation.labels([[0, 1], [2, 4]], 4), ValueError, r"0\.\.3, got 4 at \[1, 1\]"),
        (lambda: validation.labels(1.0, 4), TypeError, r"whole numbers in 0\.\.3, got 1\.0"),
        (lambda: validation.labels([True], 4), TypeError, r"whole numbers in 0\.\.3, got \[True\]"),
        (
            lambda: validation.candidates([[0.5, 0.5]], 2, 2),
            ValueError,
            r"candidates must have shape \(\.\.\., 2, 2\), got \(1, 2\)",
        ),
        (lambda: validation.candidates([[0.5, 0.5], [1, 1]], 2, 2), ValueError, "hypothesis 1 sums to 2"),
        (
            lambda: validation.one_context(np.full((3, 2, 2), 0.5), 2, 2),
            ValueError,
            r"one context, candidates of shape \(2, 2\); got \(3, 2, 2\)",
        ),
        (lambda: validation.posterior([0.5, math.nan], 2), ValueError, "a NaN probability at hypothesis 1"),
        (lambda: validation.posterior([1.0], 2), ValueError, r"each of 2 hypotheses, .* got \(1,\)"),
        (lambda: validation.posterior(1.0, 2), ValueError, "at least one"),
        (
            lambda: validation.one_posterior([[0.5, 0.5]], 2),
            ValueError,
            r"one posterior, of shape \(2,\), got \(1, 2\)",
        ),
    ],
)
def test_labels_candidates_and_posteriors_are_named_with_what_is_wrong(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_labels_candidates_and_posteriors_come_back_as_they_are():
    table = np.array([[0.1 + 1e-16, 0.9], [0.5, 0.5]])
    assert validation.candidates(table, 2, 2) is table
    assert validation.posterior(table[0], 2) is not None
    assert validation.labels(np.uint8([3, 0]), 4).dtype == np.int64
    assert validation.labels(3, 4).shape == ()


def test_options_are_a_copy():
    given = {"a": 1}
    validation.options("o", given)["b"] = 2
    assert given == {"a": 1}


# -- Distributions --------------------------------------------------------------------------------


def test_hypotheses_are_normalised_to_the_last_bit():
    row = np.array([0.2, 0.3, 0.5]) * (1 + 0.9 * validation.ROW_TOLERANCE)
    table = validation.distributions([row, [1, 0, 0]])
    np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=0, atol=1e-15)
    assert table.dtype == np.float64
    assert validation.distributions([0.5, 0.5]).tolist() == [0.5, 0.5]


def test_probabilities_without_a_reciprocal_are_none():
    table = validation.distributions([[1.0, 5e-324], [0.5, 0.5]])
    assert table[0, 1] == 0.0
    assert np.isfinite(1.0 / table[table > 0.0]).all()


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
        validation.distributions(values)


def name_row(row):
    return f"the prediction of game {row}"


def test_predictions_within_rounding_are_left_as_they_are():
    values = np.array([[0.1, 0.2, 0.7]])
    assert validation.predictions(values, name_row, "advice") is values


def test_predictions_within_the_tolerance_are_renormalised():
    values = np.array([[0.25, 0.75], [0.5, 0.5]]) * (1 + 0.9 * validation.PREDICTION_TOLERANCE)
    checked = validation.predictions(values, name_row, "advice")
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
        validation.predictions(values, name_row, "do better")


def test_row_totals_are_the_sums():
    rows = np.array([[0.5, 0.4], [0.5, 0.6]])
    np.testing.assert_allclose(validation.row_totals(rows, 0.2, name_row, "advice"), [0.9, 1.1])
