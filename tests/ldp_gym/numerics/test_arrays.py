"""The operations that everything is computed with, against plain loops."""

import numpy as np

from ldp_gym.numerics.arrays import softmax


def test_weights_that_floats_can_hold_are_kept():
    weights = softmax(np.array([0.0, -40.0, -700.0, -800.0]))
    np.testing.assert_allclose(weights[:3], np.exp([0.0, -40.0, -700.0]), rtol=1e-12)
    assert weights[3] == 0.0
