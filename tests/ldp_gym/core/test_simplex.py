import numpy as np
import pytest

from ldp_gym import Simplex


def test_equality_knows_a_simplex_from_a_box():
    from gymnasium.spaces import Box

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
