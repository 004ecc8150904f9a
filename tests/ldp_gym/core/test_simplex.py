import numpy as np
import pytest

from ldp_gym import Simplex


def test_equality_knows_a_simplex_from_a_box():
    from gymnasium.spaces import Box

    assert Simplex(4) == Simplex(4)
    assert Simplex(4) != Simplex(5)
    assert Simplex(4) != Box(0.0, 1.0, (4,), dtype=np.float64)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0.5, 0.5], r"shape \(3,\), got \(2,\)"),
        ([0.5, np.nan, 0.5], "the action has a NaN probability at label 1: nan"),
        ([0.6, 0.6, -0.2], "the action has a negative probability at label 2: -0.2"),
        ([0.5, 0.3, 0.3], r"the action sums to 1.1, off one by \+0.1 \(allowed: 0.0001\)"),
        ([np.inf, 0.0, 0.0], "sums to inf"),
    ],
)
def test_what_is_wrong_is_said(action, message):
    space = Simplex(3)
    assert action not in space
    with pytest.raises(ValueError, match=message) as error:
        space.distribution(action)
    assert "MixtureAction and SoftmaxAction" in str(error.value)


def test_the_game_is_named_in_a_batch():
    actions = np.full((3, 2), 0.5)
    actions[1] = 0.7, 0.7
    with pytest.raises(ValueError, match="the action of game 1 sums to 1.4"):
        Simplex(2, (3,)).distribution(actions)


def test_nearly_right_is_renormalised():
    action = np.array([0.3, 0.3, 0.4], dtype=np.float32) * np.float32(1 + 5e-5)
    assert np.isclose(Simplex(3).distribution(action).sum(), 1.0, rtol=0, atol=1e-15)
