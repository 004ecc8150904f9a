"""What an argument must satisfy, and what is said when it does not."""

import math

import numpy as np
import pytest

from ldp_gym.core import validation as v


@pytest.mark.parametrize(
    ("check", "value", "result"),
    [
        (lambda x: v.whole("n", x, least=2), 2, 2),
        (lambda x: v.whole("n", x, least=2), np.int32(7), 7),
        (lambda x: v.flag("f", x), np.True_, True),
        (lambda x: v.options_dict("o", x), None, {}),
        (lambda x: v.options_dict("o", x), {"a": 1}, {"a": 1}),
        (lambda x: v.real("x", x), np.float32(0.5), 0.5),
        (lambda x: v.real("x", x), math.inf, math.inf),
        (lambda x: v.positive("x", x), 3, 3.0),
        (lambda x: v.positive("x", x, most=3.0), 3, 3.0),
        (lambda x: v.fraction("x", x), 0.5, 0.5),
        (lambda x: v.probability_below_one("x", x), 0, 0.0),
        (lambda x: v.index("i", x, 4), 3, 3),
        (lambda x: v.choice("c", x, ["ansi"]), "ansi", "ansi"),
    ],
)
def test_what_is_right_comes_back_in_its_type(check, value, result):
    found = check(value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: v.whole("n", 1, least=2), ValueError, "n must be at least 2, got 1"),
        (lambda: v.whole("n", 2.0, least=2), TypeError, "a whole number, got 2.0 of type float"),
        (lambda: v.whole("n", True, least=0), TypeError, "n must be a whole number, got True"),
        (lambda: v.flag("f", "False"), TypeError, "True or False, got 'False' of type str"),
        (lambda: v.flag("f", 1), TypeError, "f must be True or False, got 1"),
        (lambda: v.options_dict("o", [1]), TypeError, r"o must be a dict of options by name, got \[1\] of"),
        (lambda: v.real("x", "1"), TypeError, "x must be a number, got '1' of type str"),
        (lambda: v.real("x", True), TypeError, "x must be a number, got True"),
        (lambda: v.real("x", math.nan), ValueError, "x must be a number, got NaN"),
        (lambda: v.positive("x", 0), ValueError, "x must be positive and finite, got 0"),
        (lambda: v.positive("x", math.inf), ValueError, "x must be positive and finite, got inf"),
        (lambda: v.positive("x", 4, most=3.0), ValueError, "positive and at most 3, got 4"),
        (lambda: v.fraction("x", 1), ValueError, r"x must lie in \(0, 1\), got 1"),
        (lambda: v.fraction("x", 0), ValueError, r"x must lie in \(0, 1\), got 0"),
        (lambda: v.probability_below_one("x", 1), ValueError, r"x must lie in \[0, 1\), got 1"),
        (lambda: v.probability_below_one("x", -0.1), ValueError, r"\[0, 1\), got -0.1"),
        (lambda: v.index("i", 4, 4), ValueError, "i must be at most 3, got 4"),
        (lambda: v.index("i", -1, 4), ValueError, "i must be at least 0, got -1"),
        (
            lambda: v.choice("render_mode", "tv", ["ansi", "human"]),
            ValueError,
            "render_mode must be one of ansi, human, got 'tv'",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_value(check, error, message):
    with pytest.raises(error, match=message):
        check()
