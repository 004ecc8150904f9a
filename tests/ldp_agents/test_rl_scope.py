"""A model outside of what it was trained on says so, once, and says what was measured there."""

import warnings

import pytest

from ldp_agents.rl.scope import _warn, describe_outside, warn_outside
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.engine.scenario import Scenario

TRAINED_ON = {
    "epsilon": [0.25, 8.0],
    "K": [2, 64],
    "M": [2, 128],
    "T": [100, 3000],
    "channels": ["split", "laplace-single"],
    "classes": ["dirichlet", "softmax-linear"],
}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ""),
        ({"epsilon": 9.0}, "eps = 9, trained on 0.25 to 8 (nothing was measured there)"),
        ({"num_hypotheses": 65}, "K = 65, trained on 2 to 64 (measured: 1.1 times Bayes at K = 128)"),
        ({"num_labels": 129}, "M = 129, trained on 2 to 128 (nothing was measured there)"),
        ({"horizon": 99}, "T = 99, trained on 100 to 3000 (nothing was measured there)"),
        ({"channel": "wheel"}, "channel 'wheel', trained on split, laplace-single (nothing was"),
        ({"hypotheses": "disjoint"}, "class family 'disjoint', trained on dirichlet, softmax-linear (noth"),
        ({"hypotheses": [[0.5, 0.5], [0.1, 0.9]]}, "class family 'Table', trained on dirichlet"),
        (
            {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True, "horizon": 10},
            "T = 10, trained on 100 to 3000 (nothing was measured there)",
        ),
    ],
)
def test_it_says_which_and_what_was_measured(rules, expected):
    measured = {"K": "1.1 times Bayes at K = 128"}
    found = describe_outside(TRAINED_ON, measured, Scenario(**rules).game)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


def test_it_is_said_once():
    _warn.cache_clear()
    game = Scenario(horizon=50).game
    with pytest.warns(OutsideTrainingWarning, match=r"'mine' plays outside of .*: T = 50, trained on 100"):
        warn_outside("mine", TRAINED_ON, {}, game)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("error", OutsideTrainingWarning)
        warn_outside("mine", TRAINED_ON, {}, game)
