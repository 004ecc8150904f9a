"""What an argument must satisfy, and what is said when it does not."""

import math
import re

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
    ("check", "error", "values"),
    [
        (lambda x: v.whole("it", x, least=0), TypeError, (2.0, True, "1")),
        (lambda x: v.whole("it", x, least=2), ValueError, (1,)),
        (lambda x: v.flag("it", x), TypeError, ("False", 1)),
        (lambda x: v.options_dict("it", x), TypeError, ([1],)),
        (lambda x: v.real("it", x), TypeError, ("1", True)),
        (lambda x: v.real("it", x), ValueError, (math.nan,)),
        (lambda x: v.positive("it", x), ValueError, (0, math.inf)),
        (lambda x: v.positive("it", x, most=3.0), ValueError, (4,)),
        (lambda x: v.fraction("it", x), ValueError, (1, 0)),
        (lambda x: v.probability_below_one("it", x), ValueError, (1, -0.1)),
        (lambda x: v.index("it", x, 4), ValueError, (4, -1)),
        (lambda x: v.choice("it", x, ["ansi", "human"]), ValueError, ("tv",)),
    ],
)
def test_what_is_wrong_is_named_with_its_value(check, error, values):
    for value in values:
        with pytest.raises(error, match=f"(?i)it must .*got {re.escape(repr(value))}"):
            check(value)
